/** Documents on their way to the server, in batches that can be sent again. */
import { BATCH, batchesOf, sendBatch } from '../server.mjs'
import { markOf, partsOf } from './plan.mjs'
import { HASH, PAGE } from './schema.mjs'

/** Ids in one filter of a deletion. */
const REMOVED_AT_ONCE = 100

/** @typedef {import('../server.mjs').Rejected} Rejected */

/**
 * Sends what changed. What was sent twice, after a connection broke, is there once. The mark of a file comes last, and only if all
 * of the file was taken: an import that broke off reads it again.
 * @param {import('../server.mjs').Server} server
 * @param {string} collection
 * @param {Pick<import('./plan.mjs').Plan, 'changed' | 'remarked'>} plan
 * @param {(sent: number) => void} onSent
 * @returns {Promise<Rejected[]>} those that the server refused, with its reasons
 * @throws Failure when it refuses all of them at once, or does not answer
 */
export async function sendDocuments(server, collection, { changed, remarked }, onSent) {
  /** @type {Rejected[]} */
  const rejected = []
  let sent = 0
  /** @param {import('./plan.mjs').Document[]} documents @param {'upsert' | 'update'} action */
  const send = async (documents, action) => {
    for await (const batch of batchesOf(written(documents), BATCH, ({ line }) => line)) {
      rejected.push(...(await sendBatch(server, collection, batch, action)))
      if (action !== 'upsert') continue
      sent += batch.length
      onSent(sent)
    }
  }
  const isFirst = (/** @type {import('./plan.mjs').Document} */ each) =>
    partsOf(each[HASH]).file !== undefined
  await send(
    changed.filter((each) => !isFirst(each)),
    'upsert',
  )
  const refused = new Set(rejected.map(({ id }) => id))
  const pages = new Set(changed.filter(({ id }) => refused.has(id)).map((each) => each[PAGE]))
  // Rows tell nothing of their file: one that was refused is looked for in all.
  const own = (/** @type {import('./plan.mjs').Document} */ each) => {
    const { file, ...parts } = partsOf(each[HASH])
    return markOf({ ...parts, file: pages.has(each[PAGE]) ? undefined : file })
  }
  await send(
    changed.filter(isFirst).map((each) => ({ ...each, [HASH]: own(each) })),
    'upsert',
  )
  await send(
    remarked.map((each) => ({ id: each.id, [HASH]: own(each) })),
    'update',
  )
  // Question sets may be asked after an import. A key that may not have them asked imports as well.
  if (changed.length > rejected.length)
    await server.call('POST', '/question_sets', { body: { collection } }).catch(() => {})
  return rejected
}

/** Each is written when its batch is filled: all of them at once may be too much to hold. @param {import('./plan.mjs').Document[]} documents */
function* written(documents) {
  for (const document of documents) yield { id: document.id, line: JSON.stringify(document) }
}

/**
 * Removes documents by their ids.
 * @param {import('../server.mjs').Server} server
 * @param {string} collection
 * @param {string[]} ids
 * @returns {Promise<number>} how many were there
 */
export async function removeDocuments(server, collection, ids) {
  let removed = 0
  for (let at = 0; at < ids.length; at += REMOVED_AT_ONCE) {
    const quoted = ids.slice(at, at + REMOVED_AT_ONCE).map((id) => `\`${id.replaceAll('`', '')}\``)
    const query = new URLSearchParams({ filter_by: `id:=[${quoted.join(',')}]` })
    const { num_deleted } = await server.call(
      'DELETE',
      `/collections/${encodeURIComponent(collection)}/documents?${query}`,
    )
    removed += num_deleted
  }
  return removed
}
