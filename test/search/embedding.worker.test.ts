/** Embedding in the background: documents are there at once, their vectors soon, and none is ever wrong. */
import { abortAllDurableObjects, runDurableObjectAlarm } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { InferenceUpstreamError } from '../models/workers-ai/errors'
import {
  BASE,
  drained,
  embedding,
  expectVectors,
  found,
  newTitles,
  Provider,
  summaryOf,
  textsOf,
  vectorOf,
} from './embedding-stage'
import { exportAll, importAll, newObject } from './object'

const provider = new Provider()
beforeEach(() => provider.reset())

const titles = (count: number, from = 0) =>
  Array.from({ length: count }, (_, n) => ({ id: `d${from + n}`, title: `title number ${from + n}` }))

const KEYWORDS = { q: 'number', query_by: 'title' }
const NEAREST = { q: 'title number 7', query_by: 'e', exclude_fields: 'e' }

describe('an import', () => {
  it('is stored and found by its words at once, and by its meaning soon', async () => {
    const { object } = await newTitles()
    provider.hold(({ inputs }) => textsOf({ inputs } as never).length > 1)
    const results = await importAll(object, titles(30))
    expect(results.every(({ success }) => success)).toBe(true)
    expect((await found(object, { ...KEYWORDS, per_page: '250' })).length).toBe(30)
    expect(await found(object, NEAREST)).toEqual([])
    expect(await found(object, { ...NEAREST, query_by: 'title,e' })).toContain('title number 7')
    expect(await summaryOf(object)).toMatchObject({ num_documents: 30, pending_embeddings: 30 })
    provider.release()
    await drained(object)
    expect(await found(object, NEAREST)).toContain('title number 7')
    await expectVectors(object)
    expect(await summaryOf(object)).not.toHaveProperty('embedding_error')
  })

  it('of thousands goes in whole batches, and sends no text twice', async () => {
    const { object } = await newTitles()
    for (let from = 0; from < 2_500; from += 500) await importAll(object, titles(500, from))
    // The same titles once more, under other ids.
    await importAll(
      object,
      titles(100).map(({ id, title }) => ({ id: `again-${id}`, title })),
    )
    await drained(object)
    const documents = await exportAll(object)
    expect(documents.length).toBe(2_600)
    for (const { title, e } of documents) expect(e).toEqual(vectorOf(title as string))
    const sent = provider.ai.calls.flatMap(textsOf)
    // Which of the later ones still meet their like in a step is a matter of time.
    expect(sent.length).toBeLessThanOrEqual(2_600)
    expect(new Set(sent).size).toBe(2_500)
    expect(Math.max(...provider.ai.calls.map((call) => textsOf(call).length))).toBeLessThanOrEqual(100)
    expect(provider.ai.calls.length).toBeLessThanOrEqual(35)
  })

  it('sends a text that documents of a batch share only once', async () => {
    const { object } = await newTitles()
    await importAll(
      object,
      Array.from({ length: 60 }, (_, n) => ({ title: `title ${n % 3}` })),
    )
    await drained(object)
    expect(provider.ai.calls.flatMap(textsOf).sort()).toEqual(['title 0 ', 'title 1 ', 'title 2 '])
    await expectVectors(object)
  })

  it('asks again only for what has changed', async () => {
    const { object } = await newTitles()
    await importAll(object, [{ id: '1', title: 'abc' }])
    await drained(object)
    await object.patch('1', '{"n":1}')
    await object.write('{"id":"1","title":"abc","n":2}', { action: 'upsert' })
    await drained(object)
    expect(provider.ai.calls.length).toBe(1)
    await object.patch('1', '{"title":"abcd"}')
    await drained(object)
    await expectVectors(object)
    expect(provider.ai.calls.length).toBe(2)
  })
})

