/**
 * Updates, removes and exports all documents that match a filter, in bounded steps.
 *
 * Whoever asks for a step asks for the next one at once. In one process every call is then ready at once, and nobody else would be
 * served until the last step: so each ends in a pause.
 */
import { ApiError, collectionGone } from '../../errors'
import { pause } from '../../lib/waiting'
import type { Origin } from '../fault-log'
import { Filter } from '../filter/filter'
import type { JoinedDocuments } from '../filter/parse'
import { readAll } from '../fragment'
import { BLOCK } from '../schema/column'
import type { DirtyValues, Document, ExportOptions, ImportOptions, RemoveOptions, Step } from '../types'
import { parseDocument } from './document'
import { project, type Store } from './store'
import type { Writer, Written } from './writer'

const UPDATE_STEP = 200
const REMOVE_STEP = 1_000
/** Documents changed or removed between pauses: of a few fields each, in about 50 ms. */
const WRITTEN_AT_ONCE = 40
const EXPORT_ROWS = 100
/** Documents that an export reads between pauses, and milliseconds: on Cloudflare the clock stands still meanwhile. */
const [READ_AT_ONCE, READ_MS] = [200, 20]
/** Characters of an export page, roughly: the document that exceeds this is its last. */
const EXPORT_PAGE = 256_000

/** What a filter may do in one step, in rows that SQLite reads in that time: to read and parse 5,000 documents. */
const MOST_WORK = 250_000
/** Documents that a filter tests together, at least and at most. */
const [FEWEST, MOST] = [64, 1_024]

interface Selection {
  /** sequence numbers, in order of insertion */
  seqs: number[]
  /** where the next selection begins */
  cursor: number
  /** there is nothing more */
  done: boolean
}

/**
 * Selects matching documents from a sequence number on.
 * @param most stop early, with fewer than `limit`, after so much work: in rows that SQLite reads in that time
 */
type Select = (from: number, limit: number, most?: number) => Selection

/**
 * What depends on the filter alone is done once, as long as the schema stays.
 * @param filterBy `*` matches all
 * @throws ApiError 400
 */
async function selecting(store: Store, filterBy: string, joins?: JoinedDocuments): Promise<Select> {
  const trimmed = filterBy.trim()
  const text = trimmed === '*' ? '' : trimmed
  const made = () => ({ schema: store.readable, filter: new Filter(store.readable, text, joins) })
  let latest = made()
  for (const steps = latest.filter.preparing(); !steps.next().done; ) await paused(store)
  return (from, limit, most = MOST_WORK) => {
    if (latest.schema !== store.readable) latest = made()
    return select(store, latest.filter, { from, limit, most })
  }
}

/** Lets others be served. @throws ApiError if the collection is gone then */
async function paused(store: Store): Promise<void> {
  await pause()
  if (store.closed) throw collectionGone()
}

function select(
  { sql, readable, columns, count }: Store,
  filter: Filter,
  { from, limit, most }: { from: number; limit: number; most: number },
): Selection {
  const last = sql.exec<{ seq: number | null }>('SELECT max(seq) AS seq FROM documents').one().seq ?? -1
  const source = { sql, columns, read: readAll }
  const seqs: number[] = []
  let work = 0
  // A write changes the values that are read here, so few documents are read at first.
  let width = FEWEST
  for (let low = from; low <= last; ) {
    const number = Math.floor(low / BLOCK)
    const present = columns.present(sql, readable, count, number, readAll)
    const at = present.findIndex((offset) => number * BLOCK + offset >= low)
    const some = at === -1 ? present.subarray(0, 0) : present.subarray(at, at + width)
    const steps = filter.among(source, number, some)
    let step = steps.next()
    for (; !step.done; step = steps.next()) work += step.value
    for (const offset of step.value) {
      if (seqs.push(number * BLOCK + offset) < limit) continue
      const cursor = seqs.at(-1)! + 1
      return { seqs, cursor, done: cursor > last }
    }
    work += some.length / 16
    low = some.length === width ? number * BLOCK + some.at(-1)! + 1 : (number + 1) * BLOCK
    if (work >= most) return { seqs, cursor: low, done: low > last }
    if (seqs.length < limit / 2) width = Math.min(MOST, width * 2)
  }
  return { seqs, cursor: last + 1, done: true }
}

/** @param from the last step's `cursor`. Documents that refuse the patch are not counted. */
export async function updateWhere(
  store: Store,
  writer: Writer,
  filterBy: string,
  { json, dirtyValues, requestId }: Origin & { json: string; dirtyValues?: DirtyValues | undefined },
  from: number,
  joins?: JoinedDocuments,
): Promise<Step & { cursor: number }> {
  if (filterBy.trim() === '') return { count: 0, done: true, cursor: from }
  const patch = parseDocument(json)
  const selected = await selecting(store, filterBy, joins)
  const step = { count: 0, done: false, cursor: from }
  for (let [looked, isFull] = [0, true]; isFull && !step.done && looked < UPDATE_STEP; ) {
    const { seqs, cursor, done } = selected(step.cursor, WRITTEN_AT_ONCE)
    const documents = store.read(seqs, true)
    const results = writer.write(
      [...documents.values()].map(({ id }) => ({
        document: { ...patch, id },
        action: 'update',
        dirtyValues,
      })),
      { requestId },
    )
    step.count += results.filter((result) => !(result instanceof ApiError)).length
    step.done = done
    step.cursor = cursor
    looked += seqs.length
    isFull = seqs.length === WRITTEN_AT_ONCE
    await paused(store)
  }
  return step
}

