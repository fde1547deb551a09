/**
 * Marks that a user's conversations were erased, for conversations that D1 does not know of yet. When D1 learns of
 * one, it reports the mark, and the conversation is erased too. A deletion leaves the mark first and looks for
 * conversations afterwards, so each of them is either found or finds the mark.
 *
 * A mark contains a digest of the user's name, not the name.
 */
import { and, gte, inArray, lt, sql } from 'drizzle-orm'
import type { Database } from './client'
import { type conversations, erasures } from './schema'

/** How long a record may take to reach D1 and still find the mark, in milliseconds. */
const KEPT_MS = 30 * 86_400_000

type Row = typeof conversations.$inferSelect

/**
 * Whose conversations were erased: a user's, with one key or any key, and only those that the user is proven to own.
 */
export interface Erased {
  userId?: string | undefined
  owner?: string | undefined
  proof?: string | undefined
}

const encoder = new TextEncoder()

async function markId({ userId, owner, proof }: Erased): Promise<string> {
  const parts = [userId ?? null, owner ?? null, ...(proof ? [proof] : [])]
  const digest = await crypto.subtle.digest('SHA-256', encoder.encode(JSON.stringify(parts)))
  return btoa(String.fromCharCode(...new Uint8Array(digest)))
}

/** Leaves a mark, and replaces an earlier one. @param now milliseconds */
export async function markErased(db: Database, erased: Erased, now: number): Promise<void> {
  await db
    .insert(erasures)
    .values({ id: await markId(erased), at: now })
    .onConflictDoUpdate({ target: erasures.id, set: { at: sql`max(${erasures.at}, excluded.at)` } })
}

/** Ids of the marks that concern a conversation. */
export const marksFor = ({
  userId,
  owner,
  proof,
}: Pick<Row, 'userId' | 'owner'> & { proof?: string }): Promise<string[]> =>
  Promise.all([
    markId({ userId }),
    markId({ userId, owner }),
    ...(proof ? [markId({ userId, owner, proof })] : []),
  ])

/**
 * Whether a conversation has to be erased. Belongs in the transaction that writes it. @param marks ids from
 * `marksFor`
 */
export const erasureSince = (db: Database, createdAt: number, marks: string[]) =>
  db
    .select({ id: erasures.id })
    .from(erasures)
    .where(and(inArray(erasures.id, marks), gte(erasures.at, createdAt)))

/** Deletes some marks that are too old to concern any record. @param now milliseconds @returns how many */
export async function deleteOldMarks(db: Database, now: number, limit: number): Promise<number> {
  const old = db
    .select({ id: erasures.id })
    .from(erasures)
    .where(lt(erasures.at, now - KEPT_MS))
    .limit(limit)
  const { meta } = await db.delete(erasures).where(inArray(erasures.id, old))
  return meta.changes
}