describe('a document that changes while its vector is being made', () => {
  it.each<[string, (object: Awaited<ReturnType<typeof newTitles>>['object']) => Promise<unknown>]>([
    ['updated', (object) => object.patch('d1', '{"title":"another title"}')],
    ['replaced', (object) => object.write('{"id":"d1","title":"another"}', { action: 'upsert' })],
    [
      'updated and set back',
      async (object) => {
        await object.patch('d1', '{"title":"another title"}')
        await object.patch('d1', '{"title":"title number 1"}')
      },
    ],
    ['deleted', (object) => object.remove('d1', false)],
    [
      'deleted and made again',
      async (object) => {
        await object.remove('d1', false)
        await importAll(object, [{ id: 'd1', title: 'another title' }])
      },
    ],
    ['truncated', (object) => object.truncate()],
    ['altered', (object) => object.alter({ fields: [{ name: 'e', drop: true }] })],
  ])('and is %s has no vector of another text', async (_, change) => {
    const { object } = await newTitles()
    provider.hold()
    await importAll(object, titles(3))
    await provider.called(1)
    await change(object)
    provider.release()
    await drained(object)
    const { fields } = (await summaryOf(object)) as { fields: { name: string }[] }
    if (fields.some(({ name }) => name === 'e')) await expectVectors(object)
    else expect((await exportAll(object)).some(({ e }) => e !== undefined)).toBe(false)
  })

  it('keeps the vector that its owner gave it', async () => {
    const { object } = await newTitles()
    provider.hold()
    await importAll(object, titles(2))
    await provider.called(1)
    const own = vectorOf('something else')
    await object.patch('d1', JSON.stringify({ e: own }))
    expect(await summaryOf(object)).toMatchObject({ pending_embeddings: 1 })
    provider.release()
    await drained(object)
    expect((await exportAll(object)).map(({ e }) => e)).toEqual([vectorOf('title number 0'), own])
  })

  it('can go with its whole collection', async () => {
    const { object } = await newTitles()
    provider.hold()
    await importAll(object, titles(2))
    await provider.called(1)
    await object.destroy()
    provider.release()
    await scheduler.wait(20)
    expect(await object.summary()).toMatchObject({ ok: false, error: { status: 404 } })
  })
})

