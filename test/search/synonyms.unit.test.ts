/** The rewriting of queries by synonyms. */
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { PLAIN, wordAnalyzer } from '../../src/search/text/analyzer'
import { matchExpression, parseQuery, relax } from '../../src/search/text/query'
import {
  SynonymIndex,
  type SynonymRules,
  type SynonymTexts,
  waysOf,
  withSynonyms,
} from '../../src/search/text/synonyms'
import type { Term } from '../../src/search/text/term'

const PLAINLY = wordAnalyzer(PLAIN)

const rulesOf = (synonyms: SynonymTexts[], more: Partial<SynonymRules> = {}): SynonymRules => ({
  indexes: [new SynonymIndex(synonyms, () => PLAINLY)],
  form: PLAINLY.form,
  locale: '',
  prefix: false,
  typos: 0,
  demotes: false,
  ...more,
})

const rewritten = (q: string, rules: SynonymRules, prefix = false): Term[] =>
  withSynonyms(parseQuery(q, PLAINLY, prefix).terms, rules)

const words = (terms: readonly Term[]): string => terms.map(({ tokens }) => tokens.join('-')).join(' ')

/** Each term with what may stand for it: `tv = television | smart tv (1)`. */
const shown = (terms: Term[]): string[] =>
  terms.flatMap(({ synonyms }, at) =>
    synonyms
      ? `${words(terms.slice(at, at + synonyms.span))} = ${synonyms.instead.map(words).join(' | ')}`
      : [],
  )

const say = (...synonyms: string[]): SynonymTexts => ({ root: '', synonyms })
const oneWay = (root: string, ...synonyms: string[]): SynonymTexts => ({ root, synonyms })

describe('a long query', () => {
  const many = (count: number) => Array.from({ length: count }, (_, n) => `word${n}`)

  test('is read no further ahead than the longest synonym goes', () => {
    let formed = 0
    const rules = rulesOf([oneWay('new york city', 'nyc')], {
      form: (word) => {
        formed++
        return word
      },
    })
    expect(shown(rewritten([...many(250), 'new york city'].join(' '), rules))).toEqual([
      'new york city = nyc',
    ])
    expect(formed).toBeLessThanOrEqual(3 * 253)
  })

  test.each([
    [16, ['coatt = jacket']],
    [17, []],
  ])('has typos in synonyms up to 16 words: %i', (count, expected) => {
    const rules = rulesOf([oneWay('coat', 'jacket')], { typos: 1 })
    expect(shown(rewritten([...many(count - 1), 'coatt'].join(' '), rules))).toEqual(expected)
  })
})

describe('what a synonym replaces', () => {
  test.each<[string, string, SynonymTexts[], string[]]>([
    ['a word', 'red coat', [say('coat', 'jacket')], ['coat = jacket']],
    ['several words', 'new york hotel', [oneWay('new york', 'nyc')], ['new york = nyc']],
    ['a word by several', 'nyc hotel', [oneWay('nyc', 'new york')], ['nyc = new york']],
    ['one way only', 'jacket', [oneWay('coat', 'jacket')], []],
    ['each of a list', 'cc', [say('credit card', 'payment card', 'cc')], ['cc = credit card | payment card']],
    [
      'two words apart',
      'suit man',
      [say('suit', 'blazer'), say('man', 'male')],
      ['suit = blazer', 'man = male'],
    ],
    ['no phrase in quotes', '"coat"', [say('coat', 'jacket')], []],
    ['words with signs', 't-shirt', [oneWay('t-shirt', 'tee')], ['tshirt = tee']],
    ['any case and accent', 'Café', [oneWay('cafe', 'Bar')], ['cafe = bar']],
    [
      'overlapping words, each way',
      'smart tv set',
      [oneWay('smart tv', 'television'), oneWay('tv set', 'telly')],
      ['smart tv set = smart telly | television set'],
    ],
    [
      'what was put in is not replaced again',
      'a',
      [oneWay('a', 'b'), oneWay('b', 'a c'), oneWay('a', 'a b')],
      ['a = b | a b'],
    ],
  ])('%s', (_, q, synonyms, expected) => {
    expect(shown(rewritten(q, rulesOf(synonyms)))).toEqual(expected)
  })

  test('a synonym of another locale does not count', () => {
    const synonyms = [{ ...say('schuh', 'sandale'), locale: 'de' }]
    expect(shown(rewritten('schuh', rulesOf(synonyms)))).toEqual([])
    expect(shown(rewritten('schuh', rulesOf(synonyms, { locale: 'de' })))).toEqual(['schuh = sandale'])
  })

  test('unfinished and misspelt words, where they are asked for', () => {
    const synonyms = [say('trousers', 'pants')]
    for (const q of ['pan', 'patns']) expect(shown(rewritten(q, rulesOf(synonyms)))).toEqual([])
    expect(shown(rewritten('pan', rulesOf(synonyms, { prefix: true })))).toEqual(['pan = trousers | pants'])
    expect(shown(rewritten('patns', rulesOf(synonyms, { typos: 1 })))).toEqual(['patns = trousers | pants'])
  })

  test('a synonym of the last word is unfinished as that word is', () => {
    const [term] = rewritten('ns', rulesOf([oneWay('ns', 'non stick')]), true)
    expect(term!.synonyms!.instead[0]!.map(({ prefix }) => prefix)).toEqual([false, true])
  })
})

