import { describe, expect, it } from 'vitest'
import { ProviderError, retryAfterOf } from '../../src/models/provider-error'
import { isCurable, isRetriable } from '../../src/models/resilient'

describe('Retry-After', () => {
  it.each<[Record<string, string>, number | undefined]>([
    [{}, undefined],
    [{ 'retry-after': '2' }, 2000],
    [{ 'retry-after': '0.5' }, 500],
    [{ 'retry-after': 'Thu, 01 Jan 1970 00:00:05 GMT' }, 4000],
    [{ 'retry-after': 'Thu, 01 Jan 1970 00:00:00 GMT' }, 0],
    [{ 'retry-after': 'soon' }, undefined],
    [{ 'retry-after': '-1' }, undefined],
    [{ 'retry-after': '2', 'retry-after-ms': '1500' }, 1500],
  ])('%j is %s milliseconds', (headers, expected) => {
    expect(retryAfterOf(new Headers(headers), 1000)).toBe(expected)
  })
})

describe('a reply of status', () => {
  const reply = (upstream: number, retryAfterMs?: number) =>
    new ProviderError(400, 'no', { upstream, retryAfterMs })

  it('4xx has the same provider asked again only where a 429 says when', () => {
    for (let status = 400; status < 500; status++) {
      expect([status, isRetriable(reply(status))]).toEqual([status, false])
      expect([status, isRetriable(reply(status, 1_000))]).toEqual([status, status === 429])
    }
  })

  it('5xx has it asked again', () => {
    for (let status = 500; status < 600; status++) expect(isRetriable(reply(status))).toBe(true)
  })

  it.each([401, 402, 403, 404, 408, 424, 429, 500, 503])('%i has another one asked', (status) => {
    expect(isCurable(reply(status))).toBe(true)
  })

  it.each([400, 405, 409, 413, 422])('%i has no other one asked', (status) => {
    expect(isCurable(reply(status))).toBe(false)
  })
})
