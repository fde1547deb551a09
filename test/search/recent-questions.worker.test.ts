/** A follow-up does not search the question before it again, and finds the same. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import fc from 'fast-check'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { Alarm } from '../../src/durable/alarm'
import { unwrap } from '../../src/errors'
import { openCollection } from '../../src/search/collection/open'
import { writeMeta } from '../../src/search/meta'
import type { SearchContext } from '../../src/search/run/context'
import { LongSearches, Pace } from '../../src/search/run/pace'
import { RecentQuestions } from '../../src/search/run/recent-questions'
import { executeSearch } from '../../src/search/run/search'
import { BLOCK } from '../../src/search/schema/block'
import { readSchema } from '../../src/search/schema/stored'
import type { SearchParameters, SearchResult } from '../../src/search/types'
import { makeCollection, type TestCollection } from './make-collection'

const FIELDS = [
  { name: 'title', type: 'string' },
  { name: 'text', type: 'string' },
  { name: 'points', type: 'int32' },
  { name: 'v', type: 'float[]', num_dim: 2 },
]
const WORDS = ['wolf', 'hare', 'owl', 'bee', 'yew', 'fern', 'moss', 'crow']

/** More than the matches that are kept of a question. */
const COUNT = 1_300

const documents = Array.from({ length: COUNT }, (_, n) => ({
  id: `d${n}`,
  title: WORDS[(n * 5) % 8]!,
  text: Array.from({ length: 1 + (n % 7) }, (_, at) => WORDS[(n * at + (n >> 4)) % 8]).join(' '),
  points: n % 3,
  v: [Math.cos(n), Math.sin(n)],
}))

const QUESTION = {
  query_by: 'title,text',
  vector_query: 'v:([0.6,0.8])',
  drop_tokens_threshold: '1000000',
  prefix: 'false',
  match_stems: 'true',
  fusion: 'score',
  per_page: '40',
}

let things: TestCollection

beforeAll(async () => {
  things = await makeCollection(FIELDS, documents)
})

type Search = (context: SearchContext, params: SearchParameters) => Promise<SearchResult>

/** Runs in the object that holds the collection. `open` gives a context that remembers nothing. */
const inside = <Result>(work: (open: () => SearchContext, search: Search) => Promise<Result>) =>
  runInDurableObject(
    env.COLLECTION.get(env.COLLECTION.idFromName(things.objectId)),
    (_, { storage, id }: DurableObjectState) => {
      const around = { storage, env, objectId: String(id), alarm: new Alarm(storage) }
      const open = () => openCollection(around, readSchema(storage.sql)!).context
      return work(open, (context, params) => executeSearch(context, { ...QUESTION, ...params }))
    },
  )

const told = ({ search_time_ms: _, ...result }: SearchResult) => result

/** The text expressions whose scores a search reads. */
async function expressionsRead(context: SearchContext, work: (watched: SearchContext) => Promise<unknown>) {
  const read: string[] = []
  const exec: SqlStorage['exec'] = (query, ...bindings) => {
    if (query.includes('rank MATCH')) read.push(String(bindings[0]))
    return context.sql.exec(query, ...bindings)
  }
  await work(Object.create(context, { sql: { value: { exec } as SqlStorage } }))
  return read
}

