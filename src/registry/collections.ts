/** Creates, lists and drops collections. */
import { database } from '../db/client'
import { deleteCollection, findCollectionRow, insertCollection, listCollectionRows } from '../db/collections'
import { ApiError, unwrap } from '../errors'
import { collectionObject } from '../search/collection/handle'
import { outlineOf } from '../search/collection/outline'
import { parseSchema } from '../search/schema/schema'
import type { CollectionSummary } from '../search/types'
import { forgetName, forgetNames, lookUp } from './names'

/**
 * POST /collections.
 *
 * The object is created first and registered last, so a name never leads to an incomplete collection. If two requests
 * race for a name, the second to register loses its object again.
 * @throws ApiError 400, 409
 */
export async function createCollection(env: Cloudflare.Env, body: unknown): Promise<CollectionSummary> {
  const { name } = parseSchema(body)
  const db = database(env)
  forgetName(name)
  const taken = await findCollectionRow(db, name)
  // A row whose object is empty is left from a deletion that did not finish.
  if (taken?.name === name) {
    if ((await collectionObject(env, taken.objectId).summary()).ok) throw nameTaken(name)
    await deleteCollection(db, name, taken.objectId)
  }
  const objectId = crypto.randomUUID()
  const createdAt = Math.floor(Date.now() / 1000)
  const object = collectionObject(env, objectId)
  const summary = unwrap(await object.create(body, createdAt))
  const outline = JSON.stringify(outlineOf(unwrap(await object.schema())))
  if (!(await insertCollection(db, { name, objectId, createdAt, outline }))) {
    await object.destroy()
    throw nameTaken(name)
  }
  forgetName(name)
  return summary
}

const nameTaken = (name: string): ApiError =>
  new ApiError(409, `A collection with name \`${name}\` already exists.`)

/** Objects asked for their summary at the same time. */
const SUMMARIES_AT_ONCE = 20

/** GET /collections, newest first. @param limit 0: all */
export async function listCollections(
  env: Cloudflare.Env,
  { limit, offset }: { limit: number; offset: number },
): Promise<CollectionSummary[]> {
  const rows = await listCollectionRows(database(env), limit, offset)
  const summaries: CollectionSummary[] = []
  for (let from = 0; from < rows.length; from += SUMMARIES_AT_ONCE) {
    const outcomes = await Promise.all(
      rows
        .slice(from, from + SUMMARIES_AT_ONCE)
        .map(({ objectId }) => collectionObject(env, objectId).summary()),
    )
    // A collection that is being deleted has no summary.
    for (const outcome of outcomes) if (outcome.ok) summaries.push(outcome.value)
  }
  return summaries
}

/**
 * DELETE /collections/:name. The object is emptied before the name is deleted. If the Worker dies in between, the
 * name has no collection, and can be deleted or used again.
 * @returns the summary before
 * @throws ApiError 404
 */
export async function dropCollection(env: Cloudflare.Env, name: string): Promise<CollectionSummary> {
  const missing = new ApiError(404, `No collection with name \`${name}\` found.`)
  forgetName(name)
  const handle = await lookUp(env, name)
  if (handle === undefined) throw missing
  const object = collectionObject(env, handle.objectId)
  const summary = await object.summary()
  await object.destroy()
  await deleteCollection(database(env), handle.name, handle.objectId)
  forgetNames()
  if (!summary.ok) throw missing
  return summary.value
}
