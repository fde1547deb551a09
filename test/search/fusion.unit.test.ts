import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Gathered } from '../../src/search/run/candidates'
import { blend, fuseScores, type ScoredWords } from '../../src/search/run/fusion'
import { atOnce } from '../../src/search/steps'
import type { Neighbour } from '../../src/search/vectors/vector-index'

/** A document as each side has found it. */
interface Found {
  seq: number
  /** FTS5's score, negative */
  score: number | undefined
  distance: number | undefined
}

const documents = fc.uniqueArray(
  fc.record({
    seq: fc.nat(500),
    score: fc.option(fc.double({ min: -50, max: -1e-6, noNaN: true }), { nil: undefined }),
    distance: fc.option(fc.double({ min: 0, max: 2, noNaN: true }), { nil: undefined }),
  }),
  { selector: ({ seq }) => seq, maxLength: 160 },
)
const weight = fc.double({ min: 0, max: 1, noNaN: true })
const ideal = fc.double({ min: 0.01, max: 100, noNaN: true })

const wordsOf = (found: Found[], ideal: number): ScoredWords => {
  const matches = new Gathered()
  for (const { seq, score } of found) if (score !== undefined) matches.add(seq, score, Number.NaN, Number.NaN)
  return { matches, ideal }
}

const neighboursOf = (found: Found[]): Neighbour[] =>
  found
    .flatMap(({ seq, distance }) => (distance === undefined ? [] : [{ seq, distance }]))
    .sort((a, b) => a.distance - b.distance || a.seq - b.seq)

const valuesOf = ({ seqs, fused }: Gathered): Map<number, number> =>
  new Map(seqs.map((seq, at) => [seq, fused[at]!]))

const fusedOf = (found: Found[], ideal: number, meaning: number, bounded: boolean): Gathered =>
  atOnce(fuseScores(wordsOf(found, ideal), neighboursOf(found), meaning, bounded))

const fuse = (found: Found[], ideal: number, meaning: number, bounded = true): Map<number, number> =>
  valuesOf(fusedOf(found, ideal, meaning, bounded))

describe('the fusion of words and meaning', () => {
  it('loses no document, has none twice, and gives each a number', () => {
    fc.assert(
      fc.property(documents, ideal, weight, fc.boolean(), (found, ideal, meaning, bounded) => {
        const { seqs, fused } = fusedOf(found, ideal, meaning, bounded)
        const either = found.filter(({ score, distance }) => score !== undefined || distance !== undefined)
        expect(seqs.toSorted((a, b) => a - b)).toEqual(either.map(({ seq }) => seq).sort((a, b) => a - b))
        for (const value of fused) expect(value >= 0 && value <= 2).toBe(true)
      }),
    )
  })

  it('ranks nothing lower that is as good on both sides', () => {
    const byScore = ({ score }: Found) => score ?? 0
    const byDistance = ({ distance }: Found) => distance ?? Number.POSITIVE_INFINITY
    fc.assert(
      fc.property(documents, ideal, weight, (found, ideal, meaning) => {
        const fused = fuse(found, ideal, meaning)
        for (const a of found) {
          for (const b of found) {
            if (!fused.has(a.seq) || !fused.has(b.seq)) continue
            if (byScore(a) > byScore(b) || byDistance(a) > byDistance(b)) continue
            expect(fused.get(a.seq)!).toBeGreaterThanOrEqual(fused.get(b.seq)! - 1e-12)
          }
        }
      }),
      { numRuns: 30 },
    )
  })

  it('does not depend on the order in which words are found', () => {
    fc.assert(
      fc.property(
        documents.chain((found) =>
          fc.tuple(fc.constant(found), fc.shuffledSubarray(found, { minLength: found.length })),
        ),
        ideal,
        weight,
        ([found, shuffled], ideal, meaning) => {
          const one = fuse(found, ideal, meaning)
          const other = fuse(shuffled, ideal, meaning)
          for (const [seq, value] of one) expect(other.get(seq)).toBe(value)
        },
      ),
    )
  })

  it('with one side alone keeps its order', () => {
    fc.assert(
      fc.property(documents, (found) => {
        const words = fuse(
          found.map((document) => ({ ...document, distance: undefined })),
          50,
          0.4,
        )
        const scores = [...words].sort((a, b) => b[1] - a[1]).map(([seq]) => scoreOf(found, seq))
        for (const [at, score] of scores.entries())
          expect(score).toBeGreaterThanOrEqual((scores[at - 1] ?? score) - 1e-9)
        const meaning = fuse(
          found.map((document) => ({ ...document, score: undefined })),
          0,
          0.4,
        )
        const values = [...meaning.values()]
        expect(values).toEqual(values.toSorted((a, b) => b - a))
      }),
    )
  })

  it('gives equal documents equal numbers', () => {
    const twins = [
      { seq: 1, score: -3, distance: 0.4 },
      { seq: 2, score: -3, distance: 0.4 },
    ]
    const fused = fuse(twins, 6, 0.4)
    expect(fused.get(1)).toBe(fused.get(2))
  })

  it('has nothing for nothing', () => {
    expect(fuse([], 0, 0.4).size).toBe(0)
  })

  it('lets meaning decide where the words found little of the question', () => {
    const found = [
      { seq: 1, score: -2, distance: 0.9 },
      { seq: 2, score: undefined, distance: 0.3 },
    ]
    const first = (ideal: number) => [...fuse(found, ideal, 0.4)].sort((a, b) => b[1] - a[1])[0]![0]
    expect(first(3)).toBe(1)
    expect(first(30)).toBe(2)
  })

  it('does not let a later page change the order of an earlier one', () => {
    const near = Array.from({ length: 300 }, (_, index) => ({ seq: index, distance: 0.2 + index / 1_000 }))
    const words = wordsOf([{ seq: 7, score: -1, distance: undefined }], 5)
    const some = valuesOf(atOnce(fuseScores(words, near.slice(0, 100), 0.4)))
    const more = valuesOf(atOnce(fuseScores(words, near, 0.4)))
    for (const [seq, value] of some) expect(more.get(seq)).toBe(value)
  })
})

const scoreOf = (found: Found[], seq: number): number => found.find((one) => one.seq === seq)!.score!

describe('what was said before', () => {
  it('is blended in without losing a document, by its weight', () => {
    fc.assert(
      fc.property(documents, documents, ideal, ideal, weight, (asked, said, one, other, weight) => {
        const { matches } = blend(wordsOf(asked, one), wordsOf(said, other), weight)
        const either = new Set(
          [...asked, ...said].flatMap(({ seq, score }) => (score === undefined ? [] : [seq])),
        )
        expect(new Set(matches.seqs)).toEqual(either)
        expect(matches.size).toBe(either.size)
        for (const score of matches.scores) expect(score).toBeLessThanOrEqual(0)
      }),
    )
  })

  it('with weight 0 leaves the order of the question, and stands in for one that says nothing', () => {
    const asked = wordsOf(
      [
        { seq: 1, score: -4, distance: undefined },
        { seq: 2, score: -1, distance: undefined },
      ],
      8,
    )
    const said = wordsOf([{ seq: 2, score: -9, distance: undefined }], 9)
    expect(blend(asked, said, 0).matches.scores.map((score) => score.toFixed(6))).toEqual([
      '-4.000000',
      '-1.000000',
    ])
    const nothing = { matches: new Gathered(), ideal: 0 }
    expect(blend(nothing, said, 0.3).matches.seqs).toEqual([2])
    expect(blend(nothing, nothing, 0.3).matches.size).toBe(0)
  })
})
