/**
 * Analytics rules: which searches and events are counted or logged. Rows of D1's `resources`. Messages are Typesense's.
 */
import * as v from 'valibot'
import type { AnalyticsRecord } from '../analytics/ledger'
import { RowCache } from '../db/client'
import { isOwn, listCollectionRows } from '../db/registry'
import { deleteResource, findResource, listResources, putResource } from '../db/resources'
import { type ApiError, badRequest, unwrap } from '../errors'
import { mapFew } from '../lib/few'
import { once } from '../lib/once'
import type { CollectionRpc } from '../search/collection/handle'
import { collectionObject } from '../search/collection/handle'
import { isObject } from '../search/schema/values'
import { type CollectionHandle, findCollection, lookUp } from './collections'
import { ownObject } from './engines'

const KIND = 'analytics_rule'

/** How long the rules are cached, in milliseconds. Another isolate follows a change that much later. */
const CACHE_MS = 10_000

/** The most documents that a rule may keep. All of them are read when some are dropped. */
const MOST_QUERIES = 10_000

const SEARCH_TYPES = ['popular_queries', 'nohits_queries', 'log']
const DOCUMENT_TYPES = ['counter', 'log']
const DOCUMENT_EVENTS = ['click', 'conversion', 'visit', 'custom']
const META_FIELDS = ['filter_by', 'analytics_tag']

const Params = once(() =>
  v.object({
    destination_collection: v.optional(v.string()),
    /** of queries */
    limit: v.optional(v.number()),
    expand_query: v.optional(v.boolean()),
    capture_search_requests: v.optional(v.boolean()),
    meta_fields: v.optional(v.array(v.string())),
    /** of counters */
    counter_field: v.optional(v.string()),
    weight: v.optional(v.number()),
  }),
)

const Rule = once(() =>
  v.object({
    name: v.string(),
    type: v.picklist(['popular_queries', 'nohits_queries', 'counter', 'log']),
    /** its name or an alias */
    collection: v.string(),
    event_type: v.picklist(['search', 'click', 'conversion', 'visit', 'custom']),
    rule_tag: v.optional(v.string()),
    params: v.optional(Params()),
  }),
)

export type AnalyticsRule = v.InferOutput<ReturnType<typeof Rule>>

const rules = new RowCache<AnalyticsRule[]>('the analytics rules', CACHE_MS)

const unknownRule = (): ApiError => badRequest('Rule not found')

/** All rules, the oldest first. Cached. */
export const allRules = async (env: Cloudflare.Env): Promise<AnalyticsRule[]> =>
  (await rules.find('', () => readRules(env))) ?? []

/** All rules as they are now. */
export const readRules = async (env: Cloudflare.Env): Promise<AnalyticsRule[]> =>
  (await listResources(env.DB, KIND)).map(({ body }) => v.parse(Rule(), JSON.parse(body)))

/** @throws ApiError 400, as Typesense has it */
export async function getRule(env: Cloudflare.Env, name: string): Promise<AnalyticsRule> {
  const rule = await findRule(env, name)
  if (rule === undefined) throw unknownRule()
  return rule
}

async function findRule(env: Cloudflare.Env, name: string): Promise<AnalyticsRule | undefined> {
  const row = await findResource(env.DB, KIND, name)
  return row && v.parse(Rule(), JSON.parse(row.body))
}

/** Checks that whoever changes a rule may read one collection and write to the other. Throws otherwise. */
type RequireCollections = (collections: string[]) => void

/**
 * Stores a rule.
 * @param given the body of the request
 * @param mayReplace whether it may change the rule of its name, whose other properties stay
 * @throws ApiError 400 in Typesense's words, or what `requireCollections` throws
 */
export async function putRule(
  env: Cloudflare.Env,
  given: unknown,
  mayReplace: boolean,
  requireCollections: RequireCollections,
): Promise<AnalyticsRule> {
  if (!isObject(given)) throw badRequest('Bad JSON.')
  const { name } = given
  if (typeof name !== 'string' || name === '') {
    throw badRequest('Name is required when creating an analytics rule')
  }
  const stored = await findRule(env, name)
  if (stored !== undefined && !mayReplace) throw badRequest('Rule already exists')
  if (stored) requireCollections(collectionsOf(stored))
  const rule = checked(stored ? merged(stored, given) : given)
  requireCollections(collectionsOf(rule))
  await requireExisting(env, rule)
  await putResource(env.DB, { kind: KIND, id: name, body: JSON.stringify(rule) })
  rules.clear()
  const { params } = given
  // As in Typesense, the reply to a new rule shows what was given, without defaults.
  return stored || !isObject(params) || !rule.params
    ? rule
    : { ...rule, params: picked(rule.params, Object.keys(params)) }
}

/** A rule's collection, and the one that it writes to. */
export const collectionsOf = (rule: AnalyticsRule): string[] => [
  rule.collection,
  ...(rule.type === 'log' ? [] : [destinationOf(rule)]),
]

