/** Analytics rules and events. */
import type { AnalyticsRecord } from '../../analytics/ledger'
import { identify } from '../../auth/access'
import { requireCollections, requireEvents } from '../../auth/authenticate'
import { ApiError, badRequest, forbidden, unwrap } from '../../errors'
import * as registry from '../../registry/analytics'
import { isObject } from '../../search/schema/values'
import {
  DELETE_EVENTS,
  forgetUser,
  type LoggedQuery,
  queryRecord,
  requireShort,
  speaksFor,
  stamped,
} from '../http/analytics'
import { readJson } from '../http/body'
import { type Answered, type Call, type Route, route } from '../http/router'

const RULES = '/analytics/rules'
const RULE = `${RULES}/:name`
const EVENTS = '/analytics/events'

/** Bytes of an event, documents that it can name, and events that are read at once. */
const EVENT_LIMIT = 8 * 1024
const MOST_DOCUMENTS = 100
const MOST_EVENTS = 1_000

/** Checks that the key of a request may use these collections. @throws ApiError 401 */
const requiring =
  ({ access, record }: Call) =>
  (collections: string[]): void =>
    requireCollections(access, record.action!, collections, record)

async function create(call: Call): Promise<Answered> {
  const body = await readJson(call.request)
  if (!Array.isArray(body)) return putGiven(call, body, false)
  const made: unknown[] = []
  for (const each of body) {
    try {
      made.push(await putGiven(call, each, false))
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      made.push({ error: error.message })
    }
  }
  return made
}

async function upsert(call: Call): Promise<Answered> {
  const body = await readJson(call.request)
  if (!isObject(body)) throw badRequest('Bad JSON.')
  return putGiven(call, { ...body, name: call.path.name }, true)
}

/** Stores a rule. One in the shape of release 29 becomes rules of release 30, and the reply shows it as it was sent. */
async function putGiven(call: Call, body: unknown, mayReplace: boolean): Promise<Answered> {
  const older = rulesOfRelease29(body)
  if (older === undefined) return registry.putRule(call.env, body, mayReplace, requiring(call))
  for (const rule of older) await registry.putRule(call.env, rule, mayReplace, requiring(call))
  return body as object
}

async function list(call: Call): Promise<registry.AnalyticsRule[]> {
  const tag = call.query.rule_tag
  return (await openRules(call)).filter((rule) => !tag || rule.rule_tag === tag)
}

/** A rule that the key may see. @throws ApiError 400, 401 */
async function openRule(call: Call): Promise<registry.AnalyticsRule> {
  const rule = await registry.getRule(call.env, call.path.name!)
  requiring(call)(registry.collectionsOf(rule))
  return rule
}

interface Event {
  rule: registry.AnalyticsRule
  data: Record<string, unknown>
}

/** @throws ApiError 400 in Typesense's words, 401 */
async function readEvent(call: Call): Promise<Event> {
  const body = await readJson(call.request, EVENT_LIMIT)
  if (!isObject(body) || typeof body.name !== 'string') throw badRequest('name is required')
  const { name, data } = body
  if (!isObject(data)) throw badRequest('data is required')
  if (data.user_id !== undefined && typeof data.user_id !== 'string') {
    throw badRequest('user_id should be a string')
  }
  const rule =
    (await registry.allRules(call.env)).find((each) => each.name === name) ??
    (await registry.getRule(call.env, name))
  // The maker of the rule has decided where it writes. So the key must allow only the collection that the event is
  // about.
  requiring(call)([rule.collection])
  return { rule, data }
}

async function postEvent(call: Call): Promise<Answered> {
  const { env, access, record } = call
  await requireEvents(env, access, record.address)
  const { rule, data } = await readEvent(call)
  // A key that fixes its user decides, whatever the event says.
  const { userId } = identify([access], data.user_id as string | undefined)
  const told =
    rule.event_type === 'search'
      ? await queryRecord(rule, readQuery(data, userId))
      : documentRecord(rule, data, userId)
  await registry.tell(env, [{ rule, record: told }])
  return { ok: true }
}

/** @throws ApiError 400 */
function readQuery(data: Record<string, unknown>, user: string): LoggedQuery {
  const { q, filter_by, analytics_tag } = data
  if (typeof q !== 'string') throw badRequest("'q' should be a string and is required")
  const text = (value: unknown, name: string): string | undefined => {
    if (value === undefined || typeof value === 'string') return value
    throw badRequest(`'${name}' should be a string`)
  }
  const asked = {
    q,
    user,
    filter_by: text(filter_by, 'filter_by'),
    analytics_tag: text(analytics_tag, 'analytics_tag'),
  }
  requireShort(asked)
  return asked
}

function documentRecord(
  rule: registry.AnalyticsRule,
  data: Record<string, unknown>,
  user: string,
): AnalyticsRecord {
  const { name, collection, event_type, params = {} } = rule
  const { doc_id: one, doc_ids: many } = data
  if (one !== undefined && many !== undefined) {
    throw badRequest('doc_ids and doc_id cannot both be present')
  }
  if (one === undefined && many === undefined) throw badRequest('doc_ids or doc_id is required')
  if (many !== undefined && (!Array.isArray(many) || !many.every((id) => typeof id === 'string'))) {
    throw badRequest('doc_ids should be an array')
  }
  if (one !== undefined && typeof one !== 'string') throw badRequest('doc_id should be a string')
  const ids = (many as string[] | undefined) ?? [one as string]
  if (ids.length > MOST_DOCUMENTS) {
    throw badRequest(`doc_ids should have at most ${MOST_DOCUMENTS} entries`)
  }
  if (rule.type === 'counter') {
    return { kind: 'counter', rule: name, field: params.counter_field!, weight: params.weight!, ids }
  }
  if (user === '') throw badRequest('user_id should be a string')
  const query = typeof data.query === 'string' ? data.query : ''
  const event = stamped({
    ...(event_type === 'custom' && data),
    query,
    event_type,
    user_id: user,
    ...(many === undefined ? { doc_id: one } : { doc_ids: many }),
    name,
    collection,
  })
  return { kind: 'log', rule: name, user, event }
}

