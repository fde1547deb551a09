/**
 * From a collection's name, or an alias of it, to the object that holds it, and the life of collections as a whole.
 *
 * Answers are cached in the isolate for a few seconds; an unknown name never is, so that what was just
 * created is found. Another isolate may thus answer 404 for those seconds when a collection was dropped and
 * made again under its name. While D1 does not answer an old answer stands.
 */
import { deleteAlias as deleteAliasRow, findAlias, listAliasRows, upsertAlias } from '../../db/aliases'
import { database } from '../../db/client'
import {
  type CollectionRow,
  deleteCollection,
  findCollectionRow,
  insertCollection,
  isCollectionName,
  listCollectionRows,
} from '../../db/collections'
import { ApiError, reasonOf, unwrap } from '../../errors'
import { objectCalls } from '../../object-calls'
import { openFields } from '../schema/embedding-secrets'
import { isObject } from '../schema/field'
import { parseSchema } from '../schema/schema'
import type { CollectionSchema } from '../types'
import { COLLECTION_CALLS, type CollectionRpc, type CollectionSummary } from './rpc'

export interface CollectionHandle {
  /** the collection's own name, where an alias was asked for */
  name: string
  objectId: string
}

/** How long a name is taken to mean the same. Other isolates see a changed alias this much later. */
const CACHE_MS = 3_000

const cache = new Map<string, { handle: CollectionHandle; until: number }>()

/** A handle on a Collection object. Makes no call. */
export function collectionObject(env: Cloudflare.Env, objectId: string): CollectionRpc {
  const namespace = env.COLLECTION as DurableObjectNamespace
  const id = namespace.idFromName(objectId)
  return objectCalls(() => namespace.get(id) as unknown as CollectionRpc, COLLECTION_CALLS)
}

/** The collection of a name or alias, if there is one. */
async function lookUp(env: Cloudflare.Env, name: string): Promise<CollectionHandle | undefined> {
  const cached = cache.get(name)
  if (cached !== undefined && cached.until > Date.now()) return cached.handle
  let row: CollectionRow | undefined
  try {
    row = await findCollectionRow(database(env), name)
  } catch (error) {
    if (cached === undefined) throw error
    console.error('a collection could not be looked up anew', reasonOf(error))
    return cached.handle
  }
  if (row === undefined) {
    cache.delete(name)
    return undefined
  }
  const handle = { name: row.name, objectId: row.objectId }
  cache.set(name, { handle, until: Date.now() + CACHE_MS })
  return handle
}

/** @throws ApiError 404 `Collection not found` */
export async function findCollection(env: Cloudflare.Env, name: string): Promise<CollectionHandle> {
  const handle = await lookUp(env, name)
  if (handle === undefined) throw new ApiError(404, 'Collection not found')
  return handle
}

/**
 * POST /collections.
 *
 * The object is made first and registered last, so that a name never leads to a collection that is half there,
 * and of two that race for a name the second to register loses its object again.
 * @throws ApiError 400, 409
 */
export async function createCollection(env: Cloudflare.Env, body: unknown): Promise<CollectionSummary> {
  const { name } = parseSchema(body)
  const db = database(env)
  cache.delete(name)
  const taken = await findCollectionRow(db, name)
  // A row whose object is empty was left by a deletion that did not get to its end.
  if (taken?.name === name) {
    if ((await collectionObject(env, taken.objectId).summary()).ok) throw nameTaken(name)
    await deleteCollection(db, name, taken.objectId)
  }
  const objectId = crypto.randomUUID()
  const createdAt = Math.floor(Date.now() / 1000)
  const object = collectionObject(env, objectId)
  const summary = unwrap(await object.create(body, createdAt))
  if (!(await insertCollection(db, { name, objectId, createdAt }))) {
    await object.destroy()
    throw nameTaken(name)
  }
  cache.delete(name)
  return summary
}

const nameTaken = (name: string): ApiError =>
  new ApiError(409, `A collection with name \`${name}\` already exists.`)

/**
 * POST /collections?src_name=: a collection of the same schema.
 * @param body only its `name` counts
 * @throws ApiError 400; with the status of the first document that could not be copied, there then being no clone
 */
