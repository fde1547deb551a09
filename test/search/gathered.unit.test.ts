/** Many matches are ranked in steps, between which others have turns. */
import { expect, it } from 'vitest'
import type { Buckets } from '../../src/search/request/sort'
import { fuse, Gathered } from '../../src/search/run/candidates'
import { fuseScores } from '../../src/search/run/fusion'
import { LongSearches, Pace } from '../../src/search/run/pace'
import { atOnce, type Steps } from '../../src/search/steps'

const COUNT = 200_000

const matches = new Gathered()
for (let seq = 1; seq <= COUNT; seq++) matches.add(seq, -((seq * 7_919) % 1_000), (seq * 31) % 101)
const neighbours = Array.from({ length: 100 }, (_, n) => ({ seq: n * 2 + 1, distance: n / 100 }))

const works: Record<string, () => Steps<unknown>> = {
  'the best of them': () => matches.best(10_000),
  'parts of equal size': () => matches.bucketsOf({ of: 'text_match', by: 'count', number: 10 }, false),
  'numbers for an order': () => matches.numbers(matches.scores),
  'fusion of ranks': () => fuse(matches, neighbours, 0.3),
  'fusion of scores': () => fuseScores({ matches, ideal: 1_000 }, neighbours, 0.4),
}

for (const [name, work] of Object.entries(works)) {
  it(`makes ${name} in steps that fit into two slices each`, async () => {
    const others = new LongSearches()
    const steps = [...work()]
    for (const rows of steps) expect(rows).toBeLessThanOrEqual(2 * others.slice.rows)
    const all = steps.reduce((sum, rows) => sum + rows, 0)
    expect(all).toBeGreaterThan(others.slice.rows)

    const pace = new Pace(others)
    await pace.through(work())
    pace.end()
    expect(pace.pauses).toBeGreaterThan(0)
  })
}

it('divides into parts of which each is better than the next', () => {
  const buckets: Buckets = { of: 'text_match', by: 'count', number: 4 }
  const parts = atOnce(matches.bucketsOf(buckets, false))
  const bounds = new Map<number, { least: number; most: number }>()
  for (const [at, part] of parts.entries()) {
    const score = matches.scores[at]!
    const { least, most } = bounds.get(part) ?? { least: score, most: score }
    bounds.set(part, { least: Math.min(least, score), most: Math.max(most, score) })
  }
  expect([...bounds.keys()].sort()).toEqual([1, 2, 3, 4])
  for (const part of [1, 2, 3]) {
    expect(bounds.get(part)!.most).toBeLessThanOrEqual(bounds.get(part + 1)!.least)
  }
})
