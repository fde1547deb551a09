import { runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { sweepExpired } from '../../src/conversation/expiry'
import * as turns from '../../src/db/turns'
import { unwrap } from '../../src/errors'
import { textOf } from '../../src/lib/parts'
import { createCollection } from '../../src/registry/collections'
import { createModel, deleteModel } from '../../src/registry/models'
import { Collection } from '../../src/search/collection/object'
import { historySchema } from '../history-schema'
import { asking, collectionNamed, conversation, rowsOf, take } from './stage'

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
  (await (await collectionNamed(history)).object.messages(conversationId)).map(({ content }) =>
    textOf(content),
  )

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

  it('goes on for what a turn said that was running when its model was deleted', async () => {
    await makeModel('hasty', 10)
    await deleteModel(env, 'hasty')
    await sweepExpired(env, Math.floor(Date.now() / 1000) + 60)
    const conversationId = await say('hasty', [11])
    await sweepExpired(env, NOW)
    expect(await left(conversationId)).toEqual([])
    expect(await modelRows('hasty')).toHaveLength(0)
  })

  it('goes on to messages where the rows of turns cannot be swept', async () => {
    vi.spyOn(console, 'error').mockReturnValue()
    await makeModel('stuck', 10)
    const conversationId = await say('stuck', [11])
    const broken = vi.spyOn(turns, 'deleteExpiredTurns').mockRejectedValue(new Error('out of time'))
    expect(await sweepExpired(env, NOW)).toEqual({ expired: 1, done: false })
    expect(await left(conversationId)).toEqual([])
    broken.mockRestore()
    expect((await sweepExpired(env, NOW)).done).toBe(true)
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

  it('waits for a timer between two batches, so that workerd looks at its sockets', async () => {
    await makeModel('crowded', 10)
    await say('crowded', Array(12).fill(20))
    const timers = vi.spyOn(globalThis, 'setTimeout')
    const timersBefore: number[] = []
    const expire = Collection.prototype.expireMessages
    vi.spyOn(Collection.prototype, 'expireMessages').mockImplementation(function (this: Collection, ids) {
      timersBefore.push(timers.mock.calls.length)
      return expire.call(this, ids)
    })
    await sweepExpired(env, NOW, { batch: 1, calls: 800 })
    expect(timersBefore).toHaveLength(12)
    expect(new Set(timersBefore).size).toBe(12)
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

  it('removes rows of turns and conversations past their time by an index, in batches, and goes on later', async () => {
    for (let n = 0; n < 25; n++) {
      const id = `old-${n}`
      await env.DB.batch([
        env.DB.prepare(
          `INSERT INTO conversations (id, history_id, model_id, owner, user_id, protocol, title, turns, created_at,
              updated_at, expires_at) VALUES (?, 'h', 'm', 'admin', '', 'typesense', 't', 2, 1, 1, ?)`,
        ).bind(id, NOW * 1000 - n),
        ...[1, 2].map((turn) =>
          env.DB.prepare(
            `INSERT INTO turns VALUES (?, ?, 'q', NULL, 'a', 'stop', '[]', '{}', '{}', '{}', 1, ?, NULL, NULL, NULL, NULL, NULL, NULL)`,
          ).bind(id, turn, NOW * 1000 - n),
        ),
      ])
    }
    await env.DB.prepare("UPDATE conversations SET expires_at = expires_at + 60000 WHERE id = 'old-0'").run()
    const count = async (table: string) =>
      (await env.DB.prepare(`SELECT count(*) AS n FROM ${table} WHERE expires_at > 1`).first<{
        n: number
      }>())!.n
    const before = await count('turns')
    expect((await sweepExpired(env, NOW, { batch: 10, calls: 9 })).done).toBe(false)
    expect(await count('turns')).toBeLessThan(before)
    expect(await count('turns')).toBeGreaterThan(before - 50)
    expect((await sweepExpired(env, NOW, { batch: 10 })).done).toBe(true)
    expect(await count('turns')).toBe(before - 50)
    expect(await env.DB.prepare("SELECT id FROM conversations WHERE id LIKE 'old-%'").all()).toMatchObject({
      results: [{ id: 'old-0' }],
    })
    for (const query of [
      'SELECT conversation_id FROM turns WHERE expires_at <= 5 ORDER BY expires_at LIMIT 10',
      'SELECT id FROM conversations WHERE expires_at BETWEEN 1 AND 5 LIMIT 10',
      'SELECT id FROM conversations WHERE expires_at = 0 ORDER BY id LIMIT 5',
    ]) {
      const { results } = await env.DB.prepare(`EXPLAIN QUERY PLAN ${query}`).all<{ detail: string }>()
      expect(results[0]!.detail).toMatch(/USING (COVERING )?INDEX (turns|conversations)_expiry/)
    }
  })

  it('stops when its time is over, and no kind of rows keeps another waiting', async () => {
    await makeModel('timely', 10)
    const conversationId = await say('timely', [11, 12])
    expect(await sweepExpired(env, NOW, { budgetMs: 0 })).toEqual({ expired: 0, done: false })
    expect(await left(conversationId)).toHaveLength(2)
    await sweepExpired(env, NOW)
    expect(await left(conversationId)).toEqual([])
  })

  it('makes few enough queries for the Free plan, and comes to every model within minutes', async () => {
    const models = Array.from({ length: 12 }, (_, n) => `m${n}`)
    const said = new Map<string, string>()
    for (const [n, model] of models.entries()) {
      await makeModel(model, 10)
      // The first ones have more than all these sweeps can do.
      said.set(model, await say(model, Array(n < 6 ? 40 : 1).fill(3_000)))
    }
    for (let minute = 0; minute < models.length; minute++) {
      const prepare = vi.spyOn(env.DB, 'prepare')
      await sweepExpired(env, NOW + minute * 60, { batch: 1 })
      expect(prepare.mock.calls.length).toBeLessThanOrEqual(45)
      prepare.mockRestore()
    }
    for (const model of models.slice(6)) expect(await left(said.get(model)!)).toEqual([])
    expect(await left(said.get('m0')!)).not.toEqual([])
    await sweepExpired(env, NOW, { calls: 400 })
  })

  it('comes to every model, though one alone has more than a sweep can do', async () => {
    await makeModel('a-busy', 10)
    await makeModel('b-quiet', 10)
    await say('a-busy', Array(30).fill(20))
    const quiet = await say('b-quiet', [11])
    expect((await sweepExpired(env, NOW, { batch: 2, calls: 30 })).done).toBe(false)
    expect(await left(quiet)).toEqual([])
  })
})

describe('an object', () => {
  const object = (id: string) => env.CONVERSATION.get(env.CONVERSATION.idFromName(id))
  const tables = (id: string) =>
    runInDurableObject(object(id), (_, { storage }) =>
      storage.sql.exec('SELECT name FROM sqlite_master').toArray(),
    )
  const pass = (id: string) =>
    runInDurableObject(object(id), (_, { storage }) => {
      storage.sql.exec('UPDATE turns SET expires_at = 1')
    })

  beforeAll(async () => {
    await createCollection(env, {
      name: 'films',
      fields: [
        { name: 'title', type: 'string' },
        { name: 'text', type: 'string' },
      ],
    })
    await makeModel('m', 86_400)
  })

  it('deletes all that it holds by its alarm, when its history has expired', async () => {
    const request = await asking('Who directed Alien?')
    const { conversationId } = request
    await take(request)
    const at = await runInDurableObject(object(conversationId), (_, { storage }) => storage.getAlarm())
    // First the log goes, after an hour.
    expect(at! - Date.now()).toBeGreaterThan(3_500_000)
    await pass(conversationId)
    await sweepExpired(env, Math.floor(Date.now() / 1000) + 90_000)
    expect(await runDurableObjectAlarm(object(conversationId))).toBe(true)
    expect(await tables(conversationId)).toEqual([])
    expect(
      await runInDurableObject(object(conversationId), (_, { storage }) => storage.getAlarm()),
    ).toBeNull()
    expect(await rowsOf('SELECT 1 FROM turns WHERE conversation_id = ?', conversationId)).toEqual([])
  })

  it('goes on knowing whose its conversation is while its messages live on', async () => {
    const request = await asking('Who directed Alien?', { asker: { owner: '1', userId: 'ada' } })
    const { conversationId } = request
    await take(request)
    await pass(conversationId)
    expect(await runDurableObjectAlarm(object(conversationId))).toBe(true)
    const follow = { ...request, continues: true }
    expect(
      await conversation(conversationId).ask({ ...follow, asker: { owner: '2', userId: '' } }),
    ).toMatchObject({
      ok: false,
    })
    expect((await take(follow)).at(-1)).toMatchObject({ type: 'done', turn: 2 })
  })
})
