/**
 * Writes the rows of documents: the documents themselves, and their typed values. New documents are buffered, to be
 * written together.
 */
import { once } from '../../lib/once'
import { bindable } from '../fragment'
import type { ColumnMemory } from '../schema/column-memory'
import type { StoredSchema } from '../schema/layout'
import type { Plan } from '../schema/plan'
import type { Draft } from './document'
import { type Cell, listOf, scalarOf } from './index-entries'
import { keysOf } from './join-keys'
import { fitting, jsonParts, RowInsert, type Statements, statementsFor } from './rows'

/** The typed values of a document. */
export interface Values {
  seq: number
  /** a row for each `columns` table */
  rows: SqlStorageValue[][]
  /** the elements of each list */
  lists: Cell[][][]
  keys: (readonly [field: string, keys: unknown[]])[]
}

/** A new document. */
interface Insert {
  body: string
  /** the values that are only indexed */
  unstored: string | undefined
  values: Values
}

const documents = once(() => new RowInsert('INSERT INTO documents (seq, id, body)', 3))
const unstoredBodies = once(() => new RowInsert('INSERT INTO unstored (seq, body)', 2))

/** The rows of one version of a schema. */
export class DocumentRows {
  readonly #sql: SqlStorage
  readonly #schema: StoredSchema
  readonly #plan: Plan
  readonly #columns: ColumnMemory
  readonly #statements: Statements
  /** by id */
  #waiting = new Map<string, Insert>()

  /** @param columns drops cached values of changed documents */
  constructor(sql: SqlStorage, schema: StoredSchema, plan: Plan, columns: ColumnMemory) {
    this.#sql = sql
    this.#schema = schema
    this.#plan = plan
    this.#columns = columns
    this.#statements = statementsFor(plan)
  }

  /** Computes the typed values of a document. */
  values(seq: number, draft: Draft): Values {
    const rows = this.#plan.columns.map(({ fields }) => {
      const row: SqlStorageValue[] = [seq]
      for (const plan of fields) row.push(...scalarOf(plan, draft, this.#schema).map(bindable))
      return fitting(row)
    })
    const lists = this.#plan.lists.map((plan) => listOf(plan, draft, this.#schema).map(fitting))
    const keys = this.#plan.keyed.map((plan) => [plan.name, keysOf(plan, draft)] as const)
    return { seq, rows, lists, keys }
  }

  /** Buffers a new document for the next `flush`. */
  insert(id: string, insert: Insert): void {
    this.#waiting.set(id, insert)
  }

  /** Whether a document with this id is buffered. */
  isWaiting(id: string): boolean {
    return this.#waiting.has(id)
  }

  /** Writes the buffered documents. */
  flush(): void {
    if (this.#waiting.size === 0) return
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    documents().write(
      this.#sql,
      waiting.map(([id, { values, body }]) => [values.seq, id, body]),
    )
    unstoredBodies().write(
      this.#sql,
      waiting.flatMap(([, { values, unstored }]) => (unstored === undefined ? [] : [[values.seq, unstored]])),
    )
    this.write(waiting.map(([, { values }]) => values))
  }

  /** Discards the buffer, after a rollback. */
  discard(): void {
    this.#waiting.clear()
  }

  /** Writes typed values. Lists must not be there yet. */
  write(all: readonly Values[]): void {
    this.#columns.forget(all.map(({ seq }) => seq))
    for (const { seq, keys } of all) this.writeKeys(seq, keys)
    for (const [number, insert] of this.#statements.insertColumns.entries()) {
      insert.write(
        this.#sql,
        all.map(({ rows }) => rows[number]!),
      )
    }
    for (const [number, insert] of this.#statements.insertValues.entries()) {
      for (const { seq, lists } of all) {
        const list = lists[number]!
        if (list.length === 0) continue
        for (const [from, json] of jsonParts(list)) this.#sql.exec(insert, seq, json, from)
      }
    }
  }

  /** Replaces a document's join keys in some fields. */
  writeKeys(seq: number, keys: Values['keys']): void {
    for (const [field, values] of keys) {
      this.#sql.exec('DELETE FROM join_keys WHERE seq = ? AND field = ?', seq, field)
      this.#sql.exec(
        'INSERT OR IGNORE INTO join_keys (field, key, seq) SELECT ?, value, ? FROM json_each(?)',
        field,
        seq,
        JSON.stringify(values),
      )
    }
  }
}
