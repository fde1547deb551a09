/** Assistants with `retrieval: "agentic"`: a scripted model calls the search, and the engine runs it. */
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { setStage } from '../parley/stage'
import { call, send } from '../typesense/api'

const QUESTION = 'How high is the tower of the castle and who drew the arch?'
const ARCH = 'Carl Gotthard Langhans planned the gate at Pariser Platz.'
const TOWERS = Array.from({ length: 14 }, (_, number) => ({
  id: `tower-${number}`,
  text: `The tower of the castle, how high it is and who drew it: number ${number}.`,
}))

interface Sent {
  messages: { role: string; content: string; tool_call_id?: string }[]
  tools?: { function: { name: string } }[]
}

/** what the model searches for, reply by reply; after that it answers */
let plans: string[][] = []
let sent: Sent[] = []
const stopped = vi.fn()
let begun: PromiseWithResolvers<void>
let isSilent = false

function model(_url: string, { body, signal }: { body: string; signal: AbortSignal }) {
  const request: Sent = JSON.parse(body)
  const says = (message: object) => Response.json({ choices: [{ message, finish_reason: 'stop' }] })
  const prompt = request.messages.at(-1)!.content
  if (prompt === 'hello') return says({ content: 'Hello.' })
  if (prompt.includes('<Conversation history>'))
    return says({ content: 'How high is the tower of the old castle?' })
  sent.push(request)
  begun.resolve()
  if (isSilent) {
    return new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        stopped()
        reject(signal.reason)
      })
    })
  }
  const queries = plans.shift()
  if (!queries) return says({ content: 'An answer.' })
  const tool_calls = queries.map((query, at) => ({
    id: `call-${sent.length}-${at}`,
    type: 'function',
    function: { name: 'search', arguments: JSON.stringify({ query }) },
  }))
  return says({ content: '', tool_calls })
}

function begin(): void {
  vi.stubGlobal('fetch', model)
  plans = []
  sent = []
  begun = Promise.withResolvers()
  isSilent = false
}

beforeAll(async () => {
  begin()
  await setStage()
  await call('POST', '/collections', {
    body: { name: 'castles', fields: [{ name: 'text', type: 'string' }] },
  })
  for (const body of [...TOWERS, { id: 'arch', text: ARCH }]) {
    expect((await call('POST', '/collections/castles/documents', { body }))[0]).toBe(201)
  }
  const remote = {
    id: 'remote',
    model_name: 'openai/x',
    api_key: 'sk',
    openai_url: 'https://llm.test',
    history_collection: 'history',
    max_bytes: 16_384,
  }
  expect((await call('POST', '/conversations/models', { body: remote }))[0]).toBe(201)
  for (const retrieval of ['plain', 'agentic']) {
    const body = { model: 'remote', collections: ['castles'], retrieval }
    expect((await call('PUT', `/assistants/${retrieval}`, { body }))[0]).toBe(200)
  }
})
beforeEach(begin)
afterEach(() => void vi.unstubAllGlobals())

const stream = (question: string, name = 'agentic', more = {}) =>
  send('POST', `/a/${name}/conversations`, {
    // The same request again would get the same answer.
    headers: { accept: 'text/event-stream', 'idempotency-key': crypto.randomUUID() },
    body: { question, ...more },
  })

/** The events of a turn, by type. */
async function ask(question: string, name = 'agentic', more = {}) {
  const text = await (await stream(question, name, more)).text()
  // biome-ignore lint/suspicious/noExplicitAny: what came back is what the tests look into
  const events: Record<string, any[]> = {}
  for (const [, type, data] of text.matchAll(/^event: (\w+)\ndata: (.*)$/gm)) {
    events[type!] = [...(events[type!] ?? []), JSON.parse(data!)]
  }
  return events
}

const traceOf = async (id: string) => (await call('GET', `/conversations/${id}/trace`))[1].turns.at(-1).trace

describe('an assistant whose model may ask for searches', () => {
  it('finds what each part of a question asks for, beside what the question itself finds', async () => {
    plans = [['How high is the tower?', 'Who planned the gate at Pariser Platz?']]
    const { question, retrieval, done } = await ask(QUESTION)
    expect(done?.[0].answer).toBe('An answer.')
    expect(sent[0]?.tools?.map((tool) => tool.function.name)).toEqual(['search'])
    expect(sent[0]?.messages.at(-1)?.content).not.toContain(ARCH)
    const told = sent[1]!.messages.filter(({ role }) => role === 'tool')
    expect(told.map(({ content }) => content.includes(ARCH))).toEqual([false, true])
    expect(retrieval?.map(({ further }) => further)).toEqual([
      undefined,
      [{ collection: 'castles', q: 'How high is the tower?', found: expect.any(Number) }],
      [{ collection: 'castles', q: 'Who planned the gate at Pariser Platz?', found: 1 }],
    ])
    // Each has the reply of its search, as the question's own has.
    const [, , gate] = retrieval!
    expect(gate.replies[0].result.hits[0].document.id).toBe('arch')
    const { calls, searches } = await traceOf(question![0].conversation_id)
    expect(calls.map(({ purpose }: { purpose: string }) => purpose)).toEqual(['answer', 'answer'])
    expect(searches.map(({ params }: { params: { q: string } }) => params.q)).toEqual([
      QUESTION,
      'How high is the tower?',
      'Who planned the gate at Pariser Platz?',
    ])
  })

  it('asks once more for what is still missing', async () => {
    plans = [['arch'], ['gate at Pariser Platz']]
    const { tool_call } = await ask(QUESTION)
    expect(tool_call?.map(({ name }) => name)).toEqual(['search', 'search'])
    expect(sent).toHaveLength(3)
    expect(sent[2]?.messages.at(-1)?.content).toContain(ARCH)
  })

  it('costs no further call where nothing is missing, and asks for nothing without', async () => {
    const { done } = await ask('How high is the tower?')
    expect([done?.[0].answer, sent.length]).toEqual(['An answer.', 1])
    await ask(QUESTION, 'plain')
    expect(sent[1]?.tools).toBeUndefined()
  })

  it('searches also for a follow-up', async () => {
    const { question } = await ask(QUESTION)
    plans = [['gate at Pariser Platz']]
    await ask('And the old one?', 'agentic', { conversation_id: question![0].conversation_id })
    expect(sent.at(-1)?.messages.at(-1)?.content).toContain(ARCH)
  })

  it('ends with its turn: a stop aborts the call', async () => {
    isSilent = true
    const response = await stream(QUESTION)
    const id = response.headers.get('x-parley-conversation-id')
    await begun.promise
    expect(await call('POST', `/conversations/${id}/stop`)).toEqual([200, { stopped: true }])
    expect(await response.text()).toContain('"code":"stopped"')
    expect(stopped).toHaveBeenCalledTimes(1)
  })
})

describe('where it would do nothing it is refused', () => {
  it('by an assistant without a language model', async () => {
    const body = { model: 'm', collections: ['castles'], retrieval: 'agentic' }
    const [status, { message }] = await call('PUT', '/assistants/none', { body })
    expect([status, message]).toEqual([
      400,
      '`retrieval`: `m` has no language model that could call tools. Name another `model`.',
    ])
  })

  it('by a conversation model', async () => {
    const [status, { message }] = await call('PUT', '/conversations/models/remote', {
      body: { retrieval: 'agentic' },
    })
    expect([status, message]).toEqual([
      400,
      'Property `retrieval` belongs to an assistant, not to a conversation model.',
    ])
  })
})
