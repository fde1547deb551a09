/** What a search does that is not a slice of its own: filters in its order, and joins. They leave others their turn, and end with it. */

import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect, it, vi } from 'vitest'
import { Alarm } from '../../src/durable/objects'
import { ApiError } from '../../src/errors'
import { openCollection } from '../../src/search/collection/open'
import { writeMeta } from '../../src/search/meta'
import { LongSearches } from '../../src/search/run/pace'
import { executeSearch } from '../../src/search/run/search'
import { BLOCK } from '../../src/search/schema/column'
import { readSchema } from '../../src/search/schema/plan'
import type { JoinPlace, JoinQuestion, SearchParameters, SearchResult } from '../../src/search/types'
import { makeCollection } from './make-collection'

it('lets others in while a filter of `_eval` reads documents', async () => {
  const fields = [
    { name: 'parts', type: 'object[]' },
    { name: 'parts.a', type: 'int32[]' },
    { name: 'parts.b', type: 'int32[]' },
  ]
  const documents = Array.from({ length: 400 }, (_, n) => ({ parts: [{ a: n % 2, b: n }] }))
  const things = await makeCollection(fields, documents, { enable_nested_fields: true })
  const stub = env.COLLECTION.get(env.COLLECTION.idFromName(things.objectId))
  await runInDurableObject(stub, async (_, { storage }: DurableObjectState) => {
    const around = { storage, env, objectId: things.objectId, alarm: new Alarm(storage) }
    const { context } = openCollection(around, readSchema(storage.sql)!)
    const others = new LongSearches({ ms: 1e9, rows: 5_000, width: 1e9 })
    const turn = vi.spyOn(others, 'turn')
    const params = { q: '*', sort_by: '_eval(parts.{a:=1 && b:>=30}):desc', per_page: '5' }
    const { hits } = await executeSearch(context, params, {}, { others })
    expect(hits!.map(({ document }) => (document.parts as { b: number }[])[0]!.b)).toEqual([
      399, 397, 395, 393, 391,
    ])
    expect(turn.mock.calls.length).toBeGreaterThan(0)
  })
})

it('ends when it is abandoned while it waits for a join, and so does the join', async () => {
  const things = await makeCollection([{ name: 'n', type: 'int32' }], [{ n: 1 }])
  const stub = env.COLLECTION.get(env.COLLECTION.idFromName(things.objectId))
  await runInDurableObject(stub, async (_, { storage }: DurableObjectState) => {
    const around = { storage, env, objectId: things.objectId, alarm: new Alarm(storage) }
    const { context } = openCollection(around, readSchema(storage.sql)!)
    const others = new LongSearches()
    const abandoned: (string | undefined)[] = []
    let leave = (_: unknown): void => {}
    const place = { objectId: 'there', name: 'there', history: false }
    const asked: JoinQuestion[] = []
    const port = {
      ...context.port!,
      ask: (_: JoinPlace, question: JoinQuestion) => {
        asked.push(question)
        return new Promise<never>((__, reject) => {
          leave = reject
        })
      },
      abandon: (_: JoinPlace, ticket: string) => {
        abandoned.push(ticket)
        leave(new ApiError(499, 'gone'))
      },
    }
    const joined = Object.create(context, { port: { value: port } })
    const sharing = { others, ticket: 'j' }
    const search = executeSearch(
      joined,
      { q: '*', filter_by: '$there(id:*)' },
      { joins: { there: place } },
      sharing,
    )
    await vi.waitFor(() => expect(asked).toHaveLength(1))
    others.abandon('j')
    await expect(search).rejects.toMatchObject({ status: 499 })
    expect(abandoned).toEqual([asked[0]!.ticket])
  })
})

it('lets others in while it prepares many values and compares pinned documents, and ends there when its caller leaves', async () => {
  const documents = Array.from({ length: 40 }, (_, n) => ({ id: `${n}`, uid: `u${n}`, other: 'y' }))
  const fields = ['uid', 'other'].map((name) => ({ name, type: 'string' }))
  const things = await makeCollection(fields, documents)
  const stub = env.COLLECTION.get(env.COLLECTION.idFromName(things.objectId))
  await runInDurableObject(stub, async (_, { storage }: DurableObjectState) => {
    const around = { storage, env, objectId: things.objectId, alarm: new Alarm(storage) }
    const { context } = openCollection(around, readSchema(storage.sql)!)
    const asked = async (params: object, rows: number, leavesAt = Number.POSITIVE_INFINITY) => {
      const others = new LongSearches({ ms: 1e9, rows, width: 1e9 })
      const turn = vi.spyOn(others, 'turn')
      const { turn: original } = LongSearches.prototype
      turn.mockImplementation(() => {
        if (turn.mock.calls.length === leavesAt) others.abandon('it')
        return original.call(others)
      })
      const result = await executeSearch(context, { q: '*', ...params }, {}, { others, ticket: 'it' }).catch(
        ({ status }) => ({ found: status }),
      )
      return [turn.mock.calls.length, result.found]
    }
    for (const [number, before, after] of [
      [1, 'uid:[', ']'],
      [2, 'other:x || uid:[', ']'],
      [3, 'other:y && (uid:!=[z, ', '] || uid:u1)'],
    ] as const) {
      const listed = (count: number) =>
        `${before}${Array.from({ length: count }, (_, n) => `u${n + 30}`).join(',')}${after}`
      const found = number === 3 ? 30 : 10
      expect(await asked({ filter_by: listed(1_999) }, 30_000)).toEqual([0, found])
      expect(await asked({ filter_by: listed(20_000 + number) }, 30_000)).toEqual([10, found])
      expect(await asked({ sort_by: `_eval(${listed(20_000 + number * 10)}):desc` }, 30_000)).toEqual([
        10, 40,
      ])
      expect(await asked({ filter_by: listed(21_000 + number) }, 30_000, 2)).toEqual([2, 499])
    }
    const pinned = {
      filter_by: 'other:x || uid:u1*',
      filter_curated_hits: 'true',
      pinned_hits: documents.map(({ id }, n) => `${id}:${n + 1}`).join(','),
    }
    expect(await asked(pinned, 1e9)).toEqual([0, 11])
    expect((await asked(pinned, 100))[0]).toBeGreaterThan(1)
    expect(await asked(pinned, 100, 2)).toEqual([2, 499])
  })
})

