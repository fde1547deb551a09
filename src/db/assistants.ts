/** Rows of assistants. Turns read them through the isolate's cache (row-cache.ts). */
import { asc, eq } from 'drizzle-orm'
import { type Database, database } from './client'
import { RowCache } from './row-cache'
import { assistants } from './schema'

export type AssistantRow = typeof assistants.$inferSelect

/**
 * How long another isolate may use an assistant that was changed or deleted, in milliseconds. An assistant decides
 * who may ask, so it is cached no longer than keys.
 */
const CACHE_MS = 5_000

const cache = new RowCache<AssistantRow>('an assistant', CACHE_MS)

export const findAssistantRow = (
  env: Pick<Cloudflare.Env, 'DB'>,
  name: string,
): Promise<AssistantRow | undefined> => cache.find(name, () => readAssistantRow(database(env), name))

/** Whether `findAssistantRow` answers without a read. */
export const isAssistantFresh = (name: string): boolean => cache.isFresh(name)

/** See `RowCache.reading`. */
export const readingAssistants = () => cache.reading()

/** Reads an assistant past the cache, for its administrator. */
export const readAssistantRow = (db: Database, name: string): Promise<AssistantRow | undefined> =>
  db.select().from(assistants).where(eq(assistants.name, name)).get()

export const listAssistantRows = (db: Database): Promise<AssistantRow[]> =>
  db.select().from(assistants).orderBy(asc(assistants.name))

/** Stores an assistant, and replaces one of the same name. @param now unix milliseconds */
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

/** @returns the deleted row */
export async function deleteAssistantRow(db: Database, name: string): Promise<AssistantRow | undefined> {
  const row = await db.delete(assistants).where(eq(assistants.name, name)).returning().get()
  cache.forget(name)
  return row
}
