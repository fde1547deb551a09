/** Searches: the grammars of filters, vectors, sorts and facets, and every parameter as it should not be. */
import fc from 'fast-check'
import { beforeAll, expect, it } from 'vitest'
import { call, queryString } from '../api/typesense/api'
import { check, garbled, hostile, PATIENCE, survives } from './fuzz'

beforeAll(async () => {
  const fields = [
    { name: 'title', type: 'string', facet: true, sort: true },
    { name: 'tags', type: 'string[]', facet: true },
    { name: 'points', type: 'int32', facet: true },
    { name: 'price', type: 'float', facet: true },
    { name: 'on', type: 'bool', facet: true },
    { name: 'place', type: 'geopoint' },
    { name: 'person.name', type: 'string', optional: true },
    { name: 'big', type: 'int64', facet: true },
    { name: 'bigs', type: 'int64[]', facet: true },
    { name: 'person', type: 'object', facet: true, optional: true },
    { name: 'person.ids', type: 'int64[]', facet: true, optional: true },
    { name: 'parts', type: 'object[]', facet: true, optional: true },
    { name: 'vec', type: 'float[]', num_dim: 3 },
  ]
  const body = { name: 'things', fields, enable_nested_fields: true }
  await call('POST', '/collections', { body })
  for (const [index, title] of ['red car', 'blue "boat"', 'naïve — test', '👍'].entries()) {
    const [status] = await call('POST', '/collections/things/documents', {
      body: {
        id: String(index),
        title,
        tags: ['a', title],
        points: index,
        price: index / 3,
        on: index % 2 === 0,
        place: [index * 10, -index],
        person: { name: title, ids: [2n ** 53n + BigInt(index), index] },
        big: 1712345678901234567n + BigInt(index),
        bigs: [2n ** 63n - 1n, -(2n ** 63n)],
        parts: [{ n: 2n ** 60n + BigInt(index) }, { n: index, person: { name: title } }],
        vec: [index, 1, 0],
      },
    })
    expect(status).toBe(201)
  }
})

const FIELDS = [
  'title',
  'tags',
  'points',
  'price',
  'on',
  'place',
  'person.name',
  'person',
  'person.ids',
  'parts',
  'parts.n',
  'big',
  'bigs',
  'vec',
  'id',
  'nope',
  '.*',
  '*',
]

const grammars: Record<string, fc.Arbitrary<string>> = {
  filter_by: garbled(
    ...FIELDS,
    ...[':', ':=', ':!=', ':>', ':<=', '[', ']', '(', ')', '&&', '||', ',', '..', '`', '*', '!', '$', ' '],
    ...[
      'true',
      '1',
      '-1',
      '99999999999999999999',
      '1712345678901234567',
      '9223372036854775807',
      '-9223372036854775809',
      '1.5e300',
      'radius:',
      'km',
      '48.8, 2.3, 5 km',
      'red',
    ],
  ),
  vector_query: garbled(
    ...['vec', ':', '(', ')', '[', ']', ',', '0.1', '-1', 'NaN', '1e999', 'k:', 'k: 99999999', 'id: 1'],
    ...['alpha: 0.5', 'distance_threshold: ', 'queries: [', 'query_weights: [', 'ef: 10', ' ', 'title'],
  ),
  sort_by: garbled(
    ...FIELDS,
    ...[
      ':',
      ',',
      'asc',
      'desc',
      'ASC',
      '_text_match',
      '_group_found',
      '_eval',
      '(',
      ')',
      '[',
      ']',
      'buckets: 3',
      '_rand',
      '7',
    ],
    ...['missing_values: first', '_vector_distance', 'precision: 2 mi', 'exclude_radius: 1 km', ' ', '48, 2'],
  ),
  facet_by: garbled(
    ...FIELDS,
    ...[
      '(',
      ')',
      ',',
      ':',
      '[',
      ']',
      'a:[0,1]',
      'a:[,1712345678901234568]',
      'sort_by: _alpha:asc',
      ' ',
      '-',
      'return_parent: true',
    ],
  ),
  facet_query: garbled(...FIELDS, ':', ' ', 'a', '1', '"', '*'),
  group_by: garbled(...FIELDS, ','),
  query_by: garbled(...FIELDS, ','),
  include_fields: garbled(...FIELDS, ',', '(', ')', '$', '*', '.'),
  exclude_fields: garbled(...FIELDS, ',', '(', ')', '$', '*', '.'),
  highlight_fields: garbled(...FIELDS, ','),
  pinned_hits: garbled('0', ':', '1', ',', 'x', '-1'),
  hidden_hits: garbled('0', ',', 'x'),
  query_by_weights: garbled('0', '1', ',', '-1', '9999999999'),
  num_typos: garbled('0', '1', '2', ',', '-1'),
  prefix: garbled('true', 'false', ',', ' '),
  q: garbled(
    'red',
    '"',
    '-',
    '*',
    ' ',
    'boat',
    '(',
    ')',
    'NEAR',
    'OR',
    ':',
    '^',
    '{',
    '+',
    "'",
    'naïve',
    '👍',
  ),
}

