import { drizzle } from 'drizzle-orm/d1'

/** Drizzle on the registry and history database. Cheap to create: it holds no connection. */
export const database = (env: Pick<Cloudflare.Env, 'DB'>) => drizzle(env.DB)

export type Database = ReturnType<typeof database>
