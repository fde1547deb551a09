/** Two visitors of a page and an admin ask, retry, read, rate and delete in any order: neither meets the other's words. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { makeKey, setStage } from '../api/parley/stage'
import { call, send } from '../api/typesense/api'
import { check, PATIENCE, survives } from './fuzz'

let key: string

/** A model that takes its time, and answers with all that it was sent: what reaches a prompt is there to be read. */
const echo = (async (_, init) => {
  const { messages, stream } = JSON.parse(String(init?.body))
  const content = messages.map((message: { content: string }) => message.content).join(' ')
  await new Promise((resolve) => setTimeout(resolve, 30))
  if (!stream) return Response.json({ choices: [{ message: { content }, finish_reason: 'stop' }] })
  const chunk = JSON.stringify({ choices: [{ delta: { content }, finish_reason: 'stop' }] })
  const headers = { 'content-type': 'text/event-stream' }
  return new Response(`data: ${chunk}\n\ndata: [DONE]\n\n`, { headers })
}) as typeof fetch

afterAll(() => vi.restoreAllMocks())

beforeAll(async () => {
  vi.spyOn(globalThis, 'fetch').mockImplementation(echo)
  await setStage()
  const model = {
    id: 'echo',
    model_name: 'openai/any',
    api_key: 'sk-1234567890',
    openai_url: 'https://llm.test',
  }
  const body = { ...model, history_collection: 'history', max_bytes: 16_384 }
  expect((await call('POST', '/conversations/models', { body }))[0]).toBe(201)
  expect(
    (await call('PUT', '/assistants/guide', { body: { model: 'echo', collections: ['facts'] } }))[0],
  ).toBe(200)
  key = await makeKey({ actions: ['documents:search'] })
})

/** Each sequence has many turns. */
const SHARE = 0.1

/** Stands for a name that is as random as one can be. */
const RANDOM = 'random'

/** What all visitors of the page may click on. */
const STARTER = 'How high is the Eiffel Tower?'

const WAYS = ['parley', 'search', 'chat', 'completion', 'response', 'ui', 'agui', 'n8n', 'socket'] as const

/** Names of chats and turns that others come upon. */
const WEAK = [
  '1234567',
  'question-number-1',
  'my-support-chat-01',
  'chat-1764282000000',
  'user-42-session-1',
  'MySupportChat001',
  '00000000-0000-4000-8000-000000000001',
]

const step = fc.record({
  who: fc.constantFrom('ann', 'ann', 'bob', 'bob', 'admin'),
  does: fc.oneof(
    { arbitrary: fc.constantFrom('follow', 'read'), weight: 3 },
    { arbitrary: fc.constantFrom('ask', 'both', 'retry'), weight: 2 },
    { arbitrary: fc.constantFrom('rate', 'withdraw'), weight: 2 },
    { arbitrary: fc.constantFrom('list', 'delete', 'events', 'stop'), weight: 1 },
  ),
  way: fc.constantFrom(...WAYS),
  /** a starter, or the visitor's own words */
  starter: fc.boolean(),
  /** which conversation, of those that the visitor knows */
  place: fc.nat(3),
  named: fc.constantFrom(undefined, undefined, RANDOM, '1', ...WEAK),
  chat: fc.constantFrom(undefined, ...WEAK),
  claims: fc.constantFrom(undefined, 'ann', 'bob'),
  /** where the visitor's secret is */
  inAddress: fc.boolean(),
})
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

interface Sent {
  method: string
  path: string
  body?: unknown
  headers: Record<string, string>
}

/** The same with the secret in the address. */
function inAddress({ headers, path, ...sent }: Sent): Sent {
  const { 'x-parley-visitor': secret, ...others } = headers
  const query = secret === undefined ? '' : `${path.includes('?') ? '&' : '?'}x-parley-visitor=${secret}`
  return { ...sent, headers: others, path: path + query }
}

/** Asks on a socket, whose secret is in its address. @returns what came until the end of the answer */
async function onSocket(key: string, sent: Sent): Promise<{ status: number; text: string }> {
  const { path, headers, body } = inAddress(sent)
  const { webSocket } = await send('GET', path, { key, headers: { ...headers, upgrade: 'websocket' } })
  const socket = webSocket!
  let text = ''
  const ended = new Promise<void>((resolve) => {
    socket.addEventListener('message', ({ data }) => {
      text += data
      if (JSON.parse(String(data)).done) resolve()
    })
  })
  socket.accept()
  const init = { method: 'POST', body: JSON.stringify(body) }
  socket.send(JSON.stringify({ type: 'cf_agent_use_chat_request', id: '1', init }))
  await ended
  socket.close()
  return { status: 200, text }
}

