/** Rows of resources that only one API understands (schema.ts), by kind and id. */
import { and, asc, eq, sql } from 'drizzle-orm'
import type { Database } from './client'
import { resources } from './schema'

export type ResourceRow = typeof resources.$inferSelect

const is = (kind: string, id: string) => and(eq(resources.kind, kind), eq(resources.id, id))

export async function findResource(db: Database, kind: string, id: string): Promise<ResourceRow | undefined> {
  const [row] = await db.select().from(resources).where(is(kind, id))
  return row
}

/** All resources of a kind, the oldest first. */
export const listResources = (db: Database, kind: string): Promise<ResourceRow[]> =>
  db
    .select()
    .from(resources)
    .where(eq(resources.kind, kind))
    .orderBy(asc(resources.createdAt), asc(resources.id))

export type NewResource = Pick<ResourceRow, 'kind' | 'id' | 'body'> & Partial<ResourceRow>

const rowOf = (given: NewResource, now: number): ResourceRow => ({
  uniqueName: null,
  sealed: null,
  version: 1,
  createdAt: now,
  updatedAt: now,
  ...given,
})

/** @returns false where the id or the name is taken */
export async function insertResource(db: Database, given: NewResource): Promise<boolean> {
  const written = await db
    .insert(resources)
    .values(rowOf(given, Date.now()))
    .onConflictDoNothing()
    .returning({ id: resources.id })
  return written.length === 1
}

/** Stores a resource, and replaces one of the same id. @returns its version */
export async function putResource(db: Database, given: NewResource): Promise<number> {
  const now = Date.now()
  const { createdAt: _, version: __, ...row } = rowOf(given, now)
  const [written] = await db
    .insert(resources)
    .values({ ...row, createdAt: now, version: 1 })
    .onConflictDoUpdate({
      target: [resources.kind, resources.id],
      set: { ...row, version: sql`${resources.version} + 1` },
    })
    .returning({ version: resources.version })
  return written!.version
}

/**
 * The outcome of a replacement. `changed`: another change came first; `taken`: another resource has the new id or
 * name.
 */
export type Replaced = 'done' | 'changed' | 'taken' | 'missing'

/**
 * Replaces a row if it is still as it was read. The new row may have another id.
 * @param read the row as it was read
 */
export async function replaceResource(
  db: Database,
  read: ResourceRow,
  given: NewResource,
): Promise<Replaced> {
  const { kind, id, version, body, sealed } = read
  const now = Date.now()
  const row = { ...rowOf(given, now), version: version + 1, createdAt: read.createdAt }
  const unchanged = and(
    is(kind, id),
    eq(resources.version, version),
    eq(resources.body, body),
    sql`${resources.sealed} IS ${sealed}`,
  )
  if (row.id === id) {
    const updated = await db.update(resources).set(row).where(unchanged).returning({ id: resources.id })
    if (updated.length === 1) return 'done'
    return (await findResource(db, kind, id)) ? 'changed' : 'missing'
  }
  const asked = sql`SELECT ${row.kind}, ${row.id}, ${row.uniqueName}, ${row.body}, ${row.sealed}, ${row.version},
    ${row.createdAt}, ${row.updatedAt} FROM ${resources} WHERE ${unchanged}`
  // The second statement depends on the first: either the row is moved, or nothing changes.
  const [moved] = await db.batch([
    db.insert(resources).select(asked).onConflictDoNothing(),
    db.delete(resources).where(and(unchanged, sql`changes() = 1`)),
  ])
  if (moved.meta.changes === 1) return 'done'
  const present = await findResource(db, kind, id)
  if (!present) return 'missing'
  return present.version === version && present.sealed === sealed ? 'taken' : 'changed'
}

/** Changes some keys of a body, in one statement. @param changes null removes a key */
export async function mergeResource(
  db: Database,
  kind: string,
  id: string,
  changes: Record<string, unknown>,
): Promise<void> {
  const patch = JSON.stringify(changes)
  await db
    .insert(resources)
    .values({ ...rowOf({ kind, id, body: '' }, Date.now()), body: sql`json_patch('{}', ${patch})` })
    .onConflictDoUpdate({
      target: [resources.kind, resources.id],
      set: {
        body: sql`json_patch(${resources.body}, ${patch})`,
        updatedAt: Date.now(),
        version: sql`${resources.version} + 1`,
      },
    })
}

/** @returns false where there is none */
export async function deleteResource(db: Database, kind: string, id: string): Promise<boolean> {
  const deleted = await db.delete(resources).where(is(kind, id)).returning({ id: resources.id })
  return deleted.length === 1
}
