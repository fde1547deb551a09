/** What providers and the egress check say reaches whoever runs the server, and no visitor of a page. */
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { systemClock } from '../../src/models/resilient'
import { bindWorkersAi } from '../models/workers-ai/bind'
import { InferenceUpstreamError } from '../models/workers-ai/errors'
import { WorkersAi } from '../models/workers-ai/workers-ai'
import { ask, makeKey } from './parley/stage'
import { call, queryString, send } from './typesense/api'
import { HISTORY, scopedKey } from './typesense/conversing'

/** Words of a provider, which tell of the account behind the page. */
const DETAIL = 'the account 0123 of Ann is not allowed'
const LLM = '@cf/meta/llama-3.2-1b-instruct'
const EMBEDDER = '@cf/baai/bge-small-en-v1.5'
const RERANKER = 'cloudflare/@cf/baai/bge-reranker-base'

/** The model that fails, by a part of its name. */
let failing = ''
const ai = new WorkersAi({
  before: ({ model }) => {
    if (failing !== '' && model.includes(failing)) throw new InferenceUpstreamError(3041, DETAIL)
  },
})
const keys: Record<string, string> = {}

beforeAll(async () => {
  bindWorkersAi(ai)
  const embed = { from: ['title'], model_config: { model_name: `cloudflare/${EMBEDDER}` } }
  const fields = [
    { name: 'title', type: 'string' },
    { name: 'e', type: 'float[]', embed },
  ]
  await call('POST', '/collections', { body: HISTORY })
  await call('POST', '/collections', { body: { name: 'films', fields } })
  await call('POST', '/collections/films/documents', { body: { title: 'Alien is a film' } })
  const model = { history_collection: 'history', max_bytes: 16_384 }
  for (const body of [
    { ...model, id: 'm', model_name: `cloudflare/${LLM}` },
    { ...model, id: 'guarded', model_name: `cloudflare/${LLM}`, input_guardrail_prompt: 'No recipes.' },
  ]) {
    expect((await call('POST', '/conversations/models', { body }))[0]).toBe(201)
  }
  const assistant = { model: 'm', searches: [{ collection: 'films', query_by: 'title' }] }
  expect((await call('PUT', '/assistants/help', { body: assistant }))[0]).toBe(200)
  const meaning = { model: 'm', searches: [{ collection: 'films', query_by: 'e' }] }
  expect((await call('PUT', '/assistants/meaning', { body: meaning }))[0]).toBe(200)
  const search = { actions: ['documents:search'] }
  keys.server = await makeKey(search)
  keys.page = await makeKey({ ...search, limits: { turns_per_day: 1_000 } })
  keys.scoped = await scopedKey(keys.server, { filter_by: 'id:!=none' })
  for (const name of ['help', 'meaning'])
    keys[name] = await makeKey({ ...search, limits: { assistant: name } })
})

let logged: string[] = []
beforeEach(() => {
  logged = []
  vi.spyOn(console, 'error').mockImplementation((...words) => void logged.push(words.join(' ')))
  // A failing model is asked three times, here without a pause: how long it is left alone is the test of retries.
  vi.spyOn(systemClock, 'wait').mockResolvedValue()
})
afterEach(() => {
  failing = ''
  Object.assign(env, { ALLOWED_HOSTS: '*' })
})

const CHAT = { headers: { 'content-type': 'application/json' } }
const messages = [{ role: 'user', content: 'What is Alien?' }]
const parts = [{ id: 'x', role: 'user', parts: [{ type: 'text', text: 'What is Alien?' }] }]
const films = (parameters: Record<string, unknown>) =>
  `/collections/films/documents/search${queryString({ q: 'What is Alien?', ...parameters })}`
const CONVERSING = { conversation: true, conversation_model_id: 'm', query_by: 'title' }
const across = [{ collection: 'films', query_by: 'title' }]
const ASKED = { question: 'What is Alien?', model: 'm', collections: undefined, searches: across }

type Ask = (key: string, assistant: string) => ReturnType<typeof send>

/** Each way to have a language model answer. */
const answered: Record<string, Ask> = {
  'a search': (key) => send('GET', films(CONVERSING), { key }),
  'a search that streams': (key) => send('GET', films({ ...CONVERSING, conversation_stream: true }), { key }),
  'several searches': (key) =>
    send('POST', `/multi_search${queryString({ ...CONVERSING, q: 'x' })}`, {
      key,
      body: { searches: across },
    }),
  'a question': (key) => send('POST', '/conversations', { key, body: ASKED }),
  'a question that streams': (key) =>
    send('POST', '/conversations', { key, body: { ...ASKED, stream: true } }),
}
/** The same of an assistant, which a bound key can ask too. */
const chats: Record<string, Ask> = {
  '/chat': (key, name) => send('POST', `/a/${name}/chat`, { key, body: { messages }, ...CHAT }),
  '/chat/stream': (key, name) => send('POST', `/a/${name}/chat/stream`, { key, body: { messages }, ...CHAT }),
  completions: (key, name) => send('POST', '/v1/chat/completions', { key, body: { model: name, messages } }),
  'completions that stream': (key, name) =>
    send('POST', '/v1/chat/completions', { key, body: { model: name, messages, stream: true } }),
  responses: (key, name) =>
    send('POST', '/v1/responses', { key, body: { model: name, input: 'What is Alien?' } }),
  'responses that stream': (key, name) =>
    send('POST', '/v1/responses', { key, body: { model: name, input: 'What is Alien?', stream: true } }),
  'the UI stream': (key, name) => send('POST', `/ui/${name}`, { key, body: { messages: parts } }),
}

