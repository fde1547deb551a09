/** AG-UI, by its own client over real sockets, and the routes of CopilotKit's runtime. */
import { HttpAgent } from '@ag-ui/client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Counterpart, startCounterpart } from './counterpart'
import { createAssistant, createModel, createShows, KEY, request, unique, url } from './harness'
import { type Llm, startLlm } from './llm'
import { type Paced, startPaced, words } from './paced'

let llm: Llm
let paced: Paced
let shows: string
let assistant: string
let slow: string
let cut: string
let counterpart: Counterpart

beforeAll(async () => {
  llm = await startLlm()
  paced = await startPaced()
  counterpart = await startCounterpart()
  shows = await createShows()
  const model = await createModel({ model_name: 'openai/gpt-4o-mini', openai_url: llm.url })
  assistant = await createAssistant({ model, collections: [shows], followups: false })
  const writing = await createModel({ model_name: 'openai/paced-400-5', openai_url: paced.url })
  slow = await createAssistant({ model: writing, collections: [shows] })
  const breaking = await createModel({ model_name: 'openai/cut', openai_url: counterpart.url })
  cut = await createAssistant({ model: breaking, collections: [shows] })
})
afterAll(() => Promise.all([llm.stop(), paced.stop(), counterpart.stop()]))

const agentOf = (name = assistant, threadId: string = crypto.randomUUID(), path = `/agui/${name}`) =>
  new HttpAgent({ url: url + path, threadId, headers: { authorization: `Bearer ${KEY}` } })

const say = (agent: HttpAgent, content: string) =>
  agent.addMessage({ id: crypto.randomUUID(), role: 'user', content })

interface Seen {
  type: string
  name?: string
  value?: unknown
  delta?: string
  outcome?: { type: string }
  code?: string
}

/** Asks, and collects the events that the client passed on. */
async function run(agent: HttpAgent, question: string, input: Parameters<HttpAgent['runAgent']>[0] = {}) {
  const events: Seen[] = []
  say(agent, question)
  await agent.runAgent(input, { onEvent: ({ event }) => void events.push(event as Seen) })
  return events
}

const answerIn = (agent: HttpAgent): string => String(agent.messages.at(-1)?.content)

const post = async (path: string, body: unknown, key = KEY) => {
  const response = await fetch(url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: response.status, text: await response.text() }
}

const input = (threadId: string, content = 'an action series') => ({
  threadId,
  runId: 'run-1',
  messages: [{ id: '1', role: 'user', content }],
  tools: [],
  context: [],
  state: {},
  forwardedProps: {},
})

describe('HttpAgent', () => {
  test('gets an answer with its sources, and goes on', async () => {
    const agent = agentOf()
    const events = await run(agent, 'an action series')
    const kinds = events.map(({ type }) => type)
    expect(kinds.filter((kind, at) => kind !== kinds[at - 1])).toEqual([
      'RUN_STARTED',
      'CUSTOM',
      'TEXT_MESSAGE_START',
      'TEXT_MESSAGE_CONTENT',
      'TEXT_MESSAGE_END',
      'RUN_FINISHED',
    ])
    const sources = events.find(({ name }) => name === 'sources')?.value as { id: string; title: string }[]
    expect(sources).toContainEqual({
      id: `${shows}/quest`,
      title: 'Galactic Quest',
      text: expect.stringContaining('explorers'),
    })
    expect(answerIn(agent)).toBe('You asked: an action series')
    await run(agent, 'and another?')
    expect(answerIn(agent)).toBe('You asked: standalone: and another?')
    const id = agent.messages.at(-1)!.id.split('.')[0]!
    const { body } = await request('GET', `/conversations/${id}`)
    expect(body).toMatchObject({ protocol: 'agui', turn_count: 2 })
  })

  test('is told which parts of its input have no effect', async () => {
    const events = await run(agentOf(), 'an action series', {
      context: [{ description: 'page', value: 'home' }],
    })
    expect(events.find(({ name }) => name === 'ignored')?.value).toEqual(['context'])
  })

  test('sees why a run could not begin, and why one failed', async () => {
    await expect(run(agentOf('no-such-assistant'), 'x')).rejects.toThrow(/404/)
    await expect(run(agentOf(), '   ')).rejects.toThrow(/400.*no text/)
    const events = await run(agentOf(cut), unique('an action series'))
    expect(events.at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'model_failed' })
  })

  test('that is aborted leaves an answer that connect picks up, and stop ends', async () => {
    const thread = crypto.randomUUID()
    const agent = agentOf(slow, thread)
    const first = run(agent, unique('an action series'))
    await expect.poll(() => answerIn(agent)).toContain(words(1)[0])
    agent.abortRun()
    await first.catch(() => {})
    const again = agentOf(slow, thread, `/copilotkit/agent/${slow}/connect`)
    const read = run(again, 'ignored')
    await expect.poll(() => answerIn(again)).toContain(words(60).at(-1))
    const stopped = await post(`/copilotkit/agent/${slow}/stop/${thread}`, {})
    expect(JSON.parse(stopped.text)).toEqual({ stopped: true })
    const events = await read
    expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'cancelled' } })
    // It has the question, too, which another page asked.
    expect(again.messages.map(({ role }) => role)).toEqual(['user', 'assistant'])
  })
})

