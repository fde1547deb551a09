import { drizzle } from 'drizzle-orm/d1'

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

/**
 * The same database, for reads that may return old rows: D1 answers from the nearest replica, if there is one
 * (https://developers.cloudflare.com/d1/best-practices/read-replication). Never read keys, assistants or budgets
 * there: nothing bounds how far a replica is behind.
 */
export const nearby = (env: Pick<Cloudflare.Env, 'DB'>): Database =>
  Date.now() < written + REPLICA_MS
    ? database(env)
    : // A session has all that drizzle calls.
      drizzle(env.DB.withSession('first-unconstrained') as unknown as D1Database)