it('lets others in while it loads vectors', async () => {
  // Two numbers each, so that a slice of few rows holds many of them.
  const documents = Array.from({ length: 4_100 }, (_, n) => ({ title: 'x', v: [Math.cos(n), Math.sin(n)] }))
  const fields = [
    { name: 'title', type: 'string' },
    { name: 'v', type: 'float[]', num_dim: 2 },
  ]
  const things = await makeCollection(fields, documents)
  const stub = env.COLLECTION.get(env.COLLECTION.idFromName(things.objectId))
  await runInDurableObject(stub, async (_, { storage }: DurableObjectState) => {
    const around = { storage, env, objectId: things.objectId, alarm: new Alarm(storage) }
    const { context } = openCollection(around, readSchema(storage.sql)!)
    const asked = async () => {
      const others = new LongSearches({ ms: 1e9, rows: 10, width: 1e9 })
      const turn = vi.spyOn(others, 'turn')
      const params = { q: '*', vector_query: 'v:([1, 0], k: 3)' }
      const { hits } = await executeSearch(context, params, {}, { others })
      return { turns: turn.mock.calls.length, found: hits!.map(({ document }) => document.id) }
    }
    const first = await asked()
    const second = await asked()
    expect(first.turns).toBeGreaterThan(second.turns)
    expect(second.turns).toBeGreaterThan(0)
    expect(second.found).toEqual(first.found)
  })
})

/** A collection whose last 20 documents are in a block of their own, searched a block at a time. */
async function inTwoBlocks(
  run: (search: (params: SearchParameters, rows?: number) => Promise<SearchResult>) => Promise<void>,
): Promise<void> {
  const documents = Array.from({ length: 60 }, (_, n) => ({ id: `d${n}`, n, kind: `k${n % 3}` }))
  const fields = [
    { name: 'n', type: 'int32' },
    { name: 'kind', type: 'string', facet: true },
  ]
  const things = await makeCollection(fields, documents.slice(0, 40))
  const stub = env.COLLECTION.get(env.COLLECTION.idFromName(things.objectId))
  await runInDurableObject(stub, async (_, { storage }: DurableObjectState) => {
    const around = { storage, env, objectId: things.objectId, alarm: new Alarm(storage) }
    const { context, store, writer } = openCollection(around, readSchema(storage.sql)!)
    writeMeta(storage.sql, 'counters', { nextSeq: BLOCK, count: store.count })
    store.reset()
    const lines = documents.slice(40).map((document) => JSON.stringify(document))
    writer.write(lines.map((document) => ({ document, action: 'create' })))
    await run((params, rows = 1e9) =>
      executeSearch(context, params, {}, { others: new LongSearches({ ms: 1e9, rows, width: 1e9 }) }),
    )
  })
}

it('is cut off, and answers with what it has found', () =>
  inTwoBlocks(async (search) => {
    const params = {
      ...{ q: '*', filter_by: 'id:!=none', sort_by: 'n:asc', facet_by: 'kind' },
      ...{ search_cutoff_ms: '0', per_page: '250' },
    }
    const result = await search(params, 1)
    expect(result.search_cutoff).toBe(true)
    // The newest ones.
    expect(result.hits!.map(({ document }) => document.n)).toEqual(
      Array.from({ length: 20 }, (_, n) => n + 40),
    )
    expect((await search({ ...params, group_by: 'kind' }, 1)).search_cutoff).toBe(true)
    expect((await search(params)).search_cutoff).toBe(false)
  }))

it('is answered with 408 when it is cut off and has found nothing', () =>
  inTwoBlocks(async (search) => {
    const params = { q: '*', filter_by: 'id:d0', search_cutoff_ms: '0' }
    await expect(search(params, 1)).rejects.toMatchObject({ status: 408, message: 'Request Timeout' })
  }))