export async function removeWhere(
  storage: DurableObjectStorage,
  store: Store,
  filterBy: string,
  options: RemoveOptions,
  joins?: JoinedDocuments,
): Promise<Step & { cursor: number }> {
  const from = options.after ?? 0
  if (filterBy.trim() === '') return { count: 0, done: true, cursor: from }
  const limit = Math.min(REMOVE_STEP, Math.max(1, options.batchSize))
  // A caller without a cursor begins at the first document each time, so a step must not end early.
  const most = options.after === undefined ? Number.POSITIVE_INFINITY : MOST_WORK
  const selected = await selecting(store, filterBy, joins)
  const step: Step & { cursor: number } = { count: 0, done: false, cursor: from }
  for (let isFull = true; isFull && !step.done && step.count < limit; ) {
    const wanted = Math.min(WRITTEN_AT_ONCE, limit - step.count)
    const { seqs, cursor, done } = selected(step.cursor, wanted, most)
    const documents = [...store.read(seqs, !options.returnDocuments).entries()]
    removeAll(
      storage,
      store,
      documents.map(([seq, { id }]) => [seq, id]),
    )
    step.count += documents.length
    step.done = done
    step.cursor = cursor
    if (options.returnDocuments)
      step.documents = [...(step.documents ?? []), ...documents.map(([, document]) => document)]
    if (options.returnIds) step.ids = [...(step.ids ?? []), ...documents.map(([, { id }]) => id)]
    isFull = seqs.length === wanted
    await paused(store)
  }
  return step
}

/** Removes documents in one transaction. */
export function removeAll(storage: DurableObjectStorage, store: Store, documents: [number, string][]): void {
  store.transact(storage, () => {
    for (const [seq, id] of documents) store.remove(seq, id)
    store.finish()
  })
}

/** The joins of an export. */
export interface Joining {
  /** the evaluated joins of its filter */
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
    store.schema.filling === undefined &&
    !(options.unstored && store.plan.unstored.length > 0)
  const { most = Number.POSITIVE_INFINITY } = options
  const selected = await selecting(store, options.filterBy, joins)
  const lines: string[] = []
  let cursor = from
  let characters = 0
  let read = READ_AT_ONCE
  let since = performance.now()
  while (characters < EXPORT_PAGE) {
    const { seqs, ...next } = selected(cursor, EXPORT_ROWS)
    const page =
      asStored && attach === undefined
        ? store.bodies(seqs)
        : await renderedBodies(store, seqs, options, attach)
    read += seqs.length
    if (read >= READ_AT_ONCE || performance.now() - since >= READ_MS) {
      await paused(store)
      read = 0
      since = performance.now()
    }
    for (const [seq, line] of page) {
      if (characters >= EXPORT_PAGE || lines.length >= most) {
        return { lines: lines.join('\n'), cursor, done: false }
      }
      lines.push(line)
      characters += line.length
      cursor = seq + 1
    }
    cursor = next.cursor
    // With fewer rows, either the filter has reached its read limit or there are no more.
    if (next.done || seqs.length < EXPORT_ROWS) return { lines: lines.join('\n'), ...next }
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

// =============================================================================
// POST /documents/import: takes a batch of lines, returns a result line for each.

const SUCCESS = '{"success":true}'

/**
 * @param faults lines whose references are refused
 * @returns a line of JSON for each of `lines`, in order, joined by LF
 */
export function importLines(
  store: Store,
  writer: Writer,
  lines: string[],
  options: ImportOptions,
  faults: readonly (ApiError | undefined)[] = [],
): string {
  const { action, dirtyValues } = options
  const results = writer.write(
    lines.map((document, index) => ({ document, action, dirtyValues, fault: faults[index] })),
    options,
  )
  const documents = options.returnDocument
    ? store.read(results.flatMap((result) => (result instanceof ApiError ? [] : result.seq)))
    : undefined
  return results
    .map((result, number) =>
      result instanceof ApiError
        ? failure(result, lines[number]!, options)
        : success(result, documents, options.returnId),
    )
    .join('\n')
}

function success(written: Written, documents: Map<number, Document> | undefined, returnId: boolean): string {
  if (documents === undefined && !returnId) return SUCCESS
  return JSON.stringify({
    success: true,
    ...(documents === undefined ? {} : { document: documents.get(written.seq) }),
    ...(returnId ? { id: written.id } : {}),
  })
}

/** @param line the refused line, which the reply contains as a string */
function failure(error: ApiError, line: string, { returnDocument, returnId }: ImportOptions): string {
  const id = returnId ? idIn(line) : undefined
  return JSON.stringify({
    success: false,
    error: error.message,
    code: error.status,
    ...(returnDocument ? { document: line } : {}),
    ...(id === undefined ? {} : { id }),
  })
}

/** The id that a line names, if it can be read. */
function idIn(line: string): string | undefined {
  try {
    const { id } = parseDocument(line)
    return typeof id === 'string' ? id : undefined
  } catch {
    return undefined
  }
}
