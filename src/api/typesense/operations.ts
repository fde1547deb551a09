/**
 * Figures of the server, and operations of a cluster. What there is nothing to do for is answered with success. What
 * Parley could only pretend to do is refused, with a hint what to do instead.
 */

import { ApiError, badRequest } from '../../errors'
import { namesOf } from '../../lib/nearest'
import { schemaChanges } from '../../registry/collections'
import { databaseBytes } from '../../registry/engines'
import { clearReplies } from '../../registry/operations'
import { isObject } from '../../search/schema/values'
import { readJson } from '../http/body'
import { json } from '../http/deliver'
import { requestStats } from '../http/request-log'
import { type Call, openRoute, type Route, route } from '../http/router'
import { forgetTold } from './nl'

/** The most that D1 holds, and the memory of an isolate, in bytes. */
const DISK_BYTES = 10 * 1024 ** 3
const MEMORY_BYTES = 128 * 1024 ** 2

/** Bytes that the platform does not expose. */
const UNKNOWN = namesOf(`
  system_memory_used system_memory_total_swap system_memory_used_swap system_network_received
  system_network_sent typesense_memory_active typesense_memory_allocated typesense_memory_mapped
  typesense_memory_metadata typesense_memory_resident typesense_memory_retained
`)

async function metrics({ env }: Call): Promise<object> {
  return {
    system_cpu1_active_percentage: '0.00',
    system_cpu_active_percentage: '0.00',
    system_disk_total_bytes: `${DISK_BYTES}`,
    system_disk_used_bytes: `${await databaseBytes(env)}`,
    system_memory_total_bytes: `${MEMORY_BYTES}`,
    ...Object.fromEntries(UNKNOWN.map((name) => [`${name}_bytes`, '0'])),
    typesense_memory_fragmentation_ratio: '0.00',
  }
}

/** What an operation makes sure of is so already: every isolate takes writes, and the platform keeps databases compact. */
const done = (operation: string): Route =>
  route('POST', `/operations/${operation}`, `operations/${operation}:create`, () => ({ success: true }))

/** @throws ApiError 400 for a snapshot to copy. Without a path, Typesense shortens its log of writes alone. */
function snapshot({ query }: Call): Response {
  if (!query.snapshot_path) return json({ success: true }, 201)
  throw badRequest(
    'Parley writes no files, so there would be nothing at `snapshot_path`. Use `parley backup`, and D1 Time Travel.',
  )
}

const SLOW = 'log-slow-requests-time-ms'

/** @throws ApiError 400 for any setting other than the present one */
async function config({ request }: Call): Promise<Response> {
  const body = await readJson(request)
  if (!isObject(body)) throw badRequest('Bad JSON.')
  const [other] = Object.entries(body).filter(([name, value]) => name !== SLOW || Number(value) !== -1)
  if (other === undefined) return json({ success: true }, 201)
  const settings =
    'Settings are variables of the Worker: `LOG_REQUESTS` logs the milliseconds of each request.'
  throw badRequest(`\`${other[0]}\` cannot be set while Parley runs. ${settings}`)
}

/** @throws ApiError 400: what a rule limits in Typesense, a key limits here */
function limitRule(): never {
  throw badRequest(
    'Parley has no rules of rate limits. Keys have them: `RATE_LIMIT` in `wrangler.toml`, and `limits` of each.',
  )
}

/** A route of Typesense that is not here, and what to do in its place. */
const absent = (method: Route['method'], path: string, action: string, instead: string): Route =>
  route(method, path, action, () => {
    throw new ApiError(501, instead)
  })

const PERSONAL =
  'Parley does not personalize searches, so it has no personalization models. Sort or filter by a field that says what a user likes.'
const PROXY =
  'Parley passes no requests on: it would lend its address to whoever asks. Ask the other server from your own.'

export const operationRoutes: Route[] = [
  // Every isolate is caught up and has resources, so no threshold of the request is passed.
  route('GET', '/health_with_rusage', 'health_with_rusage:list', () => ({ ok: true })),
  // Of Typesense's log of writes. Here a write is committed when it is answered, and none waits.
  route('GET', '/status', 'status:list', () => ({ state: 'LEADER', committed_index: 0, queued_writes: 0 })),
  ...['limits', 'limits/active', 'limits/exceeds'].map((list) =>
    route('GET', `/${list}`, `${list}:list`, () => []),
  ),
  route('POST', '/limits', 'limits:create', limitRule),
  route('PUT', '/limits/:id', 'limits:upsert', limitRule),
  route('GET', '/stats.json', 'stats.json:list', () => requestStats()),
  route('GET', '/metrics.json', 'metrics.json:list', metrics),
  route('GET', '/operations/schema_changes', 'operations/schema_changes:list', ({ env, access, record }) =>
    schemaChanges(env, (name) => access.allows(record.action!, name)),
  ),
  // What models are told of collections is in this isolate alone. Others keep theirs until its time is over.
  route('POST', '/operations/cache/clear', 'operations/cache/clear:create', async ({ env }) => {
    forgetTold()
    await clearReplies(env)
    return { success: true }
  }),
  route('POST', '/operations/snapshot', 'operations/snapshot:create', snapshot),
  ...(['GET', 'POST'] as const).map((method) =>
    absent(method, '/personalization/models', 'personalization/models:list', PERSONAL),
  ),
  ...(['GET', 'PUT', 'DELETE'] as const).map((method) =>
    absent(method, '/personalization/models/:id', 'personalization/models:list', PERSONAL),
  ),
  absent('POST', '/proxy', 'proxy:create', PROXY),
  done('vote'),
  done('db/compact'),
  done('reset_peers'),
  route('POST', '/config', 'config:create', config),
]

// =============================================================================
// Health, and which version this is.

/** The release of Typesense whose wire this is: the official client branches on its major number. */
const VERSION = '30.2'

export const healthRoutes: Route[] = [
  openRoute('GET', '/health', () => ({ ok: true })),
  // State 1: the leader of its cluster.
  route('GET', '/debug', 'debug:list', () => ({ state: 1, version: VERSION })),
]
