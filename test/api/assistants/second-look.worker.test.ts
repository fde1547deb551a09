/** Assistants with `retrieval: "agentic"`: a scripted model asks for searches, and the engine runs them. */
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import * as handle from '../../../src/search/collection/handle'
import { setStage } from '../parley/stage'
import { call, send } from '../typesense/api'

const QUESTION = 'How high is the tower of the castle and who drew the arch?'
const ARCH = 'Carl Gotthard Langhans planned the gate at Pariser Platz.'
const TOWERS = Array.from({ length: 14 }, (_, number) => ({
  id: `tower-${number}`,
  text: `The tower of the castle, how high it is and who drew it: number ${number}.`,
}))

/** what the model says to a prompt for searches: to the first one, and to the one with passages */
let plans: (() => Response | Promise<Response>)[] = []
/** the prompts it got, by what they ask for */
let asked: { plan: string[]; answer: string[] }
const aborted = vi.fn()

const says = (content: string) => () =>
  Response.json({ choices: [{ message: { content }, finish_reason: 'stop' }] })

/** A model that says nothing until it is stopped. */
function silent(signal: AbortSignal): Promise<Response> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => {
      aborted()
      reject(signal.reason)
    })
  })
}

let begun: PromiseWithResolvers<void>
let isSilent = false

async function model(_url: string, { body, signal }: { body: string; signal: AbortSignal }) {
  const prompt: string = JSON.parse(body).messages.at(-1).content
  if (prompt.includes('<Conversation history>')) return says('How high is the tower of the old castle?')()
  if (!prompt.includes('<Searches>')) {
    if (prompt !== 'hello') asked.answer.push(prompt)
    return says('An answer.')()
  }
  asked.plan.push(prompt)
  begun.resolve()
  return isSilent ? silent(signal) : (plans.shift() ?? says('NONE'))()
}

beforeAll(async () => {
  vi.stubGlobal('fetch', model)
  asked = { plan: [], answer: [] }
  begun = Promise.withResolvers()
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
  for (const [name, retrieval] of [
    ['once', 'plain'],
    ['twice', 'agentic'],
  ]) {
    const body = { model: 'remote', collections: ['castles'], retrieval }
    expect((await call('PUT', `/assistants/${name}`, { body }))[0]).toBe(200)
  }
})
beforeEach(() => {
  vi.stubGlobal('fetch', model)
  plans = []
  asked = { plan: [], answer: [] }
  begun = Promise.withResolvers()
  isSilent = false
  aborted.mockClear()
})
afterEach(() => {
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
})

const stream = (question: string, name = 'twice', more = {}) =>
  send('POST', `/a/${name}/conversations`, {
    // The same request again would get the same answer.
    headers: { accept: 'text/event-stream', 'idempotency-key': crypto.randomUUID() },
    body: { question, ...more },
  })

/** The events of a turn. */
async function ask(question: string, name = 'twice', more = {}) {
  const text = await (await stream(question, name, more)).text()
  // biome-ignore lint/suspicious/noExplicitAny: what came back is what the tests look into
  const events: Record<string, any> = {}
  for (const [, type, data] of text.matchAll(/^event: (\w+)\ndata: (.*)$/gm))
    events[type!] = JSON.parse(data!)
  return events
}

const traceOf = async (id: string) => {
  const [, { turns }] = await call('GET', `/conversations/${id}/trace`)
  return turns.at(-1).trace
}
const purposes = ({ calls }: { calls: { purpose: string }[] }) => calls.map(({ purpose }) => purpose)
const queries = ({ searches }: { searches: { params: { q: string } }[] }) =>
  searches.map(({ params }) => params.q)

