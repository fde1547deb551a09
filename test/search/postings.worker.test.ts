/**
 * Postings read without FTS5: over random collections, histories and expressions they tell the same matches, places and scores
 * as FTS5 does.
 */
import { env } from 'cloudflare:workers'
import fc from 'fast-check'
import { expect, it, vi } from 'vitest'
import type { Open } from '../../src/search/collection/open'
import { fragment } from '../../src/search/fragment'
import { allMatches, wordsOf } from '../../src/search/run/kept-matches'
import { LongSearches, Pace } from '../../src/search/run/pace'
import { bestByPostings } from '../../src/search/run/word-ranking'
import { BLOCK } from '../../src/search/schema/block'
import { parseExpression, wordsIn } from '../../src/search/text/expression'
import { Unreadable, weightOfPlaces } from '../../src/search/text/fts5-format'
import { Postings } from '../../src/search/text/postings'
import { COUNTED, withIndex } from './index-by-sql'
import { expression, type Step, steps, WORDS, withHistory } from './random-index'

/** FUZZ_CASES says how many histories are tried. */
const CASES = Math.ceil((Number(env.FUZZ_CASES) || 100) / 2)

/** Wide gaps between the documents. */
const withCollection = <Result>(
  history: readonly Step[],
  work: (open: Open, sql: SqlStorage) => Promise<Result>,
) => withHistory(history, 1500, work)
const pace = () => new Pace(new LongSearches())
const tables = fc.constantFrom('word_index' as const, 'text_index' as const)

it('reads the documents of words and the places in them, in any range', async () => {
  let [seen, long] = [0, 0]
  await fc.assert(
    fc.asyncProperty(steps, tables, fc.nat(60_000), fc.nat(60_000), (history, table, low, width) =>
      withCollection(history, async (_, sql) => {
        sql.exec(`INSERT INTO ${table} (${table}) VALUES ('flush')`)
        sql.exec(`CREATE VIRTUAL TABLE places USING fts5vocab(${table}, instance)`)
        const { read } = pace()
        const postings = new Postings(sql, table, read)
        const stems = table === 'text_index'
        for (const prefix of [false, true]) {
          for (const text of WORDS.filter((each) => !stems || /^[a-z]+$/.test(each))) {
            const [asked] = wordsIn(parseExpression(`{t0 t1} : ("${text}")`, { stems })!)
            for (const range of [
              { low: 0, high: 1e6 },
              { low, high: low + width },
            ]) {
              const found = new Map<number, number>()
              postings.visit(asked!.word, prefix, range, (seq, bytes, from, to) => {
                found.set(seq, (found.get(seq) ?? 0) + weightOfPlaces(bytes, from, to, [1000, 1]))
              })
              const rows = sql.exec<{ doc: number; weight: number }>(
                `SELECT doc, sum(iif(col = 't0', 1000, 1)) AS weight FROM places
                  WHERE ${prefix ? "term >= ? AND term < ? || 'zzz'" : 'term >= ? AND term <= ?'}
                    AND doc BETWEEN ? AND ? GROUP BY doc ORDER BY doc`,
                asked!.word,
                asked!.word,
                range.low,
                range.high,
              )
              const expected = rows.toArray().map(({ doc, weight }) => [doc, weight])
              expect([...found].sort(([a], [b]) => a - b)).toEqual(expected)
              if (prefix && low === range.low) {
                const longer = sql.exec(
                  'SELECT 1 FROM places WHERE term > ? AND term < ?',
                  asked!.word,
                  `${asked!.word}zzz`,
                )
                // It may be of deleted documents.
                if (longer.toArray().length > 0) expect(postings.hasLonger(asked!.word)).toBe(true)
              }
              if (!prefix || range.low > 0) continue
              const swept = new Map<number, number>()
              const add = (seq: number, bytes: Uint8Array, from: number, to: number) =>
                void swept.set(seq, (swept.get(seq) ?? 0) + weightOfPlaces(bytes, from, to, [1000, 1]))
              for (const count of postings.sweep(asked!.word, 1e6, add))
                expect(count).toBeGreaterThanOrEqual(0)
              expect([...swept].sort(([a], [b]) => a - b)).toEqual(expected)
              seen += expected.length
              long += expected.filter(([, weight]) => weight! % 1000 > 60).length
            }
          }
        }
      }),
    ),
    { numRuns: CASES },
  )
  expect(seen).toBeGreaterThan(1_000)
  expect(long).toBeGreaterThan(0)
}, 600_000)