const parameters = fc
  .tuple(
    fc.record(grammars, { requiredKeys: [] }),
    fc.dictionary(
      fc.constantFrom(
        ...['page', 'per_page', 'limit', 'offset', 'limit_hits', 'group_limit', 'max_facet_values', 'infix'],
        ...['drop_tokens_threshold', 'typo_tokens_threshold', 'snippet_threshold', 'preset', 'stopwords'],
        ...['highlight_affix_num_tokens', 'highlight_start_tag', 'enable_highlight_v1', 'cache_ttl', 'split'],
        ...[
          'exhaustive_search',
          'rerank_hybrid_matches',
          'x',
          'text_match_type',
          'min_len_1typo',
          'override_tags',
        ],
      ),
      fc.oneof(hostile, fc.integer().map(String), fc.constantFrom('true', 'false')),
      { maxKeys: 3 },
    ),
  )
  .map(([known, others]) => ({ q: 'red', query_by: 'title', ...known, ...others }))

const onlyOne = fc
  .constantFrom(...Object.keys(grammars))
  .chain((name) => grammars[name]!.map((value) => ({ q: 'red', query_by: 'title', [name]: value })))

it('survive every grammar', { timeout: PATIENCE }, () =>
  check(
    fc.asyncProperty(fc.oneof(onlyOne, parameters), async (search) => {
      const body = { searches: [{ collection: 'things', ...search }] }
      const { text, status } = await survives('POST', '/multi_search', { body: body })
      if (status === 200 && /"code":5\d\d/.test(text)) throw new Error(text)
    }),
  ),
)

it('survive any parameter in the query string', { timeout: PATIENCE }, () =>
  check(
    fc.asyncProperty(
      fc.dictionary(fc.oneof(fc.constantFrom(...Object.keys(grammars)), hostile), hostile, { maxKeys: 4 }),
      fc.constantFrom('', '&&', '&x', '?', '#', '%', '%E0%A4%A'),
      async (given, tail) => {
        const well = Object.fromEntries(
          Object.entries(given).map(([name, value]) => [
            encodeURIComponent(name.toWellFormed()),
            value.toWellFormed(),
          ]),
        )
        await survives(
          'GET',
          `/collections/things/documents/search${queryString({ q: 'x', ...well })}${tail}`,
        )
      },
    ),
    0.5,
  ),
)

it('survive a body of any JSON', { timeout: PATIENCE }, () =>
  check(
    fc.asyncProperty(
      fc.oneof(
        fc.json(),
        fc.record({ searches: fc.jsonValue(), union: fc.jsonValue() }).map((body) => JSON.stringify(body)),
        fc
          .array(fc.dictionary(fc.constantFrom('q', 'collection', 'query_by', 'filter_by'), fc.jsonValue()))
          .map((searches) => JSON.stringify({ searches })),
        hostile,
      ),
      async (body) => {
        await survives('POST', '/multi_search', { body })
      },
    ),
    0.5,
  ),
)

const DEEP = [100, 1_000, 20_000]
it.each([
  ...DEEP.map((depth) => ['filter_by', `${'('.repeat(depth)}points:1${')'.repeat(depth)}`] as const),
  ...DEEP.map((depth) => ['filter_by', Array(depth).fill('points:1').join(' && ')] as const),
  ...DEEP.map((depth) => ['filter_by', Array(depth).fill('points:1').join(' || title:x && ')] as const),
  ...DEEP.map((depth) => ['filter_by', `points:[${Array(depth).fill('1').join(',')}]`] as const),
  ...DEEP.map((depth) => ['filter_by', `title:${'a '.repeat(depth)}`] as const),
  ...DEEP.map((depth) => ['filter_by', `title:${'`'.repeat(depth)}`] as const),
  ...DEEP.map((depth) => ['q', 'red '.repeat(depth)] as const),
  ...DEEP.map((depth) => ['q', `${'"'.repeat(depth)}`] as const),
  ...DEEP.map((depth) => ['q', '-a '.repeat(depth)] as const),
  ...DEEP.map((depth) => ['facet_by', Array(depth).fill('title').join(',')] as const),
  ...DEEP.map((depth) => ['facet_by', `points(${Array(depth).fill('a:[0,1]').join(',')})`] as const),
  ...DEEP.map((depth) => ['query_by', Array(depth).fill('title').join(',')] as const),
  ...DEEP.map((depth) => ['group_by', Array(depth).fill('title').join(',')] as const),
  ...DEEP.map((depth) => ['sort_by', Array(depth).fill('points:asc').join(',')] as const),
  ...DEEP.map(
    (depth) => ['sort_by', `_eval(${'('.repeat(depth)}points:1${')'.repeat(depth)}):desc`] as const,
  ),
  ...DEEP.map((depth) => ['hidden_hits', Array(depth).fill('1').join(',')] as const),
  ...DEEP.map((depth) => ['pinned_hits', Array(depth).fill('1:1').join(',')] as const),
  ...DEEP.map((depth) => ['vector_query', `vec:([${Array(depth).fill('0').join(',')}])`] as const),
  ...DEEP.map((depth) => ['include_fields', `${'('.repeat(depth)}title`] as const),
  ...DEEP.map((depth) => ['include_fields', Array(depth).fill('title').join('.')] as const),
  ...DEEP.map((depth) => ['exclude_fields', '*'.repeat(depth)] as const),
])('survive %s of great size (%#)', { timeout: 20_000 }, async (name, value) => {
  const search = { collection: 'things', q: 'red', query_by: 'title', [name]: value }
  const { status, text } = await survives('POST', '/multi_search', { body: { searches: [search] } })
  if (status === 200 && /"code":5\d\d/.test(text)) throw new Error(text)
})