export async function cloneCollection(
  env: Cloudflare.Env,
  sourceName: string,
  body: unknown,
  copyDocuments: boolean,
): Promise<CollectionSummary> {
  const handle = await lookUp(env, sourceName)
  if (handle === undefined) throw new ApiError(400, `Collection with name \`${sourceName}\` not found.`)
  if (!isObject(body) || typeof body.name !== 'string') {
    throw new ApiError(400, 'Collection name must be provided.')
  }
  const source = collectionObject(env, handle.objectId)
  const schema = cloneable(unwrap(await source.schema()))
  // A new collection is given its credentials in clear: what is sealed is not taken from outside.
  const fields = await openFields(schema.fields, env)
  const summary = await createCollection(env, { ...schema, fields, name: body.name })
  if (!copyDocuments) return summary
  const { objectId } = await findCollection(env, body.name)
  const target = collectionObject(env, objectId)
  try {
    await copy(source, target)
    return unwrap(await target.summary())
  } catch (error) {
    // A clone that lacks documents looks like a whole one, and its name could not be used for another try.
    await dropCollection(env, body.name)
    if (!(error instanceof ApiError)) throw error
    throw new ApiError(
      error.status,
      `The documents of \`${sourceName}\` could not be copied: ${error.message}`,
    )
  }
}

/** A schema as it was asked for: dimensions that a model answered are asked again. */
const cloneable = (schema: CollectionSchema): CollectionSchema => ({
  ...schema,
  fields: schema.fields.map((field) => {
    if (field.embed === undefined || field.asks_dimensions === true) return field
    const { num_dim: _answered, ...asked } = field
    return asked
  }),
})

/** Lines that one import call takes. */
const COPY_LINES = 500

/** @throws ApiError for the first document that the target refuses */
async function copy(source: CollectionRpc, target: CollectionRpc): Promise<void> {
  const all = { filterBy: '', include: '', exclude: '', unstored: true }
  for (let cursor = 0, done = false; !done; ) {
    const page = unwrap(await source.exportPage(all, cursor))
    const lines = page.lines === '' ? [] : page.lines.split('\n')
    for (let from = 0; from < lines.length; from += COPY_LINES) {
      const { results } = unwrap(
        await target.importLines(lines.slice(from, from + COPY_LINES), {
          action: 'create',
          returnDocument: false,
          returnId: false,
        }),
      )
      const refused = results.split('\n').find((line) => !line.startsWith('{"success":true'))
      if (refused !== undefined) {
        const { code, error } = JSON.parse(refused) as { code: number; error: string }
        throw new ApiError(code, error)
      }
    }
    cursor = page.cursor
    done = page.done
  }
}

/** Objects that are asked for their summary at the same time. */
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
    // One that is being deleted has no summary any more.
    for (const outcome of outcomes) if (outcome.ok) summaries.push(outcome.value)
  }
  return summaries
}

/**
 * DELETE /collections/:name. The object is emptied before its name goes: a Worker that dies in between leaves a
 * name without a collection, which can be deleted or used again.
 * @returns what there was
 * @throws ApiError 404
 */
export async function dropCollection(env: Cloudflare.Env, name: string): Promise<CollectionSummary> {
  const missing = new ApiError(404, `No collection with name \`${name}\` found.`)
  cache.delete(name)
  const handle = await lookUp(env, name)
  if (handle === undefined) throw missing
  const object = collectionObject(env, handle.objectId)
  const summary = await object.summary()
  await object.destroy()
  await deleteCollection(database(env), handle.name, handle.objectId)
  cache.clear()
  if (!summary.ok) throw missing
  return summary.value
}

/** An alias on the wire. */
export interface Alias {
  collection_name: string
  name: string
}

/** PUT /aliases/:alias. The collection need not exist yet. @throws ApiError 400; 500 where a collection has the name */
export async function putAlias(env: Cloudflare.Env, name: string, body: unknown): Promise<Alias> {
  if (!isObject(body)) throw new ApiError(400, 'Bad JSON.')
  if (!('collection_name' in body)) throw new ApiError(400, 'Parameter `collection_name` is required.')
  const target = body.collection_name
  if (typeof target !== 'string') throw new ApiError(400, 'Parameter `collection_name` must be a string.')
  const db = database(env)
  if (await isCollectionName(db, name)) {
    throw new ApiError(500, `Name \`${name}\` conflicts with an existing collection name.`)
  }
  await upsertAlias(db, { name, collectionName: target })
  cache.delete(name)
  return { collection_name: target, name }
}

/** @throws ApiError 404 */
export async function getAlias(env: Cloudflare.Env, name: string): Promise<Alias> {
  const row = await findAlias(database(env), name)
  if (row === undefined) throw new ApiError(404, 'Collection not found')
  return { collection_name: row.collectionName, name }
}

export async function listAliases(env: Cloudflare.Env): Promise<Alias[]> {
  const rows = await listAliasRows(database(env))
  return rows.map(({ name, collectionName }) => ({ collection_name: collectionName, name }))
}

/** @returns the alias that there was @throws ApiError 404 */
export async function deleteAlias(env: Cloudflare.Env, name: string): Promise<Alias> {
  const row = await deleteAliasRow(database(env), name)
  cache.delete(name)
  if (row === undefined) throw new ApiError(404, 'Collection not found')
  return { collection_name: row.collectionName, name }
}
