/**
 * Synonym sets, curation sets and stemming dictionaries, and the routes by which clients made for releases before 30
 * write the synonyms and overrides of one collection (registry/named-sets.ts).
 */
import { ApiError, unwrap } from '../../errors'
import { findCollection } from '../../registry/collections'
import { ownObject } from '../../registry/engines'
import {
  CURATIONS,
  deleteDictionary,
  deleteItem,
  deletePreset,
  deleteSet,
  deleteStopwords,
  getDictionary,
  getItem,
  getPreset,
  getSet,
  getStopwords,
  importDictionary,
  itemsOf,
  listDictionaries,
  listItems,
  listPresets,
  listSets,
  listStopwords,
  putItem,
  putPreset,
  putSet,
  putStopwords,
  type SetKind,
  SYNONYMS,
} from '../../registry/named-sets'
import type { CollectionRpc } from '../../search/collection/rpc'
import { hinting, NEEDED, readJson, readText, unsigned } from '../http/body'
import { json } from '../http/deliver'
import type { Call, Route } from '../http/router'

/** The routes of a kind of sets. @param resource as paths and actions of keys name it */
function routesOf(resource: string, kind: SetKind): Route[] {
  const set = `/${resource}/:name`
  const item = `${set}/items/:id`
  return [
    {
      method: 'GET',
      path: `/${resource}`,
      action: `${resource}:list`,
      handle: async ({ env }) => json(await listSets(env, kind)),
    },
    {
      method: 'GET',
      path: set,
      action: `${resource}:get`,
      handle: async ({ env, path }) => json(await getSet(env, kind, path.name!)),
    },
    {
      method: 'PUT',
      path: set,
      action: `${resource}:upsert`,
      handle: async ({ env, path, request }) => {
        const body = await readJson(request)
        return json(await hinting(body, NEEDED.set, () => putSet(env, kind, path.name!, body)))
      },
    },
    {
      method: 'DELETE',
      path: set,
      action: `${resource}:delete`,
      handle: async ({ env, path }) => json(await deleteSet(env, kind, path.name!)),
    },
    {
      method: 'GET',
      path: `${set}/items`,
      action: `${resource}/items:get`,
      handle: async ({ env, path, query }) => json(await listItems(env, kind, path.name!, windowOf(query))),
    },
    {
      method: 'GET',
      path: item,
      action: `${resource}/items:get`,
      handle: async ({ env, path }) => json(await getItem(env, kind, path.name!, path.id!)),
    },
    {
      method: 'PUT',
      path: item,
      action: `${resource}/items:upsert`,
      handle: async ({ env, path, request }) => {
        const body = await readJson(request)
        return json(await putItem(env, kind, { name: path.name!, id: path.id! }, body))
      },
    },
    {
      method: 'DELETE',
      path: item,
      action: `${resource}/items:delete`,
      handle: async ({ env, path }) => json(await deleteItem(env, kind, path.name!, path.id!)),
    },
  ]
}

const windowOf = ({ limit, offset }: Call['query']): { limit: number; offset: number } => ({
  offset: unsigned(offset, 'Offset param should be unsigned integer.'),
  limit: unsigned(limit, 'Limit param should be unsigned integer.'),
})

/** The set that holds what releases before 30 kept with the collection. @throws ApiError 404 */
async function setOf(
  { env, path }: Call,
  kind: SetKind,
): Promise<{ name: string; collection: CollectionRpc }> {
  const handle = await findCollection(env, path.collection!)
  return { name: kind.ofCollection(handle.name), collection: ownObject(env, handle) }
}