it('finds and ranks as FTS5 does', async () => {
  let ranked = 0
  await fc.assert(
    fc.asyncProperty(
      steps,
      fc.array(fc.tuple(expression, tables, fc.integer({ min: 1, max: 40 }), fc.nat({ max: 3 })), {
        minLength: 10,
        maxLength: 10,
      }),
      (history, asked) =>
        withCollection(history, async ({ context }, sql) => {
          const everything = () => fragment('1')
          for (const [at, [{ text, isSimple }, table, wanted, without]] of asked.entries()) {
            const match = { match: text, table, rank: 'bm25(2.0000, 1.0000)' }
            const words = wordsOf(match, everything)!
            if (table === 'text_index' && text.includes('\u6708')) {
              expect(words.words).toBeUndefined()
              continue
            }
            expect(words.words).toBeDefined()
            const all = await allMatches(context, words, pace())
            // Few documents are one statement's work.
            if (all === undefined) continue
            const rows = sql
              .exec<{ rowid: number; score: number }>(
                `SELECT rowid, rank AS score FROM ${table} WHERE ${table} MATCH ? AND rank MATCH ? ORDER BY rank, rowid DESC`,
                text,
                match.rank,
              )
              .toArray()
            expect(all.seqs.sort((a, b) => a - b)).toEqual(
              rows.map(({ rowid }) => rowid).sort((a, b) => a - b),
            )
            const lacks = rows.filter((_, at) => at % 5 < without).map(({ rowid }) => rowid)
            const best = await bestByPostings(
              context,
              match,
              all,
              { wanted, lacks, few: at % 2 ? 1 : undefined },
              pace(),
            )
            if (!isSimple || rows.length === 0) {
              if (rows.length > 0) expect(best).toBeUndefined()
              continue
            }
            const expected = rows.filter(({ rowid }) => !lacks.includes(rowid))
            const scores = new Map(expected.map(({ rowid, score }) => [rowid, score]))
            // The least that a word adds is a millionth.
            const tolerance = 1e-11
            for (const { seq, score } of best!) {
              expect(Math.abs(scores.get(seq)! - score)).toBeLessThan(tolerance)
            }
            expect(best!.length).toBeGreaterThanOrEqual(Math.min(wanted, expected.length))
            expect(new Set(best!.map(({ seq }) => seq)).size).toBe(best!.length)
            const last = Math.max(...best!.map(({ score }) => score))
            const seqs = new Set(best!.map(({ seq }) => seq))
            const better = expected.filter(({ score }) => score < last - 2 * tolerance)
            expect(better.filter(({ rowid }) => !seqs.has(rowid))).toEqual([])
            ranked += best!.length
          }
        }),
    ),
    { numRuns: CASES },
  )
  expect(ranked).toBeGreaterThan(500)
}, 600_000)

const ALL = { low: 0, high: 1e6 }

it('reads a document that has a word hundreds of thousands of times', () =>
  withIndex(async (_, sql) => {
    const often = 300_000
    sql.exec('INSERT INTO word_index (rowid, t1) VALUES (7, ?)', 'star '.repeat(often))
    sql.exec(`INSERT INTO word_index (rowid, t0) VALUES (8, 'star')`)
    sql.exec(`INSERT INTO word_index (word_index) VALUES ('flush')`)
    const found: [number, number][] = []
    new Postings(sql, 'word_index', pace().read).visit('star', false, ALL, (seq, bytes, from, to) => {
      found.push([seq, weightOfPlaces(bytes, from, to, [1, 1])])
    })
    expect(found).toEqual([
      [7, often],
      [8, 1],
    ])
  }))

