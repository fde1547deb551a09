/**
 * Two visitors of one page, on the wires of agents and widgets and on OpenAI's stored objects. They share a key, and the second
 * one knows every id and name of the first.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createAssistant, createModel, createShows, request, url } from './harness'
import { type Llm, startLlm } from './llm'
import { type Paced, startPaced } from './paced'

let llm: Llm
let paced: Paced
let shows: string
let assistant: string
let slow: string
let key: string

const makeKey = async (more: Record<string, unknown>): Promise<string> => {
  const { status, body } = await request('POST', '/keys', {
    description: 'a page',
    collections: ['*'],
    ...more,
  })
  expect(status).toBe(201)
  return body.value
}

beforeAll(async () => {
  llm = await startLlm()
  paced = await startPaced()
  shows = await createShows()
  const model = await createModel({ model_name: 'openai/gpt-4o-mini', openai_url: llm.url })
  assistant = await createAssistant({ model, collections: [shows] })
  const writing = await createModel({ model_name: 'openai/paced-600-50', openai_url: paced.url })
  slow = await createAssistant({ model: writing, collections: [shows] })
  key = await makeKey({ actions: ['documents:search'], limits: { turns_per_day: 1_000 } })
})
afterAll(() => Promise.all([llm.stop(), paced.stop()]))
beforeEach(() => llm.forget())

type Headers = Record<string, string>

const visitor = (): Headers => ({ 'x-parley-visitor': `${crypto.randomUUID()}${crypto.randomUUID()}` })

async function send(method: string, path: string, headers: Headers, body?: unknown, as = key) {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${as}`, 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return {
    status: response.status,
    text: await response.text(),
    conversation: response.headers.get('x-parley-conversation-id') ?? '',
  }
}

const rpc = (method: string, params: unknown) => ({ jsonrpc: '2.0', id: 1, method, params })
const said = (content: string) => [{ id: 'q', role: 'user', content }]

/** A question on each wire. @param name of the chat */
const WIRES: Record<string, (name: string, question: string) => { path: string; body: unknown }> = {
  'AG-UI': (threadId, question) => ({
    path: `/agui/${assistant}`,
    body: { threadId, runId: 'r', messages: said(question) },
  }),
  CopilotKit: (threadId, question) => ({
    path: `/copilotkit/agent/${assistant}/run`,
    body: { threadId, runId: 'r', messages: said(question) },
  }),
  'deep-chat': (conversation_id, text) => ({
    path: `/deep-chat/${assistant}`,
    body: { conversation_id, messages: [{ role: 'user', text }] },
  }),
  n8n: (sessionId, chatInput) => ({
    path: `/n8n/${assistant}`,
    body: { action: 'sendMessage', sessionId, chatInput },
  }),
  A2A: (contextId, text) => ({
    path: `/a2a/${assistant}`,
    body: rpc('SendMessage', {
      message: { messageId: 'm', contextId, role: 'ROLE_USER', parts: [{ text }] },
    }),
  }),
  'plain text': (id, question) => ({
    path: `/ui/${assistant}/text`,
    body: { id, messages: [{ id: 'q', role: 'user', parts: [{ type: 'text', text: question }] }] },
  }),
  responses: (conversation, input) => ({
    path: '/v1/responses',
    body: { model: assistant, conversation, input },
  }),
  'chat completions': (conversation_id, question) => ({
    path: '/v1/chat/completions',
    body: { model: assistant, messages: said(question), metadata: { conversation_id } },
  }),
}

describe.each(Object.entries(WIRES))('a chat on %s', (_, wire) => {
  test('is nobody else’s, by its name or by its id', async () => {
    const ann = visitor()
    const name = crypto.randomUUID()
    const first = wire(name, 'My name is Ann.')
    const { status, conversation } = await send('POST', first.path, ann, first.body)
    expect(status).toBe(200)
    const others: Headers[] = [visitor(), {}, { 'x-typesense-user-id': 'ann' }]
    for (const headers of others) {
      for (const known of [name, conversation].filter(Boolean)) {
        llm.forget()
        const again = wire(known, 'Who am I?')
        const { text } = await send('POST', again.path, headers, again.body)
        expect(text).not.toContain('Ann')
        expect(JSON.stringify(llm.calls())).not.toContain('Ann')
      }
    }
    llm.forget()
    const own = wire(name, 'Who am I?')
    expect((await send('POST', own.path, ann, own.body)).status).toBe(200)
    expect(JSON.stringify(llm.calls())).toContain('My name is Ann.')
  })
})

