import { getTableColumns, getTableName } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'

/** Drizzle on the registry and history database. Cheap to create: it holds no connection. */
export const database = (env: Pick<Cloudflare.Env, 'DB'>) => drizzle(env.DB)

export type Database = ReturnType<typeof database>

/**
 * For this many milliseconds after a write, this isolate reads from no replica: a replica may not have the write yet.
 */
const REPLICA_MS = 60_000

let written = 0

/** Call this after a write of rows that `nearby` reads. */
export const noteWrite = (): void => {
  written = Date.now()
}

/** What runs statements that are written as text: a database or a session of one. */
export type Reads = Pick<D1Database, 'prepare' | 'batch'>

/**
 * The same database, for reads that may return old rows: D1 answers from the nearest replica, if there is one
 * (https://developers.cloudflare.com/d1/best-practices/read-replication). Never read keys, assistants or budgets
 * there: nothing bounds how far a replica is behind.
 */
export const nearbyReads = ({ DB }: Pick<Cloudflare.Env, 'DB'>): Reads =>
  Date.now() < written + REPLICA_MS ? DB : DB.withSession('first-unconstrained')

/** Drizzle on `nearbyReads`. */
export const nearby = (env: Pick<Cloudflare.Env, 'DB'>): Database =>
  // A session has all that drizzle calls.
  drizzle(nearbyReads(env) as D1Database)

/**
 * A table's columns as SQL, under the names of its rows' properties.
 *
 * What the first question of an isolate reads is written as text around this. Drizzle's builder runs hundreds of functions that V8 has
 * not compiled yet, which took a sixth of the Worker's CPU for that question.
 */
export const columnsOf = (table: SQLiteTable): string =>
  Object.entries(getTableColumns(table))
    .map(([property, { name }]) => `${getTableName(table)}.${name} AS ${property}`)
    .join(', ')
