/** Words in memory: over random collections, histories and expressions they tell the same matches and scores as FTS5 does. */
import { env } from 'cloudflare:workers'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { fragment } from '../../src/search/fragment'
import type { SearchContext } from '../../src/search/run/context'
import { LongSearches, Pace } from '../../src/search/run/pace'
import { executeSearch } from '../../src/search/run/search'
import { wordsInMemory } from '../../src/search/run/word-memory'
import { expression, steps, withHistory, words } from './random-index'

/** FUZZ_CASES says how many histories are tried. */
const CASES = Math.ceil((Number(env.FUZZ_CASES) || 100) / 2)
const pace = () => new Pace(new LongSearches())
const everything = () => fragment('1')

it('finds and ranks as FTS5 does', async () => {
  let [found, ranked] = [0, 0]
  await fc.assert(
    fc.asyncProperty(
      steps,
      fc.array(fc.tuple(expression, fc.integer({ min: 1, max: 40 }), fc.nat({ max: 3 })), {
        minLength: 15,
        maxLength: 15,
      }),
      (history, asked) =>
        withHistory(history, 0, async ({ context }, sql) => {
          for (const [{ text, isSimple, isNested }, wanted, without] of asked) {
            const match = { match: text, table: 'word_index' as const, rank: 'bm25(2.0000, 1.0000)' }
            const memory = wordsInMemory(context, 'word_index', pace())!
            const rows = sql
              .exec<{ rowid: number; score: number }>(
                `SELECT rowid, rank AS score FROM word_index WHERE word_index MATCH ? AND rank MATCH ?
                  ORDER BY rank, rowid DESC`,
                text,
                match.rank,
              )
              .toArray()
            const seqs = rows.map(({ rowid }) => rowid).sort((a, b) => a - b)
            expect([...memory.seqsOf(match, everything)!]).toEqual(seqs)
            const even = memory.seqsOf(match, () => fragment('d.seq % 2 = 0'))!
            expect([...even]).toEqual(seqs.filter((seq) => seq % 2 === 0))
            found += seqs.length
            const lacks = rows.filter((_, at) => at % 5 < without).map(({ rowid }) => rowid)
            const best = memory.best(match, everything, { wanted, lacks })
            if (!isSimple && !isNested) {
              expect(best).toBeUndefined()
              continue
            }
            const expected = rows.filter(({ rowid }) => !lacks.includes(rowid)).slice(0, wanted)
            const first = best!.slice(0, wanted)
            expect(first.map(({ seq }) => seq)).toEqual(expected.map(({ rowid }) => rowid))
            for (const [at, { score }] of first.entries()) expect(score).toBeCloseTo(expected[at]!.score, 12)
            ranked += first.length
          }
        }),
    ),
    { numRuns: CASES },
  )
  expect(found).toBeGreaterThan(1_000)
  expect(ranked).toBeGreaterThan(500)
}, 600_000)

it('reads the words of an expression with one statement, and counts by them', async () => {
  const history = fc.sample(steps, { numRuns: 1, seed: 1 })[0]!
  await withHistory(history, 0, async ({ context }, sql) => {
    const paced = pace()
    const { read } = paced
    const statements: string[] = []
    const recording: Pace['read'] = (own, query) => {
      statements.push(query.sql)
      return read(own, query)
    }
    const memory = wordsInMemory(context, 'word_index', Object.assign(paced, { read: recording }))!
    const match = '{t0 t1} : ("moon" AND "sun" AND "star"*)'
    memory.seqsOf({ match, table: 'word_index', rank: '' }, everything)
    const counts = memory.counts(['moon', 'sun'])!
    expect(statements.filter((statement) => statement.includes('AS asked'))).toHaveLength(1)
    for (const word of ['moon', 'sun']) {
      const found = sql.exec('SELECT 1 FROM word_index WHERE word_index MATCH ?', `"${word}"`).toArray()
      expect(counts(word)).toBe(found.length)
    }
  })
})

it('gives the reply that FTS5 gives', async () => {
  let found = 0
  const query = fc.record({
    q: words(1, 3).chain((text) =>
      fc.constantFrom(text, text.slice(0, -1), text.slice(0, -2), `"${text}"`, `${text} -moon`),
    ),
    query_by: fc.constantFrom('title,text', 'text,title', 'text'),
    sort_by: fc.constantFrom(undefined, '_text_match:desc,number:asc', 'number:desc'),
    filter_by: fc.constantFrom(undefined, undefined, 'number:>20'),
    page: fc.constantFrom('1', '1', '2'),
    prioritize_token_position: fc.constantFrom(undefined, undefined, 'true'),
  })
  await fc.assert(
    fc.asyncProperty(steps, fc.array(query, { minLength: 8, maxLength: 8 }), (history, queries) =>
      withHistory(history, 0, async ({ context, writer }) => {
        for (const [at, { q, query_by, ...others }] of queries.entries()) {
          const given = Object.fromEntries(Object.entries(others).filter(([, value]) => value !== undefined))
          const params = { q: q || 'star', query_by, ...given }
          const document = JSON.stringify({ id: 'x', title: 'star', text: 'lake moon', number: at })
          writer.write([{ document, action: 'upsert' }])
          const { words: _, ...without } = context
          const ask = async (of: SearchContext) => ({
            ...(await executeSearch(of, params)),
            search_time_ms: 0,
          })
          const byIndex = await ask(without)
          expect([await ask(context), await ask(context)]).toEqual([byIndex, byIndex])
          found += byIndex.found
        }
      }),
    ),
    { numRuns: CASES },
  )
  expect(found).toBeGreaterThan(500)
}, 600_000)

it('leaves to FTS5 a filter that takes long for each document', async () => {
  const [history] = fc.sample(steps, { numRuns: 1, seed: 1 })
  await withHistory(history!, 0, async ({ context, writer }) => {
    writer.write([{ document: '{"id":"one","title":"star","text":"moon","number":1}', action: 'upsert' }])
    const match = { match: '{t0 t1}:("star")', table: 'word_index' as const, rank: 'bm25(2.0000, 1.0000)' }
    const heavy = new Pace(new LongSearches(), undefined, 250 * 20_000)
    const some = () => fragment('d.seq > 0')
    expect(wordsInMemory(context, 'word_index', heavy)!.seqsOf(match, everything)).toBeDefined()
    expect(wordsInMemory(context, 'word_index', heavy)!.seqsOf(match, some)).toBeUndefined()
    expect(
      wordsInMemory(context, 'word_index', heavy)!.best(match, some, { wanted: 1, lacks: [] }),
    ).toBeUndefined()
    expect(wordsInMemory(context, 'word_index', pace())!.seqsOf(match, some)).toBeDefined()
  })
})