class Visitor {
  /** what nobody else says */
  readonly word = `secret${crypto.randomUUID().replaceAll('-', '')}`
  readonly known: string[] = []
  /** what they said of an answer last, by the path of their rating */
  readonly said = new Map<string, string>()
  last: Sent | undefined

  constructor(
    readonly key: string,
    readonly secret: string | undefined,
  ) {}
}

/** @param own whether a visitor may try the ids of others, too: without a secret an id is all that it takes */
class Page {
  readonly people: Record<string, Visitor>

  constructor(readonly shown: boolean) {
    const secret = () => (shown ? crypto.randomUUID() : undefined)
    this.people = {
      ann: new Visitor(key, secret()),
      bob: new Visitor(key, secret()),
      admin: new Visitor('xyz', undefined),
    }
  }

  async take({ who, does, ...how }: Step): Promise<void> {
    const visitor = this.people[who]!
    if (does === 'both') {
      const asking = { ...how, starter: true, claims: undefined }
      const { ann, bob } = this.people
      await Promise.all([ann!, bob!].map((each) => this.send(each, this.asking(each, asking, undefined))))
      return
    }
    const as = (sent: Sent) => this.send(visitor, how.inAddress ? inAddress(sent) : sent)
    const places = this.shown ? Object.values(this.people).flatMap(({ known }) => known) : visitor.known
    const id = places[how.place % Math.max(1, places.length)]
    const headers = this.headersOf(visitor, how)
    if (does === 'ask') await as(this.asking(visitor, how, undefined))
    else if (does === 'retry') await (visitor.last && this.send(visitor, visitor.last))
    else if (does === 'list') await as({ method: 'GET', path: '/conversations', headers })
    else if (id === undefined) return
    else if (does === 'follow') await as(this.asking(visitor, how, id))
    else if (does === 'read') {
      const path = {
        completion: `/v1/conversations/${id}/items`,
        response: `/v1/responses/resp_${id}.1`,
        ui: `/ui/guide/${how.chat ?? id}/messages`,
        socket: `/ui/guide/${how.chat ?? id}/messages`,
      }
      const read = path[how.way as keyof typeof path] ?? `/conversations/${id}`
      await as({ method: 'GET', path: read, headers })
    } else if (does === 'events') {
      await as({ method: 'GET', path: `/conversations/${id}/events`, headers })
    } else if (does === 'stop') {
      await this.send(visitor, { method: 'POST', path: `/conversations/${id}/stop`, headers })
    } else if (does === 'rate' || does === 'withdraw') {
      await this.rate(visitor, `/conversations/${id}/turns/${1 + (how.place % 2)}/feedback`, does, headers)
    } else {
      const { status } = await this.send(visitor, { method: 'DELETE', path: `/conversations/${id}`, headers })
      if (status === 200) this.forget(id)
    }
  }

  /** Ratings go with their conversation, also where another one begins under its id. */
  forget(id: string): void {
    for (const { said } of Object.values(this.people)) {
      for (const path of said.keys()) if (path.startsWith(`/conversations/${id}/`)) said.delete(path)
    }
  }

  /** A rating says a word of its visitor's, so that it is seen wherever it should not be. */
  async rate(
    visitor: Visitor,
    path: string,
    does: 'rate' | 'withdraw',
    headers: Sent['headers'],
  ): Promise<void> {
    if (does === 'withdraw') {
      const { status } = await this.send(visitor, { method: 'DELETE', path, headers })
      if (status === 200) visitor.said.delete(path)
      return
    }
    const comment = `${visitor.word} says ${crypto.randomUUID()}`
    const { status } = await this.send(visitor, { method: 'PUT', path, body: { score: 4, comment }, headers })
    if (status === 200) visitor.said.set(path, comment)
  }

  /** What a visitor said of an answer is theirs to change: it is as they said it, as long as the answer is there. */
  async review(): Promise<void> {
    for (const visitor of Object.values(this.people)) {
      const headers = this.headersOf(visitor, { claims: undefined })
      for (const [path, comment] of visitor.said) {
        const [, id, turn] = /^\/conversations\/([^/]+)\/turns\/(\d+)/.exec(path)!
        const sent = { method: 'GET', path: `/conversations/${id}`, headers }
        const { status, text } = await this.send(visitor, sent)
        if (status !== 200) continue
        type Rated = { turn: number; feedback?: { own: boolean; comment: string }[] }
        const rated = JSON.parse(text).turns.find((each: Rated) => each.turn === Number(turn)) as
          | Rated
          | undefined
        const own = rated?.feedback?.filter((each) => each.own) ?? []
        expect(own.map((each) => each.comment)).toEqual(rated ? [comment] : [])
      }
    }
  }

