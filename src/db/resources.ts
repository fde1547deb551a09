/** Rows of resources that only one API understands (schema.ts), by kind and id. */
import sql from 'sql-template-tag'
import * as v from 'valibot'
import { once } from '../lib/once'
import { all, batch, type Database, first, insert, returning, run, select, sets } from './client'
import { type RowOf, resources } from './schema'

export type ResourceRow = RowOf<typeof resources>

const is = (kind: string, id: string) => sql`kind = ${kind} AND id = ${id}`

export const findResource = (db: Database, kind: string, id: string): Promise<ResourceRow | undefined> =>
  first(db, sql`${select(resources)} WHERE ${is(kind, id)}`)

/** All resources of a kind, the oldest first. */
export const listResources = (db: Database, kind: string): Promise<ResourceRow[]> =>
  all(db, sql`${select(resources)} WHERE kind = ${kind} ORDER BY created_at, id`)

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
export const insertResource = async (db: Database, given: NewResource): Promise<boolean> =>
  (await run(db, sql`${insert(resources, rowOf(given, Date.now()))} ON CONFLICT DO NOTHING`)) === 1

/** Stores a resource, and replaces one of the same id. @returns its version */
export async function putResource(db: Database, given: NewResource): Promise<number> {
  const now = Date.now()
  const row = { ...rowOf(given, now), createdAt: now, version: 1 }
  const written = await first<ResourceRow>(
    db,
    sql`${insert(resources, row)} ON CONFLICT (kind, id) DO UPDATE SET unique_name = excluded.unique_name,
      body = excluded.body, sealed = excluded.sealed, ${nextVersion(now)}
      ${returning(resources)}`,
  )
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
  const unchanged = sql`${is(kind, id)} AND version = ${version} AND body = ${body} AND sealed IS ${sealed}`
  if (row.id === id) {
    const updated = await run(db, sql`UPDATE resources SET ${sets<typeof resources>(row)} WHERE ${unchanged}`)
    if (updated === 1) return 'done'
    return (await findResource(db, kind, id)) ? 'changed' : 'missing'
  }
  // The second statement depends on the first: either the row is moved, or nothing changes.
  const [moved] = await batch(db, [
    sql`INSERT INTO resources (kind, id, unique_name, body, sealed, version, created_at, updated_at)
      SELECT ${row.kind}, ${row.id}, ${row.uniqueName}, ${row.body}, ${row.sealed}, ${row.version}, ${row.createdAt},
        ${row.updatedAt} FROM resources WHERE ${unchanged} ON CONFLICT DO NOTHING`,
    sql`DELETE FROM resources WHERE ${unchanged} AND changes() = 1`,
  ])
  if (moved!.meta.changes === 1) return 'done'
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
  const row = rowOf({ kind, id, body: '' }, Date.now())
  await run(
    db,
    sql`${insert(resources, { ...row, body: sql`json_patch('{}', ${patch})` })} ON CONFLICT (kind, id) DO UPDATE SET
      body = json_patch(resources.body, ${patch}), ${nextVersion(row.updatedAt)}`,
  )
}

/** A changed row's next version. */
const nextVersion = (now: number) => sql`updated_at = ${now}, version = resources.version + 1`

/** @returns false where there is none */
export const deleteResource = async (db: Database, kind: string, id: string): Promise<boolean> =>
  (await run(db, sql`DELETE FROM resources WHERE ${is(kind, id)}`)) === 1

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
  const row = await first<Stamp & { body: string | null }>(
    db,
    sql`SELECT version, created_at AS createdAt,
      CASE WHEN version = ${version} AND created_at = ${createdAt} THEN NULL ELSE body END AS body
      FROM resources WHERE ${is(kind, id)}`,
  )
  return row && { ...row, body: row.body ?? undefined }
}

/**
 * Puts entries into a resource. null drops an entry.
 * @returns false where there is no such resource
 */
export const putEntries = async (
  db: Database,
  kind: string,
  id: string,
  entries: Iterable<readonly [string, string | null]>,
): Promise<boolean> =>
  (await run(
    db,
    sql`UPDATE resources SET body = json_patch(body, ${bodyOf(entries)}), ${nextVersion(Date.now())} WHERE ${is(kind, id)}`,
  )) === 1

/** Makes an empty resource, unless there is one of this id. */
export const beginEntries = (db: Database, kind: string, id: string): Promise<boolean> =>
  insertResource(db, { kind, id, body: '{}' })

export type Sizes = Awaited<ReturnType<typeof sizesOf>>

/**
 * Counts the resources of a kind, and measures one of them.
 * @returns `others`: resources of the kind, besides this one. `bytes` of the body, 0 if there is no such resource. `has`: whether it
 *   has this entry
 */
export async function sizesOf(db: Database, kind: string, id: string, entry = '') {
  const of = sql`FROM resources WHERE kind = ${kind} AND id`
  const keys = sql`json_each((SELECT body ${of} = ${id}))`
  const row = await first<Record<'others' | 'bytes' | 'entries' | 'has', number>>(
    db,
    sql`SELECT (SELECT count(*) ${of} <> ${id}) AS others,
      coalesce((SELECT length(CAST(body AS BLOB)) ${of} = ${id}), 0) AS bytes,
      (SELECT count(*) FROM ${keys}) AS entries,
      (SELECT count(*) FROM ${keys} WHERE key = ${MARK + entry}) AS has`,
  )
  return { ...row!, has: row!.has > 0 }
}

/** Bytes of all bodies of a kind. */
export async function bytesOfKind(db: Database, kind: string): Promise<number> {
  const row = await first<{ bytes: number }>(
    db,
    sql`SELECT coalesce(sum(length(CAST(body AS BLOB))), 0) AS bytes FROM resources WHERE kind = ${kind}`,
  )
  return row!.bytes
}

/** The ids of a kind, the oldest first, without their bodies. */
export async function idsOfKind(db: Database, kind: string): Promise<string[]> {
  const rows = await all<Pick<ResourceRow, 'id'>>(
    db,
    sql`${select(resources, 'id')} WHERE kind = ${kind} ORDER BY created_at, id`,
  )
  return rows.map(({ id }) => id)
}
