/** Rows of conversation models. A turn reads them through the isolate's cache (row-cache.ts). */
import { and, eq, isNotNull, isNull, sql } from 'drizzle-orm'
import { type Database, database } from './client'
import { RowCache } from './row-cache'
import { conversationModels } from './schema'

export type ConversationModelRow = typeof conversationModels.$inferSelect

/** how long another isolate may go on with a model that was changed or deleted, in milliseconds */
export const MODEL_CACHE_MS = 5_000

const cache = new RowCache<ConversationModelRow>('a conversation model', MODEL_CACHE_MS)

/** A model that is not deleted. */
export const findModel = (
  env: Pick<Cloudflare.Env, 'DB'>,
  id: string,
): Promise<ConversationModelRow | undefined> => cache.find(id, () => readModel(database(env), id))

/** A model that is not deleted, past the cache: for whoever is about to change it. */
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
 * Stores a new model. A deleted model of the id, still there for its messages' ttl, gives way.
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
  cache.forget(row.id)
  return written.length === 1
}

/** 'taken': the new id belongs to another model. 'missing': the old one is gone. 'changed': somebody else changed it. */
export type Replaced = 'done' | 'taken' | 'missing' | 'changed'

/**
 * Replaces a model that is as it was read, under another id when `row.id` says so. The old id then stays as a deleted
 * model, so that the messages that carry it go on expiring. One transaction.
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
    cache.forget(read.id)
    cache.forget(row.id)
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
  // The second statement asks what the first did: the batch either moves the model or leaves all as it was.
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
  cache.forget(id)
  return deleted.length === 1
}

/** The ttl, in seconds, of each of these models that is known, deleted or not. */
export async function ttlsOf(db: Database, ids: string[]): Promise<Map<string, number>> {
  const rows = await db
    .select({ id: conversationModels.id, ttl: conversationModels.ttl })
    .from(conversationModels)
    .where(sql`${conversationModels.id} IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`)
  return new Map(rows.map((row) => [row.id, row.ttl]))
}
