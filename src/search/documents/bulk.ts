/** What is done to all documents that a filter chooses, a bounded step at a time. */
import { ApiError } from '../../errors'
import { compileFilter } from '../filter/compile'
import type { ExportOptions, Step } from '../types'
import { parseDocument } from './document'
import { project } from './projection'
import type { Store } from './store'
import type { Writer } from './writer'

const UPDATE_STEP = 200
const REMOVE_STEP = 1_000
const EXPORT_ROWS = 100
/** Characters of an export page, about: a page ends with the document that passes this. */
const EXPORT_PAGE = 256_000

/**
 * Sequence numbers of documents that match, in order of insertion.
 * @param filterBy `*` matches all
 * @throws ApiError 400
 */
function select(store: Store, filterBy: string, from: number, limit: number): number[] {
  const trimmed = filterBy.trim()
  const { where, bindings } =
    trimmed === '' || trimmed === '*'
      ? { where: '1', bindings: [] }
      : compileFilter(store.sql, store.schema, trimmed)
  return store.sql
    .exec<{ seq: number }>(
      `SELECT d.seq FROM documents d WHERE (${where}) AND d.seq >= ? ORDER BY d.seq LIMIT ?`,
      ...bindings,
      from,
      limit,
    )
    .toArray()
    .map(({ seq }) => seq)
}

/** @param from the last step's `cursor`. Documents that cannot take the patch are not counted. */
export function updateWhere(
  store: Store,
  writer: Writer,
  filterBy: string,
  json: string,
  from: number,
): Step & { cursor: number } {
  if (filterBy.trim() === '') return { count: 0, done: true, cursor: from }
  const patch = parseDocument(json)
  const seqs = select(store, filterBy, from, UPDATE_STEP)
  const documents = store.read(seqs, true)
  const results = writer.write(
    [...documents.values()].map(({ id }) => ({ document: { ...patch, id }, action: 'update' })),
  )
  return {
    count: results.filter((result) => !(result instanceof ApiError)).length,
    done: seqs.length < UPDATE_STEP,
    cursor: (seqs.at(-1) ?? from) + 1,
  }
}

export function removeWhere(
  storage: DurableObjectStorage,
  store: Store,
  filterBy: string,
  options: { batchSize: number; returnDocuments: boolean; returnIds: boolean },
): Step {
  if (filterBy.trim() === '') return { count: 0, done: true }
  const limit = Math.min(REMOVE_STEP, Math.max(1, options.batchSize))
  const seqs = select(store, filterBy, 0, limit)
  const documents = [...store.read(seqs, !options.returnDocuments).entries()]
  removeAll(
    storage,
    store,
    documents.map(([seq, { id }]) => [seq, id]),
  )
  const step: Step = { count: documents.length, done: seqs.length < limit }
  if (options.returnDocuments) step.documents = documents.map(([, document]) => document)
  if (options.returnIds) step.ids = documents.map(([, { id }]) => id)
  return step
}

/** Removes documents by sequence number and id, as one transaction. */
export function removeAll(storage: DurableObjectStorage, store: Store, documents: [number, string][]): void {
  try {
    storage.transactionSync(() => {
      for (const [seq, id] of documents) store.remove(seq, id)
      store.saveCounters()
    })
  } catch (error) {
    store.reset()
    throw error
  }
}

/** One page of an export. An object in memory is made of a document only where the page shows less or more than its body. */
export function exportPage(
  store: Store,
  options: ExportOptions,
  from: number,
): { lines: string; cursor: number; done: boolean } {
  const asStored =
    options.include === '' &&
    options.exclude === '' &&
    store.plan.vectors.length === 0 &&
    !(options.unstored && store.plan.unstored.length > 0)
  const lines: string[] = []
  let cursor = from
  let characters = 0
  while (characters < EXPORT_PAGE) {
    const seqs = select(store, options.filterBy, cursor, EXPORT_ROWS)
    const page = asStored ? store.bodies(seqs) : renderedBodies(store, seqs, options)
    for (const [seq, line] of page) {
      if (characters >= EXPORT_PAGE) return { lines: lines.join('\n'), cursor, done: false }
      lines.push(line)
      characters += line.length
      cursor = seq + 1
    }
    if (seqs.length < EXPORT_ROWS) return { lines: lines.join('\n'), cursor, done: true }
  }
  return { lines: lines.join('\n'), cursor, done: false }
}

const renderedBodies = (
  store: Store,
  seqs: number[],
  { include, exclude, unstored }: ExportOptions,
): [number, string][] =>
  [...store.read(seqs, false, unstored)].map(([seq, document]) => [
    seq,
    JSON.stringify(project(document, include, exclude)),
  ])
