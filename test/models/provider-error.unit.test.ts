import { describe, expect, it } from 'vitest'
import { retryAfterOf } from '../../src/models/provider-error'

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
