/**
 * Matches that are kept in memory: a collection whose sequence numbers take several statements answers as one does that takes
 * a single statement and keeps nothing, also after documents have changed.
 */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import fc from 'fast-check'
import { beforeAll, expect, it, vi } from 'vitest'
import { Alarm } from '../../src/durable/objects'
import { type Open, openCollection } from '../../src/search/collection/open'
import { removeAll } from '../../src/search/documents/bulk'
import { KeptBlocks, Memory } from '../../src/search/memory'
import { writeMeta } from '../../src/search/meta'
import { parseRequest } from '../../src/search/request/request'
import { runningAt } from '../../src/search/run/context'
import { LongSearches, Pace } from '../../src/search/run/pace'
import { queryOf } from '../../src/search/run/query-words'
import { DocumentScorer } from '../../src/search/run/ranking/documents'
import { wholeFields } from '../../src/search/run/ranking/plain'
import { executeSearch } from '../../src/search/run/search'
import { BLOCK } from '../../src/search/schema/column'
import { readSchema } from '../../src/search/schema/plan'
import type { SearchParameters } from '../../src/search/types'
import { makeCollection, type TestCollection } from './make-collection'
import { ALL_PASS } from './passing'

/** FUZZ_CASES says how many histories are tried. */
const CASES = Math.ceil((Number(env.FUZZ_CASES) || 100) / 10)

const FIELDS = [
  { name: 'title', type: 'string' },
  { name: 'text', type: 'string' },
  { name: 'kind', type: 'string', facet: true, sort: true },
  { name: 'points', type: 'int32', facet: true },
]
/** Common words first. Several begin alike. */
const WORDS = ['star', 'stone', 'start', 'moon', 'stare', 'more', 'moor', 'lake', 'sty', 'oak']

const words = (least: number, most: number) =>
  fc
    .array(fc.double({ min: 0, max: 0.999, noNaN: true }), { minLength: least, maxLength: most })
    .map((drawn) => drawn.map((at) => WORDS[Math.floor(at * at * WORDS.length)]).join(' '))

const texts = fc.record({
  title: words(1, 3),
  text: words(0, 6),
  kind: fc.constantFrom('fish', 'bird', 'tree'),
  points: fc.integer({ min: 0, max: 3 }),
})

type Step = { search: SearchParameters } | { put: Record<string, unknown> } | { remove: string }

const ids = fc.constantFrom('d0', 'd1', 'd77', 'd141', 'd239', 'new')

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .record({
        q: fc.oneof(
          words(1, 3).chain((q) => fc.constantFrom(q, q.slice(0, -1), `${q} -lake`, `* -${q}`)),
          fc.shuffledSubarray(WORDS, { minLength: 5 }).map((question) => question.join(' ')),
        ),
        prefix: fc.constantFrom('true', 'false'),
        page: fc.integer({ min: 1, max: 25 }),
        facet_by: fc.constantFrom('', 'kind'),
        sort_by: fc.constantFrom(
          '',
          '_text_match:desc',
          '_text_match:desc,points:asc',
          'points:desc',
          '_text_match:asc',
          'points:asc,_text_match:asc,kind:desc',
          'kind:desc',
          '_eval(points:>1):desc,points:asc,kind:asc',
        ),
        group: fc.constantFrom<SearchParameters>(
          {},
          {},
          {},
          { group_by: 'kind' },
          { group_by: 'kind,points', group_limit: '2' },
          { group_by: 'points', sort_by: '_group_found:desc,_text_match:desc' },
          { group_by: 'kind', sort_by: '_eval(points:>2):desc', group_limit: '1' },
        ),
        filter_by: fc.constantFrom(
          '',
          '',
          'points:>1',
          'kind:=[fish,tree] && points:<3',
          'title:lake || kind:bird',
        ),
        query_by: fc.constantFrom('title,text', 'text', 'title'),
        drop_tokens_threshold: fc.constantFrom('0', '1', '20'),
      })
      .map(({ q, page, group, ...rest }) => ({
        // There are few groups.
        search: { ...rest, ...group, q: q || 'star', page: 'group_by' in group ? '1' : String(page) },
      })),
  },
  { weight: 1, arbitrary: fc.tuple(ids, texts).map(([id, doc]) => ({ put: { ...doc, id } })) },
  { weight: 1, arbitrary: ids.map((id) => ({ remove: id })) },
)

