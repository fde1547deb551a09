import fc from 'fast-check'
import { expect, test } from 'vitest'
import { foreignOrigin, isLoopbackHost, matchesOrigin, ORIGIN_PATTERN } from '../../src/lib/origins'

const label = fc.stringMatching(/^[a-z][a-z0-9]{0,7}$/)
const host = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => labels.join('.'))
const scheme = fc.constantFrom('http', 'https')
const port = fc.option(fc.integer({ min: 1, max: 65_535 }), { nil: undefined })
const origin = fc
  .tuple(scheme, host, port)
  .map(([first, name, number]) => `${first}://${name}${number === undefined ? '' : `:${number}`}`)

test('an origin is in a list that has it, however it is written, and in no other', () => {
  fc.assert(
    fc.property(origin, origin, (one, other) => {
      expect(ORIGIN_PATTERN.test(one)).toBe(true)
      expect(matchesOrigin([`${one.toUpperCase()}/`], one)).toBe(true)
      const same = new URL(one).origin === new URL(other).origin
      expect(matchesOrigin([other], one)).toBe(same)
    }),
  )
})

test('a wildcard stands for one name or more below, of the same scheme and port', () => {
  fc.assert(
    fc.property(host, host, scheme, (below, name, first) => {
      const entries = [`https://*.${name}:8443`]
      expect(matchesOrigin(entries, `${first}://${below}.${name}:8443`)).toBe(first === 'https')
      expect(matchesOrigin(entries, `https://${name}:8443`)).toBe(false)
      expect(matchesOrigin(entries, `https://${below}.${name}`)).toBe(false)
      expect(matchesOrigin(entries, `https://${below}-${name}:8443`)).toBe(false)
      expect(matchesOrigin(entries, `https://${below}.${name}:8443.evil.example`)).toBe(false)
    }),
  )
})

test.each([
  ['http://localhost:3000', true],
  ['https://localhost', true],
  ['http://app.localhost:1', true],
  ['http://127.0.0.1:5173', true],
  ['http://127.9.9.9', true],
  ['http://[::1]:80', true],
  ['http://localhost.evil.example', false],
  ['http://127.0.0.1.evil.example', false],
  ['http://evil-localhost', false],
  ['http://0.0.0.0', false],
  ['http://192.168.0.1', false],
  ['null', false],
  ['', false],
  ['localhost', false],
  ['chrome-extension://localhost', false],
])('%s is of this machine: %s', (given, expected) => {
  expect(matchesOrigin(['loopback'], given)).toBe(expected)
})

test.each([
  'https://a.example/page',
  'a.example',
  '*',
  'https://*',
  'https://a.*.example',
  'null',
  'https://',
  '',
])('%j is no entry of a list', (entry) => expect(ORIGIN_PATTERN.test(entry)).toBe(false))

test('hosts that only begin or end like those of this machine are others', () => {
  for (const name of ['localhost', 'LOCALHOST', 'a.localhost', '127.0.0.1', '[::1]'])
    expect(isLoopbackHost(name)).toBe(true)
  for (const name of ['localhost.', 'xlocalhost', '.localhost', '127.0.0.1.nip.io', '[::2]', '10.0.0.1'])
    expect(isLoopbackHost(name)).toBe(false)
})

test.each([
  [{}, undefined],
  [{ origin: 'http://parley.test:8108' }, undefined],
  [{ origin: 'https://parley.test:8108' }, undefined],
  [{ origin: 'http://parley.test' }, 'http://parley.test'],
  [{ origin: 'http://evil.example' }, 'http://evil.example'],
  [{ origin: 'null' }, 'null'],
  [{ 'sec-fetch-site': 'same-origin' }, undefined],
  [{ 'sec-fetch-site': 'same-site' }, undefined],
  [{ 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate' }, undefined],
  [{ 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }, 'null'],
  [{ 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }, 'null'],
])('the page of a request with %j is %s', (headers, expected) => {
  const request = { url: 'http://parley.test:8108/x?y=1', headers: new Headers(headers as never) }
  expect(foreignOrigin(request as Request)).toBe(expected)
})

test('a link that somebody follows is no request of a page, unless it brings parameters', () => {
  const headers = new Headers({ 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' })
  const at = (url: string) => foreignOrigin({ url, headers } as Request)
  expect(at('http://parley.test/api')).toBeUndefined()
  expect(at('http://parley.test/api?x-typesense-api-key=xyz')).toBe('null')
})
