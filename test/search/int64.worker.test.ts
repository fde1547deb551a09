/** Whole numbers beyond 2^53: every digit of them, wherever a document passes. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { unwrap } from '../../src/errors'
import type { CollectionRpc } from '../../src/search/collection/handle'
import { call, send } from '../api/typesense/api'
import { HISTORY } from '../api/typesense/conversing'
import { CREATE, importAll, newCollection } from './object'

const MIN = -(2n ** 63n)
const MAX = 2n ** 63n - 1n

/** Values of 64 bits, many of which are one and the same as doubles. */
const int64 = fc.oneof(
  { arbitrary: fc.bigInt({ min: 1712345678901234500n, max: 1712345678901234540n }), weight: 4 },
  { arbitrary: fc.bigInt({ min: -(2n ** 53n) - 3n, max: -(2n ** 53n) + 3n }), weight: 2 },
  { arbitrary: fc.constantFrom(MIN, MIN + 1n, MAX, MAX - 1n, 0n, 1n), weight: 2 },
  fc.bigInt({ min: MIN, max: MAX }),
)

interface Given {
  n: bigint
  list: bigint[]
  inner: bigint[]
  other: bigint
}

const given = fc.array(
  fc.record<Given>({
    n: int64,
    list: fc.array(int64, { maxLength: 3 }),
    inner: fc.array(int64, { maxLength: 3 }),
    other: fc.bigInt({ min: -(10n ** 60n), max: 10n ** 60n }),
  }),
  { minLength: 1, maxLength: 12 },
)

/** Written by hand, so that the test does not depend on what it tests. */
const line = ({ n, list, inner, other }: Given, index: number): string =>
  `{"id":"${index}","n":${n},"list":[${list}],"objects":[${inner.map((x) => `{"x":${x}}`)}],"other":{"deep":[${other}]}}`

const FIELDS = [
  { name: 'n', type: 'int64', facet: true },
  { name: 'list', type: 'int64[]', facet: true },
  { name: 'objects', type: 'object[]', optional: true },
  { name: 'objects.x', type: 'int64[]', optional: true, facet: true },
]

const NESTED = { enable_nested_fields: true, default_sorting_field: 'n' }

async function exported(object: CollectionRpc, filterBy = ''): Promise<string[]> {
  const page = unwrap(await object.exportPage({ filterBy, include: '', exclude: '' }, 0))
  expect(page.done).toBe(true)
  return page.lines === '' ? [] : page.lines.split('\n')
}

async function filled(documents: Given[]): Promise<{ object: CollectionRpc; lines: string[] }> {
  const object = await newCollection(FIELDS, NESTED)
  const lines = documents.map(line)
  const { results } = unwrap(await object.importLines(lines, CREATE))
  expect(results).toBe(lines.map(() => '{"success":true}').join('\n'))
  return { object, lines }
}

const comparisons: Record<string, (a: bigint, b: bigint) => boolean> = {
  '': (a, b) => a === b,
  '>': (a, b) => a > b,
  '>=': (a, b) => a >= b,
  '<': (a, b) => a < b,
  '<=': (a, b) => a <= b,
}

