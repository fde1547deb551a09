/** What `npm run destroy` removes, and what it leaves. Nothing here talks to anybody. */

/**
 * What is deleted through Cloudflare's API: `said` in words, `path` below the account, where `:database` stands for the id of the
 * database.
 * @typedef {{ do: 'delete-worker' | 'delete-index' | 'delete-database', name: string, path: string, said: string }} Removal
 */

/**
 * The Worker goes first, so nothing serves or expires what is half gone. The database goes last: it holds the records,
 * so after a failure the next run goes on from there.
 * @param {import('./plan.mjs').Wanted} wanted
 * @param {import('./plan.mjs').Found} found
 * @returns {{ steps: Removal[], left: string[] }} `left`: what stays, and how to remove it
 * @throws Error when nothing says that a deployment of this Worker made anything
 */
export function planRemoval({ worker, database, indexes }, found) {
  if (!found.database) {
    throw new Error(
      `There is no D1 database ${database.name}, so nothing says what a deployment of ${worker} made. Nothing was removed.${found.deployed ? ` There is a Worker of this name: npx wrangler delete ${worker}` : ''}`,
    )
  }
  if (found.owner !== worker) {
    throw new Error(
      `The D1 database ${database.name} ${found.owner === undefined ? 'has no mark of a deployment' : `belongs to the Worker ${found.owner}`}, and not to ${worker}. Nothing was removed.`,
    )
  }
  const made = (/** @type {string} */ kind) =>
    found.records.filter((record) => record.kind === kind).map(({ name }) => name)
  const recorded = made('vectorize')
  /** @type {Removal[]} */
  const steps = [
    ...(found.deployed ? [workerRemoval(worker)] : []),
    ...recorded.filter((name) => found.indexNames.includes(name)).map(indexRemoval),
  ]
  const left = indexes
    .filter(({ name }) => found.indexNames.includes(name) && !recorded.includes(name))
    .map(({ name }) => `the Vectorize index ${name}: npx wrangler vectorize delete ${name}`)
  if (made('d1').includes(database.name) && !database.chosen) {
    const said = `Delete the D1 database ${database.name}`
    steps.push({ do: 'delete-database', name: database.name, path: '/d1/database/:database', said })
  } else {
    left.push(`the D1 database ${database.name}: npx wrangler d1 delete ${database.name}`)
  }
  return { steps, left }
}

/** `force` deletes the Worker's objects too. @param {string} name @returns {Removal} */
const workerRemoval = (name) => ({
  do: 'delete-worker',
  name,
  path: `/workers/scripts/${name}?force=true`,
  said: `Delete the Worker ${name}, its secrets, and its Durable Objects with all conversations and collections`,
})

/** @param {string} name @returns {Removal} */
const indexRemoval = (name) => ({
  do: 'delete-index',
  name,
  path: `/vectorize/v2/indexes/${name}`,
  said: `Delete the Vectorize index ${name}`,
})
