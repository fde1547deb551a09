/** What a search with `use_cache` may get from the cache: its own copy of a reply that a new search would give, too. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import { Alarm } from '../../src/durable/objects'
import { openCollection } from '../../src/search/collection/open'
import { search } from '../../src/search/run/cached-search'
import type { SearchContext } from '../../src/search/run/context'
import { LongSearches } from '../../src/search/run/pace'
import { readSchema } from '../../src/search/schema/plan'
import type { Curation } from '../../src/search/sets/curation'
import type { SearchParameters } from '../../src/search/types'
import { makeCollection, type TestCollection } from './make-collection'

let things: TestCollection

beforeAll(async () => {
  const documents = Array.from({ length: 20 }, (_, n) => ({
    id: `${n}`,
    title: `lantern ${n}`,
    lists: [[n], []],
  }))
  things = await makeCollection([{ name: 'title', type: 'string' }], documents)
})

afterEach(() => {
  vi.useRealTimers()
})

type Search = (params?: SearchParameters, seconds?: number) => ReturnType<typeof search>

/** Runs in the object that holds the collection, with a cache of its own. */
const inside = <Result>(work: (search: Search) => Promise<Result>, with_: Partial<SearchContext> = {}) =>
  runInDurableObject(
    env.COLLECTION.get(env.COLLECTION.idFromName(things.objectId)),
    (_, { storage, id }: DurableObjectState) => {
      const around = { storage, env, objectId: String(id), alarm: new Alarm(storage) }
      const context = { ...openCollection(around, readSchema(storage.sql)!).context, ...with_ }
      const sharing = { others: new LongSearches() }
      return work((params, seconds = 60) =>
        search(context, { q: 'lantern', query_by: 'title', ...params }, { cacheSeconds: seconds }, sharing),
      )
    },
  )

it('keeps the text of a reply, so that what becomes of one copy changes no other', async () => {
  await inside(async (ask) => {
    const { result, text } = await ask()
    expect(text).toBe(JSON.stringify(result))
    const before = structuredClone(result)
    result.hits![0]!.document.title = 'changed'
    const second = await ask()
    expect(second.text).toBe(text)
    expect(second.result).toEqual(before)
    second.result.hits!.length = 0
    expect((await ask()).result).toEqual(before)
  })
})

const EVERY: Curation = {
  id: 'a',
  rule: { query: 'lantern', match: 'exact', filter_by: '', tags: [] },
  includes: [],
  excludes: [],
  filter_by: '',
  sort_by: '',
  replace_query: '',
  remove_matched_tokens: false,
  filter_curated_hits: false,
  stop_processing: true,
}

/** How many documents are found at these unix seconds, in turn, with one curation. */
const foundAt = (curation: Curation, seconds: number[]) => {
  vi.useFakeTimers({ toFake: ['Date'] })
  const set = [curation]
  return inside(
    async (ask) => {
      const found: number[] = []
      for (const second of seconds) {
        vi.setSystemTime(1_000 * second)
        const { result } = await ask({ curation_sets: 'set' }, 999_999)
        found.push(result.found)
      }
      return found
    },
    { curationSet: async () => set },
  )
}

it('follows a curation that comes into effect, and one whose time is over', async () => {
  const hides = { ...EVERY, excludes: [{ id: '1' }] }
  expect(await foundAt({ ...hides, effective_from_ts: 5_000 }, [4_000, 4_999, 5_000, 6_000])).toEqual([
    20, 20, 19, 19,
  ])
  expect(await foundAt({ ...hides, effective_to_ts: 5_000 }, [4_000, 5_000, 5_001, 6_000])).toEqual([
    19, 19, 20, 20,
  ])
})

it('keeps no order by chance, also where a curation asks for it', async () => {
  const text = (curation: Curation, params = {}) => {
    const set = [curation]
    return inside(async (ask) => (await ask({ ...params, curation_sets: 'set' })).text, {
      curationSet: async () => set,
    })
  }
  expect(await text(EVERY)).toBeDefined()
  expect(await text(EVERY, { sort_by: '_rand():asc' })).toBeUndefined()
  expect(await text({ ...EVERY, sort_by: '_rand():asc' })).toBeUndefined()
})