const documents = fc.sample(texts, { numRuns: 400, seed: 16 }).map((doc, n) => ({ ...doc, id: `d${n}` }))

const inside = <Result>(
  { objectId }: TestCollection,
  run: (open: Open, state: DurableObjectState) => Promise<Result>,
): Promise<Result> =>
  runInDurableObject(
    env.COLLECTION.get(env.COLLECTION.idFromName(objectId)),
    (_, state: DurableObjectState) => {
      const { storage, id } = state
      const around = { storage, env, objectId: String(id), alarm: new Alarm(storage) }
      return run(openCollection(around, readSchema(storage.sql)!), state)
    },
  )

let narrow: TestCollection
let wide: TestCollection

const fill = (collection: TestCollection, gap: number, all: readonly object[] = documents) =>
  inside(collection, async ({ writer, store }, { storage }) => {
    for (let from = 0; from < all.length; from += 40) {
      const some = all.slice(from, from + 40).map((document) => JSON.stringify(document))
      writer.write(some.map((document) => ({ document, action: 'create' })))
      writeMeta(storage.sql, 'counters', { nextSeq: store.nextSeq + gap, count: store.count })
      store.reset()
    }
  })

beforeAll(async () => {
  narrow = await makeCollection(FIELDS, [], { default_sorting_field: 'points' })
  wide = await makeCollection(FIELDS, [], { default_sorting_field: 'points' })
  await fill(narrow, 0)
  await fill(wide, BLOCK - 17)
})

/** What each search finds, with the changes in between. */
const told = (collection: TestCollection, steps: readonly Step[]) =>
  inside(collection, async ({ context, writer, store }, { storage }) => {
    const seen: unknown[] = []
    for (const each of steps) {
      if ('put' in each) writer.write([{ document: JSON.stringify(each.put), action: 'upsert' }])
      else if ('remove' in each) {
        const seq = store.find([each.remove]).get(each.remove)
        if (seq !== undefined) removeAll(storage, store, [[seq, each.remove]])
      } else {
        const {
          found,
          hits = [],
          grouped_hits = [],
          facet_counts,
        } = await executeSearch(context, each.search)
        const shown = (some: typeof hits) =>
          some.map(({ document, text_match, highlights }) => [document.id, text_match, highlights])
        const groups = grouped_hits.map(({ hits: own, ...group }) => ({ ...group, page: shown(own) }))
        seen.push({ asked: each.search, found, page: shown(hits), groups, facet_counts })
      }
    }
    return seen
  })

it('answers the same with a gap between the numbers of its documents', async () => {
  const keep = vi.spyOn(KeptBlocks.prototype, 'set')
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), async (steps) => {
      const expected = await told(narrow, steps)
      expect(await told(wide, steps)).toEqual(expected)
    }),
    // A shrunk history would begin with other documents.
    { numRuns: CASES, endOnFailure: true },
  )
  expect(keep.mock.calls.some(([key, , , bytes]) => typeof key === 'string' && bytes > 0)).toBe(true)
  keep.mockRestore()
}, 600_000)

it('orders by a word of most documents those that are equal but for it', async () => {
  const all = Array.from({ length: 300 }, (_, n) => ({
    id: `e${n}`,
    title: ['oak oak oak', 'star oak oak', 'star star oak', 'star star star'][(n * 7) % 4],
    text: n % 3 ? 'by the moor' : 'by the lake',
    kind: 'fish',
    points: 0,
  }))
  const search = { q: 'star lake', query_by: 'title,text', prefix: 'false', per_page: '25' }
  const answers = await Promise.all(
    [0, BLOCK - 17].map(async (gap) => {
      const collection = await makeCollection(FIELDS, [])
      await fill(collection, gap, all)
      return await told(
        collection,
        ['1', '2', '3'].map((page) => ({ search: { ...search, page } })),
      )
    }),
  )
  expect(answers[1]).toEqual(answers[0])
  expect(answers[0]).toMatchObject([{ found: 75 }, {}, { page: { length: 25 } }])
})