/** A user's events are theirs: a key for pages reads those of the user that it fixes, and no others. */
function requireUser({ access, query }: Call): string {
  const asked = required(query, 'user_id')
  if (!speaksFor(access, asked)) throw forbidden()
  return asked
}

function required(query: Call['query'], name: string): string {
  if (query[name]) return query[name]
  throw badRequest(`Missing required parameter '${name}'.`)
}

async function getEvents(call: Call): Promise<Answered> {
  const { env, query } = call
  const user = requireUser(call)
  const rule = await registry.getRule(env, required(query, 'name'))
  const asked = required(query, 'n')
  if (!/^\d{1,9}$/.test(asked)) throw badRequest("Parameter 'n' must be an unsigned integer.")
  if (Number(asked) > MOST_EVENTS) throw badRequest(`N cannot be greater than ${MOST_EVENTS}`)
  requiring(call)([rule.collection])
  if (rule.type !== 'log') return { events: [] }
  const object = await registry.ledgerOf(env, rule)
  return { events: unwrap(await object.loggedEvents(rule.name, user, Number(asked))) }
}

/** Erases a user's events in the logs of rules. Typesense has no such route. */
async function deleteEvents(call: Call): Promise<Answered> {
  const { env, access, query } = call
  return { num_deleted: await forgetUser(env, access, requireUser(call), query.name) }
}

/** The rules whose collections are all visible to the key. */
const openRules = async ({ env, access, record }: Call): Promise<registry.AnalyticsRule[]> =>
  (await registry.readRules(env)).filter((rule) =>
    registry.collectionsOf(rule).every((name) => access.allows(record.action!, name)),
  )

async function flush(call: Call): Promise<Answered> {
  const objects = await registry.ledgers(call.env, await openRules(call))
  for (const outcome of await Promise.all(objects.map((object) => object.flushEvents()))) unwrap(outcome)
  return { ok: true }
}

async function status(call: Call): Promise<Answered> {
  const rules = await openRules(call)
  const objects = await registry.ledgers(call.env, rules)
  const all = (await Promise.all(objects.map((object) => object.eventStatus()))).map(unwrap)
  const typed = (type: registry.AnalyticsRule['type']): number =>
    sum(
      rules
        .filter((rule) => rule.type === type)
        .flatMap(({ name }) => all.map((each) => each.typed[name] ?? 0)),
    )
  return {
    popular_prefix_queries: typed('popular_queries'),
    nohits_prefix_queries: typed('nohits_queries'),
    log_prefix_queries: typed('log'),
    query_counter_events: sum(all.map(({ queries }) => queries)),
    doc_counter_events: sum(all.map(({ counters }) => counters)),
    // Events are logged at once, so none wait.
    query_log_events: 0,
    doc_log_events: 0,
  }
}

const sum = (numbers: number[]): number => numbers.reduce((all, each) => all + each, 0)

export const analyticsRoutes: Route[] = [
  route('POST', RULES, 'analytics/rules:create', create),
  route('GET', RULES, 'analytics/rules:list', list),
  route('GET', RULE, 'analytics/rules:get', openRule),
  route('PUT', RULE, 'analytics/rules:upsert', upsert),
  route('DELETE', RULE, 'analytics/rules:delete', async (call) => {
    const rule = await openRule(call)
    await registry.deleteRule(call.env, rule)
    return rule
  }),
  route('POST', EVENTS, 'analytics/events:create', postEvent),
  route('GET', EVENTS, 'analytics/events:list', getEvents),
  route('DELETE', EVENTS, DELETE_EVENTS, deleteEvents),
  route('POST', '/analytics/flush', 'analytics/flush:create', flush),
  route('GET', '/analytics/status', 'analytics/status:list', status),
]

// =============================================================================
// Analytics rules in the shape of release 29, as older clients send them.

/**
 * The rules of release 30 that one of release 29 stands for: one for each collection and event, named by the event.
 * @returns undefined for a rule that is not in that shape
 */
function rulesOfRelease29(body: unknown): Record<string, unknown>[] | undefined {
  if (!isObject(body) || !isObject(body.params)) return undefined
  const { name, type, params } = body
  const { source, destination, limit, expand_query, meta_fields } = params
  if (!isObject(source) || !isObject(destination) || !Array.isArray(source.collections)) return undefined
  const { collections, enable_auto_aggregation: captures } = source
  const events = Array.isArray(source.events) ? source.events.filter(isObject) : []
  const isCounter = type === 'counter'
  const named = events.length > 0 ? events : [{ name, type: 'search' }]
  return collections.flatMap((collection) =>
    named.map((event) => ({
      name: collections.length === 1 ? event.name : `${event.name}_${collection}`,
      type,
      collection,
      event_type: isCounter ? event.type : 'search',
      rule_tag: name,
      params: {
        destination_collection: destination.collection,
        ...(isCounter
          ? { counter_field: destination.counter_field, weight: event.weight ?? 1 }
          : {
              limit: limit ?? 1_000,
              ...(expand_query !== undefined && { expand_query }),
              ...(meta_fields !== undefined && { meta_fields }),
              capture_search_requests: captures ?? true,
            }),
      },
    })),
  )
}
