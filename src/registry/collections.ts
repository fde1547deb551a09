/** Creates, lists and drops collections. */
import { database } from '../db/client'
import {
  deleteCollection,
  findCollectionRow,
  insertCollection,
  isOwn,
  listCollectionRows,
} from '../db/collections'
import { ApiError, asError, coded, type Outcome, unwrap } from '../errors'
import { mapFew } from '../lib/few'
import { collectionObject } from '../search/collection/handle'
import { outlineOf } from '../search/collection/outline'
import type { Origin } from '../search/fault-log'
import { parseName, parseSchema } from '../search/schema/schema'
import { isObject } from '../search/schema/values'
import type { CollectionSummary, SchemaProgress } from '../search/types'
import { connect, reconnect } from './clusters'
import { documentsOf } from './engines'
import { findCollection, forgetName, forgetNames, lookUp } from './names'

/**
 * POST /collections.
 *
 * The object is created first and registered last, so a name never leads to an incomplete collection. If two requests
 * race for a name, the second to register loses its object again.
 * @throws ApiError 400, 409
 */
export async function createCollection(
  env: Cloudflare.Env,
  body: unknown,
  origin?: Origin,
): Promise<CollectionSummary> {
  if (isObject(body) && body.engine !== undefined) return connectCollection(env, body)
  const { name } = parseSchema(body)
  const db = database(env)
  forgetName(name)
  const taken = await findCollectionRow(db, name)
  // A row whose object is empty remains from a deletion that did not finish.
  if (taken?.name === name) {
    if ((await collectionObject(env, taken.objectId).summary()).ok) throw nameTaken(name)
    await deleteCollection(db, name, taken.objectId)
  }
  const objectId = crypto.randomUUID()
  const createdAt = Math.floor(Date.now() / 1000)
  const object = collectionObject(env, objectId)
  const summary = unwrap(await object.create(body, createdAt, origin))
  const outline = JSON.stringify(outlineOf(unwrap(await object.schema())))
  if (!(await insertCollection(db, { name, objectId, createdAt, outline }))) {
    await object.destroy()
    throw nameTaken(name)
  }
  forgetName(name)
  return summary
}

/**
 * POST /collections with an `engine`: names a collection of an existing cluster. If the cluster does not have it, it is created there
 * with the rest of the body.
 * @throws ApiError 400, 409, and what the cluster answers
 */
async function connectCollection(
  env: Cloudflare.Env,
  { engine, ...schema }: Record<string, unknown>,
): Promise<CollectionSummary> {
  const name = parseName(schema)
  const db = database(env)
  const { columns, store } = await connect(env, engine, name)
  forgetName(name)
  if ((await findCollectionRow(db, name))?.name === name) throw nameTaken(name)
  let summary = await store.summary()
  if (!summary.ok && summary.error.status === 404 && schema.fields !== undefined) {
    unwrapGiven(await store.create(schema))
    summary = await store.summary()
  }
  const shown = unwrapGiven(summary)
  const createdAt = Math.floor(Date.now() / 1000)
  const row = { name, objectId: crypto.randomUUID(), createdAt, ...columns }
  if (!(await insertCollection(db, row))) throw nameTaken(name)
  forgetName(name)
  return shown
}

/**
 * PATCH of a collection with an `engine`: other nodes, other credentials. The documents are not moved.
 * @throws ApiError 400, and what the cluster answers
 */
export async function reconnectCollection(
  env: Cloudflare.Env,
  name: string,
  engine: unknown,
): Promise<CollectionSummary> {
  const place = await findCollection(env, name)
  if (place.engine === 'object') {
    throw new ApiError(400, 'This collection does not live in a cluster. `parley move` copies it to one.')
  }
  const { columns, store } = await connect(env, engine, place.name)
  const summary = unwrapGiven(await store.summary())
  await reconnect(env, place.objectId, columns)
  forgetNames()
  return summary
}

/**
 * What a cluster says to an `engine` that was just sent.
 * @throws ApiError 400 for credentials or nodes that are wrong, because the request has them; else the cluster's own error
 */
function unwrapGiven<T>(outcome: Outcome<T>): T {
  if (!outcome.ok && outcome.error.code === 'unknown_collection')
    throw coded('unknown_collection', 404, NOT_THERE)
  if (outcome.ok || outcome.error.code !== 'search_failed') return unwrap(outcome)
  throw asError({ ...outcome.error, status: 400, code: 'bad_request' })
}

const NOT_THERE =
  'The cluster has no such collection: correct its name in `engine`, or give `fields` to have it created.'

const nameTaken = (name: string): ApiError =>
  new ApiError(409, `A collection with name \`${name}\` already exists.`)

/** Objects asked at the same time. */
const AT_ONCE = 20

/** GET /collections, newest first. @param limit 0: all */
export async function listCollections(
  env: Cloudflare.Env,
  { limit, offset }: { limit: number; offset: number },
): Promise<CollectionSummary[]> {
  const rows = await listCollectionRows(database(env), limit, offset)
  const summaries = await mapFew(rows, AT_ONCE, async (row): Promise<CollectionSummary[]> => {
    const outcome = await documentsOf(env, row).summary()
    if (outcome.ok) return [outcome.value]
    const { name, engine, createdAt } = row
    // A collection that is being deleted has no summary, so it is left out. One in a cluster is listed even if the cluster does not answer.
    if (engine === 'object') return []
    const error = { type: engine, error: outcome.error.message }
    return [{ name, num_documents: 0, created_at: createdAt, fields: [], engine: error }]
  })
  return summaries.flat()
}

/**
 * DELETE /collections/:name. A collection in a cluster stays there: only its name here is deleted. The object is emptied
 * before the name is deleted. If the Worker dies in between, the name has no collection, and can be deleted or used again.
 * @returns the summary before
 * @throws ApiError 404
 */
export async function dropCollection(env: Cloudflare.Env, name: string): Promise<CollectionSummary> {
  const missing = new ApiError(404, `No collection with name \`${name}\` found.`)
  forgetName(name)
  const handle = await lookUp(env, name)
  if (handle === undefined) throw missing
  const summary = await documentsOf(env, handle).summary()
  if (handle.engine === 'object') await collectionObject(env, handle.objectId).destroy()
  await deleteCollection(database(env), handle.name, handle.objectId)
  forgetNames()
  if (summary.ok) return summary.value
  if (handle.engine === 'object') throw missing
  return { name: handle.name, num_documents: 0, engine: { type: handle.engine } }
}

/** @param isOpen whether the caller may know of a collection */
export async function schemaChanges(
  env: Cloudflare.Env,
  isOpen: (collection: string) => boolean,
): Promise<({ collection: string } & SchemaProgress)[]> {
  const rows = (await listCollectionRows(database(env), 0, 0)).filter((row) => isOwn(row) && isOpen(row.name))
  const all = await mapFew(rows, AT_ONCE, async ({ name, objectId }) => {
    const progress = await collectionObject(env, objectId).schemaProgress()
    return progress === undefined ? [] : [{ collection: name, ...progress }]
  })
  return all.flat()
}
