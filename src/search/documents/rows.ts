/** Turns a document into the rows of its collection, and prepares the statements that write them. */
import { ApiError } from '../../errors'
import { type FieldSlot, normColumn, scalarColumn, valuesTable } from '../schema/layout'
import type { Plan } from '../schema/plan'
import { leaves, replace } from '../schema/values'
import type { Draft } from './document'

/** The statements that write a plan's typed values. */
export interface Statements {
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
export class RowInsert {
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

/**
 * The values of a row besides those of `stored`. A string that is filtered or counted is in its row twice, the second time in the
 * form that is compared.
 * @throws ApiError 400 when they are too long for a row; nothing has been written then
 */
export function fitting<V extends SqlStorageValue | bigint>(row: V[]): V[] {
  let texts = 0
  for (const value of row) if (typeof value === 'string') texts += value.length
  if (texts * 3 > MAX_BYTES && isTooLong(JSON.stringify(row))) {
    throw tooLong('A text to filter or count by', MAX_BYTES / 2)
  }
  return row
}

/** A list as JSON texts that SQLite takes, each with the position of its first element. */
export function jsonParts(list: readonly unknown[], from = 0): [from: number, json: string][] {
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
export function statementsFor(plan: Plan): Statements {
  return {
    insertColumns: plan.columns.map(({ table, fields }) => {
      const names = fields.flatMap(({ slot, pair }) =>
        pair
          ? [scalarColumn(slot as FieldSlot), normColumn(slot as FieldSlot)]
          : [scalarColumn(slot as FieldSlot)],
      )
      return new RowInsert(`INSERT OR REPLACE INTO ${table} (seq, ${names.join(', ')})`, names.length + 1)
    }),
    insertValues: plan.lists.map(
      ({ slot }) =>
        `INSERT INTO ${valuesTable(slot as FieldSlot)} (seq, pos, value, norm)
         SELECT ?1, key + ?3, value->>0, value->>1 FROM json_each(?2)`,
    ),
  }
}
