/** What vectors tell Vectorize of their documents, and what it is told of filters. */
import { env } from 'cloudflare:workers'
import fc from 'fast-check'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { readExactObject } from '../../src/lib/stored-json'
import { impliedConditions } from '../../src/search/filter/filter'
import { labelFilter, PROPERTIES, readLabels } from '../../src/vectorize/labels'
import { passingIn } from '../search/passing'
import { FIELDS, type LabelledCollection, withLabelled } from './labelled'
import { checkFilter, passes } from './metadata-filter'

beforeEach(() => void vi.spyOn(console, 'error').mockImplementation(() => {}))

/** What Vectorize is told of a filter. */
const told = ({ store, labelling }: LabelledCollection, filterBy: string) =>
  labelFilter(labelling, impliedConditions(store.schema, filterBy))

const list = (count: number, element: (n: number) => unknown): string =>
  Array.from({ length: count }, (_, n) => element(n)).join(', ')

describe('the fields of a collection', () => {
  it('stand in the properties, facets first', async () => {
    await withLabelled(async ({ labelling, store: { schema } }) => {
      const slot = (name: string) => schema.slots[name]!.slot
      expect(labelling).toEqual({
        s0: slot('tag'),
        s1: slot('maker'),
        n0: slot('big'),
        n1: slot('year'),
        n2: slot('price'),
        n3: slot('isNew'),
      })
    })
  })

  it('are too many for some', async () => {
    const numbers = Array.from({ length: 7 }, (_, n) => ({ name: `n${n}`, type: 'int32', facet: n === 6 }))
    await withLabelled(
      async ({ labelling, store: { schema } }) => {
        expect(Object.keys(labelling)).toEqual(['n0', 'n1', 'n2', 'n3', 'n4'])
        expect(labelling.n0).toBe(schema.slots.n6!.slot)
      },
      { fields: [...numbers, FIELDS.at(-1)!] },
    )
  })

  it('keep their property when others come and go, and what is freed is sent again', async () => {
    await withLabelled(async (collection) => {
      const vector = Array.from({ length: 384 }, (_, i) => Math.sin(i))
      collection.write({ id: 'a', tag: 'Red', year: 1990, vector })
      await collection.settle()
      const { s0, n1 } = collection.labelling
      await collection.alter([{ name: 'colour', type: 'string', facet: true, optional: true }])
      expect(collection.labelling).toMatchObject({ s0, n1, s2: collection.store.schema.slots.colour!.slot })
      // The document has no colour, so nothing has to be sent.
      expect(collection.waiting()).toBe(0)
      await collection.alter([{ name: 'tag', drop: true }])
      expect(collection.labelling.s0).toBeUndefined()
      expect(collection.waiting()).toBe(1)
      await collection.alter([{ name: 'grade', type: 'string', facet: true, optional: true }])
      collection.write({ id: 'a', grade: 'A' })
      await collection.settle()
      expect([...collection.double.metadata.values()]).toMatchObject([{ s0: 'a', n1: 1990 }])
    })
  })
})

