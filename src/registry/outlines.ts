/** Outlines of collections. They are in the registry's rows, so a question need not ask the collection's object. */
import { RowCache } from '../db/row-cache'
import { unwrap } from '../errors'
import { type Outline, outlineOf, searchableFields } from '../search/collection/outline'
import { retrieverOf } from './engines'
import { findForQuestion } from './names'

/** How long an outline is cached, in milliseconds. Only then are fields searched that were just added. */
const CACHE_MS = 3_000

/**
 * Outlines of collections whose rows have none, or one without a searchable field. The key is the object's id, since a
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
