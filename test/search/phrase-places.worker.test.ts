/** Phrases in documents that have their words very often. */
import { expect, it } from 'vitest'
import { runningAt } from '../../src/search/run/context'
import { allMatches } from '../../src/search/run/kept-matches'
import { seqsOf } from '../../src/search/run/match-set'
import { LongSearches, Pace } from '../../src/search/run/pace'
import { withIndex } from './index-by-sql'

it('finds a phrase in a document that has its words a hundred thousand times', () =>
  withIndex(async ({ context }, sql) => {
    const text = 'star '.repeat(100_000)
    sql.exec(`INSERT INTO documents (seq, id, body) VALUES (7, 'a', '{}'), (90000, 'b', '{}')`)
    sql.exec('INSERT INTO word_index (rowid, t0) VALUES (7, ?)', `moon ${text} stare`)
    sql.exec('INSERT INTO word_index (rowid, t0) VALUES (90000, ?)', `moon start ${text}`)
    const found = async (phrase: string) => {
      const match = { match: `{t0} : ${phrase}`, table: 'word_index' as const, rank: '' }
      return seqsOf((await allMatches(runningAt(context, new Pace(new LongSearches())), match)).set)
    }
    expect(await found('"star star"')).toEqual([90_000, 7])
    expect(await found('"star star" *')).toEqual([90_000, 7])
    expect(await found('"moon star"')).toEqual([7])
    expect(await found('"moon star" *')).toEqual([90_000, 7])
    expect(await found('"star stare"')).toEqual([7])
    expect(await found('"start star star"')).toEqual([90_000])
    expect(await found('"star moon"')).toEqual([])
  }))
