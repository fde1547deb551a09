/** What is recorded of a turn in D1, and what becomes of it while D1 does not answer. */

import {
  abortAllDurableObjects,
  evictDurableObject,
  runDurableObjectAlarm,
  runInDurableObject,
} from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { inspect } from 'node:util'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import * as turns from '../../src/db/turns'
import { unwrap } from '../../src/errors'
import { contentOf, textOf } from '../../src/lib/parts'
import { Collection } from '../../src/search/collection/object'
import {
  asking,
  collectionNamed,
  messagesOf,
  openai,
  rowsOf,
  setStage,
  speaking,
  stub,
  take,
  usedSoFar,
  withoutTables,
} from './stage'

beforeAll(() => setStage())

beforeEach(() => {
  vi.spyOn(console, 'error').mockReturnValue()
})

afterEach(() => vi.restoreAllMocks())

const QUESTION = 'Who directed Alien?'

const recorded = (id: string) =>
  rowsOf('SELECT turn, question, answer FROM turns WHERE conversation_id = ? ORDER BY turn', id)

describe('D1 out of reach', () => {
  const TABLES = ['conversations', 'turns', 'usage', 'messages']

  it('is told once by its object, to whoever asks it for what D1 lacks', async () => {
    const request = await asking(QUESTION)
    const { conversationId: id, asker } = request
    await withoutTables(TABLES, async () => {
      expect((await take(request)).at(-1)).toMatchObject({ type: 'done' })
    })
    expect(await stub(id).recorded(asker)).toEqual({ ok: true, value: true })
    expect(await recorded(id)).toHaveLength(1)
    expect(await stub(id).recorded(asker)).toEqual({ ok: true, value: undefined })
  })

  it('is told of a turn that ended while it was told of an earlier one, before the reader is answered', async () => {
    const request = await asking(QUESTION)
    const { conversationId: id, asker } = request
    await withoutTables(TABLES, async () => void (await take(request)))
    const send = turns.recordTurn
    const first = Promise.withResolvers<void>()
    const sent = vi.spyOn(turns, 'recordTurn').mockImplementationOnce(async (...record) => {
      await first.promise
      return send(...record)
    })
    const asked = stub(id).recorded(asker)
    await expect.poll(() => sent.mock.calls.length).toBe(1)
    await take({ ...request, continues: true, question: contentOf('Who directed Heat?') })
    first.resolve()
    expect(await asked).toEqual({ ok: true, value: true })
    expect(await recorded(id)).toHaveLength(2)
  })

  it('leaves answers as they are; the record follows by alarm, exactly once', async () => {
    const before = await usedSoFar()
    const request = await asking(QUESTION)
    const { conversationId: id } = request
    await withoutTables(TABLES, async () => {
      expect((await take(request)).at(-1)).toMatchObject({ type: 'done' })
      const follow = { ...request, continues: true, question: contentOf('Who directed Heat?') }
      expect((await take(follow)).at(-1)).toMatchObject({ type: 'done', turn: 2 })
      await runDurableObjectAlarm(stub(id))
    })
    expect(await recorded(id)).toEqual([])
    expect(await runDurableObjectAlarm(stub(id))).toBe(true)
    expect(await recorded(id)).toMatchObject([
      { turn: 1, question: QUESTION },
      { turn: 2, question: 'Who directed Heat?' },
    ])
    await runDurableObjectAlarm(stub(id))
    expect(await recorded(id)).toHaveLength(2)
    expect((await usedSoFar()).turns).toBe(before.turns + 2)
    expect(await rowsOf('SELECT turns, title FROM conversations WHERE id = ?', id)).toEqual([
      { turns: 2, title: QUESTION },
    ])
    await expect
      .poll(async () => {
        for (const each of await rowsOf('SELECT object_id FROM collections')) {
          await runDurableObjectAlarm(env.COLLECTION.get(env.COLLECTION.idFromName(String(each.object_id))))
        }
        return rowsOf('SELECT role FROM messages WHERE conversation_id = ?', id)
      })
      .toHaveLength(4)
  })

  it('puts nothing of what was said into the log', async () => {
    const log = vi.spyOn(console, 'error').mockReturnValue()
    const request = await asking(QUESTION)
    await withoutTables(TABLES, async () => {
      const events = await take(request)
      expect(events.at(-1)).toMatchObject({ answer: [{ text: expect.stringContaining('Ridley Scott') }] })
      // The history's own copy is sent while the answer waits, and fails a moment later.
      await expect.poll(() => log.mock.calls.length).toBeGreaterThan(1)
    })
    const logged = log.mock.calls
      .flat()
      .map((part) => inspect(part, { depth: 9 }))
      .join('\n')
    expect(logged).toContain('no such table')
    expect(logged).not.toContain(QUESTION)
    expect(logged).not.toContain('Ridley')
    // Its id has a property of its own, as in the line of a turn. No reason quotes it from a query.
    const lines = log.mock.calls.flat().map((part) => JSON.parse(String(part)))
    const ofConversation = lines.filter(({ type }) => type === 'conversation')
    expect(ofConversation).not.toEqual([])
    for (const { conversation_id: named, ...line } of lines) {
      expect(named).toBe(line.type === 'conversation' ? request.conversationId : undefined)
      expect(JSON.stringify(line)).not.toContain(request.conversationId)
    }
  })

  it('counts a turn once whose acknowledgement was lost', async () => {
    const before = await usedSoFar()
    const request = await asking(QUESTION)
    const write = turns.recordTurn
    const lost = vi.spyOn(turns, 'recordTurn').mockImplementation(async (db, record) => {
      const others = [{ ...record.usage, modelId: 'fallback', inputTokens: 5, outputTokens: 1 }]
      await write(db, { ...record, others })
      throw new Error('the line went dead')
    })
    expect((await take(request)).at(-1)).toMatchObject({ type: 'done' })
    await runDurableObjectAlarm(stub(request.conversationId))
    lost.mockRestore()
    expect(await runDurableObjectAlarm(stub(request.conversationId))).toBe(true)
    expect(await recorded(request.conversationId)).toHaveLength(1)
    expect((await usedSoFar()).turns).toBe(before.turns + 1)
    const spent = 'SELECT turns, input_tokens, output_tokens FROM usage WHERE model_id = ?'
    expect(await rowsOf(spent, 'fallback')).toEqual([{ turns: 0, input_tokens: 5, output_tokens: 1 }])
  })

  it('keeps no answer waiting when it is silent', async () => {
    const silent = vi.spyOn(turns, 'recordTurn').mockImplementation(() => new Promise(() => {}))
    const request = await asking(QUESTION)
    expect((await take(request)).at(-1)).toMatchObject({ type: 'done' })
    expect(silent).toHaveBeenCalledTimes(1)
    // The second does not even wait: the first has found out.
    expect((await take({ ...request, continues: true })).at(-1)).toMatchObject({ type: 'done' })
    expect(silent).toHaveBeenCalledTimes(1)
    silent.mockRestore()
    await evictDurableObject(stub(request.conversationId)).catch(() => abortAllDurableObjects())
    await runDurableObjectAlarm(stub(request.conversationId))
    expect(await recorded(request.conversationId)).toHaveLength(2)
  })

  it('does not bring back what was deleted meanwhile', async () => {
    const request = await asking(QUESTION)
    const { conversationId: id } = request
    await withoutTables(TABLES, async () => {
      await take(request)
      const { object } = await collectionNamed('talk')
      unwrap(
        await object.removeWhere(`conversation_id:=${id}`, {
          batchSize: 100,
          returnDocuments: false,
          returnIds: false,
        }),
      )
    })
    expect(await runDurableObjectAlarm(stub(id))).toBe(true)
    expect(await recorded(id)).toEqual([])
    expect(await rowsOf('SELECT id FROM conversations WHERE id = ?', id)).toEqual([])
  })
})

