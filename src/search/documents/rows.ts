/** Turns a document into the rows of its collection, and prepares the statements that write them. */
import { ApiError } from '../../errors'
import { once } from '../../lib/once'
import { readExactObject } from '../../lib/stored-json'
import { bindable } from '../fragment'
import { type FieldSlot, longitudeColumn, scalarColumn, valuesTable } from '../schema/layout'
import type { FieldPlan, Plan } from '../schema/plan'
import { leaves, replace } from '../schema/values'
import type { Document } from '../types'
import type { Draft } from './document'
import { keysOf } from './join-keys'

/** The statements that write a plan's typed values. */
interface Statements {
  insertColumns: RowInsert[]
  insertValues: string[]
}

/** Values that SqlStorage binds to a statement. */
const MOST_BINDINGS = 100

const placeholders = (count: number): string => Array.from({ length: count }, () => '?').join(', ')

/**
 * Inserts rows, many in a statement: a statement of its own for each row takes 3 µs more.
 *
 * A statement with many rows opens a savepoint, and a savepoint makes FTS5 flush its memory to a segment. So write
 * rows before texts.
 */
class RowInsert {
  // The statement texts never change, so SQLite compiles them once.
  readonly #one: string
  readonly #many: string
  /** rows of `#many` */
  readonly #most: number

  /** @param into table and columns @param width how many columns */
  constructor(into: string, width: number) {
    const row = `(${placeholders(width)})`
    this.#most = Math.max(1, Math.floor(MOST_BINDINGS / width))
    this.#one = `${into} VALUES ${row}`
    this.#many = `${into} VALUES ${Array.from({ length: this.#most }, () => row).join(', ')}`
  }

