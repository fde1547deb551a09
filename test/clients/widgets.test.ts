/** Wires of chat widgets as their clients write and read them: deep-chat, n8n, Cloudflare's snippet, plain text. */
import { TextStreamChatTransport } from 'ai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Counterpart, startCounterpart } from './counterpart'
import { client, createAssistant, createModel, createShows, KEY, request, unique, url } from './harness'
import { type Llm, startLlm } from './llm'

let llm: Llm
let counterpart: Counterpart
let shows: string
let assistant: string
let cut: string
let pageKey: string

beforeAll(async () => {
  llm = await startLlm()
  counterpart = await startCounterpart()
  shows = await createShows()
  const model = await createModel({ model_name: 'openai/gpt-4o-mini', openai_url: llm.url })
  assistant = await createAssistant({ model, collections: [shows] })
  const breaking = await createModel({ model_name: 'openai/cut', openai_url: counterpart.url })
  cut = await createAssistant({ model: breaking, collections: [shows] })
  const { body } = await request('POST', '/keys', {
    description: 'a page',
    actions: ['documents:search'],
    collections: [shows],
    limits: { allowed_origins: ['http://localhost:3000'] },
  })
  pageKey = body.value
})
afterAll(() => Promise.all([llm.stop(), counterpart.stop()]))

async function post(path: string, body: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  // biome-ignore lint/suspicious/noExplicitAny: replies are checked field by field
  const json: any = response.headers.get('content-type')?.includes('/json;') ? JSON.parse(text) : undefined
  return { status: response.status, headers: response.headers, text, json }
}

/** The data of server-sent events. */
const framesOf = (text: string) =>
  text
    .split('\n\n')
    .filter((frame) => frame.startsWith('data: {'))
    .map((frame) => JSON.parse(frame.slice('data: '.length)))

describe('deep-chat', () => {
  const talk = (text: string, more: Record<string, unknown> = {}, headers: Record<string, string> = {}) =>
    post(`/deep-chat/${assistant}`, { messages: [{ role: 'user', text }], ...more }, headers)

  test('is answered whole, and goes on by the id that the page gives it', async () => {
    const conversation_id = crypto.randomUUID()
    const first = await talk('an action series', { conversation_id })
    expect(first.json.text).toBe('You asked: an action series')
    expect(first.json.sources).toContainEqual({ id: `${shows}/quest`, title: 'Galactic Quest' })
    const second = await talk('and another?', { conversation_id })
    expect(second.json.text).toBe('You asked: standalone: and another?')
    const history = await request('GET', `/deep-chat/${assistant}/${conversation_id}`)
    expect(history.body).toEqual([
      { role: 'user', text: 'an action series' },
      { role: 'ai', ...first.json },
      { role: 'user', text: 'and another?' },
      { role: 'ai', ...second.json },
    ])
    const { body } = await request('GET', `/deep-chat/${assistant}/${conversation_id}`, undefined, pageKey)
    expect(body).toEqual([])
  })

  test('gets a stream when it asks for one, and takes its own transcript', async () => {
    const streamed = await talk('an action series', {}, { accept: 'text/event-stream' })
    const frames = framesOf(streamed.text)
    expect(frames.map(({ text = '' }) => text).join('')).toBe('You asked: an action series')
    expect(frames.length).toBeGreaterThan(2)
    llm.forget()
    const messages = [
      { role: 'user', text: 'I like marmalade.' },
      { role: 'ai', text: 'Noted.' },
      { role: 'user', text: 'What do I like?' },
    ]
    await talk('', { messages })
    expect(JSON.stringify(llm.calls())).toContain('marmalade')
  })

  test('shows errors, before and in an answer', async () => {
    const bad = await talk('  ')
    expect([bad.status, bad.json]).toEqual([400, { error: expect.stringContaining('`messages`') }])
    const denied = await talk('x', {}, { authorization: 'Bearer wrong' })
    expect([denied.status, denied.json.error]).toEqual([401, expect.stringContaining('Forbidden')])
    const path = `/deep-chat/${cut}`
    const messages = [{ role: 'user', text: unique('an action series') }]
    const broken = await post(path, { messages }, { accept: 'text/event-stream' })
    expect(framesOf(broken.text).at(-1) ?? broken.json).toMatchObject({ error: expect.any(String) })
  })
})

describe('n8n', () => {
  const talk = (chatInput: string, sessionId: string, headers: Record<string, string> = {}) =>
    post(`/n8n/${assistant}`, { action: 'sendMessage', sessionId, chatInput }, headers)

  test('is answered whole or line by line, and finds its session again', async () => {
    const session = crypto.randomUUID()
    expect((await talk('an action series', session)).json).toEqual({ output: 'You asked: an action series' })
    const { text, headers } = await talk('and another?', session, { accept: 'text/plain' })
    expect(headers.get('content-type')).toContain('jsonl')
    const lines = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines[0]).toEqual({ type: 'begin' })
    expect(lines.at(-1)).toEqual({ type: 'end' })
    const items = lines.slice(1, -1)
    expect(items.every(({ type }) => type === 'item')).toBe(true)
    expect(items.map(({ content }) => content).join('')).toBe('You asked: standalone: and another?')
    const load = { action: 'loadPreviousSession', sessionId: session }
    const { json } = await post(`/n8n/${assistant}`, load)
    const said = json.data.map(({ id, kwargs }: { id: string[]; kwargs: { content: string } }) => [
      id.at(-1),
      kwargs.content,
    ])
    expect(said).toEqual([
      ['HumanMessage', 'an action series'],
      ['AIMessage', 'You asked: an action series'],
      ['HumanMessage', 'and another?'],
      ['AIMessage', 'You asked: standalone: and another?'],
    ])
    const other = await post(`/n8n/${assistant}`, load, { authorization: `Bearer ${pageKey}` })
    expect(other.json).toEqual({ data: [] })
  })

  test('says what is wrong', async () => {
    expect((await post(`/n8n/${assistant}`, { action: 'dance', sessionId: 'x' })).json.message).toContain(
      'action',
    )
    const guessable = await talk('x', 'guessable', { authorization: `Bearer ${pageKey}` })
    expect([guessable.status, guessable.json.message]).toEqual([
      400,
      expect.stringContaining('16 characters'),
    ])
    const body = { action: 'sendMessage', sessionId: crypto.randomUUID(), chatInput: unique('x') }
    const broken = await post(`/n8n/${cut}`, body, { accept: 'text/plain' })
    expect(broken.text).toMatch(/"type":"error"|"message"/)
  })
})

