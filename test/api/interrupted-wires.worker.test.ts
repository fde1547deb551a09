/** What the wires of agents and widgets say of a turn whose object is reset in the middle of it. */
import { abortAllDurableObjects } from 'cloudflare:test'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import { interrupted } from '../../src/turn/errors'
import { speaking } from '../conversation/stage'
import { type Sent, send, setRemoteStage } from './stage'

const QUESTION = 'Who directed Alien?'
const EVENTS = { accept: 'text/event-stream' }

let pageKey = ''

beforeAll(async () => {
  await setRemoteStage()
  const made = await send({
    path: '/keys',
    body: {
      description: 'a page',
      actions: ['documents:search'],
      collections: ['films'],
      limits: { allowed_origins: ['https://shop.example'], turns_per_day: null, tokens_per_day: null },
    },
  })
  pageKey = (await made.json<{ value: string }>()).value
})
afterEach(() => vi.restoreAllMocks())

const messages = [{ role: 'user', content: QUESTION }]
const run = () => ({
  threadId: crypto.randomUUID(),
  runId: 'run-1',
  messages: [{ id: '1', role: 'user', content: QUESTION }],
})
const rpc = (method: string, params: unknown) => ({ jsonrpc: '2.0', id: 1, method, params })
const message = () => ({ messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: QUESTION }] })
const tool = (more: object) => rpc('tools/call', { name: 'ask', arguments: { question: QUESTION }, ...more })
const widget = () => ({ action: 'sendMessage', sessionId: crypto.randomUUID(), chatInput: QUESTION })
const chat = () => ({ chatId: crypto.randomUUID(), messages: [{ role: 'user', text: QUESTION }] })
const own = { question: QUESTION, stream: true }

/** Wires whose answer is a stream. */
const STREAMS: Record<string, () => Sent> = {
  "an assistant's own route": () => ({ path: '/a/guide/conversations', body: own }),
  'text completions': () => ({
    path: '/v1/completions',
    body: { model: 'guide', prompt: QUESTION, stream: true },
  }),
  'plain text': () => ({ path: '/ui/guide/text', body: { id: crypto.randomUUID(), messages } }),
  'AG-UI': () => ({ path: '/agui/guide', body: run(), headers: EVENTS }),
  CopilotKit: () => ({ path: '/copilotkit/agent/guide/run', body: run(), headers: EVENTS }),
  A2A: () => ({ path: '/a2a/guide', body: rpc('SendStreamingMessage', { message: message() }) }),
  MCP: () => ({
    path: '/mcp/guide',
    body: tool({ _meta: { progressToken: 1 } }),
    headers: { accept: 'application/json, text/event-stream' },
  }),
  'deep-chat': () => ({ path: '/deep-chat/guide', body: chat(), headers: EVENTS }),
  n8n: () => ({ path: '/n8n/guide', body: widget(), headers: { accept: 'text/plain' } }),
  'AI Search': () => ({
    path: `/ai-search/${pageKey}/guide/chat/completions`,
    body: { messages, stream: true },
    headers: { origin: 'https://shop.example' },
  }),
}

/** Wires whose answer comes in one piece. */
const PIECES: Record<string, () => Sent> = {
  'text completions': () => ({ path: '/v1/completions', body: { model: 'guide', prompt: QUESTION } }),
  A2A: () => ({ path: '/a2a/guide', body: rpc('SendMessage', { message: message() }) }),
  MCP: () => ({ path: '/mcp/guide', body: tool({}), headers: { accept: 'application/json' } }),
  'deep-chat': () => ({ path: '/deep-chat/guide', body: chat() }),
  n8n: () => ({ path: '/n8n/guide', body: widget() }),
  'AI Search': () => ({
    path: `/ai-search/${pageKey}/guide/chat/completions`,
    body: { messages, stream: false },
    headers: { origin: 'https://shop.example' },
  }),
}

/** A provider that begins to answer, and then says nothing more. It answers whoever asks again. */
function startsToAnswer() {
  let asked = 0
  const answer = speaking('The second answer.')
  vi.spyOn(console, 'error').mockReturnValue()
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (url, init) => {
    asked += 1
    if (asked > 1) return answer(url, init)
    const chunk = `data: ${JSON.stringify({ choices: [{ delta: { content: 'half of it ' } }] })}\n\n`
    const stream = new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode(chunk)),
    })
    return new Response(stream, { headers: { 'content-type': 'text/event-stream' } })
  })
  return () => asked
}

async function textAfterTheEnd(response: Response): Promise<string> {
  const reader = response.body!.getReader()
  const decoder = new TextDecoder()
  let text = ''
  while (!text.includes('half of it')) {
    const { value, done } = await reader.read()
    if (done) throw new Error(`the reply ended early: ${text}`)
    text += decoder.decode(value, { stream: true })
  }
  await abortAllDurableObjects()
  for (let read = await reader.read(); !read.done; read = await reader.read())
    text += decoder.decode(read.value, { stream: true })
  return text
}

it.each(Object.entries(STREAMS))('%s ends in an error that says to ask again', async (_, sent) => {
  startsToAnswer()
  const response = await send(sent())
  expect(response.status).toBe(200)
  const text = await textAfterTheEnd(response)
  expect(text).toContain(interrupted().message)
  expect(text).not.toMatch(/Internal error|The second answer/)
})

it.each(Object.entries(PIECES))('%s in one piece is answered by the second run', async (_, sent) => {
  const calls = startsToAnswer()
  const answer = send(sent())
  await expect.poll(calls).toBe(1)
  await abortAllDurableObjects()
  const text = await (await answer).text()
  expect(text).toContain('The second answer.')
  expect(text).not.toMatch(/half of it|interrupted/)
})
