/** Updates, removes and exports all documents that match a filter, in bounded steps. */
import { ApiError } from '../../errors'
import { compileFilter } from '../filter/compile'
import type { JoinedDocuments } from '../filter/context'
import { EVERYWHERE } from '../range'
import type { Document, ExportOptions, Step } from '../types'
import { parseDocument } from './document'
import { project } from './projection'
import type { Store } from './store'
import type { Writer } from './writer'

const UPDATE_STEP = 200
const REMOVE_STEP = 1_000
const EXPORT_ROWS = 100
/** Characters of an export page, roughly: the document that exceeds this is its last. */
const EXPORT_PAGE = 256_000

/**
 * Sequence numbers of matching documents, in order of insertion.
 * @param filterBy `*` matches all
 * @throws ApiError 400
 */
function select(
  store: Store,
  filterBy: string,
  from: number,
  limit: number,
  joins?: JoinedDocuments,
): number[] {
  const trimmed = filterBy.trim()
  const { where, bindings } =
    trimmed === '' || trimmed === '*'
      ? { where: '1', bindings: [] }
      : compileFilter(store.sql, store.schema, trimmed, EVERYWHERE, joins)
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
  joins?: JoinedDocuments,
): Step & { cursor: number } {
  if (filterBy.trim() === '') return { count: 0, done: true, cursor: from }
  const patch = parseDocument(json)
  const seqs = select(store, filterBy, from, UPDATE_STEP, joins)
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
  joins?: JoinedDocuments,
): Step {
  if (filterBy.trim() === '') return { count: 0, done: true }
  const limit = Math.min(REMOVE_STEP, Math.max(1, options.batchSize))
  const seqs = select(store, filterBy, 0, limit, joins)
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

/** Removes documents in one transaction. */
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

/** The joins of an export. */
export interface Joining {
  /** those of its filter, evaluated */
  joins?: JoinedDocuments | undefined
  /** adds related documents */
  attach?: ((shown: Map<number, Document>) => Promise<void>) | undefined
}

/** One page of an export. Documents are parsed only if the page shows less or more than their stored body. */
export async function exportPage(
  store: Store,
  options: ExportOptions,
  from: number,
  { joins, attach }: Joining = {},
): Promise<{ lines: string; cursor: number; done: boolean }> {
  const asStored =
    options.include === '' &&
    options.exclude === '' &&
    store.plan.vectors.length === 0 &&
    !(options.unstored && store.plan.unstored.length > 0)
  const lines: string[] = []
  let cursor = from
  let characters = 0
  while (characters < EXPORT_PAGE) {
    const seqs = select(store, options.filterBy, cursor, EXPORT_ROWS, joins)
    const page =
      asStored && attach === undefined
        ? store.bodies(seqs)
        : await renderedBodies(store, seqs, options, attach)
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

async function renderedBodies(
  store: Store,
  seqs: number[],
  { include, exclude, unstored }: ExportOptions,
  attach?: Joining['attach'],
): Promise<[number, string][]> {
  const shown = new Map(
    [...store.read(seqs, false, unstored)].map(([seq, document]) => [
      seq,
      project(document, include, exclude),
    ]),
  )
  await attach?.(shown)
  return [...shown].map(([seq, document]) => [seq, JSON.stringify(document)])
}