describe("Cloudflare's snippet", () => {
  const at = (path: string, key = pageKey, name = assistant) =>
    `/ai-search/${encodeURIComponent(key)}/${name}/${path}`
  const messages = [{ role: 'user', content: 'a crew that salvages warships' }]
  const NO_KEY = { authorization: '' }

  test('chats with the key in its address', async () => {
    const { status, text } = await post(at('chat/completions'), { messages, stream: true }, NO_KEY)
    expect(status).toBe(200)
    expect(text).toContain('event: chunks\n')
    const deltas = framesOf(text).map(({ choices }) => choices[0].delta.content)
    expect(deltas.join('')).toBe('You asked: a crew that salvages warships')
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
    const whole = await post(at('chat/completions'), { messages, stream: false }, NO_KEY)
    expect(whole.json.choices[0].message.content).toContain('You asked')
  })

  test('searches', async () => {
    const body = { messages, stream: false, ai_search_options: { retrieval: { max_num_results: 2 } } }
    const { json } = await post(at('search'), body, NO_KEY)
    expect(json).toMatchObject({ success: true, result: { search_query: messages[0]!.content } })
    expect(json.result.chunks).toHaveLength(2)
    expect(json.result.chunks[0]).toMatchObject({
      id: `${shows}/salvage`,
      item: { metadata: { title: 'Starship Salvage', description: expect.stringContaining('warships') } },
    })
  })

  test('searches with no key that may only ask, and for no endless question', async () => {
    const { body } = await request('POST', '/keys', {
      description: 'a chat',
      actions: ['*'],
      collections: ['*'],
      limits: { assistant },
    })
    expect((await post(at('chat/completions', body.value), { messages }, NO_KEY)).status).toBe(200)
    expect((await post(at('search', body.value), { messages }, NO_KEY)).status).toBe(401)
    const endless = [{ role: 'user', content: 'long '.repeat(20_001) }]
    const refused = await post(at('search'), { messages: endless }, NO_KEY)
    expect([refused.status, refused.json.message]).toEqual([400, expect.stringContaining('is longer than')])
  })

  test('is not told its key again', async () => {
    const response = await fetch(url + at('search'))
    expect(response.status).toBe(405)
    expect(await response.json()).toEqual({
      message: `/ai-search/KEY/${assistant}/search takes POST, not GET.`,
    })
  })

  test('refuses a body of another protocol', async () => {
    const run = { threadId: 't', runId: 'r', messages, tools: [], context: [] }
    const { status, json } = await post(at('chat/completions'), run, NO_KEY)
    expect([status, json.message]).toEqual([400, expect.stringContaining('a request of AG-UI')])
  })

  test('takes a key that is made for pages only, from the origins of that key only', async () => {
    expect((await post(at('search', KEY), { messages }, NO_KEY)).status).toBe(401)
    expect((await post(at('search', 'wrong'), { messages }, NO_KEY)).status).toBe(401)
    const { body: plain } = await request('POST', '/keys', {
      description: 'no page',
      actions: ['documents:search'],
      collections: [shows],
    })
    expect((await post(at('search', plain.value), { messages }, NO_KEY)).status).toBe(401)
    const scoped = client().keys().generateScopedSearchKey(plain.value, { filter_by: 'points:<60' })
    const { json } = await post(at('search', scoped), { messages }, NO_KEY)
    expect(json.result.chunks.map(({ id }: { id: string }) => id)).not.toContain(`${shows}/salvage`)
    const origin = (value: string) => post(at('search'), { messages }, { ...NO_KEY, origin: value })
    const allowed = (response: { headers: Headers }) => response.headers.get('access-control-allow-origin')
    const own = await origin('http://localhost:3000')
    expect([own.status, allowed(own)]).toEqual([200, 'http://localhost:3000'])
    const foreign = await origin('http://localhost:4000')
    expect([foreign.status, allowed(foreign)]).toEqual([403, null])
  })
})

describe('plain text', () => {
  test('is what a completion and a text transport read', async () => {
    const completion = await post(`/ui/${assistant}/text`, { prompt: 'an action series' })
    expect(completion.headers.get('content-type')).toContain('text/plain')
    expect(completion.text).toBe('You asked: an action series')
    const transport = new TextStreamChatTransport({
      api: `${url}/ui/${assistant}/text`,
      headers: { authorization: `Bearer ${KEY}` },
    })
    const stream = await transport.sendMessages({
      trigger: 'submit-message',
      chatId: crypto.randomUUID(),
      messageId: undefined,
      messages: [{ id: '1', role: 'user', parts: [{ type: 'text', text: 'a slow series' }] }],
      abortSignal: undefined,
    })
    let text = ''
    for await (const part of stream) if (part.type === 'text-delta') text += part.delta
    expect(text).toBe('You asked: a slow series')
  })
})