describe('an assistant whose model may ask for searches', () => {
  it('finds what each part of a question asks for', async () => {
    plans = [says('1. How high is the tower?\n2. Who planned the gate at Pariser Platz?'), says('NONE')]
    const { question, retrieval, done } = await ask(QUESTION)
    expect(done.answer).toBe('An answer.')
    expect(asked.answer[0]).toContain(ARCH)
    expect(retrieval.sources).toHaveLength(10)
    expect(retrieval.further).toEqual([
      { collection: 'castles', q: 'How high is the tower?', found: expect.any(Number) },
      { collection: 'castles', q: 'Who planned the gate at Pariser Platz?', found: expect.any(Number) },
    ])
    expect(
      retrieval.replies.map(
        ({ result }: { result: { request_params: { q: string } } }) => result.request_params.q,
      ),
    ).toEqual([QUESTION, 'How high is the tower?', 'Who planned the gate at Pariser Platz?'])
    const trace = await traceOf(question.conversation_id)
    expect(purposes(trace)).toEqual(['plan', 'plan', 'answer'])
    expect(trace.calls[0].text).toContain('Pariser Platz')
    expect(queries(trace)).toEqual([
      QUESTION,
      'How high is the tower?',
      'Who planned the gate at Pariser Platz?',
    ])
  })

  it('begins both at once: the search of the question and the call', async () => {
    const { collectionObject } = handle
    vi.spyOn(handle, 'collectionObject').mockImplementation((...given) => {
      const object = collectionObject(...given)
      // A search that waits for the call would never end if the call waited for the search.
      const search = async (...asking: unknown[]) => {
        await begun.promise
        return Reflect.apply(object.search, object, asking)
      }
      return new Proxy(object, {
        get: (_, name) => (name === 'search' ? search : Reflect.get(object, name)),
      })
    })
    const { done } = await ask(QUESTION)
    expect(done.answer).toBe('An answer.')
  })

  it('finds too little without', async () => {
    const { retrieval } = await ask(QUESTION, 'once')
    expect(asked.plan).toEqual([])
    expect(asked.answer[0]).not.toContain(ARCH)
    expect(retrieval.further).toBeUndefined()
  })

  it('searches once more for what is missing, and reads what was found before', async () => {
    plans = [says('NONE'), says('gate at Pariser Platz')]
    const { question, retrieval } = await ask(QUESTION)
    expect(asked.plan).toHaveLength(2)
    expect(asked.plan[0]).not.toContain('<Data>')
    expect(asked.plan[1]).toContain('The tower of the castle')
    expect(asked.answer[0]).toContain(ARCH)
    expect(retrieval.further).toEqual([
      { collection: 'castles', q: 'gate at Pariser Platz', found: 1, again: true },
    ])
    expect(purposes(await traceOf(question.conversation_id))).toEqual(['plan', 'plan', 'answer'])
  })

  it('answers as it would without where its model fails', async () => {
    await ask(QUESTION, 'once')
    plans = [() => Response.json({ error: { message: 'no' } }, { status: 400 })]
    const { question, done } = await ask(QUESTION)
    expect(done.answer).toBe('An answer.')
    const [without, failed] = asked.answer
    expect(failed).toBe(without)
    const { calls, searches } = await traceOf(question.conversation_id)
    expect(calls.map(({ purpose, error }: { purpose: string; error?: string }) => [purpose, error])).toEqual([
      ['plan', 'OpenAI API error: no'],
      ['answer', undefined],
    ])
    expect(searches).toHaveLength(1)
  })

  it('does the same where its model says nothing of use', async () => {
    await ask(QUESTION, 'once')
    const essay = Array.from({ length: 12 }, (_, line) => `I think a lot of line ${line}.`).join('\n')
    plans = [says(essay), says(QUESTION.toUpperCase())]
    const { retrieval } = await ask(QUESTION)
    expect(asked.answer[1]).toBe(asked.answer[0])
    expect(retrieval.further).toBeUndefined()
  })

  it('splits a follow-up as it was rewritten', async () => {
    const { question } = await ask(QUESTION)
    asked.plan = []
    await ask('And the old one?', 'twice', { conversation_id: question.conversation_id })
    expect(asked.plan[0]).toContain('<Question>\nHow high is the tower of the old castle?\n')
    expect(purposes(await traceOf(question.conversation_id))).toEqual([
      'standalone',
      'plan',
      'plan',
      'answer',
    ])
  })

  it('ends with its turn: a stop aborts the call, and no search begins', async () => {
    isSilent = true
    const response = await stream(QUESTION)
    const id = response.headers.get('x-parley-conversation-id')
    await begun.promise
    expect(await call('POST', `/conversations/${id}/stop`)).toEqual([200, { stopped: true }])
    const text = await response.text()
    expect(text).toContain('"code":"stopped"')
    expect(text).not.toContain('event: retrieval')
    expect(aborted).toHaveBeenCalledTimes(1)
    expect(asked).toEqual({ plan: [expect.any(String)], answer: [] })
  })
})

describe('where it would do nothing it is refused', () => {
  it('by an assistant without a language model', async () => {
    const body = { model: 'm', collections: ['castles'], retrieval: 'agentic' }
    const [status, { message }] = await call('PUT', '/assistants/none', { body })
    expect(status).toBe(400)
    expect(message).toBe(
      '`retrieval`: `agentic` needs a language model, and `m` has none that could ask for searches. Give it a `rewrite_model`, name another `model`, or leave `retrieval` out.',
    )
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
