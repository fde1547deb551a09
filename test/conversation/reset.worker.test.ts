/**
 * A turn whose object is reset, as a deployment resets it: it runs again, as the same turn, whether or not anybody comes back for it.
 */
import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import { MOST_RUNS } from '../../src/conversation/stored'
import { contentOf } from '../../src/lib/parts'
import { findModel, updateModel } from '../../src/registry/models'
import { interrupted } from '../../src/turn/errors'
import { RUN_SEQ, type TurnEvent } from '../../src/turn/events'
import type { AskRequest } from '../../src/turn/request'
import { setRemoteStage } from '../api/stage'
import {
  ADMIN,
  asking,
  begin,
  conversation,
  eventsOf,
  hangFirstSearch,
  messagesOf,
  read,
  rowsOf,
  stub,
  usedSoFar,
} from './stage'

const QUESTION = 'Who directed Alien?'
const KEY = 'sk-1234567890'

beforeAll(setRemoteStage)
afterEach(() => vi.restoreAllMocks())

const remote = async (parts: Partial<AskRequest> = {}): Promise<AskRequest> =>
  asking(QUESTION, { model: (await findModel(env, 'remote'))!, ...parts })

/** A provider that answers its calls with these texts, in order. One that ends in `…` never comes to its end. @returns its calls */
function answering(...texts: string[]): unknown[] {
  const calls: unknown[] = []
  vi.spyOn(console, 'error').mockReturnValue()
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (_, init) => {
    const text = texts[Math.min(calls.length, texts.length - 1)]!
    calls.push(JSON.parse(String(init?.body)))
    const isWhole = !text.endsWith('…')
    const said = isWhole ? text : text.slice(0, -1)
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        const piece = `data: ${JSON.stringify({ choices: [{ delta: { content: said } }] })}\n\n`
        if (said !== '') controller.enqueue(new TextEncoder().encode(piece))
        if (!isWhole) return
        controller.enqueue(new TextEncoder().encode('data: [DONE]\n\n'))
        controller.close()
      },
    })
    return new Response(stream, { headers: { 'content-type': 'text/event-stream' } })
  })
  return calls
}

/** Reads until an event of this type has come. @returns the events so far */
async function readTo(stream: ReadableStream<Uint8Array>, type: TurnEvent['type']): Promise<TurnEvent[]> {
  const reader = stream.getReader()
  const decoder = new TextDecoder()
  let text = ''
  while (!text.includes(`{"type":"${type}"`) || !text.endsWith('\n'))
    text += decoder.decode((await reader.read()).value, { stream: true })
  reader.closed.catch(() => {})
  return text
    .split('\n')
    .slice(0, -1)
    .map((line): TurnEvent => JSON.parse(line))
}

const rowOf = (id: string) =>
  runInDurableObject(stub(id), (_, { storage }) =>
    storage.sql
      .exec<{ turn: number; status: string; request: string | null; runs: number }>(
        'SELECT turn, status, request, runs FROM turns ORDER BY turn',
      )
      .toArray(),
  )

const statusOf = async (id: string) => (await rowOf(id)).map(({ status }) => status)

const recorded = (id: string) => rowsOf('SELECT turn, answer FROM turns WHERE conversation_id = ?', id)

/** That one turn was stored, once, with this answer. */
async function requireOneTurn(id: string, answer: string): Promise<void> {
  await expect.poll(() => recorded(id)).toEqual([{ turn: 1, answer }])
  expect((await messagesOf(id)).map(({ content }) => content)).toEqual([
    contentOf(QUESTION),
    contentOf(answer),
  ])
  expect(await rowOf(id)).toMatchObject([{ turn: 1, status: 'done', request: null }])
}

it('before its search has come back: its alarm has it run again, though nobody comes back', async () => {
  const searches = hangFirstSearch()
  const calls = answering('Ridley Scott.')
  const request = await remote()
  const { conversationId: id } = request
  const stream = await begin(request)
  await expect.poll(searches).toBe(1)
  const [row] = await rowOf(id)
  expect(row!.request).toContain(QUESTION)
  expect(row!.request).not.toContain(KEY)
  await abortAllDurableObjects()
  await stream.cancel().catch(() => {})
  expect(await runDurableObjectAlarm(stub(id))).toBe(true)
  await requireOneTurn(id, 'Ridley Scott.')
  expect(calls).toHaveLength(1)
})

it('before the first piece of its answer: a reader goes on after the last event that it has', async () => {
  const before = await usedSoFar()
  answering('…', 'Ridley Scott.')
  const request = await remote()
  const { conversationId: id } = request
  const had = await readTo(await begin(request), 'retrieval')
  await abortAllDurableObjects()
  const { turn, seq } = had.at(-1)!
  const rest = await eventsOf(id, { turn, seq })
  expect(rest[0]).toMatchObject({ type: 'delta', text: 'Ridley Scott.', turn, seq: RUN_SEQ })
  expect(rest.at(-1)).toMatchObject({ type: 'done', answer: contentOf('Ridley Scott.') })
  await requireOneTurn(id, 'Ridley Scott.')
  // Whoever asks later, by whatever number, gets the same.
  expect(await eventsOf(id, { turn, seq })).toEqual(rest)
  expect(await eventsOf(id, { turn, seq: rest[0]!.seq })).toEqual(rest.slice(1))
  await expect.poll(async () => (await usedSoFar()).turns).toBe(before.turns + 1)
})

