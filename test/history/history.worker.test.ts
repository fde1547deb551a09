/** A history collection and its copy in D1: same in the end, whatever D1 does meanwhile. */

import { applyD1Migrations, runDurableObjectAlarm } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import * as messages from '../../src/db/conversations'
import { unwrap } from '../../src/errors'
import { contentOf, textOf } from '../../src/lib/parts'
import type { CollectionRpc } from '../../src/search/collection/handle'
import { HISTORY_FIELDS } from '../history-schema'
import { exportAll, importAll, newObject } from '../search/object'

const message = (conversation: string, text: string, timestamp = 1, role = 'user') => ({
  conversation_id: conversation,
  model_id: 'm',
  timestamp,
  role,
  message: text,
})

const turn = (conversation: string, n: number) => [
  message(conversation, `question ${n}`, n),
  message(conversation, `answer ${n}`, n, 'assistant'),
]

let object: CollectionRpc
let objectId: string

beforeEach(async () => {
  ;({ object, objectId } = newObject())
  unwrap(await object.create({ name: 'talks', fields: HISTORY_FIELDS }, Math.floor(Date.now() / 1000)))
})

afterEach(() => vi.restoreAllMocks())

/** What D1 holds of this history. */
async function rows(): Promise<{ id: string; text: string }[]> {
  const { results } = await env.DB.prepare(
    'SELECT document_id AS id, message AS text FROM messages WHERE history_id = ? ORDER BY timestamp, document_id',
  )
    .bind(objectId)
    .all<{ id: string; text: string }>()
  return results
}

const ring = () => runDurableObjectAlarm(env.COLLECTION.get(env.COLLECTION.idFromName(objectId)))

/** Takes the table away while `work` runs. */
async function withoutD1(work: () => Promise<void>): Promise<void> {
  vi.spyOn(console, 'error').mockImplementation(() => {})
  await env.DB.exec('ALTER TABLE messages RENAME TO messages_away')
  await work()
  await env.DB.exec('ALTER TABLE messages_away RENAME TO messages')
}