describe('values of 64 bits', () => {
  it('come out of an export as they went into the import', () =>
    fc.assert(
      fc.asyncProperty(given, async (documents) => {
        const { object, lines } = await filled(documents)
        expect(await exported(object)).toEqual(lines)
      }),
      { numRuns: 25 },
    ))

  it('are filtered by all of their digits', { timeout: 30_000 }, () =>
    fc.assert(
      fc.asyncProperty(given, fc.array(int64, { minLength: 2, maxLength: 4 }), async (documents, others) => {
        const { object, lines } = await filled(documents)
        const linesWhere = (test: (document: Given) => boolean) =>
          lines.filter((_, index) => test(documents[index]!))
        for (const value of [documents[0]!.n, ...others]) {
          for (const [sign, holds] of Object.entries(comparisons)) {
            expect(await exported(object, `n:${sign}${value}`)).toEqual(
              linesWhere(({ n }) => holds(n, value)),
            )
            expect(await exported(object, `list:${sign}${value}`)).toEqual(
              linesWhere(({ list }) => list.some((each) => holds(each, value))),
            )
          }
          expect(await exported(object, `n:!=${value}`)).toEqual(linesWhere(({ n }) => n !== value))
          expect(await exported(object, `objects.x:=${value}`)).toEqual(
            linesWhere(({ inner }) => inner.includes(value)),
          )
        }
        const [from, to] = others as [bigint, bigint]
        const within = (n: bigint) => n >= from && n <= to
        expect(await exported(object, `n:[${from}..${to}]`)).toEqual(linesWhere(({ n }) => within(n)))
        expect(await exported(object, `n:=[${others}]`)).toEqual(linesWhere(({ n }) => others.includes(n)))
        expect(await exported(object, `n:[>${from},>${to}]`)).toEqual(
          linesWhere(({ n }) => n > from || n > to),
        )
        expect(await exported(object, `n:[<${from},<${to}]`)).toEqual(
          linesWhere(({ n }) => n < from || n < to),
        )
        expect(await exported(object, `n:[${from}..${to},${MIN}..${from}]`)).toEqual(
          linesWhere(({ n }) => within(n) || n <= from),
        )
      }),
      { numRuns: 15 },
    ),
  )

  it('are sorted, counted, summed up and grouped exactly', { timeout: 30_000 }, () =>
    fc.assert(
      fc.asyncProperty(given, int64, async (documents, edge) => {
        const { object } = await filled(documents)
        const search = async (params: Record<string, string>) =>
          unwrap(await object.search({ q: '*', per_page: '100', ...params }))
        const ascending = documents
          .map(({ n }, index) => ({ n, id: String(index), index }))
          .sort((a, b) => (a.n === b.n ? b.index - a.index : a.n < b.n ? -1 : 1))
        const result = await search({
          sort_by: 'n:asc',
          facet_by: 'n,list,objects.x',
          max_facet_values: '100',
        })
        expect(result.hits!.map(({ document }) => document.id)).toEqual(ascending.map(({ id }) => id))
        // Without sort_by the default sorting field decides, from the highest down.
        const values = (await search({})).hits!.map(({ document }) => BigInt(document.n as bigint))
        expect(values).toEqual(ascending.map(({ n }) => n).reverse())

        const columns = [
          documents.map(({ n }) => [n]),
          documents.map(({ list }) => list),
          documents.map(({ inner }) => inner),
        ]
        for (const [index, column] of columns.entries()) {
          const { counts, stats } = result.facet_counts[index]!
          const all = column.flat()
          const expected = new Map(
            all.map((value) => [String(value), column.filter((list) => list.includes(value)).length]),
          )
          expect(new Map(counts.map(({ value, count }) => [value, count]))).toEqual(expected)
          if (all.length === 0) continue
          const inOrder = all.toSorted((a, b) => (a < b ? -1 : 1))
          const sum = all.reduce((a, b) => a + b)
          const exact = [stats.min!, stats.max!, stats.sum!].map(BigInt)
          expect(exact).toEqual([...[inOrder[0], inOrder.at(-1)], sum])
          expect(stats).toMatchObject({ avg: Number(sum) / all.length, total_values: expected.size })
        }

        const [ranged] = (await search({ facet_by: `n(low:[,${edge}],high:[${edge},])` })).facet_counts
        expect(Object.fromEntries(ranged!.counts.map(({ value, count }) => [value, count]))).toEqual(
          Object.fromEntries(
            [
              ['low', documents.filter(({ n }) => n < edge).length],
              ['high', documents.filter(({ n }) => n >= edge).length],
            ].filter(([, count]) => count !== 0),
          ),
        )
        const { grouped_hits: groups } = await search({ group_by: 'n', sort_by: 'n:asc' })
        expect(groups!.map(({ group_key }) => BigInt(group_key[0] as bigint))).toEqual([
          ...new Set(ascending.map(({ n }) => n)),
        ])
      }),
      { numRuns: 25 },
    ),
  )
})