describe('a secret in an address', () => {
  const NAME = 'my-support-chat-01'
  const query = (headers: Headers) => new URLSearchParams({ 'x-typesense-api-key': key, ...headers })

  /** Asks on a socket of `useAgent`, which sends no headers of the page's. @returns all that came until the end of the answer */
  async function onSocket(name: string, headers: Headers, question: string): Promise<string> {
    const socket = new WebSocket(`${url.replace('http', 'ws')}/agents/${assistant}/${name}?${query(headers)}`)
    let text = ''
    const ended = new Promise<void>((resolve, reject) => {
      socket.addEventListener('message', ({ data }) => {
        text += data
        if (JSON.parse(String(data)).done) resolve()
      })
      socket.addEventListener('error', () => reject(new Error('The socket failed.')))
    })
    await new Promise((resolve) => socket.addEventListener('open', resolve))
    const body = JSON.stringify({ messages: said(question) })
    socket.send(
      JSON.stringify({ type: 'cf_agent_use_chat_request', id: '1', init: { method: 'POST', body } }),
    )
    await ended
    socket.close()
    return text
  }

  test('counts on a socket and where its chat is read, and opens nothing to others', async () => {
    const [ann, bob] = [visitor(), visitor()]
    const name = crypto.randomUUID()
    for (const chat of [NAME, name]) await onSocket(chat, ann, 'My name is Ann.')
    const reading = (chat: string, headers: Headers) =>
      ['ui', 'agents'].map((wire) => {
        const path = `/${wire}/${assistant}/${chat}/${wire === 'ui' ? '' : 'get-'}messages`
        return send('GET', `${path}?${query(headers)}`, {})
      })
    for (const chat of [NAME, name]) {
      for (const { text } of await Promise.all(reading(chat, ann))) expect(text).toContain('My name is Ann.')
      for (const headers of [bob, {}]) {
        for (const { text } of await Promise.all(reading(chat, headers))) expect(text).toBe('[]')
      }
    }
    llm.forget()
    await onSocket(NAME, bob, 'Who am I?')
    expect(await onSocket(NAME, {}, 'Who am I?')).toContain('must be random')
    expect(JSON.stringify(llm.calls())).not.toContain('Ann')
    await onSocket(NAME, ann, 'Who am I?')
    expect(JSON.stringify(llm.calls())).toContain('My name is Ann.')
  })

  test('is refused beside another one, and where it is too short', async () => {
    const ann = visitor()['x-parley-visitor']!
    const path = `/ui/${assistant}/${NAME}/messages`
    const statusOf = async (search: string, headers: Headers = {}) =>
      (await send('GET', `${path}?${search}`, headers)).status
    expect(await statusOf(`x-parley-visitor=${ann}`, visitor())).toBe(400)
    expect(await statusOf(`x-parley-visitor=${ann}&X-Parley-Visitor=${ann}x`)).toBe(400)
    expect(await statusOf('X-Parley-Visitor=short')).toBe(400)
    expect(await statusOf(`X-Parley-Visitor=${ann}`, { 'x-parley-visitor': ann })).toBe(200)
  })
})