  headersOf(
    { secret }: Visitor,
    { named, claims }: { named?: string | undefined; claims: Step['claims'] },
  ): Record<string, string> {
    return {
      'user-agent': 'a browser',
      ...(secret !== undefined && { 'x-parley-visitor': `${secret}-of-a-visitor` }),
      ...(named !== undefined && { 'idempotency-key': named }),
      ...(claims !== undefined && { 'x-typesense-user-id': claims }),
    }
  }

  asking(visitor: Visitor, how: Omit<Step, 'who' | 'does'>, id: string | undefined): Sent {
    const { way, starter, place, chat } = how
    // A random key is only one visitor's.
    const named = how.named === RANDOM ? `${visitor.word}-0A` : how.named
    const headers = this.headersOf(visitor, { ...how, named })
    const question = starter ? STARTER : `What of ${visitor.word}?`
    const post = (path: string, body: unknown): Sent => ({ method: 'POST', path, body, headers })
    const messages = [{ role: 'user', content: question }]
    switch (way) {
      case 'parley':
        return post('/conversations', {
          question,
          model: 'echo',
          collections: ['facts'],
          conversation_id: id,
        })
      case 'search': {
        const conversing = {
          conversation: 'true',
          conversation_model_id: 'echo',
          query_by: 'text',
          q: question,
        }
        const query = new URLSearchParams({ ...conversing, ...(id !== undefined && { conversation_id: id }) })
        return { method: 'GET', path: `/collections/facts/documents/search?${query}`, headers }
      }
      case 'chat':
        return post('/a/guide/chat', { messages, session_state: id })
      case 'completion':
        return post('/v1/chat/completions', {
          model: 'guide',
          messages,
          ...((id ?? chat) !== undefined && { metadata: { conversation_id: id ?? chat } }),
        })
      case 'response':
        return post('/v1/responses', {
          model: 'guide',
          input: question,
          ...(id !== undefined && { previous_response_id: `resp_${id}.${1 + (place % 3)}` }),
        })
      case 'ui':
        return post('/ui/guide', { id: id ?? chat, message: messages[0] })
      case 'agui':
        return post('/agui/guide', { threadId: id ?? chat ?? visitor.word, runId: 'r', messages })
      case 'n8n': {
        const sessionId = id ?? chat ?? visitor.word
        return post('/n8n/guide', { action: 'sendMessage', sessionId, chatInput: question })
      }
      case 'socket':
        return post(`/agents/guide/${id ?? chat ?? visitor.word}`, {
          messages: [{ id: 'q', ...messages[0] }],
        })
    }
  }

  /** Sends a request, and looks for the words of others in what comes back. */
  async send(visitor: Visitor, sent: Sent): Promise<{ status: number; text: string }> {
    const { method, path, body, headers } = sent
    const { status, text } = path.startsWith('/agents/')
      ? await onSocket(visitor.key, sent)
      : await survives(method, path, { key: visitor.key, headers, ...(body !== undefined && { body }) })
    if (sent.path !== '/conversations' || method === 'POST') visitor.last = sent
    const { ann, bob } = this.people
    if (visitor === ann) expect(text, `${method} ${path}`).not.toContain(bob!.word)
    if (visitor === bob) expect(text, `${method} ${path}`).not.toContain(ann!.word)
    const [, id] = /"conversation_id": ?"([0-9a-f-]{36})"/.exec(text) ?? []
    if (id !== undefined && !visitor.known.includes(id)) visitor.known.push(id)
    return { status, text }
  }
}

/** Two click on the same question in the same way, one says something of herself, the other goes on, and then whatever. */
const sequence = fc
  .tuple(
    fc.constantFrom(...WAYS),
    fc.constantFrom(undefined, '1', ...WEAK),
    fc.constantFrom(undefined, ...WEAK),
    fc.array(step, { minLength: 2, maxLength: 10 }),
  )
  .map(([way, named, chat, steps]): Step[] => {
    const how = { way, place: 0, named: undefined, chat, claims: undefined, inAddress: false }
    return [
      { who: 'ann', does: 'both', starter: true, ...how, named },
      { who: 'ann', does: 'follow', starter: false, ...how },
      { who: 'bob', does: 'follow', starter: true, ...how },
      ...steps,
    ]
  })

it.each([
  ['with secrets, who try each other’s ids', true],
  ['whom nothing tells apart, each with the ids that were given to it', false],
])('two visitors %s', { timeout: PATIENCE * 10 }, (_, shown) =>
  check(
    fc.asyncProperty(sequence, async (steps) => {
      const page = new Page(shown)
      for (const each of steps) await page.take(each)
      await page.review()
    }),
    SHARE,
  ),
)
