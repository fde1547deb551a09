/** Collections by name: finds their objects, creates, lists, clones, swaps and drops them. */
import { waitUntil } from 'cloudflare:workers'
import * as v from 'valibot'
import { type Database, nearby, noteWrite, RowCache } from '../db/client'
import {
  type CollectionRow,
  deleteAlias as deleteAliasRow,
  deleteCollection,
  findAlias,
  findCollectionRow,
  insertCollection,
  isCollectionName,
  isOwn,
  listAliasRows,
  listCollectionRows,
  listNames as listNameRows,
  switchPlaces,
  upsertAlias,
} from '../db/registry'
import { steps } from '../engines/port'
import { ApiError, asError, badRequest, coded, collectionMissing, type Outcome, unwrap } from '../errors'
import { mapFew } from '../lib/few'
import { once } from '../lib/once'
import type { CollectionRpc } from '../search/collection/handle'
import { collectionObject } from '../search/collection/handle'
import { type Outline, outlineOf, searchableFields } from '../search/collection/outline'
import type { Origin } from '../search/fault-log'
import { openFields } from '../search/schema/embedding-secrets'
import { parseName, parseSchema } from '../search/schema/schema'
import { isObject } from '../search/schema/values'
import type { CollectionPlace, CollectionSchema, CollectionSummary, SchemaProgress } from '../search/types'
import { connect, documentsOf, forgetConnection, ownObject, reconnect, retrieverOf } from './engines'

// =============================================================================
// Finds the object of a collection by name or alias.

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
  names.find(name, () => read(env.DB, name))

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
function forgetName(name: string): void {
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

// =============================================================================
// Creates, lists, clones, swaps and drops collections, and gives them further names.

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
  const db = env.DB
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
  const db = env.DB
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
    throw badRequest('This collection does not live in a cluster. `parley move` copies it to one.')
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
  const rows = await listCollectionRows(env.DB, limit, offset)
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

/** Which names and aliases lead to which collections. Those in clusters are left out, since only questions reach them. */
export const listNames = (env: Cloudflare.Env): Promise<{ name: string; collection: string }[]> =>
  listNameRows(env.DB)

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
  await deleteCollection(env.DB, handle.name, handle.objectId)
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
  const rows = (await listCollectionRows(env.DB, 0, 0)).filter((row) => isOwn(row) && isOpen(row.name))
  const all = await mapFew(rows, AT_ONCE, async ({ name, objectId }) => {
    const progress = await collectionObject(env, objectId).schemaProgress()
    return progress === undefined ? [] : [{ collection: name, ...progress }]
  })
  return all.flat()
}

// Clones collections.

/**
 * POST /collections?src_name=: copies a schema, and the documents if asked to.
 * @param body only its `name` counts
 * @throws ApiError 400; with the status of the first document that could not be copied, and then there is no clone
 */
export async function cloneCollection(
  env: Cloudflare.Env,
  sourceName: string,
  body: unknown,
  copyDocuments: boolean,
  origin?: Origin,
): Promise<CollectionSummary> {
  const handle = await lookUp(env, sourceName)
  if (handle === undefined) throw badRequest(`Collection with name \`${sourceName}\` not found.`)
  if (!isObject(body) || typeof body.name !== 'string') {
    throw badRequest('Collection name must be provided.')
  }
  const source = ownObject(env, handle)
  const schema = cloneable(unwrap(await source.schema()))
  // A new collection accepts credentials only in clear.
  const fields = await openFields(schema.fields, env)
  const summary = await createCollection(env, { ...schema, fields, name: body.name }, origin)
  if (!copyDocuments) return summary
  const { objectId } = await findCollection(env, body.name)
  const target = collectionObject(env, objectId)
  try {
    await copy(source, target)
    return unwrap(await target.summary())
  } catch (error) {
    // Delete an incomplete clone. It would look complete, and the next attempt would find its name taken.
    await dropCollection(env, body.name)
    if (!(error instanceof ApiError)) throw error
    throw new ApiError(
      error.status,
      `The documents of \`${sourceName}\` could not be copied: ${error.message}`,
    )
  }
}

/** A schema as its owner wrote it. Dimensions that came from a model are left out, so that the model is asked again. */
const cloneable = (schema: CollectionSchema): CollectionSchema => ({
  ...schema,
  fields: schema.fields.map((field) => {
    if (field.embed === undefined || field.asks_dimensions === true) return field
    const { num_dim: _answered, ...asked } = field
    return asked
  }),
})

const refusal = once(() => v.object({ code: v.number(), error: v.string() }))

/** Lines in one import call. */
const COPY_LINES = 500

/** @throws ApiError for the first document that the target refuses */
async function copy(source: CollectionRpc, target: CollectionRpc): Promise<void> {
  const all = { filterBy: '', include: '', exclude: '', unstored: true }
  for await (const page of steps((after) => source.exportPage(all, after).then(unwrap))) {
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
        const { code, error } = v.parse(refusal(), JSON.parse(refused))
        throw new ApiError(code, error)
      }
    }
  }
}

