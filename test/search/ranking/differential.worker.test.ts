/**
 * Plain searches against an exhaustive one in memory: which documents match, their order on every page, counts, facets and
 * highlights. The reference reads every document. It asks FTS5 only for BM25, where there are more matches than a search
 * reads.
 */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Occurrence, scoreDocument } from '../../../src/search/run/ranking/score'
import { makeCollection, type TestCollection } from '../make-collection'

const FIELDS = [
  { name: 'title', type: 'string' },
  { name: 'text', type: 'string' },
  { name: 'points', type: 'int32' },
  { name: 'kind', type: 'string', facet: true },
]

/** Common words first. Several begin alike. */
const WORDS = [
  'star',
  'stone',
  'start',
  'moon',
  'stare',
  'more',
  'moor',
  'stony',
  'lake',
  'lamp',
  'sty',
  'oak',
]
const KINDS = ['fish', 'bird', 'tree']
/** Matches that are all read. Of each tier, so many are. */
const FEW = 64

interface Row {
  seq: number
  id: string
  title: string
  text: string
  points: number
  kind: string
}

interface Asked {
  words: string[]
  prefix: boolean
  page: number
  perPage: number
  least: number
  sort: '' | '_text_match:desc,points:asc'
}

/** The same numbers for the same seed. */
function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

function rowsOf(seed: number, count: number): Row[] {
  const next = random(seed)
  const words = (least: number, most: number) =>
    Array.from(
      { length: least + Math.floor(next() * (most - least + 1)) },
      () => WORDS[Math.floor(next() ** 2 * WORDS.length)]!,
    ).join(' ')
  return Array.from({ length: count }, (_, seq) => ({
    seq,
    id: `d${seq}`,
    title: words(1, 3),
    text: words(0, 7),
    points: Math.floor(next() * 4),
    kind: KINDS[Math.floor(next() * 3)]!,
  }))
}

const texts = ({ title, text }: Row): string[][] =>
  [title, text].map((value) => value.split(' ').filter((word) => word !== ''))

/** What a search for these words has to find and mark. */
class Query {
  constructor(
    readonly words: string[],
    readonly prefix: boolean,
  ) {}

  /** The number of the query's word that a word is, and its cost; undefined for none. */
  read(word: string): { word: number; cost: number } | undefined {
    const own = this.words.indexOf(word)
    if (own >= 0) return { word: own, cost: 0 }
    const last = this.words.length - 1
    return this.prefix && word.startsWith(this.words[last]!) ? { word: last, cost: 1 } : undefined
  }

  matches(row: Row, words: string[]): boolean {
    const all = texts(row).flat()
    return words.every((wanted) =>
      all.some(
        (word) => word === wanted || (this.prefix && wanted === this.words.at(-1) && word.startsWith(wanted)),
      ),
    )
  }

  score(row: Row): { rank: number; whole: boolean } {
    const readings = texts(row).map((words) => {
      const occurrences = words.flatMap((each, token): Occurrence[] => {
        const found = this.read(each)
        return found === undefined ? [] : [{ token, ...found }]
      })
      return { length: words.length, occurrences, begins: occurrences[0]?.token === 0 }
    })
    const { rank } = scoreDocument(
      readings.map((reading, index) => ({ weight: 15 - index, texts: [reading] })),
      {
        type: 'max_score',
        exactMatch: true,
        tokenPosition: false,
        matchingFields: true,
        sequence: this.words.map((_, index) => index),
      },
    )
    return { rank, whole: texts(row).some((words) => words.join(' ') === this.words.join(' ')) }
  }

  marked(text: string): string {
    return text
      .split(' ')
      .map((word) => {
        const found = this.read(word)
        if (found === undefined) return word
        const length = found.cost === 0 ? word.length : this.words.at(-1)!.length
        return `<mark>${word.slice(0, length)}</mark>${word.slice(length)}`
      })
      .join(' ')
  }

