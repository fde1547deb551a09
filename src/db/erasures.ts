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

/** Whose conversations were erased: of a user, of one key or of every key, and only those that the user is proven to have. */
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

/** Leaves a mark, in the place of an earlier one. @param now milliseconds */
export async function markErased(db: Database, erased: Erased, now: number): Promise<void> {
  await db
    .insert(erasures)
    .values({ id: await markId(erased), at: now })
    .onConflictDoUpdate({ target: erasures.id, set: { at: sql`max(${erasures.at}, excluded.at)` } })
}

/** Ids of the marks that a conversation may have to go for. */
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