// Swaps the names of two collections, so that a copy is found under the old name.

const Switch = once(() =>
  v.strictObject({
    collection: v.pipe(v.string(), v.minLength(1)),
    documents: v.optional(v.pipe(v.number(), v.integer(), v.minValue(0))),
  }),
)

/**
 * PATCH of a collection with `switch_with`: from now on its name leads to the documents of the other collection, and the other's
 * name to its own. Both names change in one transaction.
 * @param given `collection`: the other one; `documents`: how many each has to have
 * @returns the collection that the name leads to now
 * @throws ApiError 400, 404, 409 if the counts differ
 */
export async function switchCollections(
  env: Cloudflare.Env,
  name: string,
  given: unknown,
): Promise<CollectionSummary> {
  const parsed = v.safeParse(Switch(), given)
  if (!parsed.success) {
    throw badRequest(
      '`switch_with` takes `collection`, another collection, and `documents`, the number that each of both has.',
    )
  }
  const { collection: other, documents } = parsed.output
  if (other === name) throw badRequest('`switch_with` names another collection.')
  const [own, theirs] = [await rowOf(env, name), await rowOf(env, other)]
  if (documents !== undefined) await requireCount(env, [own, theirs], documents)
  await call(env, own, other)
  try {
    await call(env, theirs, name)
    if (!(await switchPlaces(env.DB, own, theirs))) {
      throw new ApiError(409, 'One of the collections was changed meanwhile: try again.')
    }
  } catch (error) {
    await Promise.allSettled([call(env, own, name), call(env, theirs, other)])
    throw error
  }
  for (const { objectId } of [own, theirs]) forgetConnection(objectId)
  forgetNames()
  return unwrap(await documentsOf(env, theirs).summary())
}

/** @throws ApiError 400 for an alias, 404 */
async function rowOf(env: Cloudflare.Env, name: string): Promise<CollectionRow> {
  const row = await findCollectionRow(env.DB, name)
  if (row === undefined) throw new ApiError(404, `No collection with name \`${name}\` found.`)
  if (row.name !== name) throw badRequest(`\`${name}\` is an alias. Name the collection itself.`)
  return row
}

/** @throws ApiError 409 */
async function requireCount(env: Cloudflare.Env, rows: CollectionRow[], documents: number): Promise<void> {
  const counts = await Promise.all(
    rows.map(async (row) => Number(unwrap(await documentsOf(env, row).summary()).num_documents)),
  )
  if (counts.every((count) => count === documents)) return
  const found = rows.map(({ name }, at) => `\`${name}\` has ${counts[at]}`).join(', ')
  throw new ApiError(409, `Expected ${documents} documents in both collections: ${found}.`)
}

/** An object knows the name of its collection. @throws ApiError 400 */
async function call(env: Cloudflare.Env, { engine, objectId }: CollectionRow, name: string): Promise<void> {
  if (engine === 'object') unwrap(await collectionObject(env, objectId).rename(name))
}

// Aliases: further names of collections.

/** An alias on the wire. */
interface Alias {
  collection_name: string
  name: string
}

/** PUT /aliases/:alias. The collection need not exist yet. @throws ApiError 400; 500 if a collection has the name */
export async function putAlias(env: Cloudflare.Env, name: string, body: unknown): Promise<Alias> {
  if (!isObject(body)) throw badRequest('Bad JSON.')
  if (!('collection_name' in body)) throw badRequest('Parameter `collection_name` is required.')
  const target = body.collection_name
  if (typeof target !== 'string') throw badRequest('Parameter `collection_name` must be a string.')
  const db = env.DB
  if (await isCollectionName(db, name)) {
    throw new ApiError(500, `Name \`${name}\` conflicts with an existing collection name.`)
  }
  await upsertAlias(db, { name, collectionName: target })
  forgetName(name)
  return { collection_name: target, name }
}

/** @throws ApiError 404 */
export async function getAlias(env: Cloudflare.Env, name: string): Promise<Alias> {
  const row = await findAlias(env.DB, name)
  if (row === undefined) throw collectionMissing(name)
  return { collection_name: row.collectionName, name }
}

export async function listAliases(env: Cloudflare.Env): Promise<Alias[]> {
  const rows = await listAliasRows(env.DB)
  return rows.map(({ name, collectionName }) => ({ collection_name: collectionName, name }))
}

/** @returns the deleted alias @throws ApiError 404 */
export async function deleteAlias(env: Cloudflare.Env, name: string): Promise<Alias> {
  const row = await deleteAliasRow(env.DB, name)
  forgetName(name)
  if (row === undefined) throw collectionMissing(name)
  return { collection_name: row.collectionName, name }
}
