/** What a deployment costs beside its conversations: an import, and a month in which nobody asks. docs/costs.md shows both. */
import { CONVERSATION, DIMENSIONS, GIGABYTES, line, PRICES, sum, times, whole } from './model.mjs'

const MILLION = 1e6
const VALUES = { ...PRICES, objectStorage: { price: 0.2 }, databaseStorage: { price: 0.75 } }

/** Documents of 1 KB with four fields, and a vector of their text. */
export const IMPORT = {
  documents: MILLION,
  /** documents by a request; a body may have 100 MB */
  batch: 10_000,
  /** rows that a document writes (test/costs.full.worker.test.ts holds them) */
  rows: 8,
  /** rows of a vector that comes later: its place in the queue and in the queue to Vectorize, there and gone, and itself */
  vectorRows: 5,
  /** of a document's text, for the embedding model */
  tokens: 250,
  /** documents a second, embedded by Workers AI */
  speed: 200,
  /** of a request */
  cpuMilliseconds: 100,
}

/** The cron trigger, each minute of 30 days. */
const IDLE = {
  ticks: 43_200,
  cpuMilliseconds: 5,
  /** rows of D1 that a sweep without work reads */
  rowsRead: 50,
}

/**
 * Gigabytes a month, at $0.20 for objects and $0.75 for D1 past the first 5 GB of each: Cloudflare's price lists as of
 * November 2026.
 */
const STORED = { objects: 5, database: 1 }

/**
 * @param {[what: string, unit: string, kind: keyof typeof VALUES, amount: import('./model.mjs').Amount][]} used
 * @returns {import('./model.mjs').Line[]} `price` by a million, that of storage by one
 */
const lines = (used) =>
  used.map(([what, unit, kind, amount]) =>
    line(what, unit, amount, VALUES[kind].price, unit === 'GB' ? 1 : MILLION),
  )

/** The import of a million documents, and their first month in Vectorize. */
export function importCosts() {
  const { documents, batch, rows, vectorRows, tokens, speed, cpuMilliseconds } = IMPORT
  const requests = { value: documents / batch, working: `${whole(documents)} / ${whole(batch)}` }
  const seconds = { value: documents / speed, working: `${whole(documents)} / ${whole(speed)}` }
  return lines([
    ['Worker requests', '', 'requests', requests],
    ['Worker CPU', 'ms', 'cpu', times(requests, cpuMilliseconds)],
    ['Durable Object duration', 'GB-s', 'objectSeconds', times(seconds, GIGABYTES)],
    ['Durable Object rows written', '', 'rowsWritten', times(documents, sum(rows, vectorRows))],
    ['Embedding of the documents (bge-m3)', 'tokens', 'embedding', times(documents, tokens)],
    ['Vectorize dimensions stored', '', 'dimensionsStored', times(documents, DIMENSIONS)],
    ['Vectorize dimensions in the first query', '', 'dimensionsQueried', times(documents, DIMENSIONS)],
  ])
}

/** A month in which nobody asks. */
export function idleCosts() {
  const { ticks, cpuMilliseconds, rowsRead } = IDLE
  return lines([
    ['Worker requests', '', 'requests', times(ticks)],
    ['Worker CPU', 'ms', 'cpu', times(ticks, cpuMilliseconds)],
    ['D1 rows read', '', 'rowsRead', times(ticks, rowsRead)],
    ['Storage of objects', 'GB', 'objectStorage', times(STORED.objects)],
    ['Storage of D1', 'GB', 'databaseStorage', times(STORED.database)],
  ])
}

/** A month of a million conversations that are kept: each an object, and its turns and messages in D1. */
export function keptCosts() {
  const { object, database } = CONVERSATION.kept
  /** @param {number} bytes of one */
  const gigabytes = (bytes) => ({
    value: (MILLION * bytes) / 1e9,
    working: `${whole(MILLION)} × ${bytes / 1_000} KB`,
  })
  return lines([
    ['Storage of objects', 'GB', 'objectStorage', gigabytes(object)],
    ['Storage of D1', 'GB', 'databaseStorage', gigabytes(database)],
  ])
}