  write(sql: SqlStorage, rows: readonly SqlStorageValue[][]): void {
    let at = 0
    for (; at + this.#most <= rows.length; at += this.#most) {
      sql.exec(this.#many, ...rows.slice(at, at + this.#most).flat())
    }
    for (const row of rows.slice(at)) sql.exec(this.#one, ...row)
  }
}

// SQLite's limit for a string, minus some room for the rest of the row.
const MAX_BYTES = 2_000_000 - 10_000

/** Whether a text is too long for a row, or to be bound to a statement. */
export const isTooLong = (text: string): boolean =>
  text.length * 3 > MAX_BYTES && new TextEncoder().encode(text).byteLength > MAX_BYTES

export const tooLong = (what = 'A document', bytes = MAX_BYTES): ApiError =>
  new ApiError(400, `${what} can have at most ${bytes} bytes.`)

/** @throws ApiError 400 when a text is too long for a row; nothing has been written then */
export function stored(text: string): string {
  if (isTooLong(text)) throw tooLong()
  return text
}

/** @throws ApiError 400 when the values are too long for a row; nothing has been written then */
function fitting(row: SqlStorageValue[]): SqlStorageValue[] {
  let texts = 0
  for (const value of row) if (typeof value === 'string') texts += value.length
  if (texts * 3 > MAX_BYTES && isTooLong(JSON.stringify(row))) throw tooLong()
  return row
}

/** A list as JSON texts that SQLite takes, each with the position of its first element. */
function jsonParts(list: readonly unknown[], from = 0): [from: number, json: string][] {
  const json = JSON.stringify(list)
  if (list.length < 2 || !isTooLong(json)) return [[from, json]]
  const half = list.length >> 1
  return [...jsonParts(list.slice(0, half), from), ...jsonParts(list.slice(half), from + half)]
}

/**
 * The JSON of a document's rows: what is stored, and what is only indexed.
 * @param draft loses the values of fields that are not stored
 * @returns `unstored` is undefined if there are no such values
 * @throws ApiError 400 when it is too long for a row
 */
export function bodiesOf(draft: Draft, plan: Plan): { body: string; unstored: string | undefined } {
  const unstored: Record<string, unknown> = {}
  let any = false
  for (const { name, path } of plan.unstored) {
    const found = leaves(draft, name, path)
    if (found.length === 0) continue
    any = true
    unstored[name] = found.some(({ inArray }) => inArray)
      ? found.flatMap(({ value }) => value)
      : found[0]?.value
    for (const leaf of found) replace(leaf, undefined)
  }
  return {
    body: stored(JSON.stringify(draft)),
    unstored: any ? stored(JSON.stringify(unstored)) : undefined,
  }
}

/** The statements of a plan. They never change, so SQLite compiles them once. */
function statementsFor(plan: Plan): Statements {
  return {
    insertColumns: plan.columns.map(({ table, fields }) => {
      const names = fields.flatMap(({ slot, kind }) =>
        kind === 'geopoint'
          ? [scalarColumn(slot as FieldSlot), longitudeColumn(slot as FieldSlot)]
          : [scalarColumn(slot as FieldSlot)],
      )
      return new RowInsert(`INSERT OR REPLACE INTO ${table} (seq, ${names.join(', ')})`, names.length + 1)
    }),
    insertValues: plan.lists.map(({ slot, kind }) => {
      const [columns, values] =
        kind === 'geopoint' ? ['value, norm', 'value->>0, value->>1'] : ['value', 'value']
      return `INSERT INTO ${valuesTable(slot as FieldSlot)} (seq, pos, ${columns})
         SELECT ?1, key + ?3, ${values} FROM json_each(?2)`
    }),
  }
}

// =============================================================================
// The index entries of a document: the text of each searched field, typed values of the others.

/** The values of a field, with lists and arrays of objects flattened. Values of a wrong type are left out. */
function writtenValues(plan: FieldPlan, draft: Draft): unknown[] {
  const values: unknown[] = []
  for (const { value, inArray } of leaves(draft, plan.name, plan.path)) {
    if (value === null || value === undefined) continue
    const isPoint = plan.kind === 'geopoint' && Array.isArray(value) && typeof double(value[0]) === 'number'
    if (Array.isArray(value) && !isPoint && (plan.array || inArray)) values.push(...value)
    else values.push(value)
  }
  return values
}

/** The text of a field. A list becomes one text, a line for each element. */
export function textOf(plan: FieldPlan, draft: Draft): string | undefined {
  const values = writtenValues(plan, draft).filter((value) => typeof value === 'string')
  return values.length === 0 ? undefined : values.join('\n')
}

/** The value of a column. A BigInt is a 64-bit whole number that a double cannot hold. */
type Cell = string | number | bigint | null

/** `s<slot>` of a value, or an element of a list. A place has two cells. */
function cells(plan: FieldPlan, value: unknown): Cell[] {
  if (plan.kind === 'string') return [typeof value === 'string' ? value : null]
  if (plan.kind === 'geopoint') {
    const point = Array.isArray(value) ? value.map(double) : []
    return typeof point[0] === 'number' && typeof point[1] === 'number' ? [point[0], point[1]] : [null, null]
  }
  if (plan.kind === 'geopolygon') return [Array.isArray(value) ? JSON.stringify(value.map(double)) : null]
  if (typeof value === 'boolean') return [value ? 1 : 0]
  if (typeof value === 'bigint') return [plan.kind === 'int64' ? value : Number(value)]
  return [typeof value === 'number' ? value : null]
}

const double = (value: unknown): unknown => (typeof value === 'bigint' ? Number(value) : value)

/** The cells of a field with one value. */
const scalarOf = (plan: FieldPlan, draft: Draft): Cell[] => cells(plan, writtenValues(plan, draft)[0])

/** The elements of a list field; of places, pairs. */
const listOf = (plan: FieldPlan, draft: Draft): (Cell | Cell[])[] =>
  writtenValues(plan, draft)
    .map((value) => cells(plan, value))
    .filter(([value]) => value !== null)
    .map((pair) => (pair.length === 1 ? pair[0]! : pair))

// =============================================================================
// Writes the rows of documents: the documents themselves, and their typed values. New documents are buffered, to be
// written together.

export type Values = ReturnType<DocumentRows['values']>

/** A new document. */
interface Insert {
  body: string
  /** the values that are only indexed */
  unstored: string | undefined
  values: Values
}

const documents = once(() => new RowInsert('INSERT INTO documents (seq, id, body)', 3))
const unstoredBodies = once(() => new RowInsert('INSERT INTO unstored (seq, body)', 2))

/** The rows of one version of a schema. The caller forgets the values of changed documents that are in memory. */
export class DocumentRows {
  readonly #statements: Statements
  /** by id */
  #waiting = new Map<string, Insert>()

  constructor(
    private readonly sql: SqlStorage,
    private readonly plan: Plan,
  ) {
    this.#statements = statementsFor(plan)
  }

  /** Computes the typed values of a document. */
  values(seq: number, draft: Draft) {
    const rows = this.plan.columns.map(({ fields }) => {
      const row: SqlStorageValue[] = [seq]
      for (const plan of fields) row.push(...scalarOf(plan, draft).map(bindable))
      return fitting(row)
    })
    const lists = this.plan.lists.map((plan) => listOf(plan, draft))
    const keys = this.plan.keyed.map((plan) => [plan.name, keysOf(plan, draft)] as const)
    return {
      seq,
      /** a row for each `columns` table */
      rows,
      /** the elements of each list */
      lists,
      keys,
    }
  }

  /** Buffers a new document for the next `flush`. */
  insert(id: string, insert: Insert): void {
    this.#waiting.set(id, insert)
  }

  /** Whether a document with this id is buffered. */
  isWaiting(id: string): boolean {
    return this.#waiting.has(id)
  }

  /** Writes the buffered documents. @returns their sequence numbers */
  flush(): number[] {
    if (this.#waiting.size === 0) return []
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    documents().write(
      this.sql,
      waiting.map(([id, { values, body }]) => [values.seq, id, body]),
    )
    unstoredBodies().write(
      this.sql,
      waiting.flatMap(([, { values, unstored }]) => (unstored === undefined ? [] : [[values.seq, unstored]])),
    )
    this.write(waiting.map(([, { values }]) => values))
    return waiting.map(([, { values }]) => values.seq)
  }

  /** Writes typed values. Lists must not be there yet. */
  write(all: readonly Values[]): void {
    for (const { seq, keys } of all) this.writeKeys(seq, keys)
    for (const [number, insert] of this.#statements.insertColumns.entries()) {
      insert.write(
        this.sql,
        all.map(({ rows }) => rows[number]!),
      )
    }
    for (const [number, insert] of this.#statements.insertValues.entries()) {
      for (const { seq, lists } of all) {
        const list = lists[number]!
        if (list.length === 0) continue
        for (const [from, json] of jsonParts(list)) this.sql.exec(insert, seq, json, from)
      }
    }
  }

  /** Replaces a document's join keys in some fields. */
  writeKeys(seq: number, keys: Values['keys']): void {
    for (const [field, values] of keys) {
      this.sql.exec('DELETE FROM join_keys WHERE seq = ? AND field = ?', seq, field)
      this.sql.exec(
        'INSERT OR IGNORE INTO join_keys (field, key, seq) SELECT ?, value, ? FROM json_each(?)',
        field,
        seq,
        JSON.stringify(values),
      )
    }
  }
}

// =============================================================================
// Reads the rows of documents. What is still buffered is not in them: the store writes its buffer first.

/** Sequence numbers of documents, by id. Missing ones are left out. */
export function findRows(sql: SqlStorage, ids: readonly string[]): Map<string, number> {
  const rows = sql.exec<{ id: string; seq: number }>(
    'SELECT id, seq FROM documents WHERE id IN (SELECT value FROM json_each(?))',
    JSON.stringify(ids),
  )
  return new Map(rows.toArray().map(({ id, seq }) => [id, seq]))
}

/** Documents as they are stored, in order of insertion. Missing ones are left out. */
export const readBodies = (sql: SqlStorage, seqs: readonly number[]): [seq: number, body: string][] =>
  sql
    .exec<{ seq: number; body: string }>(
      'SELECT seq, body FROM documents WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY seq',
      JSON.stringify(seqs),
    )
    .toArray()
    .map(({ seq, body }) => [seq, body])

/** Gives documents the values that are indexed and not stored with them. */
export function restoreUnstored(sql: SqlStorage, documents: ReadonlyMap<number, Document>): void {
  const rows = sql.exec<{ seq: number; body: string }>(
    'SELECT seq, body FROM unstored WHERE seq IN (SELECT value FROM json_each(?))',
    JSON.stringify([...documents.keys()]),
  )
  for (const { seq, body } of rows.toArray()) Object.assign(documents.get(seq)!, readExactObject(body))
}
