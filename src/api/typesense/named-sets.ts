/**
 * Synonym sets, curation sets and stemming dictionaries, and the routes by which clients made for releases before 30
 * write the synonyms and overrides of one collection (registry/named-sets.ts).
 */
import { ApiError, badRequest, unwrap } from '../../errors'
import { findCollection } from '../../registry/collections'
import { ownObject } from '../../registry/engines'
import * as sets from '../../registry/named-sets'
import type { CollectionRpc } from '../../search/collection/handle'
import { hintingBody, NEEDED, readJson, readText, unsigned } from '../http/body'
import { type Call, type Route, route } from '../http/router'

/** The routes of a kind of sets. @param resource as paths and actions of keys name it */
function routesOf(resource: string, kind: sets.SetKind): Route[] {
  const set = `/${resource}/:name`
  const items = `${set}/items`
  const item = `${items}/:id`
  return [
    route('GET', `/${resource}`, `${resource}:list`, ({ env }) => sets.listSets(env, kind)),
    route('GET', set, `${resource}:get`, ({ env, path }) => sets.getSet(env, kind, path.name!)),
    route('PUT', set, `${resource}:upsert`, ({ env, path, request }) =>
      hintingBody(request, NEEDED.set, (body) => sets.putSet(env, kind, path.name!, body)),
    ),
    route('DELETE', set, `${resource}:delete`, ({ env, path }) => sets.deleteSet(env, kind, path.name!)),
    route('GET', items, `${resource}/items:get`, ({ env, path, query }) =>
      sets.listItems(env, kind, path.name!, windowOf(query)),
    ),
    route('GET', item, `${resource}/items:get`, ({ env, path }) =>
      sets.getItem(env, kind, path.name!, path.id!),
    ),
    route('PUT', item, `${resource}/items:upsert`, async ({ env, path, request }) =>
      sets.putItem(env, kind, { name: path.name!, id: path.id! }, await readJson(request)),
    ),
    route('DELETE', item, `${resource}/items:delete`, ({ env, path }) =>
      sets.deleteItem(env, kind, path.name!, path.id!),
    ),
  ]
}

const windowOf = ({ limit, offset }: Call['query']): { limit: number; offset: number } => ({
  offset: unsigned(offset, 'Offset param should be unsigned integer.'),
  limit: unsigned(limit, 'Limit param should be unsigned integer.'),
})

/** The set that holds what releases before 30 kept with the collection. @throws ApiError 404 */
async function setOf(
  { env, path }: Call,
  kind: sets.SetKind,
): Promise<{ name: string; collection: CollectionRpc }> {
  const handle = await findCollection(env, path.collection!)
  return { name: kind.ofCollection(handle.name), collection: ownObject(env, handle) }
}

/** The routes before release 30. @param resource `synonyms` @param option the schema's list of sets */
function earlierRoutes(
  resource: string,
  option: 'synonym_sets' | 'curation_sets',
  kind: sets.SetKind,
): Route[] {
  const list = `/collections/:collection/${resource}`
  const item = `${list}/:id`
  return [
    route('GET', list, `${resource}:list`, async (call) => {
      const { name } = await setOf(call, kind)
      return { [resource]: await sets.itemsOf(call.env, kind, name) }
    }),
    route('GET', item, `${resource}:get`, async (call) => {
      const { name } = await setOf(call, kind)
      return asOne(sets.getItem(call.env, kind, name, call.path.id!), call.path.id!)
    }),
    route('PUT', item, `${resource}:upsert`, async (call) => {
      const { env, request, path } = call
      const { name, collection } = await setOf(call, kind)
      const stored = await sets.putItem(
        env,
        kind,
        { name, id: path.id!, begins: true },
        await readJson(request),
      )
      await attach(collection, option, name)
      return stored
    }),
    route('DELETE', item, `${resource}:delete`, async (call) => {
      const { name } = await setOf(call, kind)
      return asOne(sets.deleteItem(call.env, kind, name, call.path.id!), call.path.id!)
    }),
  ]
}

/** Reports a missing set like a missing item, because these clients know no sets. @throws ApiError 404 */
async function asOne<Value>(asked: Promise<Value>, id: string): Promise<Value> {
  try {
    return await asked
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error
    throw new ApiError(404, `Could not find that \`id\`: ${id}`)
  }
}

