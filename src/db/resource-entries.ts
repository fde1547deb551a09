/**
 * Resources that are maps: a synonym set, a curation set, a stemming dictionary. The body is an object from ids to
 * strings, so that one statement can put or drop an entry without overwriting concurrent changes to others.
 */
import { and, eq, sql } from 'drizzle-orm'
import * as v from 'valibot'
import { once } from '../lib/once'
import type { Database } from './client'
import { resources } from './schema'

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

const is = (kind: string, id: string) => and(eq(resources.kind, kind), eq(resources.id, id))

/** Identifies one state of a resource. */
export interface Stamp {
  version: number
  createdAt: number
}

export interface StampedBody extends Stamp {
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
