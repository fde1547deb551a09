/** Texts that were ranked lately are not read again, and searches find the same as without them. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, describe, expect, it } from 'vitest'
import { Alarm } from '../../src/durable/alarm'
import { unwrap } from '../../src/errors'
import { openCollection } from '../../src/search/collection/open'
import { Memory } from '../../src/search/memory'
import type { SearchContext } from '../../src/search/run/context'
import { RecentTexts, type Texts } from '../../src/search/run/recent-texts'
import { executeSearch } from '../../src/search/run/search'
import { readSchema } from '../../src/search/schema/stored'
import { analyzerOf, WORDS as WORDS_INDEX } from '../../src/search/text/analyzer'
import { PLAIN } from '../../src/search/text/words'
import type { SearchParameters } from '../../src/search/types'
import { idsOf, makeCollection, type TestCollection } from './make-collection'

const FIELDS = [
  { name: 'title', type: 'string' },
  { name: 'text', type: 'string' },
]
const WORDS = ['wolf', 'wolves', 'hare', 'owl', 'moss']

const documents = Array.from({ length: 40 }, (_, n) => ({
  id: `d${n}`,
  title: `${WORDS[n % 5]} ${WORDS[(n * 3) % 4]}`,
  text: Array.from({ length: 1 + (n % 6) }, (_, at) => WORDS[(n + at * at) % 5]).join(' '),
}))

let things: TestCollection

beforeAll(async () => {
  things = await makeCollection(FIELDS, documents)
})

/** Searches in the object that holds the collection, one after the other. @returns hits, and how many documents were ranked from storage */
const inside = (searches: SearchParameters[], texts: RecentTexts | undefined) =>
  runInDurableObject(
    env.COLLECTION.get(env.COLLECTION.idFromName(things.objectId)),
    async (_, { storage, id }: DurableObjectState) => {
      const around = { storage, env, objectId: String(id), alarm: new Alarm(storage) }
      const { context } = openCollection(around, readSchema(storage.sql)!)
      const replies = []
      for (const params of searches) {
        let read = 0
        const exec: SqlStorage['exec'] = (query, ...bindings) => {
          if (query.includes('AS unstored')) read += JSON.parse(String(bindings[0])).length
          return context.sql.exec(query, ...bindings)
        }
        const watched: SearchContext = Object.create(context, {
          sql: { value: { exec } as SqlStorage },
          texts: { value: texts },
        })
        const { hits, found } = await executeSearch(watched, { query_by: 'title,text', ...params })
        replies.push({ hits, found, read })
      }
      return replies
    },
  )

describe('texts that were ranked lately', () => {
  it('are not read again, and rank as if they were', async () => {
    const searches = ['wolf', 'wol', 'wolf hare', 'hare', 'ow', 'wolf']
      .flatMap((q): SearchParameters[] => [
        { q },
        { q, query_by: 'text' },
        { q, query_by: 'text,title', per_page: '40' },
      ])
      .map((params): SearchParameters => ({ ...params, num_typos: '0' }))
    const kept = await inside(searches, new RecentTexts())
    const fresh = await inside(searches, undefined)
    expect(kept.map(({ hits, found }) => [found, hits])).toEqual(
      fresh.map(({ hits, found }) => [found, hits]),
    )
    expect(kept[0]!.read).toBeGreaterThan(0)
    expect(kept.slice(-3).map(({ read }) => read)).toEqual([0, 0, 0])
    expect(fresh.at(-1)!.read).toBeGreaterThan(0)
  })

  it('are read again after a write', async () => {
    const search = async () => idsOf(await things.search({ q: 'fern yew', query_by: 'title' }))
    const put = async (id: string, title: string) =>
      unwrap(await things.object.write(JSON.stringify({ id, title, text: '' }), { action: 'upsert' }))
    await put('one', 'fern yew')
    await put('other', 'yew fern')
    expect(await search()).toEqual(['one', 'other'])
    expect(await search()).toEqual(['one', 'other'])
    await put('one', 'yew fern')
    await put('other', 'fern yew')
    expect(await search()).toEqual(['other', 'one'])
  })

  it('take no more memory than they may: the ones used longest ago go first', () => {
    const recent = new RecentTexts(new Memory(8 << 20))
    const fields = [{ analyzer: analyzerOf(WORDS_INDEX, PLAIN), name: 'text', texts: ['я'.repeat(20_000)] }]
    const texts = (): Texts => ({ length: 20_000, fields })
    for (let seq = 0; seq < 1_000; seq++) {
      recent.keep(seq, texts())
      recent.find(0)
    }
    expect(recent.find(0)).toBeDefined()
    expect(recent.find(1)).toBeUndefined()
    expect(recent.find(999)).toBeDefined()
    const kept = Array.from({ length: 1_000 }, (_, seq) => recent.find(seq)).filter(Boolean).length
    expect(kept * 2 * 20_000).toBeLessThanOrEqual(8 << 20)
    recent.keep(2_000, { length: 20_001, fields })
    expect(recent.find(2_000)).toBeUndefined()
  })
})
