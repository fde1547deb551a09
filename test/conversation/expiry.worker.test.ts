import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { sweepExpired } from '../../src/conversation/expiry'
import { createModel, deleteModel } from '../../src/conversation/models'
import { unwrap } from '../../src/errors'
import { createCollection } from '../../src/search/catalog'
import { Collection } from '../../src/search/collection'
import { collectionNamed, historySchema } from './stage'

const NOW = 1_800_000_000

beforeAll(async () => {
  for (const name of ['talk', 'other_talk']) await createCollection(env, historySchema(name))
})

afterEach(() => vi.restoreAllMocks())

const makeModel = (id: string, ttl: number, history_collection = 'talk') =>
  createModel(env, { id, model_name: 'local/extractive', history_collection, max_bytes: 1000, ttl })

/** Adds a message for each age, in seconds, and waits until D1 has them. */
async function say(modelId: string, ages: number[], history = 'talk'): Promise<string> {
  const conversationId = crypto.randomUUID()
  const { object } = await collectionNamed(history)
  const lines = ages.map((age) =>
    JSON.stringify({
      conversation_id: conversationId,
      model_id: modelId,
      timestamp: NOW - age,
      role: 'user',
      message: `${age} s ago`,
    }),
  )
  unwrap(await object.importLines(lines, { action: 'create', returnDocument: false, returnId: false }))
  await expect.poll(() => rows(modelId)).toHaveLength(ages.length)
  return conversationId
}

const rows = async (modelId: string) =>
  (await env.DB.prepare('SELECT message FROM messages WHERE model_id = ?').bind(modelId).all()).results

const left = async (conversationId: string, history = 'talk') =>
  (await (await collectionNamed(history)).object.messages(conversationId)).map(({ message }) => message)

const modelRows = async (id: string) =>
  (await env.DB.prepare('SELECT id FROM conversation_models WHERE id = ?').bind(id).all()).results

describe('the sweep', () => {
  it("removes each message by its model's ttl, from the collection and from D1", async () => {
    await makeModel('short', 10)
    await makeModel('long', 100)
    const short = await say('short', [5, 10, 11, 500])
    const long = await say('long', [50, 101])
    expect(await sweepExpired(env, NOW)).toEqual({ expired: 3, done: true })
    expect(await left(short)).toEqual(['10 s ago', '5 s ago'])
    expect(await left(long)).toEqual(['50 s ago'])
    expect(await rows('short')).toHaveLength(2)
  })

  it('goes on for a deleted model until its last message is gone, then forgets it', async () => {
    await makeModel('deleted', 10)
    const conversationId = await say('deleted', [5, 11])
    await deleteModel(env, 'deleted')
    await sweepExpired(env, NOW)
    expect(await left(conversationId)).toEqual(['5 s ago'])
    expect(await modelRows('deleted')).toHaveLength(1)
    await sweepExpired(env, NOW + 6)
    expect(await left(conversationId)).toEqual([])
    expect(await modelRows('deleted')).toHaveLength(0)
  })

  it('leaves messages of models that nobody knows', async () => {
    const conversationId = await say('nobody', [1_000_000])
    await sweepExpired(env, NOW)
    expect(await left(conversationId)).toEqual(['1000000 s ago'])
  })

  it('takes ids of any letters', async () => {
    const id = 'a`b && c:=[x] "\'%'
    await makeModel(id, 10)
    const conversationId = await say(id, [11])
    await sweepExpired(env, NOW)
    expect(await left(conversationId)).toEqual([])
  })

  it('goes in batches, stops at its limits, and resumes', async () => {
    await makeModel('many', 10)
    const conversationId = await say('many', Array(25).fill(20))
    const first = await sweepExpired(env, NOW, { batch: 10, calls: 9 })
    expect(first.done).toBe(false)
    expect(first.expired).toBeGreaterThan(0)
    expect(await left(conversationId)).toHaveLength(25 - first.expired)
    expect(await sweepExpired(env, NOW, { batch: 10 })).toEqual({ expired: 25 - first.expired, done: true })
    expect(await left(conversationId)).toEqual([])
  })

  it('does not let a collection out of reach keep those of others', async () => {
    await makeModel('a-broken', 10)
    await makeModel('b-sound', 10, 'other_talk')
    const broken = await say('a-broken', [11])
    const sound = await say('b-sound', [11], 'other_talk')
    vi.spyOn(console, 'error').mockReturnValue()
    vi.spyOn(Collection.prototype, 'expireMessages').mockRejectedValueOnce(new Error('out of reach'))
    await sweepExpired(env, NOW)
    expect(await left(broken)).toHaveLength(1)
    expect(await left(sound, 'other_talk')).toEqual([])
    await sweepExpired(env, NOW)
    expect(await left(broken)).toEqual([])
  })
})
