import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ApiError } from '../../src/errors'
import { ProviderError, type Upstream } from '../../src/models/provider-error'
import { causeOf, pauseAfter } from '../../src/search/embedding/queue'

const failed = (upstream: Upstream): ProviderError => new ProviderError(400, 'no', upstream)

describe('a failed call', () => {
  it.each<[string, unknown, string]>([
    ['a bad request', failed({ upstream: 400 }), 'texts'],
    ['a request that is too large', failed({ upstream: 413 }), 'texts'],
    ['a request that cannot be processed', failed({ upstream: 422 }), 'texts'],
    ['a rate limit', failed({ upstream: 429 }), 'moment'],
    ['a broken server', failed({ upstream: 503 }), 'moment'],
    ['a reply that is none', failed({ upstream: 200 }), 'moment'],
    ['no connection', failed({}), 'moment'],
    ['silence', failed({ fault: 'silent' }), 'moment'],
    ['something unforeseen', new TypeError('oh'), 'moment'],
    ['a wrong key', failed({ upstream: 401 }), 'setup'],
    ['a forbidden model', failed({ upstream: 403 }), 'setup'],
    ['a model that is gone', failed({ upstream: 404 }), 'setup'],
    ['an allowance that is used up', failed({ upstream: 429, fault: 'exhausted' }), 'setup'],
    ['a host that may not be called', new ApiError(400, 'not allowed'), 'setup'],
  ])('by %s', (_, error, cause) => {
    expect(causeOf(error)).toBe(cause)
  })

  it('is followed by a pause that grows, is bounded, and heeds what the provider asked for', () => {
    const error = fc.oneof(
      fc.constant(new ApiError(400, 'setup')),
      fc.record({ upstream: fc.constantFrom(401, 429, 503) }).map(failed),
      fc.nat(10_000_000).map((retryAfterMs) => failed({ upstream: 429, retryAfterMs })),
    )
    const chance = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true })
    fc.assert(
      fc.property(error, fc.nat(100), chance, (thrown, failures, random) => {
        const pause = pauseAfter(thrown, failures, () => random)
        const asked = thrown instanceof ProviderError ? (thrown.retryAfterMs ?? 0) : 0
        expect(pause).toBeGreaterThanOrEqual(Math.min(asked, 3_600_000))
        expect(pause).toBeGreaterThanOrEqual(500)
        expect(pause).toBeLessThanOrEqual(3_600_000)
        expect(pauseAfter(thrown, failures + 1, () => random)).toBeGreaterThanOrEqual(pause)
      }),
    )
  })
})
