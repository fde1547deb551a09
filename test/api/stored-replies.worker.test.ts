/** What protocols say of a turn later is what they said of it when it was answered: after more turns than logs are kept, and after a reset. */
import { abortAllDurableObjects } from 'cloudflare:test'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import { ask, setStage } from './parley/stage'
import { call, send } from './typesense/api'

// Not what other files ask: an answer of theirs to the same request could be copied.
const QUESTION = 'How high is the tower of Eiffel?'
const PAGES = [
  {
    id: 'tower',
    name: 'The Eiffel Tower',
    text: 'The Eiffel Tower is 330 metres high.',
    link: 'https://x.example/tower#height',
  },
  { id: 'gate', name: 'The Brandenburg Gate', text: 'The Brandenburg Gate is 26 metres high.' },
]
/** A conversation keeps the logs of its last twenty turns. */
const MORE_TURNS = 20

beforeAll(async () => {
  await setStage()
  const fields = ['name', 'text', 'link'].map((name) => ({ name, type: 'string', optional: true }))
  await call('POST', '/collections', { body: { name: 'sights', fields } })
  for (const body of PAGES) await call('POST', '/collections/sights/documents', { body })
  const guide = {
    model: 'm',
    collections: ['sights'],
    title_field: 'name',
    url_field: 'link',
    followups: true,
  }
  expect((await call('PUT', '/assistants/guide', { body: guide }))[0]).toBe(200)
})
afterEach(() => vi.restoreAllMocks())

const bearer = { key: null, headers: { authorization: 'Bearer xyz' } }
const chat = crypto.randomUUID()
const rpc = async (method: string, params: object) =>
  (await call('POST', '/a2a/guide', { body: { jsonrpc: '2.0', id: 1, method, params } }))[1]
const message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: QUESTION }] }

/** The frames of a UI message stream. */
const framesOf = (stream: string) =>
  stream
    .split('\n\n')
    .filter((frame) => frame.startsWith('data: {'))
    .map((frame) => JSON.parse(frame.slice(6)))

/** Goes on in a conversation, ends its object, and lets a test read what it said first. */
async function later(conversation: string): Promise<void> {
  for (let n = 0; n < MORE_TURNS; n++) {
    const question = `How high is gate number ${n}?`
    const [status] = await ask({ question, conversation_id: conversation, collections: ['sights'] })
    expect(status).toBe(200)
  }
  await abortAllDurableObjects()
}

it('a response of OpenAI keeps its model, its citations and its text', async () => {
  const body = { model: 'guide', input: QUESTION }
  const [, live] = await call('POST', '/v1/responses', { ...bearer, body })
  expect(live).toMatchObject({
    model: 'guide',
    output: [{ content: [{ text: expect.stringContaining('330') }] }],
  })
  expect(live.output[0].content[0].annotations).toMatchObject([
    { type: 'url_citation', url: 'https://x.example/tower#height', title: 'The Eiffel Tower' },
  ])
  await later(live.conversation.id)
  const [, stored] = await call('GET', `/v1/responses/${live.id}`, bearer)
  expect(stored).toEqual({ ...live, created_at: stored.created_at })
  expect(Math.abs(stored.created_at - live.created_at)).toBeLessThanOrEqual(60)
  const replayed = await (await send('GET', `/v1/responses/${live.id}?stream=true`, bearer)).text()
  const last = framesOf(replayed.replaceAll(/^event: .*\n/gm, '')).at(-1)
  expect(last).toMatchObject({
    type: 'response.completed',
    response: { model: 'guide', output: live.output },
  })
})

it('a task of A2A keeps its sources, however many came after it', async () => {
  const { result } = await rpc('SendMessage', { message })
  const [artifact] = result.task.artifacts
  expect(artifact.metadata.sources).toEqual(
    expect.arrayContaining([
      { id: 'sights/tower', title: 'The Eiffel Tower', url: 'https://x.example/tower#height' },
      { id: 'sights/gate', title: 'The Brandenburg Gate' },
    ]),
  )
  // The seal of a conversation follows its id.
  await later(result.task.id.slice(0, 36))
  expect((await rpc('GetTask', { id: result.task.id })).result).toEqual(result.task)
})

it('a message of a UI message stream keeps its sources and its suggestions', async () => {
  const body = { id: chat, messages: [{ role: 'user', content: QUESTION }] }
  const response = await send('POST', '/ui/guide', { body })
  const frames = framesOf(await response.text())
  await later(response.headers.get('x-parley-conversation-id') ?? '')
  const [, [, stored]] = await call('GET', `/ui/guide/${chat}/messages`)
  const sources = frames.filter(({ type }) => type.startsWith('source-'))
  expect(sources).toHaveLength(2)
  expect(stored.parts.filter(({ type }: { type: string }) => type.startsWith('source-'))).toEqual(sources)
  const text = frames.flatMap(({ type, delta }) => (type === 'text-delta' ? [delta] : [])).join('')
  expect(stored.parts).toContainEqual({ type: 'text', text, state: 'done' })
  expect(stored.parts.filter(({ type }: { type: string }) => type === 'data-suggestions')).toEqual(
    frames.filter(({ type }) => type === 'data-suggestions'),
  )
  const { messageId } = frames.find(({ type }) => type === 'start')
  const { messageMetadata } = frames.find(({ type }) => type === 'finish')
  expect(stored).toMatchObject({ id: messageId, role: 'assistant', metadata: messageMetadata })
})

