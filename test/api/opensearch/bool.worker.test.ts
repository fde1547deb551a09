/** Trees of bool queries find what they say, whatever the documents: held against a plain reading of the DSL. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { fill, idsOf, indexName, request } from './api'

interface Source {
  kind?: string
  text?: string
  n?: number
  x?: number
  on?: boolean
  tags?: string[]
}

type Query = Record<string, unknown>

const WORDS = ['red', 'green', 'blue', 'dark blue', 'a`b', 'x && id:*', 'no) || (n:>0']
const word = fc.constantFrom(...WORDS)
const whole = fc.integer({ min: -3, max: 3 })
const fraction = fc.constantFrom(-1.5, -0.1, 0, 0.1, 0.30000000000000004, 2.5)
const source: fc.Arbitrary<Source> = fc.record(
  { kind: word, text: word, n: whole, x: fraction, on: fc.boolean(), tags: fc.array(word, { maxLength: 3 }) },
  { requiredKeys: [] },
)

const FIELDS = ['kind', 'text', 'n', 'x', 'on', 'tags'] as const
const bounds = (value: fc.Arbitrary<number>) =>
  fc.record({ gt: value, gte: value, lt: value, lte: value }, { requiredKeys: [] })

const leaf: fc.Arbitrary<Query> = fc.oneof(
  fc.constantFrom('kind', 'tags').chain((field) => word.map((value) => ({ term: { [field]: value } }))),
  fc.array(word, { maxLength: 3 }).map((values) => ({ terms: { kind: values } })),
  whole.map((value) => ({ term: { n: value } })),
  fc.boolean().map((value) => ({ term: { on: value } })),
  bounds(whole).map((each) => ({ range: { n: each } })),
  bounds(fraction).map((each) => ({ range: { x: each } })),
  fc.constantFrom(...FIELDS).map((field) => ({ exists: { field } })),
  fc.constantFrom('re', 'dark b', 'blu').map((value) => ({ prefix: { kind: value } })),
  fc
    .constantFrom('blue', 'dark green', 'id')
    .chain((query) =>
      fc.constantFrom('or', 'and').map((operator) => ({ match: { text: { query, operator } } })),
    ),
  fc.array(fc.constantFrom('0', '3', '7'), { maxLength: 2 }).map((values) => ({ ids: { values } })),
  fc.constantFrom({ match_all: {} }, { match_none: {} }, { term: { nowhere: 1 } }),
)

/** In a filter: a query of `must` ranks, and is looked for by its stems. */
const { tree } = fc.letrec<{ tree: Query; node: Query }>((tie) => ({
  tree: tie('node').map((query) => ({ bool: { filter: [query] } })),
  node: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    fc
      .record(
        {
          must: fc.array(tie('node'), { maxLength: 3 }),
          filter: fc.array(tie('node'), { maxLength: 2 }),
          must_not: fc.array(tie('node'), { maxLength: 2 }),
          should: fc.array(tie('node'), { minLength: 1, maxLength: 3 }),
        },
        { requiredKeys: [] },
      )
      .map((body) => ({ bool: { ...body, ...(body.should && { minimum_should_match: 1 }) } })),
  ),
}))

/** A text as terms are compared: without case and signs. */
const words = (text: string): string[] =>
  text
    .toLowerCase()
    .replace(/[^a-z0-9\s]/g, '')
    .match(/\S+/g) ?? []
const form = (text: string): string => words(text).join(' ')
const listed = <T>(value: T | T[] | undefined): T[] =>
  value === undefined ? [] : Array.isArray(value) ? value : [value]

function passes(query: Query, id: string, document: Source): boolean {
  const [[name, body]] = Object.entries(query) as [[string, Query]]
  const [[field, given] = ['', undefined]] = Object.entries(body) as [[string, unknown]]
  const values = listed((document as Record<string, unknown>)[field])
  const is = (value: unknown, wanted: unknown) =>
    typeof wanted === 'string' ? form(String(value)) === form(wanted) : value === wanted
  switch (name) {
    case 'match_all':
      return true
    case 'match_none':
      return false
    case 'term':
      return values.some((value) => is(value, given))
    case 'terms':
      return values.some((value) => (given as unknown[]).some((wanted) => is(value, wanted)))
    case 'ids':
      return (given as string[]).includes(id)
    case 'exists':
      return listed(document[given as keyof Source] as unknown).length > 0
    case 'prefix':
      return values.some((value) => form(String(value)).startsWith(form(String(given))))
    case 'range': {
      const { gt, gte, lt, lte } = given as Record<string, number>
      return (values as number[]).some((n) => !(n <= gt!) && !(n < gte!) && !(n >= lt!) && !(n > lte!))
    }
    case 'match': {
      const { query: text, operator } = given as { query: string; operator: string }
      const has = (each: string) => values.some((value) => words(String(value)).includes(each))
      return operator === 'and' ? words(text).every(has) : words(text).some(has)
    }
  }
  const of = (key: string) => listed(body[key] as Query | Query[]).map((inner) => passes(inner, id, document))
  const should = of('should')
  return (
    [...of('must'), ...of('filter')].every(Boolean) &&
    !of('must_not').some(Boolean) &&
    (should.length === 0 || should.some(Boolean))
  )
}

it('agrees with a plain reading', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(source, { minLength: 1, maxLength: 8 }),
      fc.array(tree, { minLength: 1, maxLength: 12 }),
      async (documents, queries) => {
        const index = indexName('bool')
        const properties = {
          kind: { type: 'keyword' },
          text: { type: 'text' },
          n: { type: 'long' },
          x: { type: 'double' },
          on: { type: 'boolean' },
          tags: { type: 'keyword' },
        }
        await request('PUT', `/${index}`, { mappings: { properties } })
        const byId = Object.fromEntries(
          documents.map((document, number) => [String(number), document as Query]),
        )
        await fill(index, byId)
        for (const query of queries) {
          const expected = Object.keys(byId).filter((id) => passes(query, id, byId[id] as Source))
          expect(await idsOf(index, query), JSON.stringify(query)).toEqual(expected)
        }
      },
    ),
    { numRuns: 40 },
  )
})

it('finds nothing by backticks alone, and no other id by one with a backtick', async () => {
  const index = indexName('ticks')
  const properties = { kind: { type: 'keyword' }, text: { type: 'text' } }
  await request('PUT', `/${index}`, { mappings: { properties } })
  await fill(index, { ab: { kind: 'red', text: 'red' } })
  for (const field of ['kind', 'text']) {
    for (const value of ['`', '```']) {
      expect(await idsOf(index, { bool: { filter: [{ term: { [field]: value } }] } })).toEqual([])
      expect(await idsOf(index, { bool: { must_not: [{ term: { [field]: value } }] } })).toEqual(['ab'])
    }
  }
  expect(await idsOf(index, { prefix: { kind: '`' } })).toEqual([])
  expect(await idsOf(index, { ids: { values: ['a`b'] } })).toEqual([])
})