describe('a provider', () => {
  it('that is busy is asked again, and nothing is lost', { timeout: 30_000 }, async () => {
    const { object } = await newTitles()
    provider.ai.failNext(3040, { times: 5 })
    for (let from = 0; from < 2_000; from += 500) await importAll(object, titles(500, from))
    await vi.waitFor(async () =>
      expect(await summaryOf(object)).toMatchObject({
        embedding_error: expect.stringMatching(/^Cloudflare API error: 3040: /),
      }),
    )
    await drained(object)
    expect((await exportAll(object)).length).toBe(2_000)
    await expectVectors(object)
    expect(await summaryOf(object)).not.toHaveProperty('embedding_error')
  })

  it('that refuses one text gets all the others', async () => {
    const { object } = await newTitles()
    provider.before = (call) => {
      if (textsOf(call).includes('poison ')) throw new InferenceUpstreamError(5006)
    }
    await importAll(object, [...titles(150), { id: 'bad', title: 'poison' }, ...titles(50, 150)])
    await drained(object)
    expect(await summaryOf(object)).toMatchObject({
      refused_embeddings: 1,
      embedding_error: expect.stringMatching(/^Document `bad`: Cloudflare API error: 5006: /),
    })
    await expectVectors(object, { without: ['bad'] })
    expect(await found(object, { q: 'poison', query_by: 'title' })).toEqual(['poison'])

    // It is left alone until something changes.
    const { length } = provider.ai.calls
    await importAll(object, [{ id: 'good', title: 'antidote' }])
    await drained(object)
    expect(provider.ai.calls.slice(length).map(textsOf)).toEqual([['antidote ']])
    await object.alter({ metadata: { tried: 'again' } })
    await drained(object)
    expect(provider.ai.calls.slice(length + 1).map(textsOf)).toContainEqual(['poison '])
    expect(await summaryOf(object)).toMatchObject({ refused_embeddings: 1 })
    await object.patch('bad', '{"title":"medicine"}')
    await drained(object)
    await expectVectors(object)
    expect(await summaryOf(object)).not.toHaveProperty('refused_embeddings')
  })

  it('that takes fewer texts at once gets as many as it takes', async () => {
    const { object } = await newTitles()
    const refused: number[] = []
    provider.before = (call) => {
      const { length } = textsOf(call)
      if (length <= 32) return
      refused.push(length)
      throw new InferenceUpstreamError(3006)
    }
    await importAll(object, titles(200))
    await drained(object)
    const learnt = refused.length
    expect(learnt).toBeGreaterThan(0)
    await importAll(object, titles(300, 200))
    await drained(object)
    await expectVectors(object)
    expect(await summaryOf(object)).not.toHaveProperty('refused_embeddings')
    expect(refused.length).toBe(learnt)
  })

  it('that refuses everything is not taken for one that refuses the texts', async () => {
    const { object } = await newTitles()
    provider.before = () => {
      throw new InferenceUpstreamError(5007, 'No such model or task')
    }
    await importAll(object, titles(200))
    await vi.waitFor(async () => expect(await summaryOf(object)).toHaveProperty('embedding_error'))
    const summary = await summaryOf(object)
    expect(summary).toMatchObject({
      pending_embeddings: 200,
      embedding_error: 'Cloudflare API error: 5007: No such model or task',
    })
    expect(summary).not.toHaveProperty('refused_embeddings')
  })

  it('that does not take the key is left alone until its owner changes something', async () => {
    const { object } = await newTitles()
    provider.before = () => {
      throw new InferenceUpstreamError(3041)
    }
    await importAll(object, titles(20))
    await vi.waitFor(async () => expect(await summaryOf(object)).toHaveProperty('embedding_error'))
    const { length } = provider.ai.calls
    await importAll(object, titles(20, 20))
    await scheduler.wait(50)
    expect(provider.ai.calls.length).toBe(length)
    expect(await summaryOf(object)).toMatchObject({
      pending_embeddings: 40,
      embedding_error: expect.stringContaining('3041'),
    })
    provider.release()
    await object.alter({ metadata: { paid: true } })
    await drained(object)
    await expectVectors(object)
  })

  it('that fails after its owner has changed something is asked at once', async () => {
    const { object } = await newTitles()
    const gate = Promise.withResolvers<void>()
    provider.before = async () => {
      await gate.promise
      throw new InferenceUpstreamError(3041)
    }
    await importAll(object, titles(20))
    await provider.called(1)
    await object.alter({ metadata: { paid: true } })
    provider.before = () => {}
    gate.resolve()
    await drained(object)
    await expectVectors(object)
  })

  it('that makes other vectors than it did is told so, and none is stored', async () => {
    const { object } = await newTitles({ ...embedding(), embed: { ...embedding().embed } })
    const run = vi.spyOn(env.AI, 'run').mockImplementation((async (
      _: string,
      { text }: { text: string[] },
    ) => ({
      data: text.map(() => [1, 2, 3]),
    })) as never)
    await importAll(object, titles(2))
    await vi.waitFor(async () =>
      expect(await summaryOf(object)).toMatchObject({
        pending_embeddings: 2,
        embedding_error: 'The model of field `e` makes vectors of 3 dimensions, not of 384.',
      }),
    )
    run.mockImplementation(provider.ai.run as never)
    await object.alter({ metadata: { again: true } })
    await drained(object)
    await expectVectors(object)
  })
})

