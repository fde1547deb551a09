/** Indices: each is a collection, with the mapping as its schema. */
import { requireCollections } from '../../auth/authenticate'
import { steps } from '../../engines/port'
import { ApiError, forbidden, unwrap } from '../../errors'
import { mapFew } from '../../lib/few'
import { namesOf } from '../../lib/nearest'
import { rest } from '../../lib/waiting'
import * as registry from '../../registry/collections'
import { merge } from '../../search/schema/values'
import type { CollectionSummary } from '../../search/types'
import { originOf } from '../http/request-log'
import type { Call } from '../http/router'
import {
  illegalArgument,
  incomplete,
  indexNotFound,
  OpenSearchError,
  PlainError,
  parseError,
  parsingError,
  requireKeys,
  shardsOf,
  unsupported,
  WRITTEN,
} from './errors'
import {
  addedFields,
  areKeywords,
  DYNAMIC_FIELD,
  flatten,
  hasOwnStrings,
  type Kept,
  keptOf,
  mappingOf,
  metadataOf,
  parseMapping,
} from './mapping'
import { embedFields } from './pipelines'
import {
  type Index,
  isObject,
  isOn,
  type Json,
  namedIn,
  onlyEntry,
  openIndex,
  partsOf,
  readObject,
} from './route'
import { starPattern } from './source'

const ACKNOWLEDGED = { acknowledged: true }

/** Settings that are shown for every index. */
const DEFAULTS = { number_of_shards: '1', number_of_replicas: '0' }
/** All settings that are stored and shown. The `knn` ones but `knn.space_type` have no effect here: neighbours are exact. */
const SETTINGS = namesOf(`
  number_of_shards number_of_replicas refresh_interval search.default_pipeline default_pipeline
  knn knn.space_type knn.algo_param.ef_search knn.algo_param.ef_construction knn.algo_param.m
  knn.advanced.approximate_threshold
`)

type Caller = Pick<Call, 'env' | 'access' | 'record'>

/** PUT /:index */
export async function createIndex(call: Call): Promise<Json> {
  const name = call.path.collection!
  const body = await readObject(call.request, {})
  const unknown = (key: string) => parseError(`unknown key [${key}] for create index`)
  requireKeys(body, 'settings mappings aliases', unknown)
  const { settings, mappings, aliases } = body
  if (aliases !== undefined && !(isObject(aliases) && Object.keys(aliases).length === 0)) {
    throw unsupported('[aliases] of a new index: add them by POST /_aliases; here it')
  }
  await create(call, name, { settings: settingsOf(settings), mappings })
  return { ...ACKNOWLEDGED, shards_acknowledged: true, index: name }
}

async function create(
  { env, access, record }: Caller,
  name: string,
  given: { settings: Kept['settings']; mappings?: unknown },
): Promise<void> {
  requireName(name)
  const {
    fields: mapped,
    properties,
    dynamic = true,
    templates,
  } = parseMapping(given.mappings, given.settings['knn.space_type'])
  requireCollections(access, 'collections:create', [name], record)
  const fields = await embedFields(env, mapped, given.settings.default_pipeline)
  const all = dynamic ? [...fields, DYNAMIC_FIELD] : fields
  // A collection needs at least one field.
  const some = all.length > 0 ? all : [{ name: '_source_id', type: 'string*', index: false, optional: true }]
  try {
    await registry.createCollection(
      env,
      {
        name,
        fields: some,
        enable_nested_fields: true,
        metadata: metadataOf({ settings: given.settings, dynamic, properties, templates }),
      },
      originOf(record),
    )
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 409) throw error
    const { objectId } = await openIndex(env, name)
    const reason = `index [${name}/${objectId}] already exists`
    const details = { index: name, index_uuid: objectId }
    throw new OpenSearchError(400, 'resource_already_exists_exception', reason, details)
  }
}