it('hands FTS5 the ends of a range as whole numbers: it takes no limits from doubles', async () => {
  const statements = await inside(wide, async ({ context }, { storage }) => {
    const [row] = storage.sql.exec<{ type: string }>('SELECT typeof(?) AS type', 5).toArray()
    // If SqlStorage binds whole numbers some day, nothing has to be cast.
    expect(row).toEqual({ type: 'real' })
    const seen: string[] = []
    const exec: SqlStorage['exec'] = (query, ...bindings) => {
      seen.push(query)
      return storage.sql.exec(query, ...bindings)
    }
    const spied = Object.create(context, { sql: { value: { exec } } })
    const others = () => ({ others: new LongSearches() })
    const asked = { query_by: 'title,text', filter_by: 'text: star' }
    for (const q of ['star', 'star moon', 'more -lake', '-lake', 'star stone start moon stare more']) {
      await executeSearch(spied, { ...asked, q }, {}, others())
      await executeSearch(spied, { query_by: 'title,text', q }, {}, others())
    }
    return seen
  })
  const limited = statements.filter((query) => /rowid BETWEEN/.test(query))
  expect(limited.length).toBeGreaterThan(10)
  expect(limited.filter((query) => /rowid BETWEEN (?!CAST\(\? AS INTEGER\) AND CAST)/.test(query))).toEqual(
    [],
  )
})

it('forgets what was read before a write', () => {
  const memory = new KeptBlocks<string, string>()
  const { writes } = memory
  memory.forget(3)
  memory.set('star', 3, 'old', 1, writes)
  expect(memory.get('star', 3)).toBeUndefined()
  memory.set('star', 3, 'new', 1)
  memory.set('star', 4, 'other', 1)
  expect(memory.get('star', 3)).toBe('new')
  memory.forget(3)
  expect([memory.get('star', 3), memory.get('star', 4)]).toEqual([undefined, 'other'])
})

it('forgets in the middle of a search what an emptied collection had', () => {
  const memory = new KeptBlocks<string, string>()
  const { writes } = memory
  memory.clear()
  memory.set('star', 3, 'old', 1, writes)
  expect(memory.get('star', 3)).toBeUndefined()
})

it('counts the bytes of what it keeps, and drops what was asked for longest ago', () => {
  const budget = new Memory(1_500)
  const memory = new KeptBlocks<string, string>(budget)
  let one = 0
  for (const key of ['a', 'b', 'c']) {
    memory.set(key, 1, 'long', 600)
    memory.set(key, 1, 'short', 400)
    one ||= budget.bytes
    expect(budget.bytes).toBe(key === 'a' ? one : 2 * one)
    memory.get('a', 1)
  }
  expect(['a', 'b', 'c'].map((key) => memory.get(key, 1))).toEqual(['short', undefined, 'short'])
  memory.clear()
  expect(budget.bytes).toBe(0)
})