describe('a query', () => {
  it('is sent a few times when its provider does not answer, and then answered with the error', async () => {
    const { object } = await newTitles()
    await importAll(object, titles(3))
    await drained(object)
    const failing = (times: number) => {
      provider.ai.calls.length = 0
      provider.before = () => {
        if (provider.ai.calls.length <= times) throw new Error('Network connection lost.')
      }
    }
    failing(1)
    expect(await found(object, { ...NEAREST, q: 'title number 1' })).toContain('title number 1')
    expect(provider.ai.calls.length).toBe(2)
    failing(9)
    expect(await object.search(NEAREST)).toEqual({
      ok: false,
      error: {
        status: 400,
        message: 'Cloudflare API error: Network connection lost.',
        confidential: true,
      },
    })
    expect(provider.ai.calls.length).toBeGreaterThan(1)
    // A hybrid search would have an answer, but not the one that was asked for.
    expect(await object.search({ ...NEAREST, query_by: 'title,e' })).toMatchObject({ ok: false })
    provider.reset()
    provider.ai.failNext(3041)
    expect(await object.search(NEAREST)).toMatchObject({ ok: false })
    expect(provider.ai.calls.length).toBe(1)
  })

  it('waits as long and asks as often as it may', async () => {
    const { object } = await newTitles()
    await importAll(object, titles(3))
    await drained(object)
    const once = { ...NEAREST, remote_embedding_num_tries: '1' }
    provider.ai.calls.length = 0
    provider.before = () => {
      throw new Error('Network connection lost.')
    }
    expect(await object.search(once)).toMatchObject({ ok: false, error: { status: 400 } })
    expect(provider.ai.calls.length).toBe(1)
    provider.reset()
    provider.hold()
    const late = await object.search({ ...NEAREST, remote_embedding_timeout_ms: '20' })
    expect(late).toMatchObject({ ok: false, error: { status: 408 } })
    provider.release()
    const patient = { ...NEAREST, q: 'title number 1', remote_embedding_timeout_ms: '30000' }
    expect(await found(object, patient)).toContain('title number 1')
    for (const name of ['remote_embedding_timeout_ms', 'remote_embedding_num_tries']) {
      expect(await object.search({ ...NEAREST, [name]: '0' })).toMatchObject({
        ok: false,
        error: { status: 400, message: `Parameter \`${name}\` must be greater than 0.` },
      })
    }
  })
})

describe('two fields', () => {
  it('do not wait for each other', async () => {
    const { object } = newObject()
    const fields = [{ name: 'title', type: 'string' }, embedding(), { ...embedding(BASE), name: 'f' }]
    await object.create({ name: 'titles', fields }, 1)
    provider.hold(({ model }) => model === BASE)
    await importAll(object, titles(250))
    await vi.waitFor(async () => expect(await summaryOf(object)).toMatchObject({ pending_embeddings: 250 }))
    await expectVectors(object)
    expect((await exportAll(object)).some(({ f }) => f !== undefined)).toBe(false)
    provider.release()
    await drained(object)
    for (const { title, f } of await exportAll(object)) expect(f).toEqual(vectorOf(title as string, BASE))
  })
})

describe('an object that dies', () => {
  it('goes on where it was, by its alarm or by whoever wakes it', async () => {
    const { object, objectId } = newObject()
    const fields = [{ name: 'title', type: 'string' }, embedding()]
    await object.create({ name: 'titles', fields }, Math.floor(Date.now() / 1000))
    provider.hold((call) => textsOf(call).some((text) => / 1\d\d\d /.test(text)))
    for (let from = 0; from < 2_000; from += 500) await importAll(object, titles(500, from))
    await vi.waitFor(async () => expect((await summaryOf(object)).pending_embeddings).toBeLessThan(1_500))
    await abortAllDurableObjects()
    provider.abandon()
    const stub = env.COLLECTION.get(env.COLLECTION.idFromName(objectId))
    await runDurableObjectAlarm(stub)
    const again = stub as unknown as typeof object
    await drained(again)
    expect((await exportAll(again)).length).toBe(2_000)
    await expectVectors(again)
  })
})
