/** Rows of the aliases registry. */
import { asc, eq } from 'drizzle-orm'
import type { Database } from './client'
import { aliases } from './schema'

export type AliasRow = typeof aliases.$inferSelect

export async function upsertAlias(db: Database, row: AliasRow): Promise<void> {
  await db
    .insert(aliases)
    .values(row)
    .onConflictDoUpdate({ target: aliases.name, set: { collectionName: row.collectionName } })
}

export async function findAlias(db: Database, name: string): Promise<AliasRow | undefined> {
  const [row] = await db.select().from(aliases).where(eq(aliases.name, name))
  return row
}

export function listAliasRows(db: Database): Promise<AliasRow[]> {
  return db.select().from(aliases).orderBy(asc(aliases.name))
}

/** @returns the deleted row */
export async function deleteAlias(db: Database, name: string): Promise<AliasRow | undefined> {
  const [row] = await db.delete(aliases).where(eq(aliases.name, name)).returning()
  return row
}