it('in the middle of its answer: none gets two halves that are not of one, and both are paid for', async () => {
  const before = await usedSoFar()
  const calls = answering('Half of it …', 'Ridley Scott.')
  const request = await remote({ idempotencyKey: 'the same request' })
  const { conversationId: id } = request
  const had = await readTo(await begin(request), 'delta')
  const spent = () =>
    runInDurableObject(stub(id), (_, { storage }) => storage.sql.exec('SELECT spent FROM turns').one().spent)
  await expect.poll(spent).toContain('outputTokens')
  await abortAllDurableObjects()

  const { turn, seq } = had.at(-1)!
  const beyond = eventsOf(id, { turn, seq })
  const again = read(await begin({ ...request, attempt: 'another' }))
  const chat = await conversation(id).running(ADMIN)
  expect(await beyond).toMatchObject([{ type: 'error', code: 'interrupted', retryable: true, turn }])
  const events = await again
  expect(events.map(({ type }) => type)).toEqual(['question', 'retrieval', 'delta', 'usage', 'done'])
  expect(events.at(-1)).toMatchObject({ turn, answer: contentOf('Ridley Scott.') })
  expect(chat.ok && chat.value && (await read(chat.value))).toEqual(events)
  await requireOneTurn(id, 'Ridley Scott.')
  expect(calls).toHaveLength(2)
  // A later reader of the log is told the same as one of the running turn.
  expect(await eventsOf(id, { turn, seq })).toMatchObject([{ type: 'error', code: 'interrupted' }])
  const after = await usedSoFar()
  expect(after.turns).toBe(before.turns + 1)
  const [prompt] = calls as { messages: { content: string }[] }[]
  const bytes = prompt!.messages.reduce((sum, { content }) => sum + content.length, 0)
  expect(after.tokens - before.tokens).toBeGreaterThan((2 * bytes) / 4)
})

it('after its last piece, and before it is stored', async () => {
  answering('Ridley Scott, all of it.…', 'Ridley Scott.')
  const request = await remote()
  const { conversationId: id } = request
  await readTo(await begin(request), 'delta')
  await abortAllDurableObjects()
  expect(await runDurableObjectAlarm(stub(id))).toBe(true)
  await requireOneTurn(id, 'Ridley Scott.')
})

it('with a budget of turns: it is counted once', async () => {
  answering('…', 'Ridley Scott.')
  const asker = { owner: 'a key with a budget', userId: '' }
  const request = await remote({ asker, turnsPerDay: 1 })
  const { conversationId: id } = request
  await readTo(await begin(request), 'retrieval')
  await abortAllDurableObjects()
  expect(await runDurableObjectAlarm(stub(id))).toBe(true)
  await requireOneTurn(id, 'Ridley Scott.')
  const used = () => rowsOf('SELECT sum(turns) AS turns FROM usage WHERE owner = ?', asker.owner)
  await expect.poll(used).toEqual([{ turns: 1 }])
})

it('that ends its object each time comes to an end', async () => {
  const calls = answering('Half of it …')
  const request = await remote()
  const { conversationId: id } = request
  await readTo(await begin(request), 'delta')
  for (let run = 1; run <= MOST_RUNS; run += 1) {
    await expect.poll(() => calls.length).toBe(run)
    await abortAllDurableObjects()
    await runDurableObjectAlarm(stub(id))
  }
  expect(await statusOf(id)).toEqual(['interrupted'])
  expect(calls).toHaveLength(MOST_RUNS)
  expect((await eventsOf(id)).at(-1)).toMatchObject({ type: 'error', message: interrupted().message })
  expect(await messagesOf(id)).toEqual([])
})

it.each([
  ['was stopped', (id: string) => conversation(id).stop(ADMIN)],
  [
    'began long ago',
    (id: string) =>
      runInDurableObject(stub(id), (_, { storage }) =>
        storage.sql.exec('UPDATE turns SET started_at = started_at - 601000').toArray(),
      ),
  ],
  [
    'has a model that is called elsewhere by now',
    () => updateModel(env, 'remote', { openai_url: 'https://elsewhere.test', api_key: KEY }),
  ],
])('that %s does not run again', async (_, before) => {
  const calls = answering('Half of it …', 'Never.')
  const request = await remote()
  const { conversationId: id } = request
  await readTo(await begin(request), 'delta')
  await before(id)
  calls.length = 1
  await abortAllDurableObjects()
  await runDurableObjectAlarm(stub(id))
  await expect.poll(() => statusOf(id)).not.toContain('running')
  expect((await eventsOf(id)).at(-1)).toMatchObject({ type: 'error' })
  expect(await messagesOf(id)).toEqual([])
  expect(calls).toHaveLength(1)
})
