import { env } from 'cloudflare:workers'
import { afterEach, expect, it, vi } from 'vitest'
import { answerOnce, askOnce } from '../../src/conversation/ask'
import { Conversation } from '../../src/conversation/conversation'
import * as conversations from '../../src/conversation/conversation-object'
import { unwrap } from '../../src/errors'
import { contentOf } from '../../src/lib/parts'
import type { Single } from '../../src/turn/request'
import { inObject } from './remains'
import { conversation, stub } from './stage'

afterEach(() => vi.restoreAllMocks())

type Model = { model_name: string; api_key?: string; openai_url?: string }

const single = (model: Model): Single => ({
  question: contentOf('Who?'),
  model: { id: 'm', history_collection: 'talk', max_bytes: 16_384, ttl: 60, ...model },
  historyId: '',
  given: { passages: [], system: 'A secret prompt.', turns: 1 },
  onSearchError: 'fail',
  protocol: 'opensearch',
  asker: { owner: 'admin', userId: '' },
  fingerprint: 'f',
})

const eventsOf = async (model: Model) => linesOf(answerOnce(env, single(model)).events)

const linesOf = async (events: ReadableStream<Uint8Array>) => {
  const lines = (await new Response(events).text()).trim().split('\n')
  return lines.map((line) => JSON.parse(line) as { type: string; seq: number; text?: string })
}

it('tells its reader nothing that is for operators, and numbers its events without a gap', async () => {
  vi.spyOn(globalThis, 'fetch').mockImplementation(async () =>
    Response.json({ choices: [{ message: { content: 'Hi.' }, finish_reason: 'stop' }] }),
  )
  const told = await eventsOf({ model_name: 'local/extractive' })
  expect(told.map(({ type }) => type)).not.toContain('call')
  expect(told.at(-1)!.type).toBe('done')
  const numbered = told.filter(({ type }) => type !== 'results')
  expect(numbered.map(({ seq }) => seq)).toEqual(numbered.map((_, at) => at))
})

it('gathers what a fast model writes, and leaves nothing out', async () => {
  const words = Array.from({ length: 400 }, (_, n) => `word${n} `)
  const chunks = words.map((content) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`)
  const end = `data: ${JSON.stringify({ choices: [{ delta: {}, finish_reason: 'stop' }] })}\n\ndata: [DONE]\n\n`
  vi.spyOn(globalThis, 'fetch').mockImplementation(
    async () => new Response(chunks.join('') + end, { headers: { 'content-type': 'text/event-stream' } }),
  )
  const told = await eventsOf({
    model_name: 'openai/fast',
    api_key: 'sk',
    openai_url: 'https://models.example',
  })
  const texts = told.flatMap(({ type, text }) => (type === 'delta' ? [text] : []))
  expect(texts.join('').trim()).toBe(words.join('').trim())
  expect(texts.length).toBeLessThan(words.length / 2)
  expect(told.at(-1)!.type).toBe('done')
})

const LOCAL = { model_name: 'local/extractive' }

it('is answered by an object, which stores nothing of it', async () => {
  const id = crypto.randomUUID()
  const { events } = unwrap(await conversation(id).once(single(LOCAL)))
  expect((await linesOf(events)).at(-1)!.type).toBe('done')
  expect(await inObject(stub(id))).toEqual([])
})

it('is answered in the Worker if the objects are of the version before', async () => {
  const inObjects = vi.spyOn(Conversation.prototype, 'once')
  expect((await linesOf((await askOnce(env, single(LOCAL))).events)).at(-1)!.type).toBe('done')
  expect(inObjects).toHaveBeenCalledOnce()
  const { conversationObject } = conversations
  vi.spyOn(conversations, 'conversationObject').mockImplementation((...given) => ({
    ...conversationObject(...given),
    // As workerd fails a call of a method that the object does not have.
    once: async () => {
      throw new TypeError('The RPC receiver does not implement the method "once".')
    },
  }))
  expect((await linesOf((await askOnce(env, single(LOCAL))).events)).at(-1)!.type).toBe('done')
  expect(inObjects).toHaveBeenCalledOnce()
})