describe('a follow-up', () => {
  it('reads the matches of its own words alone', () =>
    inside(async (open, search) => {
      const context = open()
      await search(context, { q: 'wolf hare' })
      const read = await expressionsRead(context, (watched) =>
        search(watched, { q: 'owl', context_q: 'wolf hare' }),
      )
      expect(read).toHaveLength(1)
      const again = await expressionsRead(open(), (watched) =>
        search(watched, { q: 'owl', context_q: 'wolf hare' }),
      )
      expect(again).toHaveLength(2)
      expect(read).toEqual(again.slice(0, 1))
    }))

  it('reads what was said before once for its own wording and its rewritten form', () =>
    inside(async (open, search) => {
      const context = open()
      const said = { context_q: 'wolf hare owl' }
      const own = await expressionsRead(context, (watched) => search(watched, { q: 'owl', ...said }))
      expect(own).toHaveLength(2)
      const rewritten = { q: 'owl fern', ...said }
      const read = await expressionsRead(context, (watched) => search(watched, rewritten))
      expect(read).toHaveLength(1)
      expect(told(await search(context, rewritten))).toEqual(told(await search(open(), rewritten)))
    }))

  it('reads the matches of its words once where they are searched alone', () =>
    inside(async (open, search) => {
      const asked = { vector_query: '', q: 'wolf hare owl', context_q: 'fern' }
      const read = await expressionsRead(open(), (watched) => search(watched, asked))
      expect(read).toHaveLength(2)
      expect(new Set(read).size).toBe(2)
    }))

  it('finds what it finds where nothing was searched before', () =>
    inside(async (open, search) => {
      const words = fc.uniqueArray(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 4 })
      await fc.assert(
        fc.asyncProperty(words, words, fc.boolean(), async (first, next, isFiltered) => {
          const context = open()
          const [q, context_q] = [next.join(' '), first.join(' ')]
          await search(context, { q: context_q })
          const filter: SearchParameters = isFiltered ? { filter_by: 'points:>0' } : {}
          const found = await search(context, { q, context_q, ...filter })
          expect(told(found)).toEqual(told(await search(open(), { q, context_q, ...filter })))
        }),
        { numRuns: 40 },
      )
    }))

  it('finds what was written since the question before it', async () => {
    const asked = { ...QUESTION, vector_query: 'v:([0.6,0.8], alpha: 0.1)' }
    const first = { ...asked, q: 'crow moss' }
    const next = { ...asked, q: 'badger', context_q: 'crow moss' }
    await things.search(first)
    const before = await things.search(next)
    unwrap(
      await things.object.write(
        JSON.stringify({
          id: 'new',
          title: 'crow moss',
          text: 'crow moss crow moss',
          points: 0,
          v: [-0.6, -0.8],
        }),
        { action: 'create' },
      ),
    )
    const after = await things.search(next)
    expect(before.hits!.map(({ document }) => document.id)).not.toContain('new')
    expect(after.hits!.map(({ document }) => document.id)).toContain('new')
  })
})

/** Two searches at once with the same context, in slices of a few documents. */
const together = (
  work: (sql: SqlStorage, others: LongSearches) => void = () => {},
  cutoff: SearchParameters = {},
): Promise<{ statements: string[]; found: (SearchResult | undefined)[]; alone: SearchResult[] }> =>
  inside(async (open, search) => {
    const plain = open()
    const others = new LongSearches({ ms: 1e9, rows: 400, width: 128 })
    const statements: string[] = []
    const exec: SqlStorage['exec'] = (query, ...bindings) => {
      if (query.includes('rank MATCH') && String(bindings[0]).includes('badger')) {
        statements.push(JSON.stringify(bindings))
        if (statements.length === 1) work(plain.sql, others)
      }
      return plain.sql.exec(query, ...bindings)
    }
    const context: SearchContext = Object.create(plain, { sql: { value: { exec } as SqlStorage } })
    const context_q = 'wolf hare badger'
    const asked: SearchParameters[] = [
      { q: 'owl', context_q, ...cutoff },
      { q: 'owl fern', context_q },
    ]
    const found = await Promise.allSettled(
      asked.map((params, at) =>
        executeSearch(context, { ...QUESTION, ...params }, {}, { others, ticket: `t${at}` }),
      ),
    )
    const alone = [await search(open(), asked[0]!), await search(open(), asked[1]!)]
    return {
      statements,
      found: found.map((each) => (each.status === 'fulfilled' ? each.value : undefined)),
      alone,
    }
  })