describe('the copy in D1', () => {
  it('follows every way in which documents change', async () => {
    await object.keepHistory()
    await importAll(object, [message('c', 'one'), message('c', 'two', 2), message('d', 'three', 3)])
    expect(await rows()).toEqual([
      { id: '0', text: 'one' },
      { id: '1', text: 'two' },
      { id: '2', text: 'three' },
    ])
    await object.write(JSON.stringify({ id: 'x', ...message('c', 'four', 4) }), { action: 'create' })
    await object.patch('0', '{"message":"one more"}')
    await object.remove('1', false)
    expect(await rows()).toEqual([
      { id: '0', text: 'one more' },
      { id: '2', text: 'three' },
      { id: 'x', text: 'four' },
    ])
    await object.updateWhere('conversation_id:=d', '{"message":"3"}', 0)
    await object.removeWhere('conversation_id:=c', {
      batchSize: 10,
      returnDocuments: false,
      returnIds: false,
    })
    expect(await rows()).toEqual([{ id: '2', text: '3' }])
    await object.truncate()
    expect(await rows()).toEqual([])
  })

  it('keeps histories apart, and takes only its own with it', async () => {
    await object.keepHistory()
    await importAll(object, [message('c', 'mine')])
    const other = newObject()
    await other.object.create({ name: 'others', fields: HISTORY_FIELDS }, 1)
    await other.object.keepHistory()
    await importAll(other.object, [message('c', 'theirs')])
    await other.object.destroy()
    expect(await rows()).toEqual([{ id: '0', text: 'mine' }])
    const { results } = await env.DB.prepare('SELECT 1 FROM messages WHERE history_id = ?')
      .bind(other.objectId)
      .all()
    expect(results).toEqual([])
  })

  it('takes in what was there before', async () => {
    await importAll(
      object,
      Array.from({ length: 450 }, (_, n) => message('c', `message ${n}`, n)),
    )
    await object.keepHistory()
    expect(await rows()).toHaveLength(450)
    await object.keepHistory()
    expect(await rows()).toHaveLength(450)
  })

  it('arrives later when D1 does not answer, in the state that documents have by then', async () => {
    await object.keepHistory()
    await importAll(object, [message('c', 'before')])
    await withoutD1(async () => {
      expect(await importAll(object, [message('c', 'late', 2), message('c', 'gone', 3)])).toEqual([
        { success: true },
        { success: true },
      ])
      await object.patch('1', '{"message":"later"}')
      await object.remove('2', false)
      await object.remove('0', false)
      await ring()
    })
    expect(await rows()).toEqual([{ id: '0', text: 'before' }])
    expect(await ring()).toBe(true)
    expect(await rows()).toEqual([{ id: '1', text: 'later' }])
    await object.patch('1', '{"message":"at once"}')
    expect(await rows()).toEqual([{ id: '1', text: 'at once' }])
  })

  it('is removed in the end when D1 did not answer as the collection went', async () => {
    await object.keepHistory()
    await importAll(object, [message('c', 'one')])
    await withoutD1(async () => {
      await object.destroy()
      expect(await object.summary()).toMatchObject({ error: { status: 404 } })
      expect(await object.messages('c')).toEqual([])
    })
    expect(await rows()).toHaveLength(1)
    expect(await ring()).toBe(true)
    expect(await rows()).toEqual([])
    expect(await object.summary()).toMatchObject({ error: { status: 404 } })
  })

  it('is removed in steps, none of which D1 is busy with for long', async () => {
    await object.keepHistory()
    const many = Array.from({ length: 650 }, (_, n) => turn(`c${n % 7}`, n)).flat()
    for (let from = 0; from < many.length; from += 400) await importAll(object, many.slice(from, from + 400))
    expect(await rows()).toHaveLength(1_300)
    const steps = vi.spyOn(messages, 'deleteSomeOfHistory')
    await object.destroy()
    const counts = await Promise.all(steps.mock.results.map(({ value }) => value as Promise<number>))
    expect(counts).toEqual([500, 500, 300])
    expect(await rows()).toEqual([])
  })

  it('keeps nobody waiting for a D1 that is silent', async () => {
    await object.keepHistory()
    const silence = Promise.withResolvers<void>()
    const sync = vi.spyOn(messages, 'syncMessages').mockReturnValue(silence.promise)
    expect(await object.appendTurn('c/1', turn('c', 1))).toMatchObject({ ok: true })
    expect(await object.appendTurn('c/2', turn('c', 2))).toMatchObject({ ok: true })
    expect(sync).toHaveBeenCalledTimes(1)
    expect(await object.messages('c')).toHaveLength(4)
    sync.mockRestore()
    silence.reject(new Error('gave up'))
    vi.spyOn(console, 'error').mockImplementation(() => {})
    await expect.poll(ring).toBe(true)
    await expect.poll(async () => (await rows()).length).toBe(4)
  })

  it('survives a lost table being made again', async () => {
    await object.keepHistory()
    vi.spyOn(console, 'error').mockImplementation(() => {})
    await env.DB.exec('DROP TABLE messages')
    await env.DB.exec('DROP TABLE IF EXISTS d1_migrations')
    await importAll(object, [message('c', 'kept')])
    const recreate = env.TEST_MIGRATIONS.flatMap(({ queries }) => queries).filter((query) =>
      /`messages/.test(query),
    )
    await applyD1Migrations(env.DB, [{ name: 'again', queries: recreate }])
    expect(await ring()).toBe(true)
    expect(await rows()).toEqual([{ id: '0', text: 'kept' }])
  })

  it('sends messages of any length, shortened only in the copy', async () => {
    await object.keepHistory()
    const long = '"é'.repeat(450_000)
    await importAll(object, [message('c', long), message('c', long, 2)])
    const [first] = await rows()
    expect(first?.text.length).toBeGreaterThan(500_000)
    expect((await object.messages('c')).map((each) => textOf(each.content).length)).toEqual([
      900_000, 900_000,
    ])
  })
})

describe('turns', () => {
  beforeEach(() => object.keepHistory())

  it('are added once, both messages or neither', async () => {
    expect(await object.appendTurn('c/1', turn('c', 1))).toEqual({ ok: true, value: undefined })
    expect(await object.appendTurn('c/1', turn('c', 1))).toEqual({ ok: true, value: undefined })
    expect(await rows()).toHaveLength(2)
    const [question] = turn('c', 2)
    expect(await object.appendTurn('c/2', [question!, { ...question, timestamp: 'soon' }])).toMatchObject({
      error: { status: 400, message: 'Field `timestamp` must be an int32.' },
    })
    expect(await exportAll(object)).toHaveLength(2)
    expect(await object.appendTurn('c/2', turn('c', 2))).toMatchObject({ ok: true })
    expect((await exportAll(object)).map(({ id }) => id)).toEqual(['0', '1', '2', '3'])
  })

  it('are added once when the same turn comes twice at the same time', async () => {
    await Promise.all([1, 1, 2, 2, 1].map((n) => object.appendTurn(`c/${n}`, turn('c', n))))
    expect(await exportAll(object)).toHaveLength(4)
    expect(await object.summary()).toMatchObject({ value: { num_documents: 4 } })
  })

  it('come back oldest first, exactly those of one conversation, however many', async () => {
    for (const id of ['a-b', 'ab', 'A-B', 'a b', "a' OR 1=1"]) await object.appendTurn(id, turn(id, 5))
    await importAll(
      object,
      Array.from({ length: 300 }, (_, n) => message('long', `m${n}`, 300 - n)),
    )
    expect((await object.messages('a-b')).map((each) => textOf(each.content))).toEqual([
      'question 5',
      'answer 5',
    ])
    expect(await object.messages('b')).toEqual([])
    expect(await object.messages("a' OR 1=1")).toHaveLength(2)
    const long = await object.messages('long')
    expect(long).toHaveLength(300)
    expect(long.map(({ timestamp }) => timestamp)).toEqual(Array.from({ length: 300 }, (_, n) => n + 1))
    expect(long[0]).toEqual({
      documentId: '309',
      role: 'user',
      content: contentOf('m299'),
      timestamp: 1,
      modelId: 'm',
    })
  })

  it('are found through an index', async () => {
    const { runInDurableObject } = await import('cloudflare:test')
    const stub = env.COLLECTION.get(env.COLLECTION.idFromName(objectId))
    await runInDurableObject(stub, (_, state) => {
      const plan = state.storage.sql
        .exec(
          `EXPLAIN QUERY PLAN SELECT id FROM documents WHERE body->>'$.conversation_id' = 'x'
            ORDER BY body->>'$.timestamp', seq`,
        )
        .toArray()
        .map(({ detail }) => detail)
      expect(plan).toEqual(['SEARCH documents USING INDEX documents_conversation (<expr>=?)'])
    })
  })

  it('expire without a word to D1, which the sweep has told already', async () => {
    await object.appendTurn('c/1', turn('c', 1))
    await object.expireMessages(['0', 'unknown'])
    expect((await exportAll(object)).map(({ id }) => id)).toEqual(['1'])
    expect(await rows()).toHaveLength(2)
    await object.appendTurn('c/2', turn('c', 2))
    expect(await rows()).toHaveLength(4)
  })
})