test('what was said is read, and deleted, by nobody else', async () => {
  const ann = visitor()
  const body = { model: assistant, input: 'My name is Ann.' }
  const first = await send('POST', '/v1/responses', ann, body)
  const { id: response } = JSON.parse(first.text)
  const id = first.conversation
  const task = `${id}.1`
  const reading: [method: string, path: string, body?: unknown][] = [
    ['GET', `/v1/responses/${response}`],
    ['GET', `/v1/responses/${response}?stream=true`],
    ['GET', `/v1/responses/${response}/input_items`],
    ['GET', `/responses/${response}`],
    ['GET', `/v1/conversations/${id}`],
    ['GET', `/v1/conversations/${id}/items`],
    ['GET', `/v1/conversations/${id}/items/msg_${id}.1`],
    ['POST', `/v1/conversations/${id}`, { metadata: { mine: 'yes' } }],
    ['GET', `/deep-chat/${assistant}/${id}`],
    ['POST', `/n8n/${assistant}`, { action: 'loadPreviousSession', sessionId: id }],
    ['POST', `/copilotkit/agent/${assistant}/connect`, { threadId: id, runId: 'r', messages: [] }],
    ['GET', `/ui/${assistant}/${id}/messages`],
    ['POST', `/a2a/${assistant}`, rpc('GetTask', { id: task })],
    ['POST', `/mcp/${assistant}`, rpc('tools/call', { name: 'list_conversations', arguments: {} })],
    ['DELETE', `/v1/conversations/${id}/items/msg_${id}.1`],
    ['DELETE', `/v1/responses/${response}`],
    ['DELETE', `/v1/conversations/${id}`],
  ]
  for (const headers of [visitor(), {}, { 'x-typesense-user-id': 'ann' }] as Headers[]) {
    for (const [method, path, given] of reading) {
      const { text } = await send(method, path, headers, given)
      expect(text, `${method} ${path}`).not.toContain('Ann')
    }
  }
  const { text: own } = await send('POST', `/a2a/${assistant}`, ann, rpc('GetTask', { id: task }))
  expect(JSON.parse(own).result).toMatchObject({ id: task, status: { state: 'TASK_STATE_COMPLETED' } })
  const items = await send('GET', `/v1/conversations/${id}/items`, ann)
  expect(JSON.parse(items.text).data).toHaveLength(2)
})

test('the ids of messages that somebody holds open no chat of another visitor', async () => {
  const ann = visitor()
  const first = WIRES['plain text']!(crypto.randomUUID(), 'My name is Ann.')
  const { conversation } = await send('POST', first.path, ann, first.body)
  const held = { id: `${conversation}.1`, role: 'assistant', parts: [{ type: 'text', text: 'Hello.' }] }
  const question = { id: 'q', role: 'user', parts: [{ type: 'text', text: 'Who am I?' }] }
  llm.forget()
  const stolen = await send('POST', `/ui/${assistant}`, visitor(), { messages: [held, question] })
  expect(stolen.conversation).not.toBe(conversation)
  expect(JSON.stringify(llm.calls())).not.toContain('Ann')
})

describe('a running answer', () => {
  /** Begins an answer that takes half a minute. */
  async function begin(headers: Headers, as: string) {
    const leaving = new AbortController()
    const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'an action series' }] }
    const response = await fetch(`${url}/a2a/${slow}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${as}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(rpc('SendStreamingMessage', { message })),
      signal: leaving.signal,
    })
    return { id: response.headers.get('x-parley-conversation-id')!, leave: () => leaving.abort() }
  }
  const stopped = async (path: string, headers: Headers, as: string) =>
    JSON.parse((await send('POST', path, headers, {}, as)).text).stopped

  test('is stopped by a key that may stop, and not by one that may only read', async () => {
    const server = await makeKey({ actions: ['documents:search', 'conversations:get'] })
    const ann = visitor()
    const { id, leave } = await begin(ann, server)
    for (const path of [`/copilotkit/agent/${slow}/stop/${id}`, `/ui/${slow}/${id}/stop`]) {
      expect(await stopped(path, {}, server)).toBe(false)
    }
    const cancelled = rpc('CancelTask', { id: `${id}.1` })
    const { text } = await send('POST', `/a2a/${slow}`, {}, cancelled, server)
    expect(JSON.parse(text).error).toMatchObject({ code: -32002 })
    expect(await stopped(`/ui/${slow}/${id}/stop`, ann, server)).toBe(true)
    leave()
  })

  test('is not stopped by the id of a task that has ended', async () => {
    const ann = visitor()
    const asking = { model: assistant, input: 'an action series' }
    const { conversation } = await send('POST', '/v1/responses', ann, asking)
    const cancel = async (task: string) => {
      const { text } = await send('POST', `/a2a/${assistant}`, ann, rpc('CancelTask', { id: task }))
      return JSON.parse(text)
    }
    expect((await cancel(`${conversation}.1`)).error).toMatchObject({ code: -32002 })
    const { id, leave } = await begin(ann, key)
    expect((await cancel(`${id}.1`)).result).toMatchObject({ status: { state: 'TASK_STATE_CANCELED' } })
    leave()
  })
})