/** The collection whose object has a rule's counts or log. A log stays with the collection that was searched. */
export const destinationOf = ({ type, collection, params }: AnalyticsRule): string =>
  (type !== 'log' && params?.destination_collection) || collection

const FIXED = [
  ['type', 'Rule type cannot be changed'],
  ['collection', 'Rule collection cannot be changed'],
  ['event_type', 'Rule event type cannot be changed'],
] as const

function merged(stored: AnalyticsRule, given: Record<string, unknown>): Record<string, unknown> {
  for (const [property, message] of FIXED) {
    if (given[property] !== undefined && given[property] !== stored[property]) throw badRequest(message)
  }
  const params = isObject(given.params) ? given.params : {}
  const { destination_collection: to, ...own } = stored.params ?? {}
  const kept = stored.type === 'log' || to === undefined ? own : { ...own, destination_collection: to }
  return {
    ...stored,
    ...(given.rule_tag !== undefined && { rule_tag: given.rule_tag }),
    ...((stored.params || given.params !== undefined) && { params: { ...kept, ...params } }),
  }
}

/** @throws ApiError 400 */
function checked(given: Record<string, unknown>): AnalyticsRule {
  const { name, type, collection, event_type: event, rule_tag: tag } = given
  for (const [property, label] of [
    [event, 'Event type'],
    [type, 'Type'],
    [collection, 'Collection'],
  ]) {
    if (typeof property !== 'string')
      throw badRequest(`${label} is required when creating a new analytics rule`)
  }
  if (tag !== undefined && typeof tag !== 'string') throw badRequest('Rule tag should be a string')
  const isSearch = event === 'search'
  if (isSearch ? !SEARCH_TYPES.includes(String(type)) : !isDocumentRule(String(type), String(event))) {
    throw badRequest('Event type or type is invalid (or) combination of both is invalid')
  }
  const params = isObject(given.params) ? given.params : {}
  if (type === 'log') requireNoDestination(params)
  if (isSearch) checkSearchParams(String(type), params)
  else if (type === 'counter') checkCounter(params)
  const counterParams = () => picked(params, ['counter_field', 'destination_collection', 'weight'])
  const kept = isSearch ? searchParams(params) : type === 'counter' ? counterParams() : undefined
  return v.parse(Rule(), {
    name,
    type,
    collection,
    event_type: event,
    ...(tag !== undefined && { rule_tag: tag }),
    ...(kept && { params: kept }),
  })
}

function requireNoDestination({ destination_collection: to }: Record<string, unknown>): void {
  if (to === undefined) return
  throw badRequest(
    '`destination_collection` does not apply to rules of the type log. Their events stay with the collection.',
  )
}

const isDocumentRule = (type: string, event: string): boolean =>
  DOCUMENT_TYPES.includes(type) && DOCUMENT_EVENTS.includes(event)

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) > 0
const isText = (value: unknown): boolean => typeof value === 'string' && value !== ''

function checkSearchParams(type: string, params: Record<string, unknown>): void {
  const { expand_query: expand, capture_search_requests: capture, meta_fields: meta, limit } = params
  if (expand !== undefined && typeof expand !== 'boolean')
    throw badRequest('Expand query should be a boolean')
  if (capture !== undefined && typeof capture !== 'boolean') {
    throw badRequest('Capture search requests should be a boolean')
  }
  if (meta !== undefined && !Array.isArray(meta))
    throw badRequest('Meta fields should be an array of strings')
  for (const field of meta ?? []) {
    if (!isText(field)) throw badRequest('Meta field should a non-empty string')
    if (!META_FIELDS.includes(field))
      throw badRequest('Meta field should be either filter_by or analytics_tag')
  }
  if (type === 'log') return
  if (!isText(params.destination_collection)) {
    throw badRequest(
      'Destination collection is required when creating a no hit queries or popular queries type rule',
    )
  }
  if (!isCount(limit)) throw badRequest('Limit should be a number greater than 0')
  if (limit > MOST_QUERIES) throw badRequest(`Limit should be at most ${MOST_QUERIES}`)
}

function checkCounter({ counter_field: field, destination_collection: to, weight }: Record<string, unknown>) {
  if (!isText(field)) throw badRequest('Counter field is required when creating a counter type rule')
  if (to !== undefined && !isText(to)) throw badRequest('Destination collection should be a string')
  if (!isCount(weight)) throw badRequest('Weight should be a number greater than 0')
}

const picked = (params: Record<string, unknown>, names: string[]): Record<string, unknown> =>
  Object.fromEntries(names.filter((name) => params[name] !== undefined).map((name) => [name, params[name]]))

const searchParams = (params: Record<string, unknown>) => ({
  ...picked(params, ['limit', 'destination_collection', 'meta_fields']),
  expand_query: params.expand_query ?? false,
  capture_search_requests: params.capture_search_requests ?? true,
})

