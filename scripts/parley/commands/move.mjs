/**
 * `parley move`: the documents of a collection into a cluster, from there into Parley, or from one cluster into another.
 *
 * The documents are copied into a collection beside it, `NAME-move`. If both hold the same, the two change places in one step.
 */
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { copyDocuments, Journal } from '../engine/copy.mjs'
import { engineFrom } from '../engine/engine.mjs'
import { progress } from '../progress.mjs'
import { EXIT, Failure } from '../server.mjs'

/** Passes over documents that change meanwhile. Each copies what was written during the one before. */
const MOST_PASSES = 8
/** Between passes: an index shows what was imported a moment later. In milliseconds. */
const PAUSE_MS = 1_500
/** How long other isolates of the Worker may still write to the old place after the switch, in milliseconds. */
const SETTLED_MS = 5_000

/**
 * @typedef {import('../engine/engine.mjs').EngineOptions & { to: string, schema?: string, dropOld: boolean, json: boolean }} Options
 * @typedef {object} Moved
 * @property {string} collection
 * @property {string} engine where it is now
 * @property {number} documents
 * @property {number} sent in all passes
 * @property {string | undefined} old the name under which the documents are still found where they were
 */

/**
 * @param {import('../server.mjs').Server} server
 * @param {string} name
 * @param {Options} options
 * @param {(line: string) => void} say
 * @returns {Promise<Moved>}
 * @throws Failure, and then the same command goes on where this one stopped
 */
export async function move(server, name, options, say) {
  const { to, json } = options
  if (to === 'ai-search') {
    throw new Failure(
      EXIT.usage,
      'AI Search takes documents from its bucket, its website or its items. Put them there, and connect the instance.',
    )
  }
  if (to === 'object' && options.node !== undefined) {
    throw new Failure(EXIT.usage, 'Documents in Parley itself have no --node.')
  }
  const beside = `${name}-move`
  const journal = new Journal(`${beside}.jsonl`)
  const collection = await find(server, name)
  const { engine, created_at } = collection
  const from = JSON.stringify([engine ?? 'object', created_at])
  const resumed = await journal.open({ url: server.url, collection: name, to, from })
  if (resumed) say(`Going on: ${journal.hashes.size} documents are copied already.`)
  /** @param {string} from @param {string} into */
  const pass = async (from, into) => {
    const { num_documents: total } = await find(server, from)
    const bar = progress(`${from} to ${into}`, total, 'documents', json)
    return copyDocuments(server, { from, into }, journal, (read) => bar.to(read)).finally(bar.stop)
  }
  let sent = 0
  if (!journal.switched) {
    try {
      await prepare(server, collection, beside, options)
    } catch (error) {
      if (!resumed) await journal.remove()
      throw error
    }
    sent += await copyUntilSame(server, name, beside, pass, say)
    await journal.keepSwitched()
  }
  // What others wrote to the old place until they heard of the switch.
  await sleep(SETTLED_MS)
  const last = await pass(beside, name)
  sent += last.sent
  requireAll(last.refused)
  if (options.dropOld) await server.call('DELETE', `/collections/${encodeURIComponent(beside)}`)
  await journal.remove()
  const { num_documents: documents } = await find(server, name)
  return { collection: name, engine: to, documents, sent, old: options.dropOld ? undefined : beside }
}

/**
 * Copies until a pass finds nothing new and both have the same count, and has them change places.
 * @param {import('../server.mjs').Server} server
 * @param {string} name
 * @param {string} beside
 * @param {(from: string, into: string) => Promise<import('../engine/copy.mjs').Pass>} pass
 * @param {(line: string) => void} say
 * @returns {Promise<number>} documents sent
 * @throws Failure
 */
async function copyUntilSame(server, name, beside, pass, say) {
  let sent = 0
  let difference = 'it was written to all the time'
  for (let round = 0; round < MOST_PASSES; round++) {
    const done = await pass(name, beside)
    sent += done.sent
    requireAll(done.refused)
    say(`  read ${done.documents}, sent ${done.sent}, removed ${done.removed}`)
    if (round > 0 || done.sent + done.removed === 0) {
      const body = { switch_with: { collection: beside, documents: done.documents } }
      const response = await server.send('PATCH', `/collections/${encodeURIComponent(name)}`, { body })
      if (response.ok) return sent
      const { message } = await response.json()
      if (response.status !== 409) throw new Failure(EXIT.rejected, `The switch was refused: ${message}`)
      difference = message
    }
    await sleep(PAUSE_MS)
  }
  throw new Failure(EXIT.partial, `${name} was not switched: ${difference} Run the command again to go on.`)
}

/** @param {import('../engine/copy.mjs').Refused[]} refused @throws Failure */
function requireAll(refused) {
  const [first] = refused
  if (first === undefined) return
  throw new Failure(
    EXIT.partial,
    `${refused.length} documents were refused, the first one is ${first.id}: ${first.error} Mend them, or name a schema with --schema, and run the command again.`,
  )
}

/**
 * Makes the collection beside, unless an earlier run made it.
 * @param {import('../server.mjs').Server} server
 * @param {any} collection
 * @param {string} beside
 * @param {Options} options
 * @throws Failure for one that holds documents of somebody else
 */
async function prepare(server, collection, beside, { to, schema, ...options }) {
  if (Number(collection.pending_embeddings ?? 0) > 0) {
    throw new Failure(
      EXIT.usage,
      `${collection.pending_embeddings} vectors of ${collection.name} are still to be made. Move it when they are.`,
    )
  }
  const path = `/collections/${encodeURIComponent(beside)}`
  if (await server.find(path)) return
  const given = schema === undefined ? schemaOf(collection, to) : JSON.parse(await readFile(schema, 'utf8'))
  const engine = to === 'object' ? undefined : await engineFrom(to, options)
  const there = { typesense: 'collection', opensearch: 'index' }[to]
  const made = await server.call('POST', '/collections', {
    body: {
      ...given,
      name: beside,
      ...(engine && { engine: { ...(there && { [there]: collection.name }), ...engine } }),
    },
  })
  if (made.num_documents === 0) return
  await server.call('DELETE', path)
  throw new Failure(
    EXIT.usage,
    `The cluster has documents in ${collection.name} already. Name another collection or index for the copy.`,
  )
}

/** Properties of a schema that every engine has. */
const SHARED = ['default_sorting_field', 'enable_nested_fields', 'token_separators', 'symbols_to_index']

/**
 * The schema of the copy. Vectors are copied as they are: no model is called, and no credentials are needed.
 * @param {any} collection @param {string} to
 */
function schemaOf(collection, to) {
  const fields = collection.fields
    .filter((/** @type {any} */ { name }) => to !== 'opensearch' || !name.includes('*'))
    .map((/** @type {any} */ { embed: _, ...field }) => field)
  const shared = SHARED.filter((property) => collection[property] !== undefined)
  return { fields, ...Object.fromEntries(shared.map((property) => [property, collection[property]])) }
}

/** @param {import('../server.mjs').Server} server @param {string} name @throws Failure */
async function find(server, name) {
  const found = await server.find(`/collections/${encodeURIComponent(name)}`)
  if (found) return found
  throw new Failure(EXIT.usage, `There is no collection ${name}.`)
}
