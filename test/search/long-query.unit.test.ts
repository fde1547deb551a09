import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { stemAnalyzer } from '../../src/search/text/analyzer'
import { asQuery, MAX_TERMS, mostTelling, parseQuery } from '../../src/search/text/query'

const ANALYZER = stemAnalyzer({ token_separators: [], symbols_to_index: [] })
const bytes = (text: string): number => new TextEncoder().encode(text).length
const numbered = (count: number, stem = 'word'): string[] =>
  Array.from({ length: count }, (_, index) => `${stem}${index}`)

describe('the terms of a query', () => {
  const never = () => {
    throw new Error('nothing is to be counted')
  }

  it('are left as they are while they are few', () => {
    const query = parseQuery(numbered(MAX_TERMS).join(' '), ANALYZER, true)
    expect(mostTelling(query, never)).toEqual(query)
  })

  it('are the rarest that there are, in their order, wherever they stand', () => {
    const rare = ['quasar', 'pulsar', 'magnetar']
    const words = [
      ...numbered(400, 'common'),
      'quasar',
      ...numbered(400, 'absent'),
      'pulsar',
      'magnetar',
      'the',
    ]
    const query = parseQuery(words.join(' '), ANALYZER, false)
    const { terms } = mostTelling(query, () => (word) => {
      if (rare.includes(word)) return 1
      return word.startsWith('common') ? 50 : word === 'the' ? 1 : 0
    })
    const chosen = terms.map(({ tokens }) => tokens[0])
    expect(chosen).toHaveLength(MAX_TERMS)
    expect(chosen).toEqual(expect.arrayContaining(rare))
    expect(chosen.filter((word) => word!.startsWith('absent'))).toEqual([])
    expect(chosen).toEqual(words.filter((word) => chosen.includes(word)))
  })

  it('are some of them even where the collection has none', () => {
    const query = parseQuery(numbered(1_000).join(' '), ANALYZER, false)
    expect(mostTelling(query, () => () => 0).terms).toHaveLength(MAX_TERMS)
  })

  it('leave room for words beside those that are excluded', () => {
    const q = [...numbered(400).map((word) => `-${word}`), ...numbered(400, 'wanted')].join(' ')
    const { terms, excluded } = mostTelling(parseQuery(q, ANALYZER, false), () => () => 1)
    expect(terms.length + excluded.length).toBe(MAX_TERMS)
    expect(terms.length).toBeGreaterThanOrEqual(MAX_TERMS / 2)
  })
})

describe('a text as a query', () => {
  const most = 16_384

  it('is the text while it is short enough', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 2_000 }), (text) => {
        expect(asQuery(text, most)).toBe(text)
      }),
    )
  })

  it('never has more bytes than it may, nor words that the text has not', () => {
    const word = fc.oneof(
      fc.string({ unit: 'binary', minLength: 1, maxLength: 90 }),
      fc.constantFrom('the', 'of', '日本語', 'Füße', 'quasar', '🎬'),
    )
    fc.assert(
      fc.property(
        fc.array(word, { minLength: 50, maxLength: 300 }),
        fc.integer({ min: 30, max: 500 }),
        (words, limit) => {
          const text = words.join(' ')
          const query = asQuery(text, limit)
          expect(bytes(query)).toBeLessThanOrEqual(limit)
          for (const each of query.split(' ')) expect(text).toContain(each)
        },
      ),
    )
  })

  it('says what it is about, without what every text has', () => {
    const text = `${'the of and is '.repeat(3_000)} Photosynthesis ${'to be or not '.repeat(3_000)} chlorophyll?`
    expect(asQuery(text, most)).toBe('Photosynthesis chlorophyll')
  })

  it('passes over what is too long for a word', () => {
    const text = `${'x'.repeat(20_000)} quasar`
    expect(asQuery(text, most)).toBe('quasar')
  })

  it('is its beginning where it has no word to choose', () => {
    expect(asQuery('?! '.repeat(10_000), most)).toMatch(/^\?! /)
  })
})