it('keeps nothing that a write during a pause has made wrong', async () => {
  const collection = await makeCollection(FIELDS, [])
  const other = { title: 'star moon', text: 'by the long lake', kind: 'fish', points: 0 }
  await fill(
    collection,
    BLOCK,
    Array.from({ length: 240 }, (_, n) => ({ ...other, id: `d${n}` })),
  )
  const pauses = await inside(collection, async ({ context, writer }) => {
    const change = (title: string) => {
      const document = JSON.stringify({ ...other, title, id: 'd239' })
      writer.write([{ document, action: 'upsert' }])
    }
    const request = parseRequest({ q: 'star', query_by: 'title,text' }, context.schema)
    const scorer = new DocumentScorer(context, request, queryOf(context, request).terms)
    const match = { match: '{t0 t1} : ^ "star"', table: 'word_index', rank: 'bm25(1.0)' } as const
    const tier = { match, tied: false, initial: match }
    const whole = (others: LongSearches) => {
      const running = runningAt(context, new Pace(others))
      return wholeFields({ context: running, request, scorer, filter: ALL_PASS, sort: [] }, tier)
    }
    // A search pauses wherever it can.
    const used = vi.spyOn(Pace.prototype, 'used', 'get').mockReturnValue(1)
    let pauses = 0
    for (let isPaused = true; isPaused; pauses++) {
      change('other lamp')
      context.columns.matches.clear()
      const others = new LongSearches()
      let turns = 0
      vi.spyOn(others, 'turn').mockImplementation(async () => {
        if (turns++ === pauses) change('star')
      })
      await whole(others)
      isPaused = turns > pauses
      if (!isPaused) change('star')
      const kept = await whole(new LongSearches())
      context.columns.matches.clear()
      expect(await whole(new LongSearches())).toEqual(kept)
      expect(kept).toHaveLength(1)
    }
    used.mockRestore()
    return pauses
  })
  expect(pauses).toBeGreaterThan(1)
}, 600_000)

it('orders and groups by score around a write during a pause, and keeps nothing that it made wrong', async () => {
  const collection = await makeCollection(FIELDS, [])
  const all = Array.from({ length: 400 }, (_, n) => ({
    id: `d${n}`,
    title: n % 3 ? 'star moon' : 'star',
    text: 'lake '.repeat(n % 5),
    kind: n % 2 ? 'fish' : 'bird',
    points: n % 2,
  }))
  await fill(collection, BLOCK - 17, all)
  const words = { q: 'star', query_by: 'title,text', per_page: '20' }
  const pauses = await inside(collection, async ({ context, writer }) => {
    const change = (document: object) =>
      writer.write([{ document: JSON.stringify({ ...all[7], ...document }), action: 'upsert' }])
    const search = async (params: SearchParameters, others = new LongSearches()) => {
      const { found, hits = [], grouped_hits = [] } = await executeSearch(context, params, {}, { others })
      const shown = [hits, ...grouped_hits.map((group) => group.hits)].map((some) =>
        some.map(({ document, text_match }) => [document.id, text_match] as const),
      )
      return { found, shown, ids: shown.flat().map(([id]) => id) }
    }
    const used = vi.spyOn(Pace.prototype, 'used', 'get').mockReturnValue(1)
    let most = 0
    // Each pause is one more run of all that is here: without FULL the first ones, and then one in three.
    const next = (pauses: number) => pauses + (env.FULL !== '' || pauses < 4 ? 1 : 3)
    const orders: SearchParameters[] = [
      { sort_by: 'points:desc' },
      { group_by: 'kind', group_limit: '10' },
      { sort_by: '_text_match:desc' },
    ]
    for (const order of orders) {
      const params = { ...words, ...order }
      change({})
      const before = await search(params)
      // As long as it is short, it comes first.
      const after = { title: 'star', text: '', points: 2 }
      for (let pauses = 0, isPaused = true; isPaused; pauses = next(pauses)) {
        change({})
        context.columns.evict()
        const others = new LongSearches()
        let turns = 0
        vi.spyOn(others, 'turn').mockImplementation(async () => {
          if (turns++ === pauses) change(after)
        })
        const during = await search(params, others)
        isPaused = turns > pauses
        most = Math.max(most, pauses)
        expect(during.found).toBe(before.found)
        expect(new Set(during.ids).size).toBe(during.ids.length)
        // In each list it may have come before the last of the others.
        const unchanged = ({ shown }: typeof before) =>
          shown.map((some) => some.flatMap(([id]) => (id === 'd7' ? [] : id)).slice(0, 9))
        expect(unchanged(during)).toEqual(unchanged(before))
        const kept = await search(params)
        context.columns.evict()
        expect(await search(params)).toEqual(kept)
        if (isPaused && order.sort_by === 'points:desc') expect(kept.ids[0]).toBe('d7')
      }
    }
    used.mockRestore()
    return most
  })
  expect(pauses).toBeGreaterThan(3)
}, 600_000)