describe('two searches at once', () => {
  it('read what was said before once', async () => {
    const { statements, found, alone } = await together()
    expect(statements.length).toBeGreaterThan(3)
    expect(new Set(statements).size).toBe(statements.length)
    expect(found.map((each) => told(each!))).toEqual(alone.map(told))
  })

  it('read it twice if the first one is abandoned', async () => {
    const { statements, found, alone } = await together((_, others) => others.abandon('t0'))
    expect(found[0]).toBeUndefined()
    expect(told(found[1]!)).toEqual(told(alone[1]!))
    expect(new Set(statements).size).toBeLessThan(statements.length)
  })

  it('read it twice if something is written between', async () => {
    const { statements, found, alone } = await together((sql) =>
      sql.exec(`UPDATE documents SET id = id WHERE id = 'd0'`),
    )
    expect(found.map((each) => told(each!))).toEqual(alone.map(told))
    expect(new Set(statements).size).toBeLessThan(statements.length)
  })
})

it('keeps nothing of a search that was cut off, was abandoned or failed', async () => {
  const plain = { query_by: 'title,text', prefix: 'false', drop_tokens_threshold: '1000' }
  const question = 'wolf hare owl bee yew fern moss'
  const asks: SearchParameters[] = [
    { ...plain, q: question },
    { ...plain, q: `the ${question}`, page: '2', facet_by: 'points' },
    { ...plain, q: 'wolf owl', match_stems: 'true', fusion: 'score', context_q: question },
    { ...plain, q: 'owl', context_q: question },
    { ...plain, q: 'wolf', sort_by: '_text_match:desc' },
    { ...plain, q: 'w', prefix: 'true', page: '3' },
    { ...plain, q: 'wolf owl', filter_by: 'points:>1', group_by: 'points' },
  ]
  const shown = ({ found, hits = [], grouped_hits, facet_counts }: SearchResult) => [
    found,
    hits.map(({ document, text_match }) => [document.id, text_match]),
    grouped_hits?.map((group) => [group.group_key, group.found]),
    facet_counts,
  ]
  const large = await makeCollection(
    FIELDS.map((field) => ({ ...field, facet: field.name === 'points' })),
    [],
  )
  await runInDurableObject(
    env.COLLECTION.get(env.COLLECTION.idFromName(large.objectId)),
    async (_, { storage, id }: DurableObjectState) => {
      const around = { storage, env, objectId: String(id), alarm: new Alarm(storage) }
      const { writer, store, context } = openCollection(around, readSchema(storage.sql)!)
      // Gaps make the sequence numbers as many as those of a large collection.
      for (let from = 0; from < 400; from += 40) {
        const some = documents.slice(from, from + 40).map((document) => JSON.stringify(document))
        writer.write(some.map((document) => ({ document, action: 'create' })))
        writeMeta(storage.sql, 'counters', { nextSeq: store.nextSeq + BLOCK - 17, count: store.count })
        store.reset()
      }
      const forget = (): SearchContext => {
        context.columns.matches.clear()
        return Object.create(context, { questions: { value: new RecentQuestions() } })
      }
      // A search pauses wherever it can.
      vi.spyOn(Pace.prototype, 'used', 'get').mockReturnValue(1)
      let isLate = false
      const now = performance.now.bind(performance)
      vi.spyOn(performance, 'now').mockImplementation(() => (isLate ? Number.MAX_SAFE_INTEGER : now()))
      const ends: ((others: LongSearches) => void)[] = [
        () => {
          isLate = true
        },
        (others) => others.abandon('ticket'),
        () => {
          throw new Error('failed')
        },
      ]
      for (const asked of asks) {
        const whole = shown(await executeSearch(forget(), asked))
        let pauses = 1
        for (let at = 0; at < pauses; at += Math.ceil(pauses / 6)) {
          for (const end of ends) {
            const remembering = forget()
            const others = new LongSearches()
            let turns = 0
            vi.spyOn(others, 'turn').mockImplementation(async () => {
              if (turns++ === at) end(others)
            })
            await executeSearch(remembering, asked, {}, { others, ticket: 'ticket' }).catch(() => {})
            isLate = false
            pauses = Math.max(pauses, turns)
            expect(shown(await executeSearch(remembering, asked)), JSON.stringify([asked, at])).toEqual(whole)
          }
        }
        expect(pauses).toBeGreaterThan(1)
      }
    },
  )
  vi.restoreAllMocks()
}, 600_000)
