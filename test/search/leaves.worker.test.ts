/** Pages of words in memory: over random histories they tell the same places as the pages that SQLite looks up. */
import { env } from 'cloudflare:workers'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Read } from '../../src/search/fragment'
import { Postings } from '../../src/search/text/postings'
import { type Asked, readPlaces } from '../../src/search/text/word-pages'
import { steps, WORDS, withHistory } from './random-index'

/** FUZZ_CASES says how many histories are tried. */
const CASES = Math.ceil((Number(env.FUZZ_CASES) || 100) / 2)
/** Look-ups before the first words of all pages are read. */
const FIRST_READS = 16

const every: Asked[] = WORDS.flatMap((word) =>
  [word, word.slice(0, -1) || word].flatMap((each) => [
    { word: each, prefix: false },
    { word: each, prefix: true },
  ]),
)

it('reads the same places from pages in memory', async () => {
  let places = 0
  await fc.assert(
    fc.asyncProperty(steps, fc.shuffledSubarray(every, { minLength: 6 }), (history, asked) =>
      withHistory(history, 0, async (_, sql) => {
        let statements = 0
        const read: Read = <Row extends object>(
          from: SqlStorage,
          query: { sql: string; bindings: SqlStorageValue[] },
        ) => {
          statements++
          return from.exec<Row & Record<string, SqlStorageValue>>(query.sql, ...query.bindings).toArray()
        }
        const fresh = (each: Asked) => readPlaces(sql, new Postings(sql, 'word_index', read), [each], read)
        const looked = asked.map((each) => fresh(each)[0])
        const postings = new Postings(sql, 'word_index', read)
        const kept = (some: readonly Asked[]) => readPlaces(sql, postings, some, read)
        for (let round = 0; round < 2; round++) {
          for (let count = 0; count < FIRST_READS; count++) kept([asked[0]!])
          expect(asked.map((each) => kept([each])[0])).toEqual(looked)
          const before = statements
          expect(asked.map((each) => kept([each])[0])).toEqual(looked)
          expect(statements).toBe(before)
          for (const [at, together] of kept(asked).entries())
            if (together) expect(together).toEqual(looked[at])
          postings.leaves.evict()
        }
        places += looked.reduce((sum, each) => sum + (each?.whole.places.length ?? 0), 0)
      }),
    ),
    { numRuns: CASES },
  )
  expect(places).toBeGreaterThan(5_000)
}, 600_000)