it('gives up a beginning of too many words early, and only once', () =>
  withIndex(async (_, sql) => {
    sql.exec(
      `${COUNTED} INSERT INTO word_index (rowid, t0) SELECT i, 'b a' || (100000 + i) || ' a' || (200000 + i) FROM n`,
      15_000,
    )
    sql.exec(`INSERT INTO word_index (word_index) VALUES ('flush')`)
    let statements = 0
    const postings = new Postings(sql, 'word_index', (...asked) => {
      statements++
      return pace().read(...asked)
    })
    const visit = (word: string) => postings.visit(word, true, ALL, () => {})
    expect(visit('a10000')).toBe(9)
    statements = 0
    expect(() => visit('a')).toThrow(Unreadable)
    // The 30,000 words have some sixty pages. 2,000 are in the first five of them.
    expect(statements).toBeLessThan(20)
    statements = 0
    expect(() => visit('a')).toThrow(Unreadable)
    expect(statements).toBe(0)
    // Without what it remembered it reads again.
    postings.evict()
    expect(visit('a10000')).toBe(9)
    expect(statements).toBeGreaterThan(0)
  }))

it('finds and ranks the words with a beginning however many they are, in turns with others', () =>
  withIndex(async ({ context }, sql) => {
    sql.exec(
      `${COUNTED} INSERT INTO word_index (rowid, t0, t1)
         SELECT i * 3, iif(i % 5, 'b a' || (100000 + i), 'a' || (100000 + i)), iif(i % 7, 'c', 'a b' || i || ' a' || (i % 11)) FROM n`,
      15_000,
    )
    sql.exec(`${COUNTED} INSERT INTO documents (seq, id, body) SELECT i * 3, 'd' || i, '{}' FROM n`, 15_000)
    let pauses = 0
    for (const text of [
      '{t0 t1} : ("a" *)',
      '{t0} : ^ "a" *',
      '({t1} : ("a" *)) OR ({t0} : ("c"))',
      '({t1} : ("a" *)) AND ({t0} : ("b"))',
    ]) {
      const match = { match: text, table: 'word_index' as const, rank: 'bm25(2.0000, 1.0000)' }
      const turns = new Pace(new LongSearches({ ms: 1e9, rows: 200, width: 65_536 }))
      const all = await allMatches(
        context,
        wordsOf(match, () => fragment('1')),
        turns,
      )
      const rows = sql
        .exec<{ rowid: number; score: number }>(
          'SELECT rowid, rank AS score FROM word_index WHERE word_index MATCH ? AND rank MATCH ? ORDER BY rank, rowid DESC',
          text,
          match.rank,
        )
        .toArray()
      expect(all!.seqs.sort((a, b) => a - b)).toEqual(rows.map(({ rowid }) => rowid).sort((a, b) => a - b))
      expect(rows.length).toBeGreaterThan(1_000)
      pauses += turns.pauses
      turns.end()
      if (text.includes('^')) continue
      const best = await bestByPostings(context, match, all!, { wanted: 20, lacks: [] }, pace())
      const scores = new Map(rows.map(({ rowid, score }) => [rowid, score]))
      for (const { seq, score } of best!) expect(Math.abs(scores.get(seq)! - score)).toBeLessThan(1e-11)
      const last = Math.max(...best!.map(({ score }) => score))
      expect(rows.filter(({ score }) => score < last - 1e-11).length).toBeLessThanOrEqual(best!.length)
    }
    expect(pauses).toBeGreaterThan(20)
  }))

