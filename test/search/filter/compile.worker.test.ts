import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { unwrap } from '../../../src/errors'
import type { FilterClause, FilterNode, FilterValue } from '../../../src/search/filter/parse'
import { printFilter } from '../../../src/search/filter/print'
import { not, oneOf, type SqlFragment } from '../../../src/search/fragment'
import { makeCollection, refusal, type TestCollection } from '../make-collection'
import { idsWhere, newObject } from '../object'

// Words that the index confuses: forms of one stem, accents, case, and signs that are no words.
const VOCABULARY = [
  'run',
  'Running',
  'runs',
  'runner',
  'élan',
  'Elan',
  'university',
  'universe',
  'C++',
  'c',
  'a-b',
]

const FIELDS = [
  { name: 'genre', type: 'string', facet: true, optional: true },
  { name: 'tags', type: 'string[]', facet: true, optional: true },
  { name: 'title', type: 'string', optional: true },
  { name: 'notes', type: 'string[]', optional: true },
  { name: 'hidden', type: 'string', optional: true, store: false },
  { name: 'year', type: 'int32', optional: true },
  { name: 'sizes', type: 'int32[]', optional: true },
  { name: 'price', type: 'float', optional: true },
  { name: 'stock', type: 'bool', optional: true },
  { name: 'person', type: 'object', optional: true },
  { name: 'person.name', type: 'string', facet: true, optional: true },
  { name: 'places', type: 'object[]', optional: true },
  { name: 'places.city', type: 'string[]', optional: true },
  { name: 'places.size', type: 'int32[]', optional: true },
]

type Doc = Record<string, unknown> & { id: string }

const words = fc
  .array(fc.constantFrom(...VOCABULARY), { minLength: 1, maxLength: 4 })
  .map((some) => some.join(' '))

const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 3 })

const document = fc.record({
  genre: optional(words),
  tags: optional(fc.array(words, { maxLength: 3 })),
  title: optional(words),
  notes: optional(fc.array(words, { maxLength: 3 })),
  hidden: optional(words),
  year: optional(fc.integer({ min: -3, max: 8 })),
  sizes: optional(fc.array(fc.integer({ min: -3, max: 8 }), { maxLength: 3 })),
  price: optional(fc.constantFrom(0, 0.5, 1.25, -2.5, 7)),
  stock: optional(fc.boolean()),
  person: optional(fc.record({ name: words })),
  places: optional(
    fc.array(fc.record({ city: words, size: fc.integer({ min: -3, max: 8 }) }, { requiredKeys: ['city'] }), {
      maxLength: 3,
    }),
  ),
})

// The evaluation that the compiler is held against: straight from the grammar's description.