const REFERENCE = /report it with the reference ([\w-]{36})\./

/** What a visitor is told: no word of the detail, and a reference under which the log has it. */
async function expectPlain(response: Awaited<ReturnType<typeof send>>, detail = DETAIL): Promise<void> {
  const text = await response.text()
  expect(text).not.toContain(detail)
  const reference = REFERENCE.exec(text)?.[1]
  expect(reference, text).toBeDefined()
  const lines = logged.filter((line) => line.includes(reference!))
  expect(lines.join('\n')).toContain(detail)
}

describe.each(['page', 'scoped'])('a %s key', (kind) => {
  it.each(Object.keys(answered))('is not told what a language model says of itself: %s', async (way) => {
    failing = LLM
    await expectPlain(await answered[way]!(keys[kind]!, 'help'))
  })

  it.each([
    ['a search', (key: string) => send('GET', films({ query_by: 'e' }), { key })],
    [
      'several searches',
      (key: string) =>
        send('POST', '/multi_search', {
          key,
          body: { searches: [{ collection: 'films', q: 'x', query_by: 'e' }] },
        }),
    ],
    [
      'a union',
      (key: string) =>
        send('POST', '/multi_search', {
          key,
          body: { union: true, searches: [{ collection: 'films', q: 'x', query_by: 'e' }] },
        }),
    ],
    ['a conversation', (key: string) => send('GET', films({ ...CONVERSING, query_by: 'e' }), { key })],
    [
      'a question',
      (key: string) =>
        send('POST', '/conversations', {
          key,
          body: { ...ASKED, searches: [{ collection: 'films', query_by: 'e' }] },
        }),
    ],
  ])('is not told what an embedding model says of itself: %s', async (_, ask) => {
    failing = EMBEDDER
    await expectPlain(await ask(keys[kind]!))
  })

  it('is not told what a reranking model says of itself', async () => {
    failing = 'reranker'
    const response = await send('GET', films({ query_by: 'title', rerank_model: RERANKER }), {
      key: keys[kind]!,
    })
    expect(response.status).toBe(200)
    await expectPlain(response)
  })

  it('is not told that a guardrail could not be asked', async () => {
    failing = LLM
    const path = films({ ...CONVERSING, conversation_model_id: 'guarded' })
    await expectPlain(await send('GET', path, { key: keys[kind]! }))
  })
})

describe.each(['bound', 'page', 'scoped', 'bound and scoped'])('a chat of a %s key', (kind) => {
  const keyFor = async (name: string): Promise<string> => {
    if (kind === 'bound') return keys[name]!
    if (kind === 'bound and scoped') return scopedKey(keys[name]!, { user_id: 'ann' })
    return keys[kind]!
  }

  it.each(Object.keys(chats))('is not told what its models say of themselves: %s', async (way) => {
    failing = LLM
    await expectPlain(await chats[way]!(await keyFor('help'), 'help'))
    failing = EMBEDDER
    await expectPlain(await chats[way]!(await keyFor('meaning'), 'meaning'))
  })
})

it.each(Object.keys({ ...answered, ...chats }))('a server is told all of it: %s', async (way) => {
  failing = LLM
  for (const key of [keys.server!, 'xyz']) {
    const response = await { ...answered, ...chats }[way]!(key, 'help')
    expect(await response.text()).toContain(DETAIL)
  }
})

