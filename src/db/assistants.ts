/** Rows of assistants. A turn reads them through the isolate's cache (row-cache.ts). */
import { asc, eq } from 'drizzle-orm'
import { type Database, database } from './client'
import { RowCache } from './row-cache'
import { assistants } from './schema'

export type AssistantRow = typeof assistants.$inferSelect

/** how long another isolate may go on with an assistant that was changed or deleted, in milliseconds */
const CACHE_MS = 5_000

const cache = new RowCache<AssistantRow>('an assistant', CACHE_MS)

export const findAssistantRow = (
  env: Pick<Cloudflare.Env, 'DB'>,
  name: string,
): Promise<AssistantRow | undefined> => cache.find(name, () => readAssistantRow(database(env), name))

/** An assistant past the cache: for whoever looks after it. */
export const readAssistantRow = (db: Database, name: string): Promise<AssistantRow | undefined> =>
  db.select().from(assistants).where(eq(assistants.name, name)).get()

export const listAssistantRows = (db: Database): Promise<AssistantRow[]> =>
  db.select().from(assistants).orderBy(asc(assistants.name))

/** Stores an assistant, in the place of one of its name. @param now milliseconds since 1970 */
export async function upsertAssistantRow(
  db: Database,
  { name, config }: Pick<AssistantRow, 'name' | 'config'>,
  now: number,
): Promise<AssistantRow> {
  const row = await db
    .insert(assistants)
    .values({ name, config, createdAt: now, updatedAt: now })
    .onConflictDoUpdate({ target: assistants.name, set: { config, updatedAt: now } })
    .returning()
    .get()
  cache.forget(name)
  return row
}

/** @returns the row that was there */
export async function deleteAssistantRow(db: Database, name: string): Promise<AssistantRow | undefined> {
  const row = await db.delete(assistants).where(eq(assistants.name, name)).returning().get()
  cache.forget(name)
  return row
}