const columns = [{ column: 't0', prefix: false, analyzer: PLAINLY }]
const expression = (q: string, synonyms: SynonymTexts[], operator: 'AND' | 'OR' = 'AND'): string => {
  const terms = rewritten(q, rulesOf(synonyms))
  return matchExpression(operator === 'OR' ? relax(terms) : terms, [], columns, operator)
}

describe('the expression', () => {
  test('has all words of a synonym together', () => {
    expect(expression('ceo office', [oneWay('ceo', 'chief officer')])).toBe(
      '{t0} : (("ceo" OR ("chief" AND "officer")) AND "office")',
    )
    expect(expression('new york hotel', [oneWay('new york', 'nyc')])).toBe(
      '{t0} : ((("new" AND "york") OR "nyc") AND "hotel")',
    )
  })

  test('of a relaxed query takes a synonym as one of its words', () => {
    expect(expression('the ceo pay', [oneWay('ceo', 'chief officer')], 'OR')).toBe(
      '{t0} : (("ceo" OR ("chief" AND "officer")) OR "pay")',
    )
    // The first word of what is replaced is a stopword, which a relaxed query leaves out.
    expect(expression('the who band', [oneWay('the who', 'rockers')], 'OR')).toBe(
      '{t0} : (("band" OR "rockers"))',
    )
  })

  test('of a query that lost its last words has the synonyms of whole ones alone', () => {
    const terms = rewritten('red smart tv', rulesOf([oneWay('smart tv', 'telly')]))
    expect(matchExpression(terms.slice(0, 2), [], columns, 'AND')).toBe('{t0} : ("red" AND "smart")')
  })
})

test('a query as it may be written, as it was asked first', () => {
  const rules = rulesOf([oneWay('new york', 'nyc'), say('hotel', 'inn')])
  expect(waysOf(rewritten('new york hotel', rules)).map(words)).toEqual([
    'new york hotel',
    'nyc hotel',
    'new york inn',
    'nyc inn',
  ])
  expect(waysOf(rewritten('red', rules)).map(words)).toEqual(['red'])
})

test('whatever the synonyms, rewriting ends and loses no word', () => {
  const word = fc.constantFrom('a', 'b', 'c', 'd', 'e')
  const phrase = fc.array(word, { minLength: 1, maxLength: 3 }).map((some) => some.join(' '))
  const synonym = fc.record({
    root: fc.oneof(fc.constant(''), phrase),
    synonyms: fc.array(phrase, { minLength: 1, maxLength: 4 }),
  })
  fc.assert(
    fc.property(
      fc.array(word, { maxLength: 12 }),
      fc.array(synonym, { maxLength: 12 }),
      (query, synonyms) => {
        const { terms } = parseQuery(query.join(' '), PLAINLY, true)
        const found = withSynonyms(terms, rulesOf(synonyms, { prefix: true, typos: 1 }))
        expect(words(found)).toBe(words(terms))
        let covered = 0
        for (const [at, { synonyms: standing }] of found.entries()) {
          if (standing === undefined) continue
          // What is replaced together does not overlap, and ends in the query.
          expect(at).toBeGreaterThanOrEqual(covered)
          covered = at + standing.span
          expect(covered).toBeLessThanOrEqual(terms.length)
          expect(standing.instead.length).toBeLessThan(64)
          for (const way of standing.instead) {
            expect(way.length).toBeGreaterThan(0)
            expect(words(way)).not.toBe(words(terms.slice(at, covered)))
          }
        }
        const added = found.flatMap(({ synonyms: standing }) => standing?.instead.flat() ?? [])
        expect(added.length).toBeLessThanOrEqual(512)
        const ways = waysOf(found)
        expect(words(ways[0]!)).toBe(words(terms))
        expect(ways.length).toBeLessThanOrEqual(64)
        const all = new Set(
          synonyms
            .flatMap((each) => [each.root, ...each.synonyms])
            .join(' ')
            .split(' '),
        )
        for (const { tokens } of added) {
          for (const token of tokens)
            expect(all.has(token) || query.some((each) => each === token)).toBe(true)
        }
      },
    ),
    { numRuns: 300 },
  )
})
