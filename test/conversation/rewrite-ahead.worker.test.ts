/** The rewriting of a follow-up that begins while its history is read. test/api/hops.worker.test.ts counts what it saves. */
import { afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { contentOf } from '../../src/parts'
import type { AskRequest } from '../../src/turn/request'
import { call } from '../api/typesense/api'
import { asking, conversation, messagesOf, openai, setStage, speaking, take, usedSoFar } from './stage'

const QUESTION = 'Who directed Alien?'
const ANSWER = 'Ridley Scott.'

/** the prompts that rewrite a follow-up */
let rewritings: string[] = []

beforeAll(() => setStage())
beforeEach(() => {
  rewritings = []
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (url, init) => {
    const { stream, messages } = JSON.parse(String(init?.body))
    if (stream) return speaking(ANSWER)(url, init)
    rewritings.push(messages[0].content)
    return speaking(`rewritten ${rewritings.length}`)(url, init)
  })
})
afterEach(() => vi.restoreAllMocks())

async function begun(parts: Partial<AskRequest> = {}): Promise<AskRequest> {
  const first = await asking(QUESTION, { model: openai, ...parts })
  await take(first)
  const { transcript: _, ...request } = first
  return { ...request, question: contentOf('And Heat?'), continues: true }
}

/** Asks a follow-up. @returns the question that it answers */
async function standaloneOf(request: AskRequest): Promise<unknown> {
  const events = await take(request)
  return events.find(({ type }) => type === 'question') ?? events.at(-1)
}

async function callsOf(id: string): Promise<Record<string, unknown>[]> {
  const [, { turns }] = await call('GET', `/conversations/${id}/trace?turn=2`)
  return turns[0].trace.calls
}

it('is the only one while nobody changes the history', async () => {
  const followUp = await begun()
  expect(await standaloneOf(followUp)).toMatchObject({ standalone: 'rewritten 1' })
  expect(rewritings).toEqual([expect.stringContaining(ANSWER)])
  expect(await callsOf(followUp.conversationId)).toMatchObject([
    { purpose: 'standalone' },
    { purpose: 'answer' },
  ])
  await standaloneOf({ ...followUp, question: contentOf('And Jaws?') })
  expect(rewritings).toEqual([rewritings[0], expect.stringContaining('And Heat?')])
})

it('begins anew if somebody has changed a message, and the first call is charged too', async () => {
  const followUp = await begun()
  const { conversationId: id } = followUp
  const { documentId } = (await messagesOf(id)).find(({ role }) => role === 'assistant')!
  const body = { message: 'Michael Mann.' }
  expect((await call('PATCH', `/collections/talk/documents/${documentId}`, { body }))[0]).toBe(200)
  expect(await standaloneOf(followUp)).toMatchObject({ standalone: 'rewritten 2' })
  expect(rewritings).toEqual([expect.stringContaining(ANSWER), expect.stringContaining('Michael Mann.')])
  const [rewriting] = await callsOf(id)
  expect(rewriting).toMatchObject({
    failed: [{ error: 'The history has changed.', input_tokens: expect.any(Number) }],
  })
})

it('is charged where all messages were deleted, and the follow-up is refused', async () => {
  const followUp = await begun()
  const filter = encodeURIComponent(`conversation_id:=${followUp.conversationId}`)
  expect((await call('DELETE', `/collections/talk/documents?filter_by=${filter}`))[0]).toBe(200)
  const { tokens } = await usedSoFar()
  expect(await standaloneOf(followUp)).toMatchObject({ type: 'error', code: 'unknown_conversation' })
  await expect.poll(async () => (await usedSoFar()).tokens).toBeGreaterThan(tokens)
  expect(rewritings).toHaveLength(1)
})

it('does not begin for somebody else, nor for an answer that is regenerated', async () => {
  const followUp = await begun()
  const asker = { owner: 'another', userId: '' }
  const refused = await conversation(followUp.conversationId).ask({ ...followUp, asker })
  expect(refused).toMatchObject({ ok: false })
  await take({ ...followUp, question: contentOf(QUESTION), replaces: { last: 'any' } })
  expect(rewritings).toEqual([])
})

it('waits for the history where the log has not all that was said', async () => {
  const transcript = [{ role: 'user' as const, content: contentOf('My name is Ada.') }]
  const followUp = await begun({ transcript })
  rewritings = []
  await standaloneOf(followUp)
  expect(rewritings).toEqual([expect.stringContaining('My name is Ada.')])
})
