import { expect, test } from 'vitest'
import { countRequest, requestStats } from '../../../src/api/http/request-log'

const DOCUMENTS = '/collections/:collection/documents'
/** Of a window of its own: the figures are the isolate's. */
const NOW = 1_000_000

const served = (method: string, route: string, ms: number, status = 200, more: object = {}) =>
  countRequest(
    { requestId: 'r', address: '', method, route, started: NOW - ms, key: '1', ...more },
    status,
    NOW,
  )

test('counts what was served in ten seconds, by endpoint and by kind', () => {
  served('GET', `${DOCUMENTS}/search`, 20, 200, { collection: '$&' })
  served('GET', `${DOCUMENTS}/search`, 40, 200, { collection: '$&' })
  served('POST', '/multi_search', 30)
  served('PATCH', `${DOCUMENTS}/:id`, 5)
  served('GET', `${DOCUMENTS}/:id`, 5)
  served('POST', DOCUMENTS, 1, 503)
  // A stranger's path, and a page.
  served('GET', '/keys', 1, 401, { key: undefined })
  countRequest({ requestId: 'r', address: '', method: 'GET', started: NOW }, 200, NOW)
  expect(requestStats(NOW + 9_000)).toEqual({
    search_requests_per_second: 0.3,
    search_latency_ms: 30,
    import_requests_per_second: 0,
    import_latency_ms: 0,
    write_requests_per_second: 0.1,
    write_latency_ms: 5,
    delete_requests_per_second: 0,
    delete_latency_ms: 0,
    overloaded_requests_per_second: 0.1,
    latency_ms: {
      'GET /collections/$&/documents/search': 30,
      'POST /multi_search': 30,
      [`PATCH ${DOCUMENTS}/:id`]: 5,
      [`GET ${DOCUMENTS}/:id`]: 5,
      [`POST ${DOCUMENTS}`]: 1,
    },
    requests_per_second: {
      'GET /collections/$&/documents/search': 0.2,
      'POST /multi_search': 0.1,
      [`PATCH ${DOCUMENTS}/:id`]: 0.1,
      [`GET ${DOCUMENTS}/:id`]: 0.1,
      [`POST ${DOCUMENTS}`]: 0.1,
    },
    total_requests_per_second: 0.6,
    pending_write_batches: 0,
  })
  expect(requestStats(NOW + 10_000)).toMatchObject({ total_requests_per_second: 0, latency_ms: {} })
})

test('tells a bounded number of endpoints apart', () => {
  for (let each = 0; each < 500; each++) {
    served('GET', '/collections/:collection', 1, 200, { collection: `c${each}` })
  }
  const { requests_per_second, total_requests_per_second } = requestStats(NOW) as Record<string, object>
  expect(Object.keys(requests_per_second!).length).toBeLessThanOrEqual(200)
  expect(total_requests_per_second).toBeGreaterThanOrEqual(50)
})