describe('a value that a field cannot hold', () => {
  const fields = [
    { name: 'n', type: 'int64', optional: true },
    { name: 'small', type: 'int32', optional: true },
    { name: 'f', type: 'float', optional: true },
    { name: 's', type: 'string', optional: true },
    { name: 'vec', type: 'float[]', num_dim: 2, optional: true },
    { name: 'place', type: 'geopoint', optional: true },
  ]

  it('is refused in the words of its type', async () => {
    const object = await newCollection(fields)
    const lines = [
      '{"n":9223372036854775808}',
      '{"n":-9223372036854775809}',
      '{"n":9223372036854775808.0}',
      '{"n":1.5}',
      '{"small":1712345678901234567}',
      `{"other":${'9'.repeat(309)}}`,
    ]
    const results = await importAll(object, lines, { dirtyValues: 'reject' })
    expect(results.map(({ error }) => error)).toEqual([
      ...Array.from({ length: 4 }, () => 'Field `n` must be an int64.'),
      'Field `small` exceeds maximum value of int32.',
      'Bad JSON: A number has more than 308 digits.',
    ])
    const outcome = await object.search({ q: '*', filter_by: 'n:>9223372036854775808' })
    expect(outcome).toMatchObject({
      ok: false,
      error: { status: 400, message: 'Error with filter field `n`: Not an int64.' },
    })
  })

  it('is made one that it can hold, digit by digit', async () => {
    const object = await newCollection(fields)
    const results = await importAll(
      object,
      [
        '{"id":"1","n":"1712345678901234567"}',
        '{"id":"2","n":" 1712345678901234567"}',
        '{"id":"3","n":"9223372036854775808"}',
        '{"id":"4","s":1712345678901234567}',
        '{"id":"5","f":1712345678901234567}',
        '{"id":"6","vec":[1712345678901234567,0]}',
        '{"id":"7","place":[12345678901234567,0]}',
        '{"id":"8","n":1e18}',
      ],
      { dirtyValues: 'coerce_or_reject' },
    )
    expect(results.map(({ success }) => success)).toEqual([true, false, false, true, true, true, true, true])
    const lines = await exported(object)
    expect(lines.slice(0, 3)).toEqual([
      '{"id":"1","n":1712345678901234567}',
      '{"id":"4","s":"1712345678901234567"}',
      '{"id":"5","f":1712345678901234567}',
    ])
    expect(await exported(object, 'f:>1712345678901234000')).toHaveLength(1)
    expect(await exported(object, 'n:=1000000000000000000')).toEqual(['{"id":"8","n":1000000000000000000}'])
  })

  it('beyond 64 bits makes a detected field a float, and is kept', async () => {
    const object = await newCollection([{ name: '.*', type: 'auto' }])
    const lines = ['{"id":"1","a":1712345678901234567,"b":123456789012345678901234567890}']
    expect(await importAll(object, lines)).toEqual([{ success: true }])
    const { fields } = unwrap(await object.summary()) as unknown as {
      fields: { name: string; type: string }[]
    }
    const types = Object.fromEntries(fields.map(({ name, type }) => [name, type]))
    expect(types).toMatchObject({ a: 'int64', b: 'float' })
    expect(await exported(object, 'b:>1.2e29 && a:=1712345678901234567')).toEqual(lines)
  })
})

