/** What a search with `use_cache` may get from the cache: its own copy of a reply that a new search would give, too. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import { Alarm } from '../../src/alarm'
import { openCollection } from '../../src/search/collection/open'
import { search } from '../../src/search/run/cached-search'
import type { SearchContext } from '../../src/search/run/context'
import { LongSearches } from '../../src/search/run/pace'
import { readSchema } from '../../src/search/schema/stored'
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
