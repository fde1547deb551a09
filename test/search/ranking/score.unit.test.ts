import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type MatchRules,
  type Occurrence,
  type ReadField,
  scoreDocument,
  wireScore,
} from '../../../src/search/run/ranking/score'

const RULES: MatchRules = {
  sequence: [0, 1],
  type: 'max_score',
  exactMatch: true,
  tokenPosition: false,
  matchingFields: true,
}

/** A text by its tokens: the number of a query word, or -1 for another word. */
const reading = (tokens: number[], cost = 0) => ({
  length: tokens.length,
  occurrences: tokens.flatMap((word, token) => (word < 0 ? [] : [{ token, word, cost }])),
})

const field = (weight: number, ...tokens: number[]): ReadField => ({ weight, texts: [reading(tokens)] })
const mistyped = (weight: number, ...tokens: number[]): ReadField => ({ weight, texts: [reading(tokens, 2)] })
const rank = (fields: ReadField[], rules: Partial<MatchRules> = {}) =>
  scoreDocument(fields, { ...RULES, ...rules }).rank

describe('scoreDocument', () => {
  // Each is better than the next.
  const falling: [string, ReadField[]][] = [
    ['the whole field, word by word', [field(15, 0, 1), field(14, -1)]],
    ['both words in a row', [field(15, 0, 1, -1), field(14, -1)]],
    ['both words in a row, in the wrong order', [field(15, 1, 0, -1), field(14, -1)]],
    ['both words with one between', [field(15, 0, -1, 1), field(14, -1)]],
    ['both words with a typo', [mistyped(15, 0, 1), field(14, -1)]],
    ['the words in two fields', [field(15, 0, -1), field(14, 1)]],
    ['one word in both fields', [field(15, 0, -1), field(14, 0, -1)]],
    ['one word in the heavier field', [field(15, 0, -1), field(14, -1)]],
    ['one word in the lighter field', [field(15, -1), field(14, 0, -1)]],
    ['no word', [field(15, -1), field(14, -1)]],
  ]

  it.each(
    falling.slice(1).map(([name, fields], index) => [falling[index]![0], name, falling[index]![1], fields]),
  )('puts %s before %s', (_, __, better, worse) => {
    expect(rank(better as ReadField[])).toBeGreaterThan(rank(worse as ReadField[]))
  })

  it('takes documents that fit equally well for equal, however long they are', () => {
    expect(rank([field(15, 0, 1, -1)])).toBe(rank([field(15, -1, -1, 0, 1, -1, -1, -1)]))
  })

  describe('with an unfinished last word', () => {
    const [THE, ROOK] = [0, 1]
    /** A title by its words: the number of the query's word, what it costs, or no query word. */
    const title = (...words: ([word: number, cost: number] | undefined)[]): ReadField[] => {
      const occurrences = words.flatMap((each, token) =>
        each === undefined ? [] : [{ token, word: each[0], cost: each[1] }],
      )
      return [{ weight: 15, texts: [{ length: words.length, occurrences, begins: words[0] !== undefined }] }]
    }
    const [the, rook, rookie, typo] = [
      [THE, 0],
      [ROOK, 0],
      [ROOK, 1],
      [ROOK, 3],
    ] as [number, number][]

    // Each is better than the next.
    const titles: [string, ReadField[]][] = [
      ['the query itself', title(the, rook)],
      ['both words in a row', title(undefined, the, rook)],
      ['a title that begins with what was typed', title(the, rookie, undefined)],
      ['both words apart', title(the, undefined, rook)],
      ['a longer word in a row, but later', title(undefined, the, rookie)],
      ['a longer word apart', title(undefined, the, undefined, rookie)],
      ['a typo at the beginning', title(the, typo)],
    ]

    it.each(
      titles.slice(1).map(([name, fields], index) => [titles[index]![0], name, titles[index]![1], fields]),
    )('puts %s before %s', (_, __, better, worse) => {
      expect(rank(better as ReadField[])).toBeGreaterThan(rank(worse as ReadField[]))
    })

    it('does not take a word far away for the longer one beside the others', () => {
      const far = Array.from({ length: 40 }, () => undefined)
      expect(rank(title(undefined, the, rookie, ...far, rook))).toBe(rank(title(undefined, the, rookie)))
      expect(rank(title(the, undefined, rook))).toBeGreaterThan(
        rank(title(undefined, the, rookie, ...far, rook)),
      )
    })

    it('does not take the beginning for a whole word where the query is one word', () => {
      const rules = { sequence: [ROOK] }
      expect(rank(title(undefined, rook), rules)).toBeGreaterThan(rank(title(rookie), rules))
    })
  })

  it('compares as it is told', () => {
    const inTitle = [field(15, 0, -1), field(14, -1)]
    const whole = [field(15, 0, -1), field(14, 0, 1, -1)]
    const early = [field(15, 0, 1, -1, -1)]
    const late = [field(15, -1, -1, 0, 1)]
    expect(rank(early)).toBe(rank(late))
    expect(rank(early, { tokenPosition: true })).toBeGreaterThan(rank(late, { tokenPosition: true }))
    const exact = [field(15, 0, 1)]
    expect(rank(exact, { exactMatch: false })).toBe(rank(early, { exactMatch: false }))
    const once = [field(15, 0, -1), field(14, -1)]
    const twice = [field(15, 0, -1), field(14, 0, -1)]
    expect(rank(once, { matchingFields: false })).toBe(rank(twice, { matchingFields: false }))
    expect(scoreDocument(whole, RULES).weight).toBe(14)
    expect(scoreDocument(whole, { ...RULES, type: 'max_weight' }).weight).toBe(15)
    expect(rank(twice, { type: 'sum_score' })).toBeGreaterThan(rank(inTitle, { type: 'sum_score' }))
  })

  it('knows a repeated word in a title', () => {
    const rules = { sequence: [0, 1, 2, 0] }
    expect(rank([field(15, 0, 1, 2, 0)], rules)).toBeGreaterThan(rank([field(15, 0, 1, 2)], rules))
  })

  const someText = fc.array(fc.integer({ min: -1, max: 4 }), { maxLength: 30 })
  const someFields = fc.array(
    fc.record({ weight: fc.nat({ max: 15 }), texts: fc.array(someText, { maxLength: 3 }) }),
    { maxLength: 9 },
  )
  const someRules = fc.record({
    sequence: fc.constant([0, 1, 2, 3, 4]),
    type: fc.constantFrom('max_score' as const, 'max_weight' as const, 'sum_score' as const),
    exactMatch: fc.boolean(),
    tokenPosition: fc.boolean(),
    matchingFields: fc.boolean(),
  })
  const read = (fields: { weight: number; texts: number[][] }[]): ReadField[] =>
    fields.map(({ weight, texts }) => ({ weight, texts: texts.map((text) => reading(text)) }))

  it('is a whole number that a double holds, and agrees with the number on the wire', () => {
    fc.assert(
      fc.property(someFields, someFields, someRules, (one, other, rules) => {
        const [a, b] = [scoreDocument(read(one), rules), scoreDocument(read(other), rules)]
        expect(Number.isSafeInteger(a.rank)).toBe(true)
        const [wireA, wireB] = [wireScore(a, rules.type), wireScore(b, rules.type)]
        expect(Math.sign(Number(wireA - wireB))).toBe(Math.sign(a.rank - b.rank))
        expect(wireA < 2n ** 63n).toBe(true)
      }),
    )
  })

  it('finds the same words whatever the rules, and never ranks a document lower for one more word', () => {
    fc.assert(
      fc.property(someFields, someText, someRules, (fields, text, rules) => {
        const before = scoreDocument(read(fields), rules)
        const after = scoreDocument(read([...fields, { weight: 0, texts: [text] }]), rules)
        const words = (some: { texts: number[][] }[]) =>
          new Set(some.flatMap(({ texts }) => texts.flat()).filter((word) => word >= 0)).size
        expect(before.tokens).toBe(words(fields))
        expect(after.rank).toBeGreaterThanOrEqual(before.rank)
      }),
    )
  })

  it('looks for the closest words as a plain search of all windows does', () => {
    fc.assert(
      fc.property(someText, (text) => {
        const { best } = scoreDocument([{ weight: 1, texts: [reading(text)] }], RULES)
        const occurrences: Occurrence[] = reading(text).occurrences
        let most = 0
        let shortest = 0
        for (let from = 0; from < text.length; from++) {
          for (let to = from; to < Math.min(text.length, from + 11); to++) {
            const inside = occurrences.filter(({ token }) => token >= from && token <= to)
            const words = new Set(inside.map(({ word }) => word)).size
            if (words > most || (words === most && to - from < shortest))
              [most, shortest] = [words, to - from]
          }
        }
        expect(best?.together ?? 0).toBe(most)
        if (best !== undefined) expect(best.distance).toBe(shortest)
      }),
    )
  })
})