/** @throws ApiError 400 */
function requireName(name: string): void {
  const invalid = (why: string) =>
    new OpenSearchError(400, 'invalid_index_name_exception', `Invalid index name [${name}], ${why}`, {
      index: name,
    })
  if (name !== name.toLowerCase()) throw invalid('must be lowercase')
  if (/[\\/*?"<>| ,#:`]/.test(name)) {
    throw invalid('must not contain the following characters [ , ", *, \\, <, |, ,, >, /, ?, #, :, `]')
  }
  if (/^[-+_]/.test(name)) throw invalid("must not start with '_', '-', or '+'")
  if (name === '.' || name === '..') throw invalid("must not be '.' or '..'")
  if (new TextEncoder().encode(name).length > 255) throw invalid('index name is too long')
}

function settingsOf(given: unknown): Kept['settings'] {
  if (given !== undefined && !isObject(given)) throw parsingError('[settings] has to be an object')
  const settings: Kept['settings'] = {}
  for (const [path, value] of flatten(given ?? {})) {
    const name = path.replace(/^index\./, '')
    if (!SETTINGS.includes(name)) {
      throw illegalArgument(
        `unknown setting [index.${name}] please check that any required plugins are installed, or check the breaking changes documentation for removed settings`,
      )
    }
    settings[name] = String(value)
  }
  return settings
}

/** Opens the index of a write, and creates it if it is missing. */
export async function openOrCreate(caller: Caller, name: string): Promise<Index> {
  try {
    return await openIndex(caller.env, name)
  } catch (error) {
    if (!(error instanceof OpenSearchError) || error.status !== 404) throw error
  }
  await create(caller, name, { settings: {} }).catch((error) => {
    // Another request created it first.
    if (!(error instanceof OpenSearchError) || error.type !== 'resource_already_exists_exception') throw error
  })
  return openIndex(caller.env, name)
}

/**
 * What stands for indices, by names: whether it names them itself.
 * @param known what patterns find, and the index of each
 * @param isStrict whether each pattern has to find one
 * @throws ApiError 404
 */
function expand(
  expression: string,
  known: readonly { name: string; collection: string }[],
  isStrict = false,
) {
  const found = new Map<string, boolean>()
  for (const { text, isPattern, isOut } of partsOf(expression)) {
    const pattern = isPattern ? starPattern(text) : undefined
    const some = pattern ? known.filter(({ name }) => pattern.test(name)) : [{ collection: text }]
    if (isStrict && !isOut && some.length === 0) throw indexNotFound(text)
    for (const { collection } of some) {
      if (isOut) found.delete(collection)
      else found.set(collection, found.get(collection) || !isPattern)
    }
  }
  return found
}

/** The indices that an expression names and the key may see. @throws ApiError 404 for a plain name without an index */
export async function resolve(
  { env, access }: Caller,
  expression = '_all',
  action: string,
): Promise<CollectionSummary[]> {
  const all = (await registry.listCollections(env, { limit: 0, offset: 0 })).filter(({ name }) =>
    access.allows(action, name),
  )
  const known = all.map(({ name }) => ({ name, collection: name })).reverse()
  const aliases = await registry.listAliases(env)
  const found = [...expand(expression, known).keys()].map((text) => {
    const name = aliases.find((alias) => alias.name === text)?.collection_name ?? text
    const index = all.find((each) => each.name === name)
    if (index === undefined) throw indexNotFound(text)
    return index
  })
  return [...new Set(found)]
}

/** Indices of one search. Each is searched as deep as the page may need. */
const MOST_SEARCHED = 20
/** Indices that are opened at the same time. */
const AT_ONCE = 4

/** An index, and whether its name was given and not found by a pattern. */
export type Found = Index & { isNamed: boolean }

/**
 * The indices that an expression stands for, in the order of their names. The gate has checked the names that were given. Patterns
 * find what the key may see.
 * @param query the options of names and patterns @param most how many there may be
 * @throws ApiError 400 for more, 401 for another than a scoped key names, 404 for a name without an index, unless
 *   `ignore_unavailable` is given
 */
export async function findIndices(
  { env, access }: Caller,
  expression = '_all',
  query: Record<string, string> = {},
  action = 'documents:search',
  most = MOST_SEARCHED,
): Promise<Found[]> {
  const { ignore_unavailable, allow_no_indices, expand_wildcards = 'open' } = query
  const { collection: only } = access.embedded
  const may = (name: string) => only === undefined || name === only
  if (!namedIn(expression).every(may)) throw forbidden()
  // No index is closed.
  const isExpanded = partsOf(expression).some((part) => part.isPattern) && /open|all/.test(expand_wildcards)
  const known = isExpanded ? await registry.listNames(env) : []
  const seen = known.filter(({ name }) => access.allows(action, name) && may(name))
  const names = expand(expression, seen, allow_no_indices === 'false')
  if (names.size > most) {
    throw illegalArgument(
      `[${expression}] stands for ${names.size} indices: at most ${most} are taken at once. Name fewer, or leave some out, as in [*,-old-*].`,
    )
  }
  const opened = await mapFew([...names], AT_ONCE, async ([name, isNamed]): Promise<Found[]> => {
    try {
      return [{ ...(await openIndex(env, name)), isNamed }]
    } catch (error) {
      const isMissing = error instanceof OpenSearchError && error.status === 404
      if (isMissing && (!isNamed || isOn(ignore_unavailable))) return []
      throw error
    }
  })
  // An alias and its index are one.
  const each = new Map(opened.flat().map((index) => [index.objectId, index]))
  return [...each.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** DELETE /:index */
export async function deleteIndices(call: Call): Promise<Json> {
  if (['*', '_all'].includes(call.path.collection!))
    throw unsupported('A deletion of all indices: name the beginning of their names; it')
  const found = await resolve(call, call.path.collection!, 'collections:delete')
  for (const { name } of found) await registry.dropCollection(call.env, name)
  return ACKNOWLEDGED
}

/** Indices that are described at once: each is asked twice. */
const MOST_DESCRIBED = 200

/** GET /:index, or some of its parts. */
export const described =
  (...parts: ('aliases' | 'mappings' | 'settings')[]) =>
  async (call: Call): Promise<Json> => {
    const { env, path, query } = call
    const found = await findIndices(call, path.collection, query, 'collections:get', MOST_DESCRIBED)
    const aliases = parts.includes('aliases') ? await registry.listAliases(env) : []
    const shown = await mapFew(found, AT_ONCE, async ({ name, objectId, object }) => {
      const schema = unwrap(await object.schema())
      const { created_at } = unwrap(await object.summary())
      const index = {
        ...DEFAULTS,
        ...keptOf(schema).settings,
        provided_name: name,
        uuid: objectId,
        creation_date: String(Number(created_at) * 1000),
      }
      const all = { aliases: aliasesOf(name, aliases), mappings: mappingOf(schema), settings: { index } }
      return [name, Object.fromEntries(parts.map((part) => [part, all[part]]))]
    })
    return Object.fromEntries(shown)
  }

/** Those of some aliases that lead to an index, as its `aliases`. */
const aliasesOf = (index: string, aliases: Awaited<ReturnType<typeof registry.listAliases>>): Json =>
  Object.fromEntries(
    aliases.filter(({ collection_name }) => collection_name === index).map(({ name }) => [name, {}]),
  )

/** PUT /:index/_settings: those that are stored may change, except for the number of shards. */
export async function putSettings(call: Call): Promise<Json> {
  const { settings, ...body } = await readObject(call.request)
  const changes = settingsOf(settings === undefined ? body : settings)
  if (Object.keys(changes).length === 0) throw incomplete('no settings to update')
  const fixed = ['number_of_shards', 'knn.space_type'].find((name) => changes[name] !== undefined)
  if (fixed !== undefined) {
    throw illegalArgument(`Can't update non dynamic settings [[index.${fixed}]] for open indices`)
  }
  if ((changes.default_pipeline ?? '_none') !== '_none')
    throw unsupported('[default_pipeline] of an index that is there: make a new one; it')
  const { object } = await openIndex(call.env, call.path.collection!)
  const schema = unwrap(await object.schema())
  const kept = keptOf(schema)
  const all = Object.entries({ ...kept.settings, ...changes }).filter(([, value]) => value !== 'null')
  const metadata = metadataOf({ ...kept, settings: Object.fromEntries(all) }, schema.metadata)
  unwrap(await object.alter({ metadata }, originOf(call.record)))
  return ACKNOWLEDGED
}

export async function putMapping(call: Call): Promise<Json> {
  const body = await readObject(call.request)
  const { object } = await openIndex(call.env, call.path.collection!)
  const schema = unwrap(await object.schema())
  const kept = keptOf(schema)
  const { fields, properties, dynamic, templates } = parseMapping(body, kept.settings['knn.space_type'])
  if (dynamic !== undefined && dynamic !== kept.dynamic) throw unsupported('A change of [dynamic]')
  const isOther = areKeywords(templates ?? []) !== areKeywords(kept.templates ?? [])
  if (templates !== undefined && isOther && hasOwnStrings(schema))
    throw unsupported('A change of [dynamic_templates] of an index with strings')
  const added = addedFields(schema, fields)
  if (Object.keys(properties).length === 0 && templates === undefined) return ACKNOWLEDGED
  const all = structuredClone(kept.properties)
  merge(all, properties)
  const changed = {
    ...kept,
    properties: all,
    templates: templates ?? kept.templates,
  }
  const metadata = metadataOf(changed, schema.metadata)
  unwrap(await object.alter({ metadata, ...(added.length > 0 && { fields: added }) }, originOf(call.record)))
  for await (const { done } of steps(() => object.reindex(originOf(call.record)))) if (!done) await rest()
  return ACKNOWLEDGED
}

/** Writes are visible at once, so this only checks that the indices exist that are named. */
export async function refresh(call: Call): Promise<Json> {
  const names = namedIn(call.path.collection ?? '*')
  if (names.length === 0) return { _shards: WRITTEN }
  const found = await findIndices(call, names.join(), call.query)
  return { _shards: shardsOf(found.length, WRITTEN) }
}

/** GET /_aliases, and of one index; with a name, those that the name or pattern fits. @throws ApiError 404 */
export async function getAliases(call: Call): Promise<Json> {
  const { alias } = call.path
  const fits = starPattern(alias ?? '*')
  const found = await resolve(call, call.path.collection, 'collections:list')
  const aliases = (await registry.listAliases(call.env)).filter(
    ({ name }) => fits.test(name) && call.access.allows('aliases:list', name),
  )
  const shown = found.flatMap(({ name }) => {
    const own = aliasesOf(name, aliases)
    return alias !== undefined && Object.keys(own).length === 0 ? [] : [[name, { aliases: own }]]
  })
  if (shown.length === 0 && alias !== undefined && !alias.includes('*')) {
    throw new PlainError(404, `alias [${alias}] missing`)
  }
  return Object.fromEntries(shown)
}

/** PUT|POST|DELETE /:index/_alias/:alias */
export async function changeAlias(call: Call): Promise<Json> {
  const { collection, alias } = call.path
  const isDelete = call.request.method === 'DELETE'
  const options = isDelete ? {} : await readObject(call.request, {})
  const change = { [isDelete ? 'remove' : 'add']: { ...options, index: collection, alias } }
  return changeAliases(call, [change])
}

/** POST /_aliases: all actions are checked before the first runs. */
export async function updateAliases(call: Call): Promise<Json> {
  const { actions, ...others } = await readObject(call.request)
  if (!Array.isArray(actions) || actions.length === 0 || Object.keys(others).length > 0) {
    throw illegalArgument('[aliases] takes a list of [actions]')
  }
  return changeAliases(call, actions)
}

async function changeAliases({ env, access, record }: Caller, actions: unknown[]): Promise<Json> {
  const changes = actions.map(changeOf)
  for (const { action, alias, index } of changes) {
    requireCollections(access, action === 'add' ? 'aliases:upsert' : 'aliases:delete', [alias, index], record)
    await openIndex(env, index)
  }
  for (const { action, alias, index } of changes) {
    if (action === 'add') await registry.putAlias(env, alias, { collection_name: index })
    else {
      await registry.deleteAlias(env, alias).catch((error) => {
        if (!(error instanceof ApiError) || error.status !== 404) throw error
        const details = { 'resource.type': 'aliases', 'resource.id': alias }
        throw new OpenSearchError(404, 'aliases_not_found_exception', `aliases [${alias}] missing`, details)
      })
    }
  }
  return ACKNOWLEDGED
}

function changeOf(given: unknown) {
  const [action, body] = onlyEntry(given) ?? []
  if ((action !== 'add' && action !== 'remove') || !isObject(body)) {
    throw unsupported(`The action [${String(action)}] on aliases`)
  }
  requireKeys(body, 'index alias', (key) => unsupported(`[${key}] of an action on aliases`))
  const { index, alias } = body
  if (typeof index !== 'string' || typeof alias !== 'string' || alias === '') {
    throw illegalArgument('An action on aliases takes one [index] and one [alias]')
  }
  return { action, index, alias }
}
