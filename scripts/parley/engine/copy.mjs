/** Copies the documents of one collection into another, again and again, sending only what has changed since. */

import { createHash } from 'node:crypto'
import { appendFile, readFile, rm, writeFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { BATCH, batchesOf, EXIT, Failure, refusal, sendBatch } from '../server.mjs'

/**
 * @typedef {object} Head
 * @property {string} url of the server
 * @property {string} collection
 * @property {string} to the type of the engine
 * @property {string} from where the collection is now
 */

export class Journal {
  /** documents that the target has, by their ids @type {Map<string, string>} */
  hashes = new Map()
  /** whether the collections have changed places */
  switched = false
  #file

  /** @param {string} file */
  constructor(file) {
    this.#file = file
  }

  /**
   * Reads what was done, or begins.
   * @param {Head} head
   * @returns {Promise<boolean>} whether there is something to go on with
   * @throws Failure for the journal of another move
   */
  async open(head) {
    const text = await readFile(this.#file, 'utf8').catch(() => '')
    // A line that was cut off by a break is of documents that are sent again.
    const whole = text.slice(0, text.lastIndexOf('\n') + 1)
    if (whole === '') {
      await writeFile(this.#file, `${JSON.stringify(head)}\n`)
      return false
    }
    if (whole !== text) await writeFile(this.#file, whole)
    const [first = '', ...lines] = whole.trimEnd().split('\n')
    const { from, ...move } = JSON.parse(first)
    if (JSON.stringify({ ...move, from: head.from }) !== JSON.stringify(head)) {
      throw new Failure(
        EXIT.usage,
        `${this.#file} belongs to another move: ${first}. Move or delete the file.`,
      )
    }
    for (const line of lines) {
      const [id, hash] = JSON.parse(line)
      if (id === SWITCHED) this.switched = true
      else if (hash === null) this.hashes.delete(id)
      else this.hashes.set(id, hash)
    }
    // The switch may have happened just before the break.
    if (from !== head.from) this.switched = true
    return true
  }

  /** @param {[string, string | null][]} entries null: the document is gone */
  async keep(entries) {
    for (const [id, hash] of entries) {
      if (hash === null) this.hashes.delete(id)
      else this.hashes.set(id, hash)
    }
    await appendFile(this.#file, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''))
  }

  async keepSwitched() {
    this.switched = true
    await appendFile(this.#file, `${JSON.stringify([SWITCHED, ''])}\n`)
  }

  async remove() {
    await rm(this.#file, { force: true })
  }
}

/** In the place of an id. No document has a number as its id. */
const SWITCHED = 0

/** @typedef {import('../server.mjs').Rejected} Refused */

/**
 * @typedef {object} Pass
 * @property {number} documents in the source
 * @property {number} sent new ones, and those that changed
 * @property {number} removed those that the source does not have any more
 * @property {Refused[]} refused by the target
 */

/**
 * Reads all documents of the source, and has the target hold the same.
 * @param {import('../server.mjs').Server} server
 * @param {{ from: string, into: string }} names
 * @param {Journal} journal what the target has already
 * @param {(read: number) => void} onRead
 * @returns {Promise<Pass>}
 * @throws Failure when the export breaks off, or the server does not answer
 */
export async function copyDocuments(server, { from, into }, journal, onRead) {
  /** @type {Pass} */
  const pass = { documents: 0, sent: 0, removed: 0, refused: [] }
  /** @type {Set<string>} */
  const seen = new Set()
  const changed = async function* () {
    for await (const line of exportOf(server, from)) {
      const id = idOf(line)
      const hash = createHash('sha256').update(line).digest('base64url').slice(0, 22)
      seen.add(id)
      pass.documents += 1
      onRead(pass.documents)
      if (journal.hashes.get(id) !== hash) yield { id, line, hash }
    }
  }
  for await (const batch of batchesOf(changed(), BATCH, ({ line }) => line)) {
    const refused = await sendBatch(server, into, batch, 'upsert')
    const failed = new Set(refused.map(({ id }) => id))
    const stored = batch.filter(({ id }) => !failed.has(id))
    await journal.keep(stored.map(({ id, hash }) => [id, hash]))
    pass.sent += stored.length
    pass.refused.push(...refused)
  }
  for (const id of [...journal.hashes.keys()].filter((known) => !seen.has(known))) {
    const path = `/collections/${encodeURIComponent(into)}/documents/${encodeURIComponent(id)}`
    await server.call('DELETE', `${path}?ignore_not_found=true`)
    await journal.keep([[id, null]])
    pass.removed += 1
  }
  return pass
}

/**
 * @param {import('../server.mjs').Server} server
 * @param {string} collection
 * @returns {AsyncGenerator<string>} the lines of its export
 */
async function* exportOf(server, collection) {
  const path = `/collections/${encodeURIComponent(collection)}/documents/export`
  const response = await server.send('GET', path)
  if (!response.ok) throw await refusal(response, `GET ${path}`)
  if (response.body === null) return
  const body = /** @type {import('node:stream/web').ReadableStream} */ (response.body)
  try {
    for await (const line of createInterface({ input: Readable.fromWeb(body) })) if (line !== '') yield line
  } catch {
    throw new Failure(EXIT.unreachable, BROKE_OFF)
  }
}

const BROKE_OFF = 'The export broke off. Run the command again: it goes on where it stopped.'

/** @param {string} line @returns {string} @throws Failure for the line that ends an export which failed */
function idOf(line) {
  const { id, error } = JSON.parse(line)
  if (typeof id === 'string') return id
  throw new Failure(EXIT.rejected, `${BROKE_OFF} The server says: ${error}`)
}
