/** Another model for an embedding field: the old one serves until the new one can, and nothing is ever mixed. */
import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { unwrap } from '../../src/errors'
import type { CollectionRpc } from '../../src/search/collection/handle'
import { InferenceUpstreamError } from '../models/workers-ai/errors'
import type { Call } from '../models/workers-ai/workers-ai'
import {
  BASE,
  changeTo,
  drained,
  embedding,
  expectVectors,
  found,
  newTitles,
  Provider,
  SMALL,
  summaryOf,
  textsOf,
} from './embedding-stage'
import { exportAll, importAll, newCollection } from './object'

const provider = new Provider()
beforeEach(() => provider.reset())

const FLOWER = 'orchids bloom tonight'

const titles = (count: number, from = 0) =>
  Array.from({ length: count }, (_, n) => ({
    id: `d${from + n}`,
    title: from + n === 0 ? FLOWER : `title number ${from + n}`,
  }))

const byNew = ({ model }: Call): boolean => model === BASE
const NEAREST = { q: FLOWER, query_by: 'e', exclude_fields: 'e', per_page: '1' }

async function embeddedTitles(count: number) {
  const made = await newTitles()
  await importAll(made.object, titles(count))
  await drained(made.object)
  provider.ai.calls.length = 0
  return made
}

/** The tables of vectors that an object has. */
const tablesOf = (again: CollectionRpc): Promise<string[]> =>
  runInDurableObject(again as never, (_, { storage }) =>
    storage.sql
      .exec<{ name: string }>("SELECT name FROM sqlite_master WHERE name LIKE 'vectors%' ORDER BY name")
      .toArray()
      .map(({ name }) => name),
  )

const dimensionsOf = async (object: CollectionRpc): Promise<unknown> =>
  ((await summaryOf(object)).fields as { name: string; num_dim?: number }[]).find(({ name }) => name === 'e')
    ?.num_dim