describe('a filter', () => {
  it('is told as far as Vectorize can say it', async () => {
    await withLabelled(async (collection) => {
      const cases: [string, object | undefined][] = [
        ['tag:=Red', { s0: { $eq: 'red' } }],
        ['tag:=[Red, `Dark-Blue`]', { s0: { $in: ['red', 'darkblue'] } }],
        ['tag:=[Red, red]', { s0: { $eq: 'red' } }],
        ['tag:=`--`', { s0: { $eq: '-' } }],
        ['year:=1990', { n1: { $eq: 1990 } }],
        ['year:[1990, 1992]', { n1: { $in: [1990, 1992] } }],
        ['year:>1990', { n1: { $gt: 1990 } }],
        ['year:[1990..1999]', { n1: { $gte: 1990, $lte: 1999 } }],
        ['year:[<1950, 1960, 1970..1980]', { n1: { $lte: 1980 } }],
        ['year:>1990 && year:<=1999 && year:<2010', { n1: { $gt: 1990, $lte: 1999 } }],
        ['year:>=1990 && year:[1995, 1985]', { n1: { $in: [1995, 1985] } }],
        ['price:<9.5 && isNew:true', { n2: { $lt: 9.5 }, n3: { $eq: 1 } }],
        [
          '(tag:=a && year:1) && isNew:[true, false]',
          { s0: { $eq: 'a' }, n1: { $eq: 1 }, n3: { $in: [1, 0] } },
        ],
        ['tag:=a && (year:1 || year:2)', { s0: { $eq: 'a' } }],
        ['tag:=a && title:word', { s0: { $eq: 'a' } }],
        ['price:>1e400', undefined],
        ['tag:a', undefined],
        ['tag:=a*', undefined],
        ['tag:!=a', undefined],
        ['tags:=a', undefined],
        ['year:!=1', undefined],
        ['year:[<1, >5]', undefined],
        ['place:(48.9, 2.3, 5 km)', undefined],
        ['id:=a', undefined],
        ['tag:=a || year:1', undefined],
        ['', undefined],
      ]
      for (const [filterBy, expected] of cases) expect(told(collection, filterBy), filterBy).toEqual(expected)
    })
  })

  it('is told in part where it is too long', async () => {
    await withLabelled(async (collection) => {
      const years = `year:[${list(600, (n) => 1000 + n)}]`
      const tags = `tag:=[${list(100, (n) => `a tag of many letters ${n}`)}]`
      expect(told(collection, years)).toEqual({ n1: { $gte: 1000, $lte: 1599 } })
      expect(told(collection, tags)).toBeUndefined()
      expect(told(collection, `${tags} && ${years}`)).toEqual({ n1: { $gte: 1000, $lte: 1599 } })
      const long = `${'é'.repeat(40)}x`
      expect(told(collection, `tag:=${long}`)).toEqual({ s0: { $eq: `${'e'.repeat(40)}x` } })
      const wide = 'ж'.repeat(40)
      expect(told(collection, `tag:=${wide}`)).toEqual({ s0: { $eq: 'ж'.repeat(32) } })
    })
  })

  it('lets through in Vectorize whatever passes it in SQL', { timeout: 120_000 }, async () => {
    const word = fc.constantFrom(
      'red',
      'Red',
      'dark red',
      'dárk-red',
      'ж'.repeat(33),
      `${'ж'.repeat(33)}z`,
      '--',
      'x*',
    )
    const integer = fc.oneof(
      fc.integer({ min: -3, max: 3 }),
      fc.constantFrom(2 ** 31 - 1, 2 ** 53, 2 ** 60, -(2 ** 53)),
      // As doubles, which is what Vectorize is told, most of these are one value.
      fc.bigInt({ min: 2n ** 60n - 3n, max: 2n ** 60n + 3n }),
      fc.bigInt({ min: 2n ** 53n - 2n, max: 2n ** 53n + 2n }),
    )
    const small = fc.integer({ min: -3, max: 3 })
    const number = fc.oneof(small, fc.constantFrom(0.1, -0.5, 1e300, -0))
    const orNot = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })
    const document = fc.record({
      tag: orNot(word),
      maker: orNot(word),
      year: orNot(small),
      big: orNot(integer),
      price: orNot(number),
      isNew: orNot(fc.boolean()),
      title: orNot(word),
      tags: orNot(fc.array(word, { maxLength: 2 })),
    })
    const tests = (of: fc.Arbitrary<number | bigint>) =>
      fc.oneof(
        of.map(String),
        fc.tuple(fc.constantFrom('>', '<', '>=', '<='), of).map(([sign, bound]) => `${sign}${bound}`),
        fc.tuple(of, of).map(([from, to]) => `${from}..${to}`),
      )
    const values = (of: fc.Arbitrary<string>) =>
      fc
        .array(of, { minLength: 1, maxLength: 3 })
        .map((all) => (all.length === 1 ? all[0]! : `[${all.join(', ')}]`))
    const clause = fc.oneof(
      fc
        .tuple(
          fc.constantFrom('tag', 'maker', 'title', 'tags'),
          fc.constantFrom(':', ':=', ':!='),
          values(word),
        )
        .map((parts) => parts.join('')),
      fc.tuple(fc.constantFrom('', '='), values(tests(small))).map(([sign, of]) => `year:${sign}${of}`),
      values(tests(integer)).map((of) => `big:${of}`),
      values(tests(number)).map((of) => `price:${of}`),
      values(fc.constantFrom('true', 'false')).map((of) => `isNew:${of}`),
    )
    const { filter } = fc.letrec<{ filter: string; group: string }>((tie) => ({
      filter: fc.oneof({ maxDepth: 3, withCrossShrink: true }, clause, tie('group')),
      group: fc
        .tuple(tie('filter'), fc.constantFrom('&&', '&&', '||'), tie('filter'))
        .map(([left, sign, right]) => `(${left} ${sign} ${right})`),
    }))
    const seen = { told: 0, passing: 0, left: 0 }
    await withLabelled(async (collection) => {
      fc.assert(
        fc.property(
          fc.array(document, { minLength: 1, maxLength: 12 }),
          fc.array(filter, { maxLength: 8 }),
          (documents, filters) => {
            collection.store.truncate()
            collection.write(...documents.map((each) => readExactObject(JSON.stringify(each))))
            const seqs = collection.sql.exec<{ seq: number }>('SELECT seq FROM documents').toArray()
            const labels = readLabels(
              collection.sql,
              collection.store.schema,
              seqs.map(({ seq }) => seq),
            )
            for (const filterBy of filters) {
              const asked = told(collection, filterBy)
              if (asked === undefined) continue
              checkFilter(asked)
              seen.told++
              const found = passingIn(collection.sql, collection.store.schema, filterBy)
              for (const seq of found) {
                seen.passing++
                const metadata = JSON.parse(JSON.stringify(labels.get(seq)))
                expect(passes({ metadata, indexed: new Set(PROPERTIES) }, asked), filterBy).toBe(true)
              }
              seen.left += seqs.length - found.length
            }
          },
        ),
        { numRuns: 300 },
      )
    })
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(env.FULL ? 300 : 100)
  })
})
