/** Documents, ids, names and bodies as they should not be. */
import fc from 'fast-check'
import { beforeAll, expect, it } from 'vitest'
import { call } from '../api/typesense/api'
import { check, encoded, hostile, PATIENCE, survives } from './fuzz'

beforeAll(async () => {
  const fields = [
    { name: 'title', type: 'string' },
    { name: 'n', type: 'int32', optional: true },
    { name: 'big', type: 'int64', optional: true, facet: true },
    { name: 'bigs', type: 'int64[]', optional: true, facet: true },
    { name: 'inside', type: 'object', optional: true },
    { name: 'inside.big', type: 'int64', optional: true },
    { name: 'many', type: 'object[]', optional: true },
  ]
  await call('POST', '/collections', { body: { name: 'things', fields, enable_nested_fields: true } })
  // Apart: what others send decides the types of the fields that are found.
  await call('POST', '/collections', { body: { name: 'exact', fields, enable_nested_fields: true } })
  // Apart, and with few cases: each field that is found makes the next document dearer.
  const auto = [{ name: '.*', type: 'auto' }]
  await call('POST', '/collections', { body: { name: 'open', fields: auto, enable_nested_fields: true } })
})

/** Numbers as text, many of them no doubles and some no numbers of 64 bits. */
const bigNumber = fc.oneof(
  fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }).map(String),
  fc.bigInt().map(String),
  fc.constantFrom('9223372036854775807', '-9223372036854775808', '9223372036854775808', '9007199254740993'),
  fc.constantFrom('1e18', '1e19', '-0', '1712345678901234567.0', '17123456789012345678e-1', '9'.repeat(309)),
  fc.json(),
)

/** Objects where objects, lists and numbers are expected. */
const objects = fc
  .record({ big: bigNumber, bigs: fc.array(bigNumber, { maxLength: 3 }), inside: bigNumber, id: hostile })
  .map(
    ({ big, bigs, inside, id }) =>
      `{"id":${JSON.stringify(id)},"title":"x","big":${big},"bigs":[${bigs}],"inside":{"big":${inside},"deep":{"x":${big}}},` +
      `"many":[${bigs.map((each) => `{"big":${each},"more":[${big}]}`)}],"outside":${inside}}`,
  )

const line = fc.oneof(
  fc.json(),
  objects,
  objects.map((json) => json.replace('"many":[', '"many":[5,').replace('"inside":{', '"inside":[{')),
  fc
    .record({
      id: fc.oneof(hostile, fc.jsonValue()),
      title: fc.oneof(hostile, fc.jsonValue()),
      n: fc.jsonValue(),
    })
    .map((document) => JSON.stringify(document)),
  hostile,
)

it.each([
  ['things', 0.5],
  ['open', 0.02],
])('imports into %s answer a line for each line', { timeout: PATIENCE }, (collection, share) =>
  check(
    fc.asyncProperty(
      fc.array(line, { minLength: 1, maxLength: 8 }),
      fc.constantFrom('create', 'upsert', 'update', 'emplace', 'x'),
      fc.constantFrom('coerce_or_reject', 'coerce_or_drop', 'drop', 'reject', ''),
      async (lines, action, dirty) => {
        const body = lines.map((text) => text.replace(/[\r\n]/g, ' ')).join('\n')
        const path = `/collections/${collection}/documents/import?action=${action}&dirty_values=${dirty}&return_id=true`
        const { status, text } = await survives('POST', path, { body })
        if (status !== 200) return
        for (const result of text.split('\n').filter(Boolean)) {
          expect(JSON.parse(result)).toHaveProperty('success')
          expect(result).not.toMatch(/"code":5\d\d/)
        }
      },
    ),
    share,
  ),
)

it('numbers of 64 bits come back as they were sent', { timeout: PATIENCE }, () =>
  check(
    fc.asyncProperty(
      fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
      fc.array(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), { maxLength: 3 }),
      fc.bigInt({ min: -(2n ** 200n), max: 2n ** 200n }),
      async (big, bigs, other) => {
        const document =
          `{"id":"exact","title":"x","big":${big},"bigs":[${bigs}],"inside":{"big":${big},"other":"${other}"},` +
          `"many":[${bigs.map((each) => `{"big":${each}}`)}],"outside":[{"x":[${other}]}]}`
        const documents = '/collections/exact/documents'
        expect((await survives('POST', `${documents}?action=upsert`, { body: document })).text).toBe(document)
        expect((await survives('GET', `${documents}/exact`)).text).toBe(document)
        const filter = encodeURIComponent(`id:=exact && big:=${big} && inside.big:[${big}..${big}]`)
        expect((await survives('GET', `${documents}/export?filter_by=${filter}`)).text).toBe(document)
        const near = encodeURIComponent(`id:=exact && (big:>${big} || big:<${big} || big:!=${big})`)
        expect((await survives('GET', `${documents}/export?filter_by=${near}`)).text).toBe('')
      },
    ),
    0.3,
  ),
)