it('a thread of AG-UI has the messages that its client had, with what stood beside the last one', async () => {
  const input = { threadId: crypto.randomUUID(), runId: 'run', tools: [], context: [], state: {} }
  const body = { ...input, messages: [{ id: 'q', role: 'user', content: QUESTION }] }
  const response = await send('POST', '/agui/guide', { body })
  const frames = framesOf(await response.text())
  const contents = frames.filter(({ type }) => type === 'TEXT_MESSAGE_CONTENT')
  const { messageId } = contents[0]
  const said = [
    { id: `${messageId}.question`, role: 'user', content: QUESTION },
    { id: messageId, role: 'assistant', content: contents.map(({ delta }) => delta).join('') },
  ]
  const connect = async (thread: string) =>
    framesOf(
      await (
        await send('POST', '/copilotkit/agent/guide/connect', { body: { ...body, threadId: thread } })
      ).text(),
    )
  await abortAllDurableObjects()
  const reopened = await connect(input.threadId)
  const beside = frames.filter(({ type }) => type === 'CUSTOM')
  expect(beside.map(({ name }) => name)).toContain('sources')
  expect(reopened).toEqual([
    frames[0],
    { type: 'MESSAGES_SNAPSHOT', messages: said },
    ...beside,
    frames.at(-1),
  ])
  await later(response.headers.get('x-parley-conversation-id') ?? '')
  expect((await connect(input.threadId))[1].messages.slice(0, 2)).toEqual(said)
  const nothing = await connect(crypto.randomUUID())
  expect(nothing.map(({ type }) => type)).toEqual(['RUN_STARTED', 'MESSAGES_SNAPSHOT', 'RUN_FINISHED'])
  expect(nothing[1].messages).toEqual([])
})

it('widgets read their answers with the same links', async () => {
  const deepChat = { conversation_id: crypto.randomUUID(), messages: [{ role: 'user', text: QUESTION }] }
  const n8n = { action: 'sendMessage', sessionId: crypto.randomUUID(), chatInput: QUESTION }
  const asked = await send('POST', '/deep-chat/guide', { body: deepChat })
  const said = await asked.json<{ text: string; sources: unknown[] }>()
  expect(said.sources).toHaveLength(2)
  const [, { output }] = await call('POST', '/n8n/guide', { body: n8n })
  expect(output).toContain('](https://x.example/tower#height)')
  await later(asked.headers.get('x-parley-conversation-id') ?? '')
  const [, history] = await call('GET', `/deep-chat/guide/${deepChat.conversation_id}`)
  expect(history.slice(0, 2)).toEqual([
    { role: 'user', text: QUESTION },
    { role: 'ai', ...said },
  ])
  const [, { data }] = await call('POST', '/n8n/guide', { body: { ...n8n, action: 'loadPreviousSession' } })
  expect(data.map(({ kwargs }: { kwargs: { content: string } }) => kwargs.content)).toEqual([
    QUESTION,
    output,
  ])
})

it('a turn that failed says so as it did at first', async () => {
  vi.stubGlobal('fetch', async () =>
    Response.json({ choices: [{ message: { content: 'Hello.' }, finish_reason: 'stop' }] }),
  )
  const model = {
    id: 'away',
    model_name: 'openai/x',
    api_key: 'sk',
    openai_url: 'https://llm.test',
    history_collection: 'history',
    max_bytes: 16_384,
  }
  expect((await call('POST', '/conversations/models', { body: model }))[0]).toBe(201)
  vi.unstubAllGlobals()
  vi.spyOn(globalThis, 'fetch').mockImplementation(async () => new Response('no', { status: 400 }))
  await call('PUT', '/assistants/away', { body: { model: 'away', collections: ['sights'] } })
  const body = { jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params: { message } }
  const frames = framesOf(await (await send('POST', '/a2a/away', { body })).text())
  const { taskId, status } = frames.at(-1).result.statusUpdate
  expect(status).toMatchObject({
    state: 'TASK_STATE_FAILED',
    message: { parts: [{ text: expect.any(String) }] },
  })
  const [, { result }] = await call('POST', '/a2a/away', {
    body: { ...body, method: 'GetTask', params: { id: taskId } },
  })
  expect(result).toMatchObject({ id: taskId, status })
})
