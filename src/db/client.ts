/**
 * Statements for D1. They are SQL with values in it, written with sql-template-tag: each value of a template becomes a parameter, and
 * another template, as `insert` and the like give it, becomes part of the text.
 */
import sql, { join, raw, type Sql } from 'sql-template-tag'
import type { RowOf, Table } from './schema'

/** A database, or a session of one. */
export type Database = Pick<D1Database, 'prepare' | 'batch'>

/**
 * For this many milliseconds after a write, this isolate reads from no replica: a replica may not have the write yet.
 */
const REPLICA_MS = 60_000

let written = 0

/** Call this after a write of rows that `nearby` reads. */
export const noteWrite = (): void => {
  written = Date.now()
}

/**
 * The same database, for reads that may return old rows: D1 answers from the nearest replica, if there is one
 * (https://developers.cloudflare.com/d1/best-practices/read-replication). Never read keys, assistants or budgets
 * there: nothing bounds how far a replica is behind.
 */
export const nearby = ({ DB }: Pick<Cloudflare.Env, 'DB'>): Database =>
  Date.now() < written + REPLICA_MS ? DB : DB.withSession('first-unconstrained')

// =============================================================================
// Runs statements.

export const prepare = (db: Database, { sql: text, values }: Sql): D1PreparedStatement =>
  db.prepare(text).bind(...values)

export const all = async <Row>(db: Database, query: Sql): Promise<Row[]> =>
  (await prepare(db, query).all<Row>()).results

/** The first row; undefined where there is none. */
export const first = async <Row>(db: Database, query: Sql): Promise<Row | undefined> =>
  (await all<Row>(db, query))[0]

/** @returns how many rows were written, with those that triggers wrote */
export const run = async (db: Database, query: Sql): Promise<number> =>
  (await prepare(db, query).run()).meta.changes

/** Runs statements in one transaction. */
export const batch = (db: Database, queries: Sql[]): Promise<D1Result[]> =>
  db.batch(queries.map((query) => prepare(db, query)))

// =============================================================================
// Parts of statements.

/** Columns that are not named as their properties are. */
const RENAMED: Record<string, string> = { sealedSecrets: 'sealed_api_key', maskedSecrets: 'masked_api_key' }

/** The column of a row's property: `object_id` of `objectId`. */
export const columnOf = (property: string): string =>
  RENAMED[property] ?? property.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** A table's columns, or some of them, as SQL: under the names of its rows' properties. */
export const columnsOf = ({ name, columns }: Table, properties = Object.keys(columns)): string =>
  properties.map((property) => `${name}.${columnOf(property)} AS ${property}`).join(', ')

/** `SELECT` of a table's columns, or of some of them. */
export const select = <T extends Table>(table: T, ...properties: (keyof T['columns'] & string)[]): Sql =>
  raw(`SELECT ${columnsOf(table, properties.length > 0 ? properties : undefined)} FROM ${table.name}`)

/** `RETURNING`, with all columns of a table. */
export const returning = (table: Table): Sql => raw(`RETURNING ${columnsOf(table)}`)

/** Values by property. An undefined one is left out, and a template stands as it is. */
type Changes<T extends Table> = { [Property in keyof RowOf<T>]?: RowOf<T>[Property] | Sql | undefined }

const given = (changes: object): [column: Sql, value: unknown][] =>
  Object.entries(changes).flatMap(([property, value]) =>
    value === undefined ? [] : [[raw(columnOf(property)), value]],
  )

/** `INSERT` of one row. */
export function insert<T extends Table>({ name }: T, row: Changes<T>): Sql {
  const values = given(row)
  return sql`INSERT INTO ${raw(name)} (${join(values.map(([column]) => column))})
    VALUES (${join(values.map(([, value]) => value))})`
}

/** What stands after `SET`. */
export const sets = <T extends Table>(changes: Changes<T>): Sql =>
  join(given(changes).map(([column, value]) => sql`${column} = ${value}`))

/** The conditions that are given, joined by `AND`. */
export const allOf = (...conditions: (Sql | undefined)[]): Sql =>
  join(
    conditions.filter((condition) => condition !== undefined),
    ' AND ',
  )

/** Whether a column has one of some values, whatever their number: D1 binds at most 100. */
export const isIn = (column: string, values: readonly unknown[]): Sql =>
  sql`${raw(column)} IN (SELECT value FROM json_each(${JSON.stringify(values)}))`
