/**
 * That a user's conversations were erased, for those of them that D1 has not heard of yet: when it does it says so, and
 * they go as well. Whoever deletes leaves the mark first and looks for conversations then, so that each of them either
 * is found or finds the mark.
 *
 * A mark does not hold the user's name, only a digest of it.
 */
import { and, gte, inArray, lt, sql } from 'drizzle-orm'
import type { Database } from './client'
import { type conversations, erasures } from './schema'

/** How long a record may be on its way to D1 and still find the mark, in milliseconds. */
const KEPT_MS = 30 * 86_400_000

type Row = typeof conversations.$inferSelect

const encoder = new TextEncoder()

/** @param owner undefined: every key */
async function markId(userId: string, owner?: string): Promise<string> {
  const digest = await crypto.subtle.digest(
    'SHA-256',
    encoder.encode(JSON.stringify([userId, owner ?? null])),
  )
  return btoa(String.fromCharCode(...new Uint8Array(digest)))
}

/**
 * Leaves a mark, in the place of an earlier one.
 * @param owner undefined: whatever key began them @param now milliseconds
 */
export async function markErased(
  db: Database,
  userId: string,
  owner: string | undefined,
  now: number,
): Promise<void> {
  await db
    .insert(erasures)
    .values({ id: await markId(userId, owner), at: now })
    .onConflictDoUpdate({ target: erasures.id, set: { at: sql`max(${erasures.at}, excluded.at)` } })
}

/** Ids of the marks that a conversation may have to go for. */
export const marksFor = ({ userId, owner }: Pick<Row, 'userId' | 'owner'>): Promise<string[]> =>
  Promise.all([markId(userId), markId(userId, owner)])

/** Asks whether a conversation has to go. Part of the transaction that writes it. @param marks ids, as from `marksFor` */
export const erasureSince = (db: Database, createdAt: number, marks: string[]) =>
  db
    .select({ id: erasures.id })
    .from(erasures)
    .where(and(inArray(erasures.id, marks), gte(erasures.at, createdAt)))

/** Deletes some marks that no record can be late for any more. @param now milliseconds @returns how many */
export async function deleteOldMarks(db: Database, now: number, limit: number): Promise<number> {
  const old = db
    .select({ id: erasures.id })
    .from(erasures)
    .where(lt(erasures.at, now - KEPT_MS))
    .limit(limit)
  const { meta } = await db.delete(erasures).where(inArray(erasures.id, old))
  return meta.changes
}
