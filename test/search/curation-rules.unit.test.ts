/** How the rules of curations are compared with searches. */
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { meetFilter, meetQuery } from '../../src/search/run/curate'
import type { CurationRule } from '../../src/search/sets/curation'
import { PLAIN, wordAnalyzer } from '../../src/search/text/analyzer'
import { SynonymIndex } from '../../src/search/text/synonyms'

/** A rule of literal pieces with placeholders between them, as a regular expression. */
const expected = (pieces: string[], filter: string): string[] | undefined => {
  const literal = pieces.map((piece) => piece.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${literal.join('([^&|()]+?)')}$`)
    .exec(filter)
    ?.slice(1)
    .map((value) => value.trim())
}

const ruleOf = (pieces: string[]): string =>
  pieces.map((piece, at) => (at === 0 ? piece : `{p${at}}${piece}`)).join('')

describe('a filter with placeholders', () => {
  test('is met as an expression would meet it', () => {
    const text = (maxLength: number) =>
      fc.string({ unit: fc.constantFrom('a', 'b', ':', '&', '('), maxLength })
    fc.assert(
      fc.property(fc.array(text(3), { minLength: 2, maxLength: 4 }), text(14), (pieces, filter) => {
        const met = meetFilter(ruleOf(pieces), filter)
        expect(met && [...met.values.values()]).toEqual(expected(pieces, filter))
      }),
      { numRuns: 2000 },
    )
  })

  test('is compared with a long filter once', () => {
    const filter = `a:${'-'.repeat(200_000)}`
    expect(meetFilter('a:{x}-{y}-{z}!', filter)).toBeUndefined()
    expect(meetFilter('a:{x}-{y}', filter)?.values.get('x')).toBe('-')
  })
})

describe('a placeholder', () => {
  const PLAINLY = wordAnalyzer(PLAIN)
  const words = Array.from({ length: 16 }, (_, n) => `w${n}`)
  const rule: CurationRule = {
    query: '{brand} phone',
    match: 'contains',
    filter_by: '',
    tags: [],
    synonyms: true,
  }
  const synonyms = {
    indexes: [
      new SynonymIndex(
        [{ root: 'w3', synonyms: Array.from({ length: 60 }, (_, n) => `s${n}`) }],
        () => PLAINLY,
      ),
    ],
    form: PLAINLY.form,
    locale: '',
    prefix: false,
    typos: 0,
    demotes: false,
  }

  test.each<[string, string | undefined]>([
    ['no value', undefined],
    ['s7 w4', 's7 w4'],
    ['w5', 'w5'],
  ])('asks for all words at once: %s', async (value, found) => {
    const asked: string[][] = []
    const firstValue = async (_: string, values: readonly string[]) => {
      asked.push([...values])
      const at = values.indexOf(value)
      return at < 0 ? undefined : at
    }
    const known = { tokens: PLAIN, synonyms, dictionaries: new Map(), firstValue }
    const met = await meetQuery(rule, [...words.slice(0, 15), 'phone'], known)
    expect(met?.values.get('brand')).toBe(found)
    expect(asked.length).toBeLessThanOrEqual(62)
    expect(new Set(asked[0]).has('s7 w4')).toBe(true)
  })
})