/**
 * Checks that a rule's collections are there, and that the one it writes to has the fields. Otherwise each count would
 * be refused later, where nobody sees it.
 * @throws ApiError 400
 */
async function requireExisting(env: Cloudflare.Env, rule: AnalyticsRule): Promise<void> {
  if (!(await lookUp(env, rule.collection))) throw badRequest(`Collection ${rule.collection} does not exist`)
  const place = await lookUp(env, destinationOf(rule))
  if (!place) throw badRequest('Destination collection does not exist')
  requireOwn(place)
  if (rule.type === 'log') return
  const { fields } = unwrap(await ownObject(env, place).schema())
  const { counter_field: counter, meta_fields: meta = [] } = rule.params ?? {}
  const needs = counter === undefined ? [...meta, 'q', 'count'] : [counter]
  for (const name of needs) {
    const isCount = name === 'count' || name === counter
    const type = fields.find((field) => field.name === name)?.type ?? ''
    if (isCount ? /^int(32|64)$/.test(type) : type === 'string') continue
    // A document may have fields that its schema does not name. They are stored, but cannot be searched.
    if (type === '' && meta.includes(name)) continue
    const kind = isCount ? 'int32 or int64' : 'string'
    throw badRequest(`The destination collection needs a field \`${name}\` of the type ${kind}.`)
  }
}

/** Events and counts are kept in the collection's own object. @throws ApiError 400 for a collection in a cluster */
function requireOwn({ name, engine }: CollectionHandle): void {
  if (engine === 'object') return
  const kept = 'Events and counts are kept in collections of Parley.'
  throw badRequest(
    `The collection \`${name}\` lives in a cluster (\`engine\`). ${kept} Name one as \`destination_collection\`; rules of the type log have none.`,
  )
}

/** Deletes a rule, and its log. What was counted stays. @throws ApiError 400 */
export async function deleteRule(env: Cloudflare.Env, rule: AnalyticsRule): Promise<void> {
  await forgetLogged(env, rule)
  const deleted = await deleteResource(env.DB, KIND, rule.name)
  rules.clear()
  if (!deleted) throw unknownRule()
}

/** Objects called at the same time. */
const AT_ONCE = 20

/** Erases the log of a rule, or what it has of one user. @returns how many events */
export async function forgetLogged(env: Cloudflare.Env, rule: AnalyticsRule, user?: string): Promise<number> {
  if (rule.type !== 'log') return 0
  const counts = await mapFew(await logsOf(env, rule), AT_ONCE, async (objectId) => {
    const outcome = await collectionObject(env, objectId).forgetEvents(rule.name, user)
    // 404: the collection is being deleted, and its log with it.
    return !outcome.ok && outcome.error.status === 404 ? 0 : unwrap(outcome)
  })
  return counts.reduce((sum, count) => sum + count, 0)
}

/** The objects that may have events of a rule: all, because an alias may have led to any collection. */
async function logsOf(env: Cloudflare.Env, { collection }: AnalyticsRule): Promise<string[]> {
  const place = await lookUp(env, collection)
  if (place?.name === collection) return place.engine === 'object' ? [place.objectId] : []
  return (await listCollectionRows(env.DB, 0, 0)).filter(isOwn).map(({ objectId }) => objectId)
}

/** The object with a rule's counts or log. @throws ApiError 404 */
export async function ledgerOf(env: Cloudflare.Env, rule: AnalyticsRule): Promise<CollectionRpc> {
  return ownObject(env, await findCollection(env, destinationOf(rule)))
}

/** The objects of all rules, each once. Those of collections that are gone are left out. */
export async function ledgers(env: Cloudflare.Env, of: AnalyticsRule[]): Promise<CollectionRpc[]> {
  const places = await Promise.all(of.map((rule) => lookUp(env, destinationOf(rule))))
  // A collection that was moved into a cluster has no object any more.
  const ids = new Set(places.flatMap((place) => (place?.engine === 'object' ? place.objectId : [])))
  return [...ids].map((id) => collectionObject(env, id))
}

/**
 * Tells collections what was counted: one call for each.
 * @throws ApiError 404 for a destination that is gone, 400 for one that was moved into a cluster
 */
export async function tell(
  env: Cloudflare.Env,
  told: { rule: AnalyticsRule; record: AnalyticsRecord }[],
): Promise<void> {
  const byObject = new Map<string, AnalyticsRecord[]>()
  for (const { rule, record } of told) {
    const place = await findCollection(env, destinationOf(rule))
    requireOwn(place)
    const { objectId } = place
    byObject.set(objectId, [...(byObject.get(objectId) ?? []), record])
  }
  const outcomes = await Promise.all(
    [...byObject].map(([objectId, records]) => collectionObject(env, objectId).recordEvents(records)),
  )
  for (const outcome of outcomes) unwrap(outcome)
}