/** The routes before release 30. @param resource `synonyms` @param option the schema's list of sets */
function earlierRoutes(resource: string, option: 'synonym_sets' | 'curation_sets', kind: SetKind): Route[] {
  const list = `/collections/:collection/${resource}`
  const item = `${list}/:id`
  return [
    {
      method: 'GET',
      path: list,
      action: `${resource}:list`,
      handle: async (call) => {
        const { name } = await setOf(call, kind)
        return json({ [resource]: await itemsOf(call.env, kind, name) })
      },
    },
    {
      method: 'GET',
      path: item,
      action: `${resource}:get`,
      handle: async (call) => {
        const { name } = await setOf(call, kind)
        return json(await asOne(getItem(call.env, kind, name, call.path.id!), call.path.id!))
      },
    },
    {
      method: 'PUT',
      path: item,
      action: `${resource}:upsert`,
      handle: async (call) => {
        const { env, request, path } = call
        const { name, collection } = await setOf(call, kind)
        const stored = await putItem(env, kind, { name, id: path.id!, begins: true }, await readJson(request))
        await attach(collection, option, name)
        return json(stored)
      },
    },
    {
      method: 'DELETE',
      path: item,
      action: `${resource}:delete`,
      handle: async (call) => {
        const { name } = await setOf(call, kind)
        return json(await asOne(deleteItem(call.env, kind, name, call.path.id!), call.path.id!))
      },
    },
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
  if (!id) throw new ApiError(400, 'Parameter `id` must be provided while importing dictionary words.')
  const lines = await importDictionary(env, id, await readText(request, IMPORT_LIMIT))
  return new Response(lines, { headers: { 'content-type': 'text/plain; charset=utf-8' } })
}

const stemmingRoutes: Route[] = [
  {
    method: 'POST',
    path: '/stemming/dictionaries/import',
    action: 'stemming/dictionaries/import:create',
    handle: importWords,
  },
  {
    method: 'GET',
    path: '/stemming/dictionaries',
    action: 'stemming/dictionaries:list',
    handle: async ({ env }) => json({ dictionaries: await listDictionaries(env) }),
  },
  {
    method: 'GET',
    path: DICTIONARY,
    action: 'stemming/dictionaries:get',
    handle: async ({ env, path }) => json(await getDictionary(env, path.id!)),
  },
  {
    method: 'DELETE',
    path: DICTIONARY,
    action: 'stemming/dictionaries:delete',
    handle: async ({ env, path }) => {
      await deleteDictionary(env, path.id!)
      return json({ id: path.id })
    },
  },
]

export const namedSetRoutes: Route[] = [
  ...routesOf('synonym_sets', SYNONYMS),
  ...routesOf('curation_sets', CURATIONS),
  ...earlierRoutes('synonyms', 'synonym_sets', SYNONYMS),
  ...earlierRoutes('overrides', 'curation_sets', CURATIONS),
  ...stemmingRoutes,
]

// =============================================================================
// Presets and stopword sets, which searches name (registry/named-sets.ts).

const PRESET = '/presets/:name'
const STOPWORDS = '/stopwords/:name'

export const searchSetRoutes: Route[] = [
  {
    method: 'PUT',
    path: PRESET,
    action: 'presets:upsert',
    handle: async ({ env, request, path }) => {
      const body = await readJson(request)
      return json(await hinting(body, NEEDED.preset, () => putPreset(env, path.name!, body)))
    },
  },
  {
    method: 'GET',
    path: '/presets',
    action: 'presets:list',
    handle: async ({ env }) => json({ presets: await listPresets(env) }),
  },
  {
    method: 'GET',
    path: PRESET,
    action: 'presets:get',
    handle: async ({ env, path }) => json({ name: path.name, value: await getPreset(env, path.name!) }),
  },
  {
    method: 'DELETE',
    path: PRESET,
    action: 'presets:delete',
    handle: async ({ env, path }) => json({ name: path.name, value: await deletePreset(env, path.name!) }),
  },
  {
    method: 'PUT',
    path: STOPWORDS,
    action: 'stopwords:upsert',
    handle: async ({ env, request, path }) => {
      const body = await readJson(request)
      return json(await hinting(body, NEEDED.stopwords, () => putStopwords(env, path.name!, body)))
    },
  },
  {
    method: 'GET',
    path: '/stopwords',
    action: 'stopwords:list',
    handle: async ({ env }) => json({ stopwords: await listStopwords(env) }),
  },
  {
    method: 'GET',
    path: STOPWORDS,
    action: 'stopwords:get',
    handle: async ({ env, path }) => json({ stopwords: await getStopwords(env, path.name!) }),
  },
  {
    method: 'DELETE',
    path: STOPWORDS,
    action: 'stopwords:delete',
    handle: async ({ env, path }) => {
      await deleteStopwords(env, path.name!)
      return json({ id: path.name })
    },
  },
]