describe('a field on its way to another model', () => {
  it('serves by the old one until all vectors are there, and then changes as a whole', async () => {
    const { object, again } = await embeddedTitles(250)
    provider.hold(byNew)
    expect(await object.alter(changeTo(BASE))).toMatchObject({ ok: true })
    await provider.called(1)
    expect(await summaryOf(object)).toMatchObject({
      pending_embeddings: 250,
      replacing_embeddings: [{ name: 'e', num_dim: 768, model_name: `cloudflare/${BASE}`, pending: 250 }],
    })
    expect(await dimensionsOf(object)).toBe(384)
    provider.ai.calls.length = 0
    expect(await found(object, NEAREST)).toEqual([FLOWER])
    expect(provider.ai.calls.map(({ model }) => model)).toEqual([SMALL])

    // What is written meanwhile is found by the old model as well, and part of the change.
    await importAll(object, [{ id: 'late', title: 'a late title' }])
    await object.patch('d3', '{"title":"title of another number"}')
    await object.remove('d4', false)
    await vi.waitFor(async () =>
      expect(await summaryOf(object)).toMatchObject({ pending_embeddings: 251 - 1 }),
    )
    expect(await found(object, { ...NEAREST, q: 'a late title' })).toEqual(['a late title'])
    await expectVectors(object)

    provider.release()
    const seen = new Set<string>()
    await vi.waitFor(async () => {
      // One search sees one moment; an export lets others in between.
      const { hits } = unwrap(await object.search({ q: '*', per_page: '250' }))
      const sizes = new Set(hits!.map(({ document }) => (document.e as number[]).length))
      seen.add([...sizes].join(' and '))
      expect(await dimensionsOf(object)).toBe(768)
    }, 10_000)
    // At no moment were there vectors of both.
    for (const sizes of seen) expect(['384', '768']).toContain(sizes)
    await expectVectors(object, { model: BASE })
    expect((await exportAll(object)).length).toBe(250)
    const summary = await summaryOf(object)
    expect(summary).not.toHaveProperty('pending_embeddings')
    expect(summary).not.toHaveProperty('replacing_embeddings')
    expect(await dimensionsOf(object)).toBe(768)
    provider.ai.calls.length = 0
    expect(await found(object, { ...NEAREST, q: 'a late title' })).toEqual(['a late title'])
    expect(provider.ai.calls.map(({ model }) => model)).toEqual([BASE])
    await vi.waitFor(async () => expect(await tablesOf(again())).toHaveLength(1))
  })

  it('can be as large as it wants to be', { timeout: 30_000 }, async () => {
    const { object, again } = await newTitles()
    for (let from = 0; from < 2_000; from += 500) await importAll(object, titles(500, from))
    await drained(object)
    await object.alter(changeTo(BASE))
    await drained(object)
    await expectVectors(object, { model: BASE })
    expect((await exportAll(object)).length).toBe(2_000)
    await vi.waitFor(async () => expect(await tablesOf(again())).toHaveLength(1), 10_000)
  })

  it('takes no other change before it is done', async () => {
    const { object } = await embeddedTitles(5)
    provider.hold(byNew)
    await object.alter(changeTo(BASE))
    await provider.called(1)
    const busy = { status: 422, message: 'Another collection update operation is in progress.' }
    expect(await object.alter(changeTo(SMALL))).toEqual({ ok: false, error: busy })
    expect(await object.alter({ metadata: {} })).toEqual({ ok: false, error: busy })
    provider.release()
    await drained(object)
    expect(await object.alter({ metadata: {} })).toMatchObject({ ok: true })
  })

  it('survives the death of its object at any point', async () => {
    const { object, again } = await embeddedTitles(450)
    provider.hold((call) => byNew(call) && textsOf(call).includes('title number 420 '))
    await object.alter(changeTo(BASE))
    await vi.waitFor(async () => expect((await summaryOf(object)).pending_embeddings).toBeLessThan(200))
    await abortAllDurableObjects()
    expect(await dimensionsOf(again())).toBe(384)
    await expectVectors(again())
    await abortAllDurableObjects()
    provider.abandon()
    await drained(again())
    expect(await dimensionsOf(again())).toBe(768)
    await expectVectors(again(), { model: BASE })
    await abortAllDurableObjects()
    await expectVectors(again(), { model: BASE })
    expect(await summaryOf(again())).toMatchObject({ num_documents: 450 })
  })

  it('can be sent elsewhere when its new model fails, without the old one ever being gone', async () => {
    const { object, again } = await embeddedTitles(20)
    provider.before = (call) => {
      if (byNew(call)) throw new InferenceUpstreamError(3041)
    }
    await object.alter(changeTo(BASE))
    await vi.waitFor(async () => expect(await summaryOf(object)).toHaveProperty('embedding_error'))
    await expectVectors(object)
    expect(await object.alter(changeTo('@cf/baai/bge-large-en-v1.5'))).toMatchObject({ ok: true })
    await drained(object)
    await expectVectors(object, { model: '@cf/baai/bge-large-en-v1.5' })
    await vi.waitFor(async () => expect(await tablesOf(again())).toHaveLength(1))
  })

  it('can be dropped', async () => {
    const { object, again } = await embeddedTitles(20)
    provider.before = (call) => {
      if (byNew(call)) throw new InferenceUpstreamError(3041)
    }
    await object.alter(changeTo(BASE))
    await vi.waitFor(async () => expect(await summaryOf(object)).toHaveProperty('embedding_error'))
    expect(await object.alter({ fields: [{ name: 'e', drop: true }] })).toMatchObject({ ok: true })
    expect(await summaryOf(object)).not.toHaveProperty('embedding_error')
    expect((await exportAll(object)).some(({ e }) => e !== undefined)).toBe(false)
    await vi.waitFor(async () => expect(await tablesOf(again())).toEqual([]))
  })

  it('leaves out what its new model refuses, and says so', async () => {
    const { object } = await embeddedTitles(20)
    provider.before = (call) => {
      if (byNew(call) && textsOf(call).includes('title number 5 ')) throw new InferenceUpstreamError(5006)
    }
    await object.alter(changeTo(BASE))
    await drained(object)
    await expectVectors(object, { model: BASE, without: ['d5'] })
    expect(await summaryOf(object)).toMatchObject({
      refused_embeddings: 1,
      embedding_error: expect.stringMatching(/^Document `d5`: /),
    })
  })

  it('has a query embedded anew that was embedded for the old model', async () => {
    const { object } = await embeddedTitles(10)
    provider.hold(({ model, inputs }) => model === SMALL && (inputs.text as string[])[0] === FLOWER)
    const search = found(object, NEAREST)
    await provider.called(1)
    await object.alter(changeTo(BASE))
    await drained(object)
    expect(await dimensionsOf(object)).toBe(768)
    provider.release()
    expect(await search).toEqual([FLOWER])
    expect(provider.ai.calls.at(-1)).toMatchObject({ model: BASE, inputs: { text: [FLOWER] } })
  })

  it('changes at once when it has no documents', async () => {
    const { object } = await newTitles()
    await object.alter(changeTo(BASE))
    await vi.waitFor(async () => expect(await dimensionsOf(object)).toBe(768))
    await importAll(object, titles(1))
    await drained(object)
    await expectVectors(object, { model: BASE })
  })

  it('changes before the caller is answered where the new model is the built-in one', async () => {
    const object = await newCollection([{ name: 'title', type: 'string' }, embedding()])
    await importAll(object, titles(300))
    await drained(object)
    const local = {
      name: 'e',
      type: 'float[]',
      embed: { from: ['title'], model_config: { model_name: 'local/hash-64' } },
    }
    await object.alter({ fields: [{ name: 'e', drop: true }, local] })
    for (let done = false; !done; ) done = (await object.reindex()).done
    const documents = await exportAll(object)
    expect(documents.map(({ e }) => (e as number[]).length)).toEqual(Array.from({ length: 300 }, () => 64))
    expect(await found(object, NEAREST)).toEqual([FLOWER])
  })

  it('keeps its new key sealed', async () => {
    const { object } = await embeddedTitles(2)
    provider.hold()
    vi.spyOn(globalThis, 'fetch').mockImplementation(async () =>
      Response.json({ data: [{ index: 0, embedding: [1, 0] }] }),
    )
    const keyed = {
      name: 'e',
      type: 'float[]',
      embed: { from: ['title'], model_config: { model_name: 'openai/x', api_key: 'sk-1234567890' } },
    }
    await object.alter({ fields: [{ name: 'e', drop: true }, keyed] })
    const stored = await runInDurableObject(object as never, (_, { storage }) =>
      JSON.stringify(storage.sql.exec('SELECT * FROM meta').toArray()),
    )
    expect(stored).toContain('sk-12********')
    expect(stored).not.toContain('sk-1234567890')
    expect(JSON.stringify(await summaryOf(object))).not.toContain('sk-1234567890')
    expect(JSON.stringify(await object.schema())).not.toContain('openai')
    vi.restoreAllMocks()
  })
})