  /** How well a text fits, for the order of highlights: the words of a window of ten, and how close they are. */
  fit(text: string): number {
    const found = text.split(' ').map((word) => this.read(word)?.word)
    const windows = found.flatMap((_, from) =>
      Array.from({ length: Math.min(10, found.length - from) }, (__, length) => {
        const words = new Set(found.slice(from, from + length + 1).filter((word) => word !== undefined))
        return words.size * 10 - length
      }),
    )
    return Math.max(0, ...windows)
  }

  /** What decides in turn which matches a search with many of them reads. */
  tiers(all: string): string[] {
    const quoted = this.words.map((word) => `"${word}"`)
    const both = (inside: string) => `{t0 t1} : ${inside}`
    if (quoted.length > 1) {
      const near = both(`NEAR(${quoted.join(' ')}, 9)`)
      const phrase = both(`"${this.words.join(' ')}"`)
      if (!this.prefix) return [phrase, near, all]
      const begun = `^ "${this.words.join(' ')}" *`
      return [
        phrase,
        `(${phrase}) OR ({t0} : ${begun})`,
        `(${near}) OR (${both(begun)})`,
        `(${near}) OR (${phrase} *)`,
        all,
      ]
    }
    const [word] = quoted
    const title = `{t0} : (${word})`
    if (!this.prefix) return [title, all]
    return [title, both(`(${word})`), `(${both(`(${word})`)}) OR ({t0} : (${word}*))`, all]
  }
}

/** What an expression matches. */
const matched = ({ objectId }: TestCollection, match: string): Promise<Set<number>> =>
  runInDurableObject(env.COLLECTION.get(env.COLLECTION.idFromName(objectId)), (_, { storage }) => {
    const query = 'SELECT rowid AS seq FROM word_index WHERE word_index MATCH ?'
    return new Set(
      storage.sql
        .exec<{ seq: number }>(query, match)
        .toArray()
        .map(({ seq }) => seq),
    )
  })

/** All matches in order. */
async function inOrder(
  things: TestCollection,
  rows: Row[],
  query: Query,
  asked: Asked,
): Promise<{ rows: Row[]; needed: string[][] }> {
  const passing = rows.filter(({ points }) => points >= asked.least)
  const { words } = query
  const needed = [words]
  const drops = [...words.keys()].slice(1).map((count) => words.slice(0, words.length - count))
  drops.push(...[...words.keys()].slice(1).map((count) => words.slice(count)))
  const passed = () => passing.filter((row) => needed.some((some) => query.matches(row, some)))
  for (const kept of drops) {
    if (passed().length > 0) break
    needed.push(kept)
  }
  const direction = asked.sort === '' ? -1 : 1
  const byPoints = (a: Row, b: Row) => direction * (a.points - b.points)
  const scores = new Map(rows.map((row) => [row.seq, query.score(row)]))
  const byFit = (a: Row, b: Row): number => {
    const [one, other] = [scores.get(a.seq)!, scores.get(b.seq)!]
    return other.rank - one.rank || byPoints(a, b) || b.seq - a.seq
  }
  const matching = passed()
  if (matching.length <= FEW) return { rows: matching.toSorted(byFit), needed }

  const expression = (some: string[]) =>
    some.map((word) => `"${word}"${query.prefix && word === words.at(-1) ? '*' : ''}`).join(' AND ')
  const all = needed.map((some) => `({t0 t1} : (${expression(some)}))`).join(' OR ')
  const tiers = needed.length === 1 ? query.tiers(all) : [all]
  const found = await Promise.all(
    tiers.map(async (match) => {
      const seqs = await matched(things, match)
      return passing.filter(({ seq }) => seqs.has(seq))
    }),
  )
  expect(new Set(found.at(-1))).toEqual(new Set(matching))

  let first = found.length - 1
  while (first > 0 && (first === found.length - 1 || found[first]!.length > FEW)) first--
  const isFew = first < found.length - 1 && found[first]!.length <= FEW
  const order: Row[] = []
  const taken = new Set<number>()
  const take = (some: Row[]) => {
    for (const row of some) taken.add(row.seq)
    order.push(...some)
  }
  if (!isFew && tiers.length > 1) {
    const begins = (row: Row) =>
      texts(row).some((each) => `${each.join(' ')} `.startsWith(`${words.join(' ')} `))
    const isShort = ({ title, text }: Row) =>
      [title, text].some((each) => each.length <= words.join(' ').length + 1)
    const initial = passing.filter((row) => begins(row) && isShort(row))
    if (initial.length <= FEW) take(initial.filter(({ seq }) => scores.get(seq)!.whole).toSorted(byFit))
  }
  // Those that are read are the first by the other keys, in each tier.
  const byKeys = (a: Row, b: Row) => byPoints(a, b) || b.seq - a.seq
  for (const here of found.slice(first)) {
    const left = here.filter(({ seq }) => !taken.has(seq)).toSorted(byKeys)
    take(left.slice(0, FEW).toSorted(byFit))
    take(left.slice(FEW))
  }
  return { rows: order, needed }
}

