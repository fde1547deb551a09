/** Documents on their way to the server, in batches that can be sent again. */
import { refusal } from './server.mjs'

/** Of one request. */
export const BATCH = { lines: 500, characters: 1 << 20 }

/** @typedef {{ id: string, line: string }} Written a document, and its JSON */
/** @typedef {{ id: string, error: string }} Rejected */

/**
 * @template Item
 * @param {AsyncIterable<Item> | Iterable<Item>} items
 * @param {{ lines: number, characters: number }} most of a batch; a longer line is a batch of its own
 * @param {(item: Item) => string} lineOf
 * @returns {AsyncGenerator<Item[]>}
 */
export async function* batchesOf(items, most, lineOf) {
  /** @type {Item[]} */
  let batch = []
  let characters = 0
  for await (const item of items) {
    const { length } = lineOf(item)
    if (batch.length > 0 && (batch.length >= most.lines || characters + length > most.characters)) {
      yield batch
      batch = []
      characters = 0
    }
    batch.push(item)
    characters += length
  }
  if (batch.length > 0) yield batch
}

/**
 * @param {import('./server.mjs').Server} server
 * @param {string} collection
 * @param {string[]} lines
 * @param {'create' | 'upsert' | 'update'} action
 * @returns {Promise<{ success: boolean, code?: number, error?: string }[]>} what the server says of each
 * @throws Failure when it refuses all of them at once, or does not answer
 */
export async function sendLines(server, collection, lines, action) {
  const path = `/collections/${encodeURIComponent(collection)}/documents/import?action=${action}`
  const response = await server.send('POST', path, { body: lines.join('\n') })
  if (!response.ok) throw await refusal(response, `POST ${path}`)
  return (await response.text()).split('\n').map((line) => JSON.parse(line))
}

/**
 * @param {import('./server.mjs').Server} server
 * @param {string} collection
 * @param {Written[]} batch
 * @param {'upsert' | 'update'} action
 * @returns {Promise<Rejected[]>} those that the server refused, with its reasons
 * @throws Failure as `sendLines`
 */
export async function sendBatch(server, collection, batch, action) {
  const lines = batch.map(({ line }) => line)
  const outcomes = await sendLines(server, collection, lines, action)
  return batch.flatMap(({ id }, at) => {
    const { success, error = 'The server said nothing of it.' } = outcomes[at] ?? {}
    return success ? [] : [{ id, error }]
  })
}
