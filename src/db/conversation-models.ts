/** Rows of conversation models. Turns read them through the isolate's cache (row-cache.ts). */
import { waitUntil } from 'cloudflare:workers'
import { and, eq, isNotNull, isNull, sql } from 'drizzle-orm'
import { type Database, nearby, noteWrite } from './client'
import { RowCache } from './row-cache'
import { conversationModels } from './schema'

export type ConversationModelRow = typeof conversationModels.$inferSelect

/** Once a row is this old, in milliseconds, it is read again in the background. Turns use the old row meanwhile. */
export const MODEL_CACHE_MS = 5_000

const cache = new RowCache<ConversationModelRow>('a conversation model', MODEL_CACHE_MS)

/** Finds a model that is not deleted. Another isolate may use one that was changed or deleted for a minute more. */
export const findModel = (
  env: Pick<Cloudflare.Env, 'DB'>,
  id: string,
): Promise<ConversationModelRow | undefined> => cache.held(id, () => readModel(nearby(env), id), waitUntil)

/** Whether `findModel` answers without a read. */
export const isModelHeld = (id: string): boolean => cache.isHeld(id)

/** See `RowCache.reading`. */
export const readingModels = () => cache.reading()

/** Call this after a model was written. */
function forgetModel(id: string): void {
  noteWrite()
  cache.forget(id)
}

/** Reads a model that is not deleted past the cache, before changing it. */
export async function readModel(db: Database, id: string): Promise<ConversationModelRow | undefined> {
  const [row] = await db
    .select()
    .from(conversationModels)
    .where(and(eq(conversationModels.id, id), isNull(conversationModels.deletedAt)))
  return row
}

export const listModelRows = (db: Database): Promise<ConversationModelRow[]> =>
  db
    .select()
    .from(conversationModels)
    .where(isNull(conversationModels.deletedAt))
    .orderBy(conversationModels.id)

/**
 * Stores a new model. It replaces a deleted model of the same id, whose row was kept for its messages' ttl.
 * @returns false when the id is taken
 */
export async function insertModel(db: Database, row: ConversationModelRow): Promise<boolean> {
  const written = await db
    .insert(conversationModels)
    .values(row)
    .onConflictDoUpdate({
      target: conversationModels.id,
      set: { ...row, id: sql`excluded.id` },
      setWhere: isNotNull(conversationModels.deletedAt),
    })
    .returning({ id: conversationModels.id })
  forgetModel(row.id)
  return written.length === 1
}

/** 'taken': another model has the new id. 'missing': the old one is gone. 'changed': somebody else changed it. */
export type Replaced = 'done' | 'taken' | 'missing' | 'changed'

/**
 * Replaces a model if it is still as it was read. If `row.id` is another id, the old one remains as a deleted model,
 * so that its messages still expire. One transaction.
 * @param read the model that `row` was made from @param now unix seconds
 */
export async function replaceModel(
  db: Database,
  read: ConversationModelRow,
  row: ConversationModelRow,
  now: number,
): Promise<Replaced> {
  try {
    return await writeReplacement(db, read, row, now)
  } finally {
    forgetModel(read.id)
    forgetModel(row.id)
  }
}

async function writeReplacement(
  db: Database,
  read: ConversationModelRow,
  row: ConversationModelRow,
  now: number,
): Promise<Replaced> {
  const { id, config, sealedSecrets } = read
  const unchanged = and(
    eq(conversationModels.id, id),
    isNull(conversationModels.deletedAt),
    eq(conversationModels.config, config),
    sql`${conversationModels.sealedSecrets} IS ${sealedSecrets}`,
  )
  if (row.id === id) {
    const updated = await db
      .update(conversationModels)
      .set(row)
      .where(unchanged)
      .returning({ id: conversationModels.id })
    if (updated.length === 1) return 'done'
    return (await readModel(db, id)) ? 'changed' : 'missing'
  }
  const asked = sql`SELECT ${row.id}, ${row.config}, ${row.sealedSecrets}, ${row.maskedSecrets}, ${row.ttl}, NULL
    FROM ${conversationModels} WHERE ${unchanged}`
  // The second statement depends on the first: either the model is moved, or nothing changes.
  const [moved] = await db.batch([
    db
      .insert(conversationModels)
      .select(asked)
      .onConflictDoUpdate({
        target: conversationModels.id,
        set: { ...row, id: sql`excluded.id` },
        setWhere: isNotNull(conversationModels.deletedAt),
      }),
    db
      .update(conversationModels)
      .set({ deletedAt: now, sealedSecrets: null })
      .where(and(unchanged, sql`changes() = 1`)),
  ])
  if (moved.meta.changes === 1) return 'done'
  const present = await readModel(db, id)
  if (!present) return 'missing'
  return present.config === config && present.sealedSecrets === sealedSecrets ? 'taken' : 'changed'
}

/** Marks a model as deleted. @returns false when there is none */
export async function markDeleted(db: Database, id: string, now: number): Promise<boolean> {
  const deleted = await db
    .update(conversationModels)
    .set({ deletedAt: now, sealedSecrets: null })
    .where(and(eq(conversationModels.id, id), isNull(conversationModels.deletedAt)))
    .returning({ id: conversationModels.id })
  forgetModel(id)
  return deleted.length === 1
}

/** The ttl of each known model, in seconds. Deleted models are included. */
export async function ttlsOf(db: Database, ids: string[]): Promise<Map<string, number>> {
  const rows = await db
    .select({ id: conversationModels.id, ttl: conversationModels.ttl })
    .from(conversationModels)
    .where(sql`${conversationModels.id} IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`)
  return new Map(rows.map((row) => [row.id, row.ttl]))
}