describe('a collection that is gone', () => {
  const GONE = 'secretly'
  beforeAll(async () => {
    const fields = [{ name: 'title', type: 'string' }]
    await call('POST', '/collections', { body: { name: GONE, fields } })
    await call('POST', '/collections', { body: { name: `${GONE}-two`, fields } })
    await call('PUT', `/aliases/${GONE}-alias`, { body: { collection_name: `${GONE}-two` } })
    for (const [name, collections] of [
      ['half', ['films', GONE, `${GONE}-alias`]],
      ['turned', [`${GONE}-two`, 'films']],
      ['gone', [GONE, `${GONE}-two`]],
    ] as const) {
      const searches = collections.map((collection) => ({ collection, query_by: 'title' }))
      const [status] = await call('PUT', `/assistants/${name}`, { body: { model: 'm', searches } })
      expect(status).toBe(200)
      keys[name] = await makeKey({ actions: ['documents:search'], limits: { assistant: name } })
    }
    await call('DELETE', `/collections/${GONE}`)
    await call('DELETE', `/collections/${GONE}-two`)
  })

  it.each(Object.keys(chats))(
    'leaves the answer to the others, and is named to no visitor: %s',
    async (way) => {
      for (const name of ['half', 'turned']) {
        for (const key of [keys[name]!, keys.page!, 'xyz']) {
          const response = await chats[way]!(key, name)
          const text = await response.text()
          expect([response.status, text]).toEqual([200, expect.stringContaining('Alien')])
          if (key !== 'xyz') expect(text).not.toContain(GONE)
        }
      }
      for (const key of [keys.gone!, keys.page!]) {
        expect(await (await chats[way]!(key, 'gone')).text()).not.toContain(GONE)
      }
    },
  )

  it('is the error of one search of a question', async () => {
    const searches = ['films', GONE].map((collection) => ({ collection, query_by: 'title' }))
    const [status, { results }] = await ask({ ...ASKED, searches })
    expect([status, results]).toMatchObject([
      200,
      [{ found: 1 }, { code: 404, error: 'Collection not found' }],
    ])
  })
})

describe('why documents get no vectors', () => {
  const ASLEEP = 'asleep'
  const ways = {
    'a collection': (key: string) => send('GET', `/collections/${ASLEEP}`, { key }),
    'the list of collections': (key: string) => send('GET', '/collections', { key }),
    'a deletion': (key: string) => send('DELETE', `/collections/${ASLEEP}`, { key }),
  }

  it.each(Object.keys(ways) as (keyof typeof ways)[])('is not told to a page key: %s', async (way) => {
    const fields = [
      { name: 'title', type: 'string' },
      {
        name: 'e',
        type: 'float[]',
        embed: { from: ['title'], model_config: { model_name: `cloudflare/${EMBEDDER}` } },
      },
    ]
    await call('DELETE', `/collections/${ASLEEP}`)
    expect((await call('POST', '/collections', { body: { name: ASLEEP, fields } }))[0]).toBe(201)
    failing = EMBEDDER
    await call('POST', `/collections/${ASLEEP}/documents`, { body: { title: 'Alien is a film' } })
    const actions = ['collections:get', 'collections:list', 'collections:delete']
    const page = await makeKey({ actions, limits: { turns_per_day: 1_000 } })
    const server = await makeKey({ actions })
    for (const key of [server, 'xyz']) {
      await vi.waitFor(async () => expect(await (await ways['a collection'](key)).text()).toContain(DETAIL))
      expect(await (await ways['the list of collections'](key)).text()).toContain(DETAIL)
    }
    await expectPlain(await ways[way](page))
  })
})

it('tells no visitor which hosts the server may call', async () => {
  const body = {
    id: 'outside',
    model_name: 'openai/gpt',
    api_key: 'sk-outside',
    history_collection: 'history',
  }
  const openai_url = 'https://inside.example.org'
  vi.spyOn(globalThis, 'fetch').mockImplementation(async () =>
    Response.json({ choices: [{ message: { content: 'hello' } }] }),
  )
  const made = await call('POST', '/conversations/models', {
    body: { ...body, openai_url, max_bytes: 16_384 },
  })
  expect(made[0]).toBe(201)
  Object.assign(env, { ALLOWED_HOSTS: '' })
  const path = films({ ...CONVERSING, conversation_model_id: 'outside' })
  await expectPlain(await send('GET', path, { key: keys.page! }), 'inside.example.org')
  expect(logged.join('\n')).not.toContain('sk-outside')
  expect(await (await send('GET', path, { key: keys.server! })).text()).toContain('ALLOWED_HOSTS')
})

it('names the request in an error of the request', async () => {
  await call('POST', '/collections', { body: { ...HISTORY, name: 'gone' } })
  const body = { id: 'lost', model_name: `cloudflare/${LLM}`, history_collection: 'gone', max_bytes: 16_384 }
  await call('POST', '/conversations/models', { body })
  await call('DELETE', '/collections/gone')
  const options = { headers: { 'x-request-id': 'mine-1' } }
  const path = films({ ...CONVERSING, conversation_model_id: 'lost' })
  const [status, { message }] = await call('GET', path, { key: keys.page!, ...options })
  expect([status, message]).toEqual([400, expect.stringContaining('the reference mine-1.')])
  expect((await call('GET', path, { key: keys.server!, ...options }))[1].message).toContain('`gone`')
})

it('keeps the detail of a failed search in the trace', async () => {
  failing = EMBEDDER
  const searches = [...across, { collection: 'films', query_by: 'e' }]
  const [status, { conversation_id, results }] = await ask({ ...ASKED, searches }, { key: keys.page! })
  expect([status, results[1].error]).toEqual([200, expect.stringMatching(REFERENCE)])
  await vi.waitFor(async () => {
    const [, trace] = await call('GET', `/conversations/${conversation_id}/trace`)
    expect(JSON.stringify(trace)).toContain(DETAIL)
  })
})
