/** The hops of routes that hops.worker.test.ts and named-hops.worker.test.ts leave out. */
import { afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { Prefetch } from '../../src/conversation/prefetch'
import { beginAnew, expectInTable, hopsOf, setHopStage, waitedFor } from './counted-hops'
import { makeKey, QUESTION } from './parley/stage'
import { call, queryString, send } from './typesense/api'

let key: string
const pageKeys: Record<string, string> = {}
let assistant = 'guide'

const questionOf = (follows?: string): string =>
  `${follows === undefined ? QUESTION : 'And how high is the gate in Berlin, then?'} ${crypto.randomUUID()}`

const respondIn = (conversation: string) =>
  send('POST', '/v1/responses', { key, body: { model: assistant, input: questionOf(), conversation } })

async function opened(items: unknown[] = []): Promise<string> {
  // The clock of these tests may be ahead by more than messages are kept.
  beginAnew()
  const [status, { id }] = await call('POST', '/v1/conversations', { body: { items }, key })
  expect(status).toBe(200)
  return id
}

const mcp = (follows?: string) =>
  send('POST', `/mcp/${assistant}`, {
    key,
    headers: { accept: 'application/json, text/event-stream' },
    body: {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'ask', arguments: { question: questionOf(follows), conversation_id: follows } },
    },
  })

const snippet = (follows?: string) =>
  send('POST', `/ai-search/${encodeURIComponent(pageKeys[assistant]!)}/${assistant}/chat/completions`, {
    body: {
      messages: [
        ...(follows
          ? [
              { role: 'user', content: QUESTION },
              { role: 'assistant', content: '330 metres.' },
            ]
          : []),
        { role: 'user', content: questionOf(follows) },
      ],
    },
  })

beforeAll(async () => {
  await setHopStage()
  key = await makeKey({ actions: ['*'] })
  for (const name of ['guide', 'meaning']) {
    pageKeys[name] = await makeKey({ actions: ['assistants:ask'], limits: { assistant: name } })
  }
})
afterEach(() => vi.restoreAllMocks())

/** Asks over a socket of `useAgentChat`, in a chat of its own. */
async function overSocket(chat: string, follows?: string): Promise<() => Promise<Response>> {
  const path = `/agents/${assistant}/${chat}`
  const { webSocket } = await send('GET', path, { key, headers: { upgrade: 'websocket' } })
  const socket = webSocket!
  socket.accept()
  onTestFinished(() => socket.close())
  return () =>
    new Promise((resolve) => {
      let text = ''
      socket.addEventListener('message', ({ data }) => {
        const { body = '', done } = JSON.parse(String(data)) as { body?: string; done?: boolean }
        text += body
        if (done) resolve(new Response(text))
      })
      const parts = [{ type: 'text', text: questionOf(follows) }]
      const body = JSON.stringify({ messages: [{ id: 'm', role: 'user', parts }], trigger: 'submit-message' })
      const id = crypto.randomUUID()
      socket.send(JSON.stringify({ type: 'cf_agent_use_chat_request', id, init: { method: 'POST', body } }))
    })
}

/** The hops of a question in a cold isolate. */
async function cold(asking: () => Promise<Response>): Promise<{ hops: string[]; id: string }> {
  beginAnew()
  const { id, ...hops } = await hopsOf(asking)
  return { id, hops: waitedFor(hops) }
}