it('does not read past a page that is missing', () =>
  withIndex(async (_, sql) => {
    sql.exec(`${COUNTED} INSERT INTO word_index (rowid, t0) SELECT i, 'star' FROM n`, 20_000)
    sql.exec(`INSERT INTO word_index (word_index) VALUES ('flush')`)
    const { read } = pace()
    let lost = 0
    const postings = new Postings(sql, 'word_index', (storage, query) => {
      const rows = read<never>(storage, query)
      // Only reading the documents takes more than one page.
      if (rows.length < 2 || lost > 0) return rows
      lost++
      return rows.slice(1)
    })
    expect(() => postings.visit('star', false, ALL, () => {})).toThrow(Unreadable)
    expect(lost).toBe(1)
  }))

it('leaves documents to FTS5 as soon as too many are equally good', () =>
  withIndex(async ({ context }, sql) => {
    const count = 60_000
    sql.exec(`${COUNTED} INSERT INTO documents (seq, id, body) SELECT i, 'd' || i, '{}' FROM n`, count)
    sql.exec(`${COUNTED} INSERT INTO word_index (rowid, t0) SELECT i, 'star' FROM n`, count)
    const match = { match: '{t0} : ("star")', table: 'word_index' as const, rank: 'bm25(1.0, 1.0)' }
    const all = await allMatches(
      context,
      wordsOf(match, () => fragment('1')),
      pace(),
    )
    expect(all!.size).toBe(count)
    const counting = pace()
    const query = vi.spyOn(counting, 'query')
    expect(
      await bestByPostings(context, match, all!, { wanted: 10, lacks: [], few: 1 }, counting),
    ).toBeUndefined()
    let lengths = 0
    for (const [at, [, { sql: text }]] of query.mock.calls.entries()) {
      const [row] = query.mock.results[at]!.value as { ids: string }[]
      if (text.includes('_docsize')) lengths += JSON.parse(row!.ids).length
    }
    expect(lengths).toBeGreaterThan(20_000)
    expect(lengths).toBeLessThan(21_000)
  }))

it('reads a common word only where a rare one is that a document needs too', () =>
  withIndex(async ({ context }, sql) => {
    const count = 200_000
    sql.exec(`${COUNTED} INSERT INTO documents (seq, id, body) SELECT i, 'd' || i, '{}' FROM n`, count)
    sql.exec(
      `${COUNTED} INSERT INTO word_index (rowid, t0) SELECT i, iif(i % 90000 = 7, 'moon star', 'star') FROM n`,
      count,
    )
    const visited = vi.spyOn(Postings.prototype, 'visit')
    const match = { match: '{t0} : ("star") AND {t0} : ("moon")', table: 'word_index' as const, rank: '' }
    const all = await allMatches(
      context,
      wordsOf(match, () => fragment('1')),
      pace(),
    )
    expect(all!.seqs.toSorted((a, b) => a - b)).toEqual([7, 90_007, 180_007])
    const widths = visited.mock.calls.map(([text, , { low, high }]) => [text, high - low + 1])
    // Three blocks of the common word, and all of the rare one in one go.
    expect(widths.filter(([text]) => text === 'star')).toEqual(Array(3).fill(['star', BLOCK]))
    expect(widths.filter(([text]) => text === 'moon')).toHaveLength(1)
    visited.mockRestore()
  }))

it('leaves to FTS5 what it stems otherwise', () => {
  for (const word of ['flyyed', 'Yying']) {
    expect(parseExpression(`{t0} : ("${word}")`, { stems: true })).toBeUndefined()
    expect(parseExpression(`{t0} : ("${word.toLowerCase()}")`, { stems: false })).toBeDefined()
  }
})

it('leaves unknown signs to FTS5', () => {
  for (const text of [
    '{t0} : ("A b")',
    '{t0} : (NEAR("a b" "c", 9))',
    '{t0} : (NEAR("a" "b"))',
    '{t0} : ^ ("a")',
    '{t0} : ("A")',
    '{t0} : ("a" "b")',
    '{t0} : ("a"',
    '"a"',
    '',
  ]) {
    expect(parseExpression(text, { stems: false })).toBeUndefined()
  }
})
