import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type Candidate,
  merge,
  requireSameSorts,
  sortClauses,
  withoutDuplicates,
} from '../../../src/api/typesense/union'
import type { Hit } from '../../../src/search/types'

const hit = (id: string, rest: Partial<Hit> & { points?: number } = {}): Hit => {
  const { points, ...scores } = rest
  return {
    document: { id, ...(points === undefined ? {} : { points }) },
    highlight: {},
    highlights: [],
    ...scores,
  }
}

const list = (searchIndex: number, hits: Hit[], collection = 'c'): Candidate[] =>
  hits.map((one) => ({ hit: one, collection, searchIndex }))

const ids = (candidates: Candidate[]): string[] => candidates.map(({ hit: one }) => one.document.id)

describe('the union of searches', () => {
  it('is ordered by text match', () => {
    const a = list(0, [hit('a', { text_match: 9 }), hit('b', { text_match: 3 })])
    const b = list(1, [hit('c', { text_match: 5 }), hit('d', { text_match: 3 })])
    expect(ids(merge([a, b], [[], []]))).toEqual(['a', 'c', 'b', 'd'])
  })

  it('is ordered by distance', () => {
    const a = list(0, [hit('a', { vector_distance: 0.1 }), hit('b', { vector_distance: 0.7 })])
    const b = list(1, [hit('c', { vector_distance: 0.2 })])
    expect(ids(merge([a, b], [[], []]))).toEqual(['a', 'c', 'b'])
  })

  it('is ordered by each search its own field', () => {
    const a = list(0, [hit('a', { points: 1 }), hit('b', { points: 8 })])
    const b = list(1, [hit('c', { points: 5 })])
    const sorts = [sortClauses('points:asc'), sortClauses('points:asc')]
    expect(ids(merge([a, b], sorts))).toEqual(['a', 'c', 'b'])
  })

  it('loses nothing and keeps each search in its own order', () => {
    const numbers = fc.array(fc.array(fc.integer({ min: 0, max: 9 })), { minLength: 1, maxLength: 4 })
    fc.assert(
      fc.property(numbers, (scores) => {
        const lists = scores.map((values, index) =>
          list(
            index,
            values
              .sort((a, b) => b - a)
              .map((score, place) => hit(`${index}-${place}`, { text_match: score })),
          ),
        )
        const merged = merge(
          lists,
          lists.map(() => []),
        )
        const order = merged.map((candidate) => candidate.hit.text_match!)
        expect(order).toEqual(scores.flat().sort((a, b) => b - a))
        for (const [index, own] of lists.entries()) {
          expect(merged.filter((candidate) => candidate.searchIndex === index)).toEqual(own)
        }
      }),
    )
  })

  it('shows a document once, at its best place', () => {
    const both = [...list(0, [hit('a'), hit('b')]), ...list(1, [hit('a')]), ...list(1, [hit('a')], 'other')]
    expect(withoutDuplicates(both)).toHaveLength(3)
  })

  it('needs searches that are sorted alike', () => {
    expect(() => requireSameSorts([sortClauses('a:asc'), sortClauses('b:desc')])).toThrow('sort_by')
    expect(() => requireSameSorts([sortClauses('a:asc'), sortClauses()])).toThrow('sort_by')
    expect(() => requireSameSorts([sortClauses('a:asc'), sortClauses('b:asc')])).not.toThrow()
  })

  it.each([
    ['points:desc', [{ field: 'points', descending: true }]],
    [
      '_text_match(buckets: 10):desc, points:asc',
      [
        { field: '_text_match', descending: true },
        { field: 'points', descending: false },
      ],
    ],
    ['loc(48.8, 2.3):ASC', [{ field: 'loc', descending: false }]],
  ])('reads %s', (text, clauses) => {
    expect(sortClauses(text)).toEqual(clauses)
  })
})