const asking: fc.Arbitrary<Asked> = fc
  .record({
    words: fc.uniqueArray(fc.nat(WORDS.length - 1), { minLength: 1, maxLength: 4 }),
    cut: fc.integer({ min: 0, max: 3 }),
    prefix: fc.boolean(),
    page: fc.integer({ min: 1, max: 9 }),
    perPage: fc.integer({ min: 1, max: 25 }),
    least: fc.constantFrom(0, 0, 0, 1, 3),
    sort: fc.constantFrom('' as const, '_text_match:desc,points:asc' as const),
  })
  .map(({ words: numbers, cut, ...others }) => {
    const words = numbers.map((number) => WORDS[number]!)
    const last = words.pop()!
    const begun = others.prefix ? last.slice(0, Math.max(2, last.length - cut)) : last
    return { ...others, words: words.includes(begun) ? [...words, last] : [...words, begun] }
  })

/** Seeds, each with a number of documents. */
const COLLECTIONS: [number, number][] = [
  [1, 40],
  [3, 320],
]
const MORE: [number, number][] = [
  [2, 150],
  [4, 600],
]

describe.each(env.FULL ? [...COLLECTIONS, ...MORE] : COLLECTIONS)(
  'a collection of seed %i with %i documents',
  (seed, count) => {
    it('is searched as if every document was read', { timeout: 300_000 }, async () => {
      const rows = rowsOf(seed, count)
      const things = await makeCollection(
        FIELDS,
        rows.map(({ seq: _, ...row }) => row),
        { default_sorting_field: 'points' },
      )
      await fc.assert(
        fc.asyncProperty(asking, async (asked) => {
          const { words, prefix, page, perPage, least, sort } = asked
          const query = new Query(words, prefix)
          const expected = await inOrder(things, rows, query, asked)
          const result = await things.search({
            q: words.join(' '),
            query_by: 'title,text',
            prefix: String(prefix),
            num_typos: '0',
            page: String(page),
            per_page: String(perPage),
            facet_by: 'kind',
            ...(least > 0 && { filter_by: `points:>=${least}` }),
            ...(sort !== '' && { sort_by: sort }),
          })
          const shown = expected.rows.slice(perPage * (page - 1), perPage * page)
          expect(result.found).toBe(expected.rows.length)
          expect(result.hits!.map(({ document }) => document.id)).toEqual(shown.map(({ id }) => id))
          expect(
            result.hits!.map(({ highlights }) => highlights!.map(({ field, snippet }) => [field, snippet])),
          ).toEqual(
            shown.map((row) =>
              (['title', 'text'] as const)
                .toSorted((a, b) => query.fit(row[b]) - query.fit(row[a]))
                .map((field) => [field, query.marked(row[field])])
                .filter(([, snippet]) => snippet!.includes('<mark>')),
            ),
          )
          const counts = Object.fromEntries(
            result.facet_counts![0]!.counts.map(({ value, count: found }) => [value, found]),
          )
          const kinds = Object.groupBy(expected.rows, ({ kind }) => kind)
          expect(counts).toEqual(
            Object.fromEntries(Object.entries(kinds).map(([kind, some]) => [kind, some!.length])),
          )
        }),
        { numRuns: 500 },
      )
    })
  },
)
