/** Builds the records that analytics rules count, and captures searches. */
import { waitUntil } from 'cloudflare:workers'
import type { AnalyticsRecord, Typed } from '../../analytics/ledger'
import { type Access, identify } from '../../auth/access'
import { sha256 } from '../../db/sealing'
import { badRequest, reasonOf } from '../../errors'
import { mapFew } from '../../lib/few'
import { type AnalyticsRule, allRules, forgetLogged, readRules, tell } from '../../registry/analytics'
import type { SearchParameters, SearchResult } from '../../search/types'
import type { SearchReply } from '../../turn/events'
import type { PlannedSearch } from '../../turn/request'

/** Characters of a query, and of what is stored beside it. Longer ones are not searches that anybody else repeats. */
export const LONGEST_QUERY = 1_024
/** Rules whose logs are erased at the same time. */
const RULES_AT_ONCE = 4
/** The right to erase events. */
export const DELETE_EVENTS = 'analytics/events:delete'

/** Characters of an id that is needed to tell queries apart. */
const ID_LENGTH = 20

/** A query, and what may be stored beside it. */
export interface LoggedQuery {
  q: string
  /** '' for nobody */
  user: string
  filter_by?: string | undefined
  analytics_tag?: string | undefined
}

/** The same words are the same query, however they were typed. */
const normalized = (q: string): string => q.normalize('NFC').trim().replace(/\s+/g, ' ').toLowerCase()

/** The record of a query for a rule. */
export async function queryRecord(
  rule: AnalyticsRule,
  asked: LoggedQuery,
  typed?: Typed,
): Promise<AnalyticsRecord> {
  const { name, type, collection, params = {} } = rule
  const meta = Object.fromEntries(
    (params.meta_fields ?? []).flatMap((field) => {
      const value = asked[field as MetaField]
      return value ? [[field, value]] : []
    }),
  )
  if (type === 'log') {
    const event = { query: asked.q, event_type: 'search', user_id: asked.user, ...meta, collection, name }
    return { kind: 'log', rule: name, user: asked.user, event: stamped(event), ...(typed && { typed }) }
  }
  const document = { q: asked.q, ...meta }
  const id = (await sha256(JSON.stringify(document))).slice(0, ID_LENGTH)
  return { kind: 'query', rule: name, id, document, limit: params.limit ?? 1, ...(typed && { typed }) }
}

/** An event with its time, in microseconds as Typesense has it. */
export const stamped = (event: Record<string, unknown>): Record<string, unknown> => ({
  ...event,
  timestamp: Date.now() * 1_000,
})

type MetaField = 'filter_by' | 'analytics_tag'

const isLong = (text: string | undefined): boolean => (text ?? '').length > LONGEST_QUERY

/** @throws ApiError 400 for a query that is too long to be kept, or what it came with */
export function requireShort(asked: LoggedQuery): void {
  for (const field of ['q', 'filter_by', 'analytics_tag'] as const) {
    if (isLong(asked[field])) throw badRequest(`'${field}' has more than ${LONGEST_QUERY} characters`)
  }
}

/**
 * Erases a user's events in `log` rules, as far as the key may delete events.
 * @param name of one rule; undefined: all
 * @returns how many events
 */
export async function forgetUser(
  env: Cloudflare.Env,
  access: Access,
  user: string,
  name?: string,
): Promise<number> {
  const rules = (await readRules(env)).filter(
    (rule) =>
      rule.type === 'log' &&
      (name === undefined || name === rule.name) &&
      access.allows(DELETE_EVENTS, rule.collection),
  )
  const counts = await mapFew(rules, RULES_AT_ONCE, (rule) => forgetLogged(env, rule, user))
  return counts.reduce((sum, count) => sum + count, 0)
}

/** Whether a key may read and erase a user's events: one for pages only those of the user that it fixes. */
export function speaksFor(access: Access, user: string): boolean {
  const { userId, proven } = identify([access], undefined)
  return !access.forPages || (proven && userId === user)
}

/** Who searches, to tell one user's keystrokes from another's. */
export interface Searcher {
  env: Cloudflare.Env
  access: Access
  /** the user that the request names */
  named: string | undefined
  /** its IP address */
  address: string
}

/**
 * Counts searches for the rules of their collections, after they were answered. No reply waits for this, and a search
 * of a collection without rules costs nothing.
 */
export function capture(
  searches: readonly { search: PlannedSearch; reply: SearchReply; searcher: Searcher }[],
): void {
  for (const { search, reply, searcher } of searches) {
    if ('error' in reply || !isCaptured(search.params)) continue
    waitUntil(
      captureOne(search, reply, searcher).catch((error) =>
        console.error('a search could not be counted', reasonOf(error)),
      ),
    )
  }
}

/** A further page of a search does not count as another search. */
const isCaptured = ({ q = '', enable_analytics: enabled, page, offset }: SearchParameters): boolean =>
  enabled !== 'false' &&
  !['', '*'].includes(q.trim()) &&
  !isLong(q) &&
  Number(page ?? 1) <= 1 &&
  Number(offset ?? 0) === 0

/**
 * A key's filter and the documents that it hides must stay secret, but everybody who may search the destination would
 * see them. So with such a key the filter is not recorded, and the query is not completed from a document.
 */
async function captureOne(
  { collection, params, scope }: PlannedSearch,
  reply: Exclude<SearchReply, { error: string }>,
  { env, access, named, address }: Searcher,
): Promise<void> {
  const capturing = (await allRules(env)).filter(({ params }) => params?.capture_search_requests === true)
  if (capturing.length === 0) return
  const { result } = reply
  const own = result.request_params.collection_name
  const isOpen = !scope?.filter
  const kept = { filter_by: isOpen ? params.filter_by : undefined, analytics_tag: params.analytics_tag }
  const concerned = capturing.filter(
    (rule) =>
      (rule.collection === collection || rule.collection === own) &&
      !(rule.params?.meta_fields ?? []).some((field) => isLong(kept[field as MetaField])),
  )
  if (concerned.length === 0) return
  const { userId } = identify([access], named)
  const by = `${access.digest} ${userId || address}`
  const q = normalized(params.q!)
  const told = await Promise.all(
    concerned.map(async (rule) => {
      const counts = rule.type === 'log' || result.found > 0 === (rule.type === 'popular_queries')
      const expands = isOpen && rule.params?.expand_query
      const words = expands ? expanded(q, result, params.query_by ?? '') : q
      const asked = { ...kept, q: isLong(words) ? q : words, user: userId }
      return { rule, record: await queryRecord(rule, asked, { by, counts }) }
    }),
  )
  await tell(env, told)
}

/**
 * The query with its last word as the best hit has it: `sho` was typed, and `shoe` was found. Without a field of text
 * in the hit, the query stays as it is.
 */
function expanded(q: string, { hits, grouped_hits: groups }: SearchResult, fields: string): string {
  const words = q.split(' ')
  const last = words.at(-1)!
  const [hit] = hits ?? groups?.[0]?.hits ?? []
  const texts = fields.split(',').flatMap((field) => hit?.document[field.trim()] ?? [])
  const found = texts.flatMap((text) => normalized(String(text)).split(/[^\p{L}\p{N}\p{M}]+/u))
  const whole = found.find((word) => word.startsWith(last))
  return whole === undefined ? q : [...words.slice(0, -1), whole].join(' ')
}
