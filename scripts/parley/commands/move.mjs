/**
 * `parley move`: the documents of a collection into a cluster, from there into Parley, or from one cluster into another.
 *
 * The documents are copied into a collection beside it, `NAME-move`. If both hold the same, the two change places in one step.
 */
import { createHash } from 'node:crypto'
import { appendFile, readFile, rm, writeFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { progress } from '../progress.mjs'
import { BATCH, batchesOf, EXIT, Failure, refusal, sendBatch } from '../server.mjs'
import { engineFrom, readSchema } from './connect.mjs'

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

/** Passes over documents that change meanwhile. Each copies what was written during the one before. */
const MOST_PASSES = 8
/** Between passes: an index shows what was imported a moment later. In milliseconds. */
const PAUSE_MS = 1_500
/** How long other isolates of the Worker may still write to the old place after the switch, in milliseconds. */
const SETTLED_MS = 5_000

/**
 * @typedef {import('./connect.mjs').EngineOptions & { to: string, schema?: string, dropOld: boolean, json: boolean }} Options
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
    return progress(`${from} to ${into}`, total, 'documents', json, (to) =>
      copyDocuments(server, { from, into }, journal, to),
    )
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
 * @param {(from: string, into: string) => Promise<Pass>} pass
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

/** @param {Refused[]} refused @throws Failure */
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
  const given = schema === undefined ? schemaOf(collection, to) : await readSchema(schema)
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
