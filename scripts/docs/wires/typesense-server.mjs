/** Typesense's routes about the server itself. */
import { route } from './wire.mjs'

export const server = [
  route('GET', '/health', 'Says whether Parley is up. It needs no key.'),
  route('GET', '/health_with_rusage', 'The same, for those who may ask how busy a node is.'),
  route('GET', '/status', 'Says that no write waits.'),
  route('GET', '/limits', 'Lists no rules: the rate of each key is limited.'),
  route('GET', '/limits/active', 'Lists no blocked keys.'),
  route('GET', '/limits/exceeds', 'Lists no keys that asked too often.'),
  route('POST', '/limits', 'Refuses a rule, and says where rates are set.', {
    body: { action: 'throttle' },
    refused: true,
  }),
  route('PUT', '/limits/:id', 'Refuses a rule, and says where rates are set.', {
    send: '/limits/1',
    body: { action: 'throttle' },
    refused: true,
  }),
  route('GET', '/debug', 'Names the version.'),
  route('GET', '/stats.json', 'Tells of the requests of the last ten seconds.'),
  route('GET', '/metrics.json', 'Tells of disk and memory, as far as the platform does.'),
  route('GET', '/operations/schema_changes', 'Lists changes of schemas that are under way.'),
  route('POST', '/operations/cache/clear', 'Empties the cache of replies.'),
  route(
    'POST',
    '/operations/snapshot',
    'Does nothing: every write is durable. A `snapshot_path` is refused.',
  ),
  route('POST', '/operations/vote', 'Does nothing: every isolate takes writes.'),
  route('POST', '/operations/db/compact', 'Does nothing: Cloudflare compacts the databases.'),
  route('POST', '/operations/reset_peers', 'Does nothing: there are no peers.'),
  route('POST', '/config', 'Takes `log-slow-requests-time-ms: -1`, which is so already.', {
    body: { 'log-slow-requests-time-ms': -1 },
  }),
  ...['GET', 'POST'].map((method) =>
    route(method, '/personalization/models', 'Says why there are no personalization models.', {
      refused: 501,
    }),
  ),
  ...['GET', 'PUT', 'DELETE'].map((method) =>
    route(method, '/personalization/models/:id', 'Says why there are no personalization models.', {
      send: '/personalization/models/one',
      refused: 501,
    }),
  ),
  route('POST', '/proxy', 'Says why no request is passed on.', { refused: 501 }),
]
