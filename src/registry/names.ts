/** Finds the object of a collection by name or alias. */

import { waitUntil } from 'cloudflare:workers'
import * as v from 'valibot'
import { type Database, database, nearby, noteWrite } from '../db/client'
import { type CollectionRow, findCollectionRow } from '../db/collections'
import { RowCache } from '../db/row-cache'
import { collectionMissing, unwrap } from '../errors'
import { once } from '../lib/once'
import { type Outline, outlineOf, searchableFields } from '../search/collection/outline'
import type { CollectionPlace } from '../search/types'
import { retrieverOf } from './engines'

export interface CollectionHandle extends CollectionPlace {
  /** the collection's own name, also when an alias was given */
  name: string
  /** absent if an earlier version made the collection and its object has not been called since */
  outline?: Outline
}

/**
 * How long a name and an outline are cached, in milliseconds. If a collection is dropped and created again under its name, another
 * isolate may answer 404 for this long, and fields that were just added are only searched after it.
 */
const CACHE_MS = 3_000

const names = new RowCache<CollectionHandle>('a collection', CACHE_MS)

const Stored = once(() =>
  v.object({
    name: v.string(),
    texts: v.array(v.string()),
    embeddings: v.array(v.string()),
    vectors: v.array(v.string()),
    indexed: v.array(v.string()),
    called: v.exactOptional(v.array(v.string())),
  }),
)

const handleOf = ({ name, engine, objectId, outline }: CollectionRow): CollectionHandle => ({
  name,
  engine,
  objectId,
  ...(outline !== null && { outline: v.parse(Stored(), JSON.parse(outline)) }),
})

async function read(db: Database, name: string): Promise<CollectionHandle | undefined> {
  const row = await findCollectionRow(db, name)
  return row && handleOf(row)
}

/** The collection of a name or alias, if there is one. */
export const lookUp = (env: Cloudflare.Env, name: string): Promise<CollectionHandle | undefined> =>
  names.find(name, () => read(database(env), name))

/** The same without the cache, if the cached entry turned out to be stale. */
export function lookUpAnew(env: Cloudflare.Env, name: string): Promise<CollectionHandle | undefined> {
  forgetName(name)
  return lookUp(env, name)
}

/** @throws ApiError 404 `Collection not found` */
export async function findCollection(env: Cloudflare.Env, name: string): Promise<CollectionHandle> {
  return (await lookUp(env, name)) ?? missing(name)
}

/**
 * The same for a question. The entry may be a minute old; it is then read again in the background.
 * @throws ApiError 404 `Collection not found`
 */
export async function findForQuestion(env: Cloudflare.Env, name: string): Promise<CollectionHandle> {
  return (await names.held(name, () => read(nearby(env), name), waitUntil)) ?? missing(name)
}

function missing(name: string): never {
  throw collectionMissing(name)
}

/** Whether `findForQuestion` waits for no read. */
export const isNameHeld = (name: string): boolean => names.isHeld(name)

/** See `RowCache.reading`. */
export function readingNames(): (name: string, row: CollectionRow) => void {
  const keep = names.reading()
  return (name, row) => keep(name, handleOf(row))
}

/** Drops a name from the cache, after its row was changed. */
export function forgetName(name: string): void {
  noteWrite()
  names.forget(name)
}

/** Drops all names, because aliases may have led to a deleted collection. */
export function forgetNames(): void {
  noteWrite()
  names.clear()
}

/**
 * Outlines of collections, for questions, which need not ask the collection's object then. These are of collections whose rows have none, or one without a searchable field. The key is the object's id, since a
 * collection that is made again under a name has another object.
 */
const outlines = new RowCache<Outline>('the outline of a collection', CACHE_MS)

/** @throws ApiError 404 `Collection not found` */
export async function findOutline(env: Cloudflare.Env, collection: string): Promise<Outline> {
  const place = await findForQuestion(env, collection)
  // A row may be a minute old, and documents with fields of any name may have come since.
  if (place.outline && searchableFields(place.outline).length > 0) return place.outline
  const outline = await outlines.find(place.objectId, async () =>
    outlineOf(unwrap(await retrieverOf(env, place).schema())),
  )
  return outline!
}
