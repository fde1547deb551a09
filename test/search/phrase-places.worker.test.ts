/** Phrases in documents that have their words very often. */
import { expect, it, vi } from 'vitest'
import { fragment } from '../../src/search/fragment'
import type { SearchContext } from '../../src/search/run/context'
import { allMatches, wordsOf } from '../../src/search/run/kept-matches'
import { LongSearches, Pace } from '../../src/search/run/pace'
import { startsIn } from '../../src/search/run/word-sets'
import { COUNTED, withIndex } from './index-by-sql'

it('looks at each place of a phrase about once, however often a document has its words', () => {
  let looks = 0
  const counted = (list: number[]): number[] =>
    new Proxy(list, {
      get: (target, key) => {
        looks++
        return Reflect.get(target, key)
      },
    })
  const places = Array.from({ length: 2_000 }, (_, at) => at)
  expect(startsIn(counted(places), counted(places), 1)).toEqual(places.slice(0, -1))
  expect(looks).toBeLessThan(12 * places.length)
  expect(startsIn([3, 9, 11], [1, 2, 8, 10], 1)).toEqual([2, 8, 10])
})

it('finds a phrase in a document that has its words a hundred thousand times', () =>
  withIndex(async ({ context }, sql) => {
    const text = 'star '.repeat(100_000)
    sql.exec(`INSERT INTO documents (seq, id, body) VALUES (7, 'a', '{}'), (90000, 'b', '{}')`)
    sql.exec('INSERT INTO word_index (rowid, t0) VALUES (7, ?)', `moon ${text} stare`)
    sql.exec('INSERT INTO word_index (rowid, t0) VALUES (90000, ?)', `moon start ${text}`)
    const found = async (phrase: string) => {
      const match = { match: `{t0} : ${phrase}`, table: 'word_index' as const, rank: '' }
      const words = wordsOf(match, () => fragment('1'))
      return (await allMatches(context, words, new Pace(new LongSearches())))!.seqs
    }
    expect(await found('"star star"')).toEqual([90_000, 7])
    expect(await found('"star star" *')).toEqual([90_000, 7])
    expect(await found('"moon star"')).toEqual([7])
    expect(await found('"moon star" *')).toEqual([90_000, 7])
    expect(await found('"star stare"')).toEqual([7])
    expect(await found('"start star star"')).toEqual([90_000])
    expect(await found('"star moon"')).toEqual([])
  }))

/** Slices that only rows end. */
const ROWS = { ms: 1e9, rows: 40_000, width: 65_536 }

/** Reads a phrase's matches. @returns how many there are, and the slices that were counted between its pauses */
async function steps(context: SearchContext, phrase: string) {
  const others = new LongSearches(ROWS)
  const pace = new Pace(others)
  const used: number[] = []
  const rest = pace.rest.bind(pace)
  vi.spyOn(pace, 'rest').mockImplementation(() => {
    if (pace.used >= 1) used.push(pace.used)
    return rest()
  })
  const match = { match: `{t0} : ${phrase}`, table: 'word_index' as const, rank: '' }
  const words = wordsOf(match, () => fragment('1'))
  const { size } = (await allMatches(context, words, pace))!
  pace.end()
  return { size, used: [...used, pace.used] }
}

it('counts the places of a phrase that it reads, and pauses between them', () =>
  withIndex(async ({ context }, sql) => {
    // 8 blocks, with 40,960 times each word in each.
    sql.exec(`${COUNTED} INSERT INTO documents (seq, id, body) SELECT i * 8, 'd' || i, '{}' FROM n`, 4096)
    sql.exec(
      `${COUNTED} INSERT INTO word_index (rowid, t0) SELECT i * 8, ? FROM n`,
      4096,
      'of the x '.repeat(80),
    )
    const { size, used } = await steps(context, '"the x"')
    expect(size).toBe(4096)
    const places = 2 * 4096 * 80
    const all = used.reduce((sum, each) => sum + each, 0)
    // Listing a few places takes as long as reading a row.
    expect(all * ROWS.rows * 4).toBeGreaterThan(places)
    expect(Math.max(...used)).toBeLessThan(2)
  }))

it('reads fewer blocks at a time where a phrase has more places than before', () =>
  withIndex(async ({ context }, sql) => {
    // Blocks without the words come first, so many are read at once. In each older one a word is 40,000 times.
    const [count, old] = [200 * 64, 100 * 32]
    sql.exec(`${COUNTED} INSERT INTO documents (seq, id, body) SELECT i * 41, 'd' || i, '{}' FROM n`, count)
    sql.exec(
      `${COUNTED} INSERT INTO word_index (rowid, t0) SELECT i * 41, iif(i < ${old}, ?, 'moon') FROM n`,
      count,
      'the x '.repeat(400),
    )
    const { size, used } = await steps(context, '"the x"')
    expect(size).toBe(old - 1)
    expect(Math.max(...used)).toBeLessThan(2)
  }))