describe('over HTTP', () => {
  const ID = '1712345678901234567'
  const NEXT = '1712345678901234568'
  const text = async (method: string, path: string, body?: string): Promise<string> =>
    (await send(method, path, { ...(body !== undefined && { body }) })).text()

  async function collection(name: string): Promise<string> {
    const fields = [
      { name: 'title', type: 'string' },
      { name: 'n', type: 'int64', facet: true },
    ]
    await call('POST', '/collections', { body: { name, fields, enable_nested_fields: true } })
    const documents = `/collections/${name}/documents`
    await text(
      'POST',
      `${documents}/import`,
      `{"id":"a","title":"fox","n":${ID}}\n{"id":"b","title":"fox","n":${NEXT}}`,
    )
    return documents
  }

  it('a document is answered as it was sent', async () => {
    const documents = await collection('exact')
    const sent = `{"id":"c","title":"dog","n":${NEXT},"outside":{"ids":[${ID},-${NEXT}]}}`
    expect(await text('POST', documents, sent)).toBe(sent)
    expect(await text('GET', `${documents}/c`)).toBe(sent)
    expect(await text('PATCH', `${documents}/c`, '{"title":"cat"}')).toContain(`"ids":[${ID},-${NEXT}]`)
    expect(
      await text('POST', `${documents}?action=emplace`, `{"id":"c","outside":{"more":${ID}}}`),
    ).toContain(`"outside":{"ids":[${ID},-${NEXT}],"more":${ID}}`)
    expect(await text('PATCH', `${documents}?filter_by=n:=${ID}`, `{"n":${NEXT},"was":${ID}}`)).toBe(
      '{"num_updated":1}',
    )
    expect(await text('GET', `${documents}/a`)).toBe(`{"id":"a","title":"fox","n":${NEXT},"was":${ID}}`)
    expect(
      await text('POST', `${documents}/import?action=update&return_doc=true`, `{"id":"a","n":${ID}}`),
    ).toBe(`{"success":true,"document":{"id":"a","title":"fox","n":${ID},"was":${ID}}}`)
    expect(await text('DELETE', `${documents}?filter_by=n:=${ID}&return_doc=true`)).toBe(
      `{"num_deleted":1,"documents":[{"id":"a","title":"fox","n":${ID},"was":${ID}}]}`,
    )
  })

  it('searches and unions show it', async () => {
    await collection('shown')
    await collection('other')
    const search = { q: 'fox', query_by: 'title', sort_by: 'n:desc', facet_by: 'n', group_by: 'n' }
    const one = await text(
      'POST',
      '/multi_search',
      JSON.stringify({ searches: [{ collection: 'shown', ...search }] }),
    )
    for (const part of [
      `"n":${ID}`,
      `"group_key":[${NEXT}]`,
      `"value":"${ID}"`,
      `"min":${ID}`,
      `"max":${NEXT}`,
    ]) {
      expect(one).toContain(part)
    }
    const united = { q: 'fox', query_by: 'title', sort_by: 'n:asc' }
    const union = await text(
      'POST',
      '/multi_search',
      JSON.stringify({
        union: true,
        searches: [
          { collection: 'shown', ...united },
          { collection: 'other', ...united },
        ],
      }),
    )
    expect(union.match(/"n":\d+/g)).toEqual([ID, ID, NEXT, NEXT].map((n) => `"n":${n}`))
    // Numbers among the parameters are parameters with all of their digits, too.
    const numeric = `{"searches":[{"collection":"shown","q":${ID},"query_by":"title"}]}`
    expect(await text('POST', '/multi_search', numeric)).toContain(`"q":"${ID}"`)
    const evaluated = `sort_by=_eval(n:=${ID}):desc&q=*`
    expect(await text('GET', `/collections/shown/documents/search?${evaluated}`)).toMatch(
      new RegExp(`^[^]*"n":${ID}[^]*"n":${NEXT}`),
    )
  })

  it('answers show it, and models are told it', async () => {
    const fields = [{ name: 'text', type: 'string' }]
    await call('POST', '/collections', { body: { name: 'facts', fields } })
    const fact = `{"id":"c","text":"The Eiffel Tower is 330 metres high.","n":${ID}}`
    await text('POST', '/collections/facts/documents', fact)
    await call('POST', '/collections', { body: HISTORY })
    const model = {
      id: 'm',
      model_name: 'local/extractive',
      history_collection: 'history',
      max_bytes: 16_384,
    }
    expect((await call('POST', '/conversations/models', { body: model }))[0]).toBe(201)
    const q = encodeURIComponent('How high is the Eiffel Tower?')
    const asked = `q=${q}&query_by=text&conversation=true&conversation_model_id=m`
    for (const stream of ['', '&conversation_stream=true']) {
      expect(await text('GET', `/collections/facts/documents/search?${asked}${stream}`)).toContain(
        `"n":${ID}`,
      )
    }
    for (const stream of [false, true]) {
      const body = { question: 'How high is the Eiffel Tower?', model: 'm', collections: ['facts'], stream }
      const response = await send('POST', '/conversations', { body })
      expect(await response.text()).toContain(`"n":${ID}`)
      const conversation = response.headers.get('x-parley-conversation-id')
      if (conversation === null) continue
      expect(await text('GET', `/conversations/${conversation}/trace`)).toContain(`\\"n\\": ${ID}`)
    }
  })

  it('a collection keeps it in its metadata', async () => {
    const metadata = `"metadata":{"owner":${ID}}`
    expect(
      await text(
        'POST',
        '/collections',
        `{"name":"described","fields":[{"name":"n","type":"int64"}],${metadata}}`,
      ),
    ).toContain(metadata)
    expect(await text('GET', '/collections/described')).toContain(metadata)
    const changed = metadata.replace(ID, NEXT)
    expect(await text('PATCH', '/collections/described', `{${changed}}`)).toContain(changed)
    expect(await text('GET', '/collections/described')).toContain(changed)
  })

  it('a field that is added later holds it, and so does a copy', async () => {
    const documents = await collection('altered')
    await text('POST', documents, `{"id":"c","title":"dog","n":1,"late":${ID},"lates":{"x":[${NEXT}]}}`)
    const fields = [
      { name: 'late', type: 'int64', optional: true, facet: true },
      { name: 'lates.x', type: 'int64[]', optional: true },
      { name: 'n', drop: true },
    ]
    expect((await call('PATCH', '/collections/altered', { body: { fields } }))[0]).toBe(200)
    const filter = `late:=${ID} && lates.x:>${ID}`
    const found = `${documents}/export?filter_by=${encodeURIComponent(filter)}`
    const line = `{"id":"c","title":"dog","n":1,"late":${ID},"lates":{"x":[${NEXT}]}}`
    expect(await text('GET', found)).toBe(line)
    await call('POST', '/collections?src_name=altered&copy_documents=true', { body: { name: 'copied' } })
    expect(await text('GET', found.replace('altered', 'copied'))).toBe(line)
  })
})
