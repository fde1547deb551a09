/** Outlines of collections, remembered in the isolate: a question is then one hop away from its answer. */
import { RowCache } from '../db/row-cache'
import { unwrap } from '../errors'
import { collectionObject } from '../search/collection/handle'
import { type Outline, outlineOf } from '../search/collection/outline'
import { findCollection } from './names'

/** How long, in milliseconds, until a field that was just added is searched by itself. */
const CACHE_MS = 3_000

/** By the id of the collection's object: another collection of its name is another object. */
const outlines = new RowCache<Outline>('the outline of a collection', CACHE_MS)

/** @throws ApiError 404 `Collection not found` */
export async function findOutline(env: Cloudflare.Env, collection: string): Promise<Outline> {
  const { objectId } = await findCollection(env, collection)
  const outline = await outlines.find(objectId, async () =>
    outlineOf(unwrap(await collectionObject(env, objectId).schema())),
  )
  return outline!
}