describe.each([
  { name: 'guide', asked: 'ask', looked: 'ask,recentMessages', searched: 'schema,search', last: [] },
  {
    name: 'meaning',
    asked: 'ask,embedAhead',
    looked: 'ask,embedAhead,recentMessages',
    searched: 'embed,schema,search',
    last: ['embed'],
  },
])(
  'an assistant whose collections need a call to embed: $last.length',
  ({ name, asked, looked, searched, last }) => {
    beforeEach(() => {
      assistant = name
    })

    const read = ['key,owner', 'budget,lookBack,registry']
    const rewritten = ['rewrite,schema,search', searched, ...last, 'answer']
    const followUp = [...read, 'ask,recentMessages', ...rewritten]

    const compare = (wire: Parameters<typeof expectInTable>[0], first: string[], second: string[]) =>
      expectInTable(
        wire,
        name === 'guide' ? { first, followUp: second } : { embedded: first, embeddedFollowUp: second },
      )

    it('the first question in a conversation that was opened', async () => {
      const id = await opened()
      const { hops } = await cold(() => respondIn(id))
      expect(hops).toEqual([...read, looked, searched, 'answer'])
      expect((await cold(() => respondIn(id))).hops).toEqual(followUp)
      compare('a conversation opened before', hops, followUp)
    })

    it('the same in a conversation that was told something', async () => {
      const id = await opened([{ type: 'message', role: 'user', content: 'I like towers.' }])
      expect((await cold(() => respondIn(id))).hops).toEqual(followUp)
    })

    it("MCP's tool `ask`", async () => {
      const { id, hops } = await cold(mcp)
      expect(hops).toEqual(['key,owner', 'budget,registry', asked, searched, 'answer'])
      expect((await cold(() => mcp(id))).hops).toEqual(followUp)
      compare("MCP's tool", hops, followUp)
    })

    it("AI Search's snippet, whose key is in its address", async () => {
      const keyed = ['owner', 'budget,key,registry']
      const { hops } = await cold(snippet)
      const second = (await cold(() => snippet('follows'))).hops
      expect(hops).toEqual([...keyed, asked, searched, 'answer'])
      expect(second).toEqual([...keyed, 'ask', ...rewritten])
      compare("AI Search's snippet", hops, second)
    })

    it("the agents' socket", async () => {
      const chat = `Chat${crypto.randomUUID().replaceAll('-', '')}`
      const keyed = ['key', 'budget,lookBack,registry']
      expect((await cold(await overSocket(chat))).hops).toEqual([...keyed, asked, searched, 'answer'])
      expect((await cold(await overSocket(chat, chat))).hops).toEqual([
        ...keyed,
        'ask,recentMessages',
        ...rewritten,
      ])
    })
  },
)

it('waits for no row that is in the memory of the isolate, as the table of docs/benchmarks.md says', async () => {
  assistant = 'guide'
  vi.restoreAllMocks()
  const warm = async (asking: () => Promise<Response>) => {
    const { id, ...hops } = await hopsOf(asking)
    return { id, hops: waitedFor(hops) }
  }
  const begin: [Parameters<typeof expectInTable>[0], (follows?: string) => Promise<Response>][] = [
    ["MCP's tool", mcp],
    ["AI Search's snippet", snippet],
  ]
  for (const [wire, asking] of begin) {
    await warm(asking)
    const first = await warm(asking)
    const followUp = await warm(() => asking(first.id))
    expectInTable(wire, { warm: first.hops, warmFollowUp: followUp.hops })
  }
  const [, { id }] = await call('POST', '/v1/conversations', { body: {}, key })
  await warm(() => send('POST', '/v1/responses', { key, body: { model: assistant, input: questionOf() } }))
  const first = await warm(() => respondIn(id))
  const followUp = await warm(() => respondIn(id))
  expectInTable('a conversation opened before', { warm: first.hops, warmFollowUp: followUp.hops })
})

it('wakes no object for a conversation that MCP names by an id of others', async () => {
  const lookBack = vi.spyOn(Prefetch.prototype, 'look')
  assistant = 'guide'
  beginAnew()
  const refused = await mcp(crypto.randomUUID())
  expect(await refused.text()).toContain('"isError":true')
  expect(lookBack).not.toHaveBeenCalled()
})

describe('a conversation that was opened', () => {
  beforeEach(() => {
    assistant = 'guide'
    vi.spyOn(globalThis, 'fetch').mockImplementation(async () => {
      const said = `data: ${JSON.stringify({ choices: [{ delta: { content: '330 metres.' } }] })}\n\ndata: [DONE]\n\n`
      return new Response(said, { headers: { 'content-type': 'text/event-stream' } })
    })
  })
  const titleOf = async (id: string) => (await call('GET', `/conversations/${id}`, { key }))[1].title

  it('keeps its first answer, and is named after its first question', async () => {
    const id = await opened()
    beginAnew()
    const response = await respondIn(id)
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('330 metres.')])
    expect(response.headers.get('x-parley-conversation-id')).toBe(id)
    expect(await titleOf(id)).toContain(QUESTION)
  })

  it('is looked up once more, thoroughly, where its messages were deleted', async () => {
    const id = await opened([{ type: 'message', role: 'user', content: 'I like towers.' }])
    const gone = queryString({ filter_by: `conversation_id:=${id}` })
    expect((await call('DELETE', `/collections/history/documents${gone}`))[0]).toBe(200)
    beginAnew()
    const { calls } = await hopsOf(() => respondIn(id))
    expect(calls.filter((name) => name === 'ask').length).toBeGreaterThan(1)
  })
})
