import { drizzle } from 'drizzle-orm/d1'

/** Drizzle on the registry and history database. Cheap to create: it holds no connection. */
export const database = (env: Pick<Cloudflare.Env, 'DB'>) => drizzle(env.DB)

export type Database = ReturnType<typeof database>

/** For this long after a write, in milliseconds, this isolate asks no replica: it may not have the write yet. */
const REPLICA_MS = 60_000

let written = 0

/** Something was written here that `nearby` reads. */
export const noteWrite = (): void => {
  written = Date.now()
}

/**
 * The same database for reads of rows that may be old: D1 answers from the replica that is nearest, if it has any
 * (https://developers.cloudflare.com/d1/best-practices/read-replication). Never read keys, assistants or budgets there:
 * a replica may be behind by any time.
 */
export const nearby = (env: Pick<Cloudflare.Env, 'DB'>): Database =>
  Date.now() < written + REPLICA_MS
    ? database(env)
    : // A session has all that drizzle calls.
      drizzle(env.DB.withSession('first-unconstrained') as unknown as D1Database)
