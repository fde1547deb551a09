/**
 * Assistants in D1, cached in the isolate like conversation models (conversation-models.ts): for a few seconds;
 * unknown names never; longer while D1 does not answer.
 */
import { asc, eq } from 'drizzle-orm'
import { reasonOf } from '../errors'
import { type Database, database } from './client'
import { assistants } from './schema'

export type AssistantRow = typeof assistants.$inferSelect

/** how long another isolate may use an assistant that was changed or deleted, in milliseconds */
const CACHE_MS = 5_000
const MOST_CACHED = 1_000

const cache = new Map<string, { row: AssistantRow; until: number }>()

export async function findAssistantRow(
  env: Pick<Cloudflare.Env, 'DB'>,
  name: string,
): Promise<AssistantRow | undefined> {
  const cached = cache.get(name)
  if (cached && cached.until > Date.now()) return cached.row
  let row: AssistantRow | undefined
  try {
    row = await readAssistantRow(database(env), name)
  } catch (error) {
    if (!cached) throw error
    console.error('an assistant could not be read anew', reasonOf(error))
    return cached.row
  }
  cache.delete(name)
  if (row) {
    if (cache.size >= MOST_CACHED) cache.clear()
    cache.set(name, { row, until: Date.now() + CACHE_MS })
  }
  return row
}

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
  cache.delete(name)
  return row
}

/** @returns the deleted row */
export async function deleteAssistantRow(db: Database, name: string): Promise<AssistantRow | undefined> {
  const row = await db.delete(assistants).where(eq(assistants.name, name)).returning().get()
  cache.delete(name)
  return row
}