/** How long to wait for another change of the schema, in milliseconds, and how often. */
const BETWEEN_ALTERATIONS_MS = 100
const MOST_ALTERATIONS = 50

/**
 * Adds a set to those that a collection's searches use. @throws ApiError 422 while the collection is being altered
 * for long
 */
async function attach(
  collection: CollectionRpc,
  option: 'synonym_sets' | 'curation_sets',
  name: string,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const sets = unwrap(await collection.schema())[option] ?? []
    if (sets.includes(name)) return
    const outcome = await collection.alter({ [option]: [...sets, name] })
    if (outcome.ok) return
    // Clients write many items at once, so several requests may try to attach the set at the same time.
    if (outcome.error.status !== 422 || attempt === MOST_ALTERATIONS) unwrap(outcome)
    await scheduler.wait(BETWEEN_ALTERATIONS_MS)
  }
}

const DICTIONARY = '/stemming/dictionaries/:id'

/** Bytes of an import: each line becomes less than half as long. */
const IMPORT_LIMIT = 4 * 1024 * 1024

async function importWords({ env, request, query }: Call): Promise<Response> {
  const { id } = query
  if (!id) throw badRequest('Parameter `id` must be provided while importing dictionary words.')
  const lines = await sets.importDictionary(env, id, await readText(request, IMPORT_LIMIT))
  return new Response(lines, { headers: { 'content-type': 'text/plain; charset=utf-8' } })
}

const stemmingRoutes: Route[] = [
  route('POST', '/stemming/dictionaries/import', 'stemming/dictionaries/import:create', importWords),
  route('GET', '/stemming/dictionaries', 'stemming/dictionaries:list', async ({ env }) => ({
    dictionaries: await sets.listDictionaries(env),
  })),
  route('GET', DICTIONARY, 'stemming/dictionaries:get', ({ env, path }) => sets.getDictionary(env, path.id!)),
  route('DELETE', DICTIONARY, 'stemming/dictionaries:delete', async ({ env, path }) => {
    await sets.deleteDictionary(env, path.id!)
    return { id: path.id }
  }),
]

export const namedSetRoutes: Route[] = [
  ...routesOf('synonym_sets', sets.SYNONYMS),
  ...routesOf('curation_sets', sets.CURATIONS),
  ...earlierRoutes('synonyms', 'synonym_sets', sets.SYNONYMS),
  ...earlierRoutes('overrides', 'curation_sets', sets.CURATIONS),
  ...stemmingRoutes,
]

// =============================================================================
// Presets and stopword sets, which searches name (registry/named-sets.ts).

const PRESET = '/presets/:name'
const STOPWORDS = '/stopwords/:name'

export const searchSetRoutes: Route[] = [
  route('PUT', PRESET, 'presets:upsert', ({ env, request, path }) =>
    hintingBody(request, NEEDED.preset, (body) => sets.putPreset(env, path.name!, body)),
  ),
  route('GET', '/presets', 'presets:list', async ({ env }) => ({
    presets: (await sets.presets.list(env)).map(({ id: name, value }) => ({ name, value })),
  })),
  route('GET', PRESET, 'presets:get', async ({ env, path: { name = '' } }) => ({
    name,
    value: await sets.presets.get(env, name),
  })),
  route('DELETE', PRESET, 'presets:delete', async ({ env, path: { name = '' } }) => ({
    name,
    value: await sets.presets.delete(env, name),
  })),
  route('PUT', STOPWORDS, 'stopwords:upsert', ({ env, request, path }) =>
    hintingBody(request, NEEDED.stopwords, (body) => sets.putStopwords(env, path.name!, body)),
  ),
  route('GET', '/stopwords', 'stopwords:list', async ({ env }) => ({
    stopwords: (await sets.stopwordSets.list(env)).map(({ id, value }) => ({ id, ...value })),
  })),
  route('GET', STOPWORDS, 'stopwords:get', async ({ env, path: { name: id = '' } }) => ({
    stopwords: { id, ...(await sets.stopwordSets.get(env, id)) },
  })),
  route('DELETE', STOPWORDS, 'stopwords:delete', async ({ env, path: { name: id = '' } }) => {
    await sets.stopwordSets.delete(env, id)
    return { id }
  }),
]
