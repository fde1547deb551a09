/**
 * Statements for D1. They are SQL with values in it, written with sql-template-tag: each value of a template becomes a parameter, and
 * another template, as `insert` and the like give it, becomes part of the text.
 */
import sql, { join, raw, type Sql } from 'sql-template-tag'
import * as v from 'valibot'
import { reasonOf } from '../errors'
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

/**
 * A schema of a table's rows that were stored as JSON.
 * @param optional properties that may be absent @param without properties that are never there
 */
export function rowSchema<Row>(
  { columns }: Table,
  { optional = [], without = [] }: { optional?: string[]; without?: string[] },
): v.GenericSchema<Row> {
  const entries = Object.entries(columns).flatMap(([property, kind]) => {
    const value = kind.startsWith('text') ? v.string() : v.number()
    const schema = kind.endsWith('?') ? v.nullable(value) : value
    if (without.includes(property)) return []
    return [[property, optional.includes(property) ? v.exactOptional(schema) : schema]]
  })
  return v.object(Object.fromEntries(entries)) as unknown as v.GenericSchema<Row>
}

// =============================================================================
// Caches rows of D1 in the isolate's memory, so that a turn waits for no query. All caches share one policy.

/** Entries of one cache. A full cache is emptied. */
const MOST_CACHED = 1_000

/** How long `held` uses an entry, in milliseconds. */
export const HELD_MS = 60_000

/** After this many milliseconds a renewal counts as lost: workerd cancels it if the request that began it ends. */
const RENEWAL_MS = 5_000

/** How often the log says that one entry cannot be read anew, in milliseconds: as often as a cluster at rest is asked again. */
const TOLD_MS = 60_000

interface Entry<Row> {
  row: Row
  /** when it was read, in unix milliseconds */
  read: number
  /** when its renewal began; 0: it has not */
  renewed: number
  /** when the log last said that a read of it failed, in unix milliseconds; 0: not since it was read */
  told: number
}

/**
 * A cache of D1's rows by key.
 *
 * - `find` uses an entry for `ms`. Another isolate sees a change that much later.
 * - `held` uses it for a minute. From `ms` on it reads the row again, while the caller goes on with the old one.
 * - An unknown key is never cached, so a new row is found at once.
 * - While D1 does not answer, expired entries are still used: they are seldom wrong. Budgets turn this off.
 * - Code that writes a row must forget its key after the write. If it did so before, a reader could cache the old row
 *   again. A read that was under way then is not cached.
 *
 * Callers never share a read: if the request that began it ends, workerd never settles its promise.
 */
export class RowCache<Row> {
  readonly #entries = new Map<string, Entry<Row>>()
  readonly #outlives: boolean
  /** counts what was forgotten */
  #changes = 0

  /**
   * @param what names a row in the log: `a conversation model`
   * @param ms how long an entry is used
   * @param options.outlives false: an entry is not used beyond its time
   */
  constructor(
    private readonly what: string,
    private readonly ms: number,
    { outlives = true } = {},
  ) {
    this.#outlives = outlives
  }

  /**
   * @param read asks D1
   * @throws what `read` throws, if the cache has no entry of the key
   */
  async find(key: string, read: () => Promise<Row | undefined>): Promise<Row | undefined> {
    const known = this.#entries.get(key)
    return known && this.isFresh(key) ? known.row : this.#read(key, read)
  }

  /**
   * For questions, which wait for as little as possible.
   * @param behind keeps a renewal alive beyond the request: `waitUntil`
   * @throws what `read` throws where nothing is remembered of the key
   */
  async held(
    key: string,
    read: () => Promise<Row | undefined>,
    behind: (renewal: Promise<unknown>) => void,
  ): Promise<Row | undefined> {
    const known = this.#entries.get(key)
    if (!known || !this.isHeld(key)) return this.find(key, read)
    const now = Date.now()
    if (!this.isFresh(key) && now >= known.renewed + RENEWAL_MS) {
      known.renewed = now
      behind(this.#read(key, read).catch(() => {}))
    }
    return known.row
  }

  async #read(key: string, read: () => Promise<Row | undefined>): Promise<Row | undefined> {
    const keep = this.reading()
    try {
      const row = await read()
      keep(key, row)
      return row
    } catch (error) {
      const known = this.#entries.get(key)
      if (!known || !this.#outlives) throw error
      // While the source is away, every caller comes here.
      const now = Date.now()
      if (now - known.told >= TOLD_MS) {
        known.told = now
        console.error(`${this.what} could not be read anew`, reasonOf(error))
      }
      return known.row
    }
  }

  /**
   * Call this before rows are read, and the returned function with each row and its key. If any key was forgotten
   * meanwhile, nothing is cached, because a row may be the old one.
   */
  reading(): (key: string, row: Row | undefined) => void {
    const changes = this.#changes
    return (key, row) => {
      if (changes !== this.#changes) return
      this.#entries.delete(key)
      if (row === undefined) return
      if (this.#entries.size >= MOST_CACHED) this.#entries.clear()
      this.#entries.set(key, { row, read: Date.now(), renewed: 0, told: 0 })
    }
  }

  /** Whether `find` answers without a read. */
  isFresh(key: string): boolean {
    return this.#isYounger(key, this.ms)
  }

  /** Whether `held` answers without waiting for a read. */
  isHeld(key: string): boolean {
    return this.#isYounger(key, HELD_MS)
  }

  #isYounger(key: string, ms: number): boolean {
    const known = this.#entries.get(key)
    return known !== undefined && Date.now() - known.read < ms
  }

  forget(key: string): void {
    this.#entries.delete(key)
    this.#changes += 1
  }

  clear(): void {
    this.#entries.clear()
    this.#changes += 1
  }
}