it('any id and any name is found, not found or refused', { timeout: PATIENCE }, () =>
  check(
    fc.asyncProperty(
      fc.constantFrom('GET', 'DELETE', 'PATCH', 'PUT', 'POST'),
      fc.constantFrom(
        ...['/collections/things/documents/%', '/collections/%', '/collections/%/documents/1', '/aliases/%'],
        ...[
          '/conversations/models/%',
          '/keys/%',
          '/collections/things/documents?filter_by=%',
          '/%',
          '/usage?from=%',
        ],
        ...[
          '/collections/%/documents/search?q=x&query_by=title',
          '/collections/things/documents/export?filter_by=%',
        ],
      ),
      hostile,
      fc.oneof(fc.json(), hostile),
      async (method, path, name, body) => {
        // Deleting or altering the collection itself would end the test.
        if (name === 'things' || (name.trim() === '' && method !== 'GET')) return
        await survives(
          method,
          path.replace('%', () => encoded(name)),
          method === 'GET' ? {} : { body },
        )
      },
    ),
  ),
)

it('any header is taken for what it is', { timeout: PATIENCE }, () =>
  check(
    fc.asyncProperty(
      fc.constantFrom(
        ...[
          'x-typesense-api-key',
          'x-typesense-user-id',
          'idempotency-key',
          'x-request-id',
          'origin',
          'accept',
        ],
        ...[
          'content-type',
          'content-encoding',
          'authorization',
          'access-control-request-headers',
          'last-event-id',
        ],
      ),
      // What a header may hold at all: the platform refuses the rest before we see it.
      fc.oneof(
        fc.string({ maxLength: 400 }),
        hostile.map((text) => text.replace(/[^\x20-\x7e]/g, '')),
        fc.base64String({ minLength: 60, maxLength: 400 }),
      ),
      fc.constantFrom('/keys', '/collections/things/documents/search?q=x&query_by=title', '/multi_search'),
      async (name, value, path) => {
        const method = path === '/multi_search' ? 'POST' : 'GET'
        const body = method === 'POST' ? { searches: [{ collection: 'things', q: 'x' }] } : undefined
        await survives(method, path, { body, headers: { [name]: value.trim() } })
      },
    ),
    0.5,
  ),
)

const nested = (depth: number, open: string, close: string, inner: string): string =>
  open.repeat(depth) + inner + close.repeat(depth)

it.each(
  [50, 500, 5_000, 100_000].flatMap((depth) => [
    [depth, 'objects', nested(depth, '{"a":', '}', '1')],
    [depth, 'lists', nested(depth, '[', ']', '1')],
    [depth, 'objects in lists', nested(depth, '[{"a":', '}]', '1')],
    [depth, 'unclosed lists', '['.repeat(depth)],
  ]) as [number, string, string][],
)('survive JSON %i deep: %s', { timeout: 30_000 }, async (_, __, json) => {
  const bodies: [string, string, string][] = [
    ['POST', '/collections/things/documents', `{"title":"x","deep":${json}}`],
    ['POST', '/collections/things/documents/import', `{"title":"x","deep":${json}}`],
    ['POST', '/collections/things/documents?action=upsert', `{"id":"d","title":"x","other":${json}}`],
    ['PATCH', '/collections/things/documents/d', `{"other":${json}}`],
    ['PATCH', '/collections/things/documents?filter_by=title:x', `{"other":${json}}`],
    ['POST', '/collections', `{"name":"deep","fields":[],"metadata":${json}}`],
    ['POST', '/conversations/models', `{"model_name":"local/extractive","x":${json}}`],
    ['POST', '/keys', `{"description":"x","limits":${json}}`],
    ['PUT', '/aliases/a', json],
    ['POST', '/multi_search', `{"searches":${json}}`],
    ['POST', '/multi_search', `{"searches":[{"q":"x","x":${json}}]}`],
  ]
  for (const [method, path, body] of bodies) {
    const { text } = await survives(method, path, { body })
    expect(text).not.toMatch(/"code":5\d\d/)
  }
})