describe("CopilotKit's routes", () => {
  test('list the assistants that the key may ask', async () => {
    const { body } = await request('GET', '/copilotkit/info')
    expect(body.agents[assistant]).toMatchObject({ name: assistant })
    const { body: made } = await request('POST', '/keys', {
      description: 'a page',
      actions: ['assistants:ask'],
      collections: ['*'],
      limits: { assistant },
    })
    const own = await request('GET', '/copilotkit/info', undefined, made.value)
    expect(Object.keys(own.body.agents)).toEqual([assistant])
  })

  test('run, and show what was said to whoever opens the thread again', async () => {
    const thread = crypto.randomUUID()
    const agent = agentOf(assistant, thread, `/copilotkit/agent/${assistant}/run`)
    await run(agent, 'an action series')
    const { text } = await post(`/copilotkit/agent/${assistant}/connect`, { ...input(thread), messages: [] })
    const events = text
      .trim()
      .split('\n\n')
      .map((frame) => JSON.parse(frame.slice('data: '.length)))
    expect(events.map(({ type }) => type)).toEqual([
      'RUN_STARTED',
      'MESSAGES_SNAPSHOT',
      'CUSTOM',
      'RUN_FINISHED',
    ])
    expect(events[1].messages).toMatchObject([
      { role: 'user', content: 'an action series' },
      { role: 'assistant', content: 'You asked: an action series' },
    ])
    const empty = await post(`/copilotkit/agent/${assistant}/connect`, input(crypto.randomUUID()))
    expect(empty.text).toContain('"messages":[]')
  })

  test('show a thread to nobody else', async () => {
    const { body } = await request('POST', '/keys', {
      description: 'another page',
      actions: ['documents:search'],
      collections: [shows],
    })
    const thread = crypto.randomUUID()
    await run(agentOf(assistant, thread), 'My name is Ann.')
    const other = await post(`/copilotkit/agent/${assistant}/connect`, input(thread), body.value)
    expect(other.text).not.toContain('Ann')
    const stopped = await post(`/copilotkit/agent/${assistant}/stop/${thread}`, {}, body.value)
    expect(JSON.parse(stopped.text)).toEqual({ stopped: false })
  })
})

describe('a body of another protocol', () => {
  const bodies = {
    'AG-UI': input(crypto.randomUUID()),
    'the Model Context Protocol': { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    A2A: { jsonrpc: '2.0', id: 1, method: 'GetTask', params: { id: 'task-1' } },
    "n8n's chat": { action: 'sendMessage', sessionId: crypto.randomUUID(), chatInput: 'x' },
    'deep-chat': { messages: [{ role: 'user', text: 'x' }] },
  }
  const routes = (name: string): Record<string, string> => ({
    'AG-UI': `/agui/${name}`,
    "n8n's chat": `/n8n/${name}`,
    'deep-chat': `/deep-chat/${name}`,
    'UI message stream': `/ui/${name}`,
    'plain text': `/ui/${name}/text`,
    'AI Chat Protocol': `/a/${name}/chat`,
    'AI Chat Protocol, streamed': `/a/${name}/chat/stream`,
  })

  test('is refused before a model is asked, with the right address', async () => {
    llm.forget()
    for (const [protocol, body] of Object.entries(bodies)) {
      for (const [route, path] of Object.entries(routes(assistant))) {
        if (route === protocol) continue
        const { status, text } = await post(path, body)
        expect([status, text], `${protocol} at ${path}`).toEqual([
          400,
          expect.stringContaining(`This is a request of ${protocol}: send it to POST /`),
        ])
      }
      // OpenAI's routes need a model, which none of these names.
      expect((await post('/v1/chat/completions', body)).status).toBe(400)
      expect((await post('/v1/responses', body)).status).toBe(400)
    }
    expect(llm.calls()).toEqual([])
  })
})
