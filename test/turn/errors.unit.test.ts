/** Codes of errors: every failure has one, what is retryable follows from it, and no code reads a message. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ApiError, attempt, coded, unwrap } from '../../src/errors'
import { ProviderError } from '../../src/models/provider-error'
import { codeOf, errorOf, interrupted, retryOf, searchFailed, stopped } from '../../src/turn/errors'

describe('the code of a failure', () => {
  it.each([
    [stopped(), 'stopped', false],
    [interrupted(), 'interrupted', true],
    [new ApiError(400, 'no'), 'bad_request', false],
    [new ApiError(404, 'no'), 'not_found', false],
    [new ApiError(408, 'no'), 'timed_out', true],
    [new ApiError(429, 'no'), 'rate_limited', true],
    [new ApiError(500, 'no'), 'internal', true],
    [new ApiError(502, 'no'), 'internal', true],
    [new ApiError(503, 'no'), 'unavailable', true],
    [searchFailed(404, 'Collection not found'), 'search_failed', false],
    [searchFailed(408, 'Request Timeout'), 'search_timed_out', true],
    [searchFailed(503, 'Vectorize did not answer.'), 'search_unavailable', true],
    [new ProviderError(400, 'no', { upstream: 400 }), 'model_refused', false],
    [new ProviderError(400, 'nothing', { upstream: 200, fault: 'empty' }), 'model_refused', false],
    [new ProviderError(400, 'who?', { upstream: 401 }), 'model_denied', false],
    [new ProviderError(400, 'not now', { upstream: 503 }), 'model_failed', true],
    [new ProviderError(400, 'nobody'), 'model_failed', true],
  ] as const)('%s is %s', (error, code, retryable) => {
    expect(codeOf(error)).toBe(code)
    const event = errorOf(error)
    expect(event).toMatchObject({ code, status: error.status, message: error.message, retryable })
    expect(event.upstream === true).toBe(['model_denied', 'model_failed'].includes(code))
    expect(retryOf(code) === 'never').toBe(!retryable)
  })

  it('crosses the border of a Durable Object', async () => {
    const outcome = await attempt(() => {
      throw coded('over_budget', 429, 'Spent.', 5)
    })
    expect(outcome).toEqual({
      ok: false,
      error: { code: 'over_budget', status: 429, message: 'Spent.', retryAfter: 5 },
    })
    expect(() => unwrap(structuredClone(outcome))).toThrow(
      expect.objectContaining({ code: 'over_budget', retryAfter: 5 }),
    )
  })
})

it('no code of a turn, a conversation or a protocol compares a message', () => {
  const src = join(import.meta.dirname, '../../src')
  const comparing = readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((name) => /^(turn|conversation|api|auth)\/.*\.ts$/.test(name))
    .flatMap((name) =>
      readFileSync(join(src, name), 'utf8')
        .split('\n')
        .flatMap((line, at) =>
          /\bmessage\s*[!=]==?\s*[A-Z'"`]|\bmessage\.(includes|startsWith|match|endsWith)\(/.test(line)
            ? [`${name}:${at + 1}`]
            : [],
        ),
    )
  expect(comparing).toEqual([])
})
