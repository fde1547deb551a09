/** Rows of resources that only one API understands (schema.ts), by kind and id. */
import { and, asc, eq, sql } from 'drizzle-orm'
import * as v from 'valibot'
import { once } from '../lib/once'
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
type Replaced = 'done' | 'changed' | 'taken' | 'missing'

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

// =============================================================================
// Resources that are maps: a synonym set, a curation set, a stemming dictionary. The body is an object from ids to
// strings, so that one statement can put or drop an entry without overwriting concurrent changes to others.

/** By id, in the order in which they were first added. */
export type Entries = Map<string, string>

const Body = once(() => v.record(v.string(), v.string()))

/**
 * Precedes each key in the stored JSON. JavaScript moves keys like `1` to the front of an object, and treats
 * `__proto__` as the prototype. With this prefix both are ordinary keys.
 */
const MARK = ':'

const bodyOf = (entries: Iterable<readonly [string, string | null]>): string =>
  JSON.stringify(Object.fromEntries([...entries].map(([id, entry]) => [MARK + id, entry])))

export const entriesOf = (body: string): Entries =>
  new Map(
    Object.entries(v.parse(Body(), JSON.parse(body))).map(([id, entry]) => [id.slice(MARK.length), entry]),
  )

export const entriesBody = (entries: Entries): string => bodyOf(entries)

/** Identifies one state of a resource. */
export interface Stamp {
  version: number
  createdAt: number
}

interface StampedBody extends Stamp {
  /** undefined: unchanged since the state that the caller has */
  body: string | undefined
}

/** Reads a resource, without its body if the caller already has this state. */
export async function findNewer(
  db: Database,
  kind: string,
  id: string,
  known: Stamp | undefined,
): Promise<StampedBody | undefined> {
  const { version, createdAt } = known ?? { version: 0, createdAt: 0 }
  const unchanged = sql`${resources.version} = ${version} AND ${resources.createdAt} = ${createdAt}`
  const [row] = await db
    .select({
      version: resources.version,
      createdAt: resources.createdAt,
      body: sql<string | null>`CASE WHEN ${unchanged} THEN NULL ELSE ${resources.body} END`,
    })
    .from(resources)
    .where(is(kind, id))
  return row && { ...row, body: row.body ?? undefined }
}

/**
 * Puts entries into a resource. null drops an entry.
 * @returns false where there is no such resource
 */
export async function putEntries(
  db: Database,
  kind: string,
  id: string,
  entries: Iterable<readonly [string, string | null]>,
): Promise<boolean> {
  const written = await db
    .update(resources)
    .set({
      body: sql`json_patch(${resources.body}, ${bodyOf(entries)})`,
      updatedAt: Date.now(),
      version: sql`${resources.version} + 1`,
    })
    .where(is(kind, id))
    .returning({ id: resources.id })
  return written.length === 1
}

/** Makes an empty resource, unless there is one of this id. */
export async function beginEntries(db: Database, kind: string, id: string): Promise<void> {
  const now = Date.now()
  await db
    .insert(resources)
    .values({
      kind,
      id,
      body: '{}',
      uniqueName: null,
      sealed: null,
      version: 1,
      createdAt: now,
      updatedAt: now,
    })
    .onConflictDoNothing()
}

export interface Sizes {
  /** resources of the kind, besides this one */
  others: number
  /** bytes of the body, 0 if there is no such resource */
  bytes: number
  entries: number
  /** whether it has this entry */
  has: boolean
}

/** Counts the resources of a kind, and measures one of them. */
export async function sizesOf(db: Database, kind: string, id: string, entry = ''): Promise<Sizes> {
  const of = sql`FROM ${resources} WHERE ${resources.kind} = ${kind} AND ${resources.id}`
  const keys = sql`json_each((SELECT body ${of} = ${id}))`
  const [row] = await db.all<Omit<Sizes, 'has'> & { has: number }>(sql`SELECT
    (SELECT count(*) ${of} <> ${id}) AS others,
    coalesce((SELECT length(CAST(body AS BLOB)) ${of} = ${id}), 0) AS bytes,
    (SELECT count(*) FROM ${keys}) AS entries,
    (SELECT count(*) FROM ${keys} WHERE key = ${MARK + entry}) AS has`)
  return { ...row!, has: row!.has > 0 }
}

/** Bytes of all bodies of a kind. */
export async function bytesOfKind(db: Database, kind: string): Promise<number> {
  const [row] = await db
    .select({ bytes: sql<number>`coalesce(sum(length(CAST(${resources.body} AS BLOB))), 0)` })
    .from(resources)
    .where(eq(resources.kind, kind))
  return row!.bytes
}

/** The ids of a kind, the oldest first, without their bodies. */
export async function idsOfKind(db: Database, kind: string): Promise<string[]> {
  const rows = await db
    .select({ id: resources.id })
    .from(resources)
    .where(eq(resources.kind, kind))
    .orderBy(resources.createdAt, resources.id)
  return rows.map(({ id }) => id)
}
