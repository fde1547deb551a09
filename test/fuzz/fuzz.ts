/**
 * What the fuzz tests share. However odd a request is, its answer is no 5xx and comes soon.
 *
 * FUZZ_CASES says how many cases a property tries: 100 with all tests, a quarter with the usual ones, 100,000 and more with
 * `npm run fuzz`.
 */

import { createExecutionContext, waitOnExecutionContext } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import fc from 'fast-check'
import { expect } from 'vitest'
import { app } from '../../src/app'
import { ADMIN_KEY } from '../api/typesense/api'

/** Cases a property tries. */
export const CASES = Number(env.FUZZ_CASES) || 100

/** For a whole file of properties: a thousand cases take seconds, not minutes. */
export const PATIENCE = 30_000 + CASES * 60

/** @param share of the cases, for properties whose cases are dear */
export const check = (property: fc.IAsyncProperty<unknown>, share = 1): Promise<void> =>
  fc.assert(property as fc.IAsyncProperty<[unknown]>, { numRuns: Math.max(1, Math.round(CASES * share)) })

/**
 * Sends a request and checks that its answer is one: no fault of the server, readable to its end.
 *
 * Straight to the app: the test runner wraps the Worker's own entry anew for each request, one wrapper around the
 * other, and a thousand of them are slow, ten thousand too many for the stack.
 */
export async function survives(
  method: string,
  path: string,
  options: { body?: unknown; headers?: Record<string, string>; key?: string | null } = {},
): Promise<{ status: number; text: string }> {
  const { body, headers, key = ADMIN_KEY } = options
  const context = createExecutionContext()
  const request = new Request(`http://parley${path}`, {
    method,
    headers: { ...(key !== null && { 'x-typesense-api-key': key }), ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const response = await app.fetch(request, env, context)
  const text = await response.text()
  await waitOnExecutionContext(context)
  expect(response.status, text.slice(0, 500)).toBeLessThan(500)
  if (/^application\/json(;|$)/.test(response.headers.get('content-type') ?? '')) {
    expect(() => JSON.parse(text)).not.toThrow()
  }
  return { status: response.status, text }
}

/** Text made of the pieces of a grammar, with whatever else between them. */
export const garbled = (...pieces: string[]): fc.Arbitrary<string> =>
  fc
    .array(
      fc.oneof(
        { arbitrary: fc.constantFrom(...pieces), weight: 8 },
        { arbitrary: fc.string({ maxLength: 6 }), weight: 1 },
        { arbitrary: fc.string({ unit: 'binary', maxLength: 3 }), weight: 1 },
        { arbitrary: fc.double().map(String), weight: 1 },
      ),
      { maxLength: 24 },
    )
    .map((parts) => parts.join(''))

/** What people put where they should not. */
export const hostile: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(
    '',
    ' ',
    '\0',
    '%00',
    '../../etc/passwd',
    "' OR 1=1 --",
    '"; DROP TABLE documents; --',
    'NEAR(a b, 5)',
    'a* NOT b OR (c AND "d',
    '{"$gt":""}',
    '__proto__',
    'constructor',
    'toString',
    '\u{1F600}'.repeat(40),
    '\ud800',
    '\u202e\u0000\uffff',
    'a\r\nx-injected: 1',
    '{{7*7}}<%= 7 %>',
    '-1',
    '1e999',
    'NaN',
    '9'.repeat(400),
    'x'.repeat(3_000),
  ),
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.string({ maxLength: 60 }),
)

/** Encodes as a client does; a lone surrogate cannot be, and becomes what a client would make of it. */
export const encoded = (text: string): string => encodeURIComponent(text.toWellFormed())