const tokensOf = (text: string): string[] =>
  text
    .normalize('NFD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((token) => token !== '')

function valuesOf(doc: Doc, path: string): unknown[] {
  let values: unknown[] = [doc]
  for (const part of path.split('.')) {
    values = values.flatMap((value) => (value as Record<string, unknown>)?.[part] ?? [])
  }
  return values
}

function stringMatches(value: string, { text, quoted, phrase }: FilterValue, whole: boolean): boolean {
  if (phrase) {
    const words = tokensOf(text)
    return words.length > 0 && ` ${tokensOf(value).join(' ')} `.includes(` ${words.join(' ')} `)
  }
  const prefix = !quoted && text.endsWith('*')
  const wanted = tokensOf(text)
  const has = tokensOf(value)
  if (whole) {
    return prefix && wanted.length > 0
      ? has.join(' ').startsWith(wanted.join(' '))
      : has.join(' ') === wanted.join(' ')
  }
  if (wanted.length === 0) return false
  return wanted.every((token, index) =>
    prefix && index === wanted.length - 1 ? has.some((each) => each.startsWith(token)) : has.includes(token),
  )
}

function numberMatches(value: number, text: string): boolean {
  const range = /^(.+)\.\.(.+)$/.exec(text)
  if (range) return value >= Number(range[1]) && value <= Number(range[2])
  const compared = /^(>=|<=|>|<)(.+)$/.exec(text)
  if (!compared) return value === Number(text)
  const bound = Number(compared[2])
  return { '>': value > bound, '>=': value >= bound, '<': value < bound, '<=': value <= bound }[compared[1]!]!
}

function clauseMatches(doc: Doc, { field, operator, list, values }: FilterClause): boolean {
  const negated = operator === ':!=' || operator === ':!'
  const whole = operator === ':=' || operator === ':!=' || (list && values.some(({ phrase }) => phrase))
  const present = valuesOf(doc, field)
  const found = values.some((wanted) => {
    const { text } = wanted
    if (text.startsWith('!=')) return !present.includes(Number(text.slice(2)))
    return present.some((value) => {
      if (field === 'id') return value === text
      if (typeof value === 'string') return stringMatches(value, wanted, whole)
      return typeof value === 'number' ? numberMatches(value, text) : String(value) === text
    })
  })
  return found !== negated
}

const matches = (doc: Doc, node: FilterNode): boolean => {
  if (node.kind === 'clause') return clauseMatches(doc, node)
  if (node.kind === 'join') throw new Error('these filters have no joins')
  if (node.kind === 'object') {
    const objects = valuesOf(doc, node.field).flat() as Doc[]
    return objects.some((object) => matches(object, node.child))
  }
  return node.kind === 'and'
    ? node.children.every((child) => matches(doc, child))
    : node.children.some((child) => matches(doc, child))
}

const value = (text: fc.Arbitrary<string>) => text.map((each) => ({ text: each, quoted: false }))

const stringValue = fc.oneof(
  value(words),
  value(fc.constantFrom('r*', 'run*', 'runn*', 'univers*', 'universi*', 'c a*', 'e*', 'run univ*')),
  words.map((text) => ({ text, quoted: true })),
  words.map((text) => ({ text: `"${text}"`, quoted: false, phrase: true as const })),
)
const integer = fc.integer({ min: -3, max: 8 }).map(String)
const integerValue = value(
  fc.oneof(
    integer,
    fc.tuple(fc.constantFrom('>', '>=', '<', '<='), integer).map(([sign, bound]) => sign + bound),
    fc.tuple(integer, integer).map(([from, to]) => `${from}..${to}`),
  ),
)

const clausesOn = (fields: string[], some: fc.Arbitrary<FilterValue>, inLists = some) =>
  fc
    .record({
      field: fc.constantFrom(...fields),
      operator: fc.constantFrom(':' as const, ':=' as const, ':!=' as const, ':!' as const),
      list: fc.boolean(),
      one: some,
      values: fc.array(inLists, { maxLength: 3 }),
    })
    .map(
      ({ list, one, values, ...rest }): FilterNode => ({
        kind: 'clause',
        ...rest,
        list,
        values: list ? values : [one],
      }),
    )

const anyClause = fc.oneof(
  clausesOn(['genre', 'tags', 'title', 'notes', 'hidden', 'person.name', 'places.city'], stringValue),
  clausesOn(
    ['year', 'sizes'],
    integerValue,
    fc.oneof(integerValue, value(integer.map((each) => `!=${each}`))),
  ),
  clausesOn(['price'], value(fc.constantFrom('0', '0.5', '>0.5', '<=1.25', '-3..1', '-2.5'))),
  clausesOn(['stock'], value(fc.constantFrom('true', 'false'))),
  clausesOn(['id'], value(fc.constantFrom('0', '1', '7', 'none'))),
)

const treeOf = (leaf: fc.Arbitrary<FilterNode>) =>
  fc.letrec<{ node: FilterNode }>((tie) => ({
    node: fc.oneof(
      { maxDepth: 3 },
      leaf,
      fc
        .record({
          kind: fc.constantFrom('and' as const, 'or' as const),
          children: fc.array(tie('node'), { minLength: 2, maxLength: 4 }),
        })
        .filter(({ kind, children }) => children[0]?.kind !== kind),
    ),
  })).node

const objectFilter = treeOf(
  fc.oneof(clausesOn(['city'], stringValue), clausesOn(['size'], integerValue)),
).map((child): FilterNode => ({ kind: 'object', field: 'places', child }))

const filter = treeOf(fc.oneof({ arbitrary: anyClause, weight: 4 }, objectFilter))

const documents: Doc[] = fc
  .sample(document, { numRuns: 60, seed: 20 })
  .map((doc, index) => ({ ...doc, id: String(index) }))

let collection: TestCollection

beforeAll(async () => {
  collection = await makeCollection(FIELDS, documents, { enable_nested_fields: true })
})

describe('filters', () => {
  it('match what an evaluation of the documents matches', async () => {
    await fc.assert(
      fc.asyncProperty(filter, async (node) => {
        const expected = documents.filter((doc) => matches(doc, node)).map(({ id }) => id)
        expect(await idsWhere(collection.object, printFilter(node))).toEqual(expected)
      }),
      { numRuns: 300 },
    )
  })

  it('of thousands of clauses take many statements and come to the same', async () => {
    const clauses = fc.sample(anyClause, { numRuns: 1500, seed: 3 })
    for (const kind of ['and', 'or'] as const) {
      const node: FilterNode = { kind, children: clauses }
      const expected = documents.filter((doc) => matches(doc, node)).map(({ id }) => id)
      expect(await idsWhere(collection.object, printFilter(node))).toEqual(expected)
    }
    const alternating = clauses
      .slice(0, 90)
      .reduce<FilterNode>(
        (left, clause, index) => ({ kind: index % 2 ? 'and' : 'or', children: [left, clause] }),
        {
          kind: 'clause',
          field: 'year',
          operator: ':',
          list: false,
          values: [{ text: '1', quoted: false }],
        },
      )
    const expected = documents.filter((doc) => matches(doc, alternating)).map(({ id }) => id)
    expect(await idsWhere(collection.object, printFilter(alternating))).toEqual(expected)
  })

  it('take lists of thousands of values', async () => {
    const ids = Array.from({ length: 20_000 }, (_, index) => String(index + 58))
    expect(await idsWhere(collection.object, `id:[${ids.join(',')}]`)).toEqual(['58', '59'])
    expect(await idsWhere(collection.object, `id:![${ids.join(',')}] && id:!=0`)).toHaveLength(57)
  })

  it.each([
    ['nothing:1', 'Could not find a filter field named `nothing` in the schema.'],
    ['constructor:1', 'Could not find a filter field named `constructor` in the schema.'],
    ['year:x', 'Error with filter field `year`: Not an int32.'],
    ['year:1.5', 'Error with filter field `year`: Not an int32.'],
    ['year:3000000000', 'Error with filter field `year`: Not an int32.'],
    ['sizes:[1,x]', 'Error with filter field `sizes`: Not an int32.'],
    ['price:x', 'Error with filter field `price`: Not a float.'],
    ['stock:1', 'Value of filter field `stock` must be `true` or `false`.'],
    ['genre:', 'Error with filter field `genre`: Filter value cannot be empty.'],
    ['genre:[a,]', 'Error with filter field `genre`: Filter value cannot be empty.'],
    ['year:>', 'Error with filter field `year`: Filter value cannot be empty.'],
    [
      'person:x',
      'Error with filter field `person`: Unidentified field data type, see docs for supported data types.',
    ],
    ['$other(id:1)', 'Referenced collection `other` in `filter_by` not found.'],
  ])('refuse %s', async (filterBy, message) => {
    expect(await refusal(collection, { q: '*', filter_by: filterBy })).toBe(`400 ${message}`)
  })

  it('refuse vectors and fields that are not indexed', async () => {
    const { object } = await makeCollection(
      [
        { name: 'plain', type: 'string', index: false, optional: true },
        { name: 'vector', type: 'float[]', num_dim: 2 },
      ],
      [],
    )
    const messageOf = async (filterBy: string) => {
      const outcome = await object.search({ q: '*', filter_by: filterBy })
      return outcome.ok ? '' : outcome.error.message
    }
    expect(await messageOf('plain:x')).toBe('Cannot filter on non-indexed field `plain`.')
    expect(await messageOf('vector:1')).toBe('Cannot filter on vector field `vector`.')
  })
})

describe('filters on places', () => {
  let cities: TestCollection
  beforeAll(async () => {
    cities = await makeCollection(
      [
        { name: 'at', type: 'geopoint', optional: true },
        { name: 'offices', type: 'geopoint[]', optional: true },
      ],
      [
        { id: 'paris', at: [48.8566, 2.3522] },
        { id: 'versailles', at: [48.8049, 2.1204] },
        {
          id: 'berlin',
          at: [52.52, 13.405],
          offices: [
            [48.85, 2.35],
            [0, 0],
          ],
        },
        { id: 'nowhere' },
      ],
    )
  })

  it.each([
    ['at:(48.8566, 2.3522, 5 km)', ['paris']],
    ['at:(48.8566, 2.3522, 20 km)', ['paris', 'versailles']],
    ['at:(48.8566,2.3522,radius: 12 mi)', ['paris', 'versailles']],
    ['at:!=(48.8566, 2.3522, 20 km)', ['berlin', 'nowhere']],
    ['at:[(48.8566,2.3522,5 km), (52.5,13.4,10 km)]', ['paris', 'berlin']],
    ['at:(48, 1, 48, 3, 50, 3, 50, 1)', ['paris', 'versailles']],
    ['at:(48, 2.2, 48, 3, 50, 3, 50, 2.2)', ['paris']],
    ['offices:(48.85, 2.35, 1 km)', ['berlin']],
  ])('%s', async (filterBy, expected) => {
    expect(await idsWhere(cities.object, filterBy)).toEqual(expected)
  })

  it.each(['at:paris', 'at:(1,2)', 'at:(1,2,3,4)', 'at:(a,b,5 km)', 'at:(1,2,5)'])(
    'refuse %s',
    async (filterBy) => {
      const outcome = await cities.object.search({ q: '*', filter_by: filterBy })
      expect(() => unwrap(outcome)).toThrow(/Value of filter field `at`: must be in the/)
    },
  )

  it('name the units that there are', async () => {
    expect(await refusal(cities, { q: '*', filter_by: 'at:(1,2,5 miles)' })).toBe(
      '400 Unit must be either `km` or `mi`.',
    )
  })
})

it('holds more documents than one value of SQLite does', async () => {
  const seqs = Array.from({ length: 600_000 }, (_, index) => 2_000_000_000 + index)
  const { objectId, object } = newObject()
  unwrap(await object.create({ name: 'things', fields: [{ name: 'n', type: 'int32' }] }, 1))
  const stub = env.COLLECTION.get(env.COLLECTION.idFromName(objectId))
  await runInDurableObject(stub, (_, { storage: { sql } }) => {
    for (const seq of [1, 2_000_000_000, 2_000_599_999, 2_000_600_000]) {
      sql.exec("INSERT INTO documents (seq, id, body) VALUES (?, ?, '{}')", seq, String(seq))
    }
    const found = (filter: SqlFragment) =>
      sql
        .exec<{ id: string }>(
          `SELECT d.id FROM documents d WHERE ${filter.sql} ORDER BY d.seq`,
          ...filter.bindings,
        )
        .toArray()
        .map(({ id }) => id)
    expect(found(oneOf(seqs))).toEqual(['2000000000', '2000599999'])
    expect(found(not(oneOf(seqs)))).toEqual(['1', '2000600000'])
    expect(found(oneOf([]))).toEqual([])
    expect(found(not(oneOf([])))).toHaveLength(4)
  })
})