describe('the record of a turn', () => {
  it('is in D1 when the turn is done, with a trace that holds the prompt and no key', async () => {
    vi.spyOn(globalThis, 'fetch').mockImplementation(speaking('Ridley Scott directed Alien.'))
    const request = await asking(QUESTION, {
      model: openai,
      asker: { owner: '7', userId: 'ada' },
      protocol: 'parley',
    })
    await take(request)
    await take({ ...request, continues: true, question: contentOf('And who is in it?') })
    const { conversationId: id } = request
    const [row] = await rowsOf('SELECT * FROM conversations WHERE id = ?', id)
    expect(row).toMatchObject({ owner: '7', user_id: 'ada', protocol: 'parley', title: QUESTION, turns: 2 })
    const [first, second] = await rowsOf('SELECT * FROM turns WHERE conversation_id = ? ORDER BY turn', id)
    expect(first).toMatchObject({
      answer: 'Ridley Scott directed Alien.',
      finish_reason: 'stop',
      standalone: null,
    })
    expect(first!.expires_at).toBe((first!.created_at as number) + 86_400_000)
    expect(row!.expires_at).toBe(second!.expires_at)
    const trace = JSON.parse(String(second!.trace))
    expect(trace).toMatchObject({ question: 'And who is in it?', standalone: 'Ridley Scott directed Alien.' })
    expect(trace.searches.map(({ params }: { params: { q: string } }) => params.q)).toEqual([
      'And who is in it?',
      'Ridley Scott directed Alien.',
    ])
    expect(trace.searches[1]).toMatchObject({ collection: 'films', found: expect.any(Number) })
    expect(trace.searches[1].hits[0]).toMatchObject({
      id: expect.any(String),
      text_match: expect.any(Number),
    })
    expect(trace.calls.map(({ purpose }: { purpose: string }) => purpose)).toEqual(['standalone', 'answer'])
    expect(trace.calls[0].prompt[0].content).toContain(QUESTION)
    expect(trace.calls[1].prompt.at(-1).content).toContain('<Data>')
    expect(trace.calls[1]).toMatchObject({ finish_reason: 'stop', input_tokens: expect.any(Number) })
    expect(JSON.stringify([row, first, second])).not.toContain('sk-secret')
    expect(JSON.parse(String(first!.citations))).toContainEqual(
      expect.objectContaining({ document_id: 'alien' }),
    )
    expect(await rowsOf("SELECT turns, model_id FROM usage WHERE owner = '7'")).toEqual([
      { turns: 2, model_id: 'm' },
    ])
  })

  it('fits into a row, whatever was said', async () => {
    const answer = '本'.repeat(400_000)
    vi.spyOn(globalThis, 'fetch').mockImplementation(speaking(answer))
    const request = await asking(`${QUESTION} ${'"'.repeat(2_000)}`, {
      model: { ...openai, max_bytes: 3_000_000, system_prompt: '"\\'.repeat(500_000) },
    })
    expect((await take(request)).at(-1)).toMatchObject({ type: 'done' })
    const [row] = await rowsOf(
      'SELECT length(answer) AS length, trace FROM turns WHERE conversation_id = ?',
      request.conversationId,
    )
    expect(row!.length).toBeGreaterThan(30_000)
    expect(JSON.parse(String(row!.trace))).toMatchObject({ shortened: true })
    expect(textOf((await messagesOf(request.conversationId))[1]!.content)).toBe(answer)
  })

  it('is of nothing that its history refused', async () => {
    vi.spyOn(Collection.prototype, 'appendTurn').mockResolvedValue({
      ok: false,
      error: {
        status: 400,
        message: 'Field `mood` has been declared in the schema, but is not found in the document.',
      },
    })
    const request = await asking(QUESTION)
    expect((await take(request)).at(-1)).toMatchObject({ type: 'error', status: 400 })
    expect(await recorded(request.conversationId)).toEqual([])
    const left = await runInDurableObject(stub(request.conversationId), (_, { storage }) =>
      storage.sql.exec('SELECT turn FROM records UNION ALL SELECT turn FROM outbox').toArray(),
    )
    expect(left).toEqual([])
  })
})
