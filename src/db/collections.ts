/** Rows of the collections registry: which object holds which collection. */
import { and, asc, desc, eq, getTableColumns, type SQL, sql } from 'drizzle-orm'
import type { Database } from './client'
import { aliases, collections } from './schema'

export type CollectionRow = typeof collections.$inferSelect

/** @returns false when the name is taken */
export async function insertCollection(db: Database, row: typeof collections.$inferInsert): Promise<boolean> {
  const inserted = await db.insert(collections).values(row).onConflictDoNothing().returning()
  return inserted.length === 1
}

/** The collection with this name or, if there is none, the one that an alias of this name points to. */
export async function findCollectionRow(db: Database, name: string): Promise<CollectionRow | undefined> {
  const own = db.select().from(collections).where(eq(collections.name, name))
  const aliased = db
    .select(getTableColumns(collections))
    .from(aliases)
    .innerJoin(collections, eq(collections.name, aliases.collectionName))
    .where(eq(aliases.name, name))
  const [[row], [target]] = await db.batch([own, aliased])
  return row ?? target
}

/** Moves a collection to another engine, or changes its credentials. @returns false when it is gone */
export async function changeEngine(
  db: Database,
  objectId: string,
  change: Pick<CollectionRow, 'engine' | 'engineConfig' | 'sealedCredentials'>,
): Promise<boolean> {
  const changed = await db
    .update(collections)
    .set(change)
    .where(eq(collections.objectId, objectId))
    .returning({ name: collections.name })
  return changed.length === 1
}

/**
 * Swaps the collections that two names lead to, in one transaction. SQLite checks at each statement that names are
 * unique, not at the commit, so one row is named after its object's id in between.
 * @returns false if a name leads elsewhere by now; nothing is changed then
 */
export async function switchPlaces(
  db: Database,
  one: Pick<CollectionRow, 'name' | 'objectId'>,
  other: Pick<CollectionRow, 'name' | 'objectId'>,
): Promise<boolean> {
  const between = `\u0000${one.objectId}`
  const stands = (name: string, objectId: string) =>
    sql`EXISTS (SELECT 1 FROM collections AS stands WHERE stands.name = ${name} AND stands.object_id = ${objectId})`
  const call = (objectId: string, from: string, to: string, condition: SQL) =>
    db
      .update(collections)
      .set({ name: to })
      .where(and(eq(collections.objectId, objectId), eq(collections.name, from), condition))
      .returning({ name: collections.name })
  const [, , last] = await db.batch([
    call(one.objectId, one.name, between, stands(other.name, other.objectId)),
    call(other.objectId, other.name, one.name, stands(between, one.objectId)),
    call(one.objectId, between, other.name, stands(one.name, other.objectId)),
  ])
  return last.length === 1
}

export async function findCollectionByObject(
  db: Database,
  objectId: string,
): Promise<CollectionRow | undefined> {
  const [row] = await db.select().from(collections).where(eq(collections.objectId, objectId))
  return row
}

/** Stores the outline of an object's collection. @returns false when no name leads to the object */
export async function saveOutline(db: Database, objectId: string, outline: string): Promise<boolean> {
  const saved = await db.update(collections).set({ outline }).where(eq(collections.objectId, objectId))
  return saved.meta.changes === 1
}

/** Deletes a name, unless it belongs to another object by now. */
export async function deleteCollection(db: Database, name: string, objectId: string): Promise<void> {
  await db.delete(collections).where(and(eq(collections.name, name), eq(collections.objectId, objectId)))
}

/** Whether a Collection object of Parley's own stores the collection. Clusters store the others. */
export const isOwn = ({ engine }: Pick<CollectionRow, 'engine'>): boolean => engine === 'object'

/** Newest first. @param limit 0: all of them */
export function listCollectionRows(db: Database, limit: number, offset: number): Promise<CollectionRow[]> {
  return db
    .select()
    .from(collections)
    .orderBy(desc(collections.createdAt), asc(collections.name))
    .limit(limit > 0 ? limit : -1)
    .offset(offset)
}

/** Whether a collection (not an alias) has this name. */
export async function isCollectionName(db: Database, name: string): Promise<boolean> {
  const [row] = await db
    .select({ name: collections.name })
    .from(collections)
    .where(eq(collections.name, name))
  return row !== undefined
}
