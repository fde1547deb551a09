/** The hops of an OpenSearch search that a language model answers (../counted-hops.ts). */
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import * as rates from '../../../src/auth/authenticate'
import { Conversation } from '../../../src/conversation/conversation'
import { sealedId } from '../../../src/conversation/conversation-id'
import * as prefetch from '../../../src/conversation/prefetch'
import { ApiError } from '../../../src/errors'
import { beginAnew, beginDay, expectInTable, hopsOf, setHopStage, waitedFor, watch } from '../counted-hops'
import { makeKey, QUESTION } from '../parley/stage'
import { send } from '../typesense/api'
import { scopedKey } from '../typesense/conversing'
import { request } from './api'

const ML = '/_plugins/_ml'

interface Wanted {
  index?: string
  memory?: string
  /** the pipeline's name, or the pipeline */
  pipeline?: unknown
  rewrites?: boolean
  stream?: boolean
}

const ragOf = (model_id: string, more = {}) => ({
  response_processors: [
    { retrieval_augmented_generation: { model_id, context_field_list: ['text'], ...more } },
  ],
})

/** A place in a connector's templates. */
const filled = (name: string): string => `\${${name}}`

let key: string

async function newMemory(): Promise<string> {
  const [status, { memory_id }] = await request('POST', `${ML}/memory`, { name: 'towers' }, key)
  expect(status).toBe(200)
  return memory_id
}

function search(
  { index = 'facts', memory, pipeline = 'rag', rewrites, stream }: Wanted,
  as: { key: string | null; headers?: Record<string, string> } = { key },
): Promise<Response> {
  const question = `${QUESTION} ${crypto.randomUUID()}`
  const neural = { vector: { query_text: question, k: 3 } }
  return send('POST', `/${index}/_search`, {
    key: as.key,
    headers: { 'content-type': 'application/json', ...as.headers },
    body: {
      query: index === 'meant' ? { neural } : { match: { text: question } },
      search_pipeline: pipeline,
      stream,
      ext: {
        generative_qa_parameters: {
          llm_question: question,
          ...(memory !== undefined && { memory_id: memory }),
          ...(rewrites && { rewrite_question: true }),
        },
      },
    },
  })
}

/** The hops of a question in a cold isolate, without what collections' objects look up for themselves meanwhile. */
async function cold(wanted: Wanted): Promise<string[]> {
  beginAnew()
  return waitedFor(await hopsOf(() => search(wanted)))
}

/** The same of a question that an embedder is called for, without the look-up of registered models beside the schema. */
const embedded = async (wanted: Wanted): Promise<string[]> => {
  const [first = '', second = '', ...rest] = await cold({ index: 'meant', ...wanted })
  return [first, second.replace('resources,', ''), ...rest]
}

/** What is read while the key is looked up: the memory's row and the registry. */
const BEGUN = 'conversations,key,owner,registry,resources'
/** The index beside the memory, whose object reads its history a call later. */
const OPENED = 'lookBack,recorded,schema'
/** Both at once, where the key is known. */
const READ = 'conversations,lookBack,recorded,registry,resources,schema'
/** The same for a follow-up that may be rewritten: the end of its memory is read beside. */
const LOOKED = 'lookBack,recentMessages,recorded,schema'
/** The search, beside the history that the conversation's object reads for the turn. */
const SEARCHED = 'recentMessages,search'

beforeAll(async () => {
  await setHopStage()
  key = await makeKey({ actions: ['*'] })
  expect((await request('PUT', '/_search/pipeline/rag', ragOf('far')))[0]).toBe(200)
})
afterEach(() => vi.restoreAllMocks())

describe('a search with an answer and a memory', () => {
  it('asks a first question and a follow-up from a cold isolate in 5 hops', async () => {
    const memory = await newMemory()
    const hops = [BEGUN, OPENED, SEARCHED, 'ask', 'answer']
    expect(await cold({ memory })).toEqual(hops)
    expect(await cold({ memory })).toEqual(hops)
    expect(await cold({ memory, stream: true })).toEqual(hops)
  })

  it('asks a follow-up that is rewritten in 6', async () => {
    const memory = await newMemory()
    expect(await cold({ memory, rewrites: true })).toHaveLength(5)
    expect(await cold({ memory, rewrites: true })).toEqual([
      BEGUN,
      LOOKED,
      'recentMessages,rewrite',
      'search',
      'ask',
      'answer',
    ])
  })

  it('asks as fast where an embedder has to be called, and one more after a rewriting', async () => {
    const memory = await newMemory()
    const hops = [BEGUN, `embedAhead,${OPENED}`, `embed,${SEARCHED}`, 'ask', 'answer']
    expect(await embedded({ memory })).toEqual(hops)
    expect(await embedded({ memory })).toEqual(hops)
    expect(await embedded({ memory, rewrites: true })).toEqual([
      BEGUN,
      LOOKED,
      'recentMessages,rewrite',
      'search',
      'embed',
      'ask',
      'answer',
    ])
  })

  it('waits for one less where the key and the owner are known', async () => {
    const memory = await newMemory()
    await cold({ memory })
    const warm = await hopsOf(() => search({ memory, rewrites: true }))
    expect(waitedFor(warm)).toEqual([READ, 'recentMessages', 'rewrite', 'search', 'ask', 'answer'])
  })

  it('reads as much ahead for a pipeline that the request brings, and for one that rewrites', async () => {
    const memory = await newMemory()
    const pipeline = { request_processors: [{ question_rewrite: {} }], ...ragOf('far') }
    expect(await cold({ memory, pipeline })).toHaveLength(5)
    expect(await cold({ memory, pipeline })).toHaveLength(6)
    expect((await request('PUT', '/_search/pipeline/rewriting', pipeline))[0]).toBe(200)
    expect(await cold({ memory, pipeline: 'rewriting' })).toHaveLength(6)
  })

  it("reads as much ahead for the index's default pipeline", async () => {
    const set = (name: string | null) =>
      request('PUT', '/facts/_settings', { 'index.search.default_pipeline': name })
    expect((await set('rag'))[0]).toBe(200)
    const memory = await newMemory()
    expect(await cold({ memory, pipeline: undefined })).toHaveLength(5)
    expect((await set(null))[0]).toBe(200)
  })

  it('reads as much ahead for a remote model, with its connector', async () => {
    const [, { connector_id }] = await request('POST', `${ML}/connectors/_create`, {
      name: 'far away',
      version: 1,
      protocol: 'http',
      parameters: { model: 'any' },
      credential: { key: 'sk-3' },
      actions: [
        {
          action_type: 'predict',
          method: 'POST',
          url: 'https://api.openai.com/v1/chat/completions',
          headers: { authorization: `Bearer ${filled('credential.key')}` },
          request_body: `{"model":"any","messages":${filled('parameters.messages')},"stream":true}`,
        },
      ],
    })
    const registered = { name: 'chat', function_name: 'remote', connector_id }
    const [status, { model_id }] = await request('POST', `${ML}/models/_register?deploy=true`, registered)
    expect(status).toBe(200)
    const pipeline = ragOf(model_id, { llm_model: 'any' })
    const memory = await newMemory()
    const hops = [BEGUN, OPENED, SEARCHED, 'ask', 'answer']
    expect(await cold({ memory, pipeline, stream: true })).toEqual(hops)
  })
})

it('a search with an answer and no memory asks in 5 hops', async () => {
  expect(await cold({})).toEqual(['key,owner,registry,resources', 'schema', 'search', 'once', 'answer'])
})

it('looks up the password of Basic authentication as early as a key', async () => {
  beginAnew()
  const as = { key: null, headers: { authorization: `Basic ${btoa(`somebody:${key}`)}` } }
  const hops = waitedFor(await hopsOf(() => search({}, as)))
  expect(hops).toEqual(['key,owner,registry,resources', 'schema', 'search', 'once', 'answer'])
})

it('calls no object for a key that is refused, and says nothing of the index', async () => {
  const told: unknown[] = []
  for (const index of ['facts', 'nowhere']) {
    beginAnew()
    const watched = watch()
    const refused = await search({ index }, { key: 'unknown' })
    told.push([refused.status, await refused.json()])
    vi.restoreAllMocks()
    expect(watched.hops.flat()).not.toContain('schema')
  }
  expect(told[0]).toEqual([401, expect.anything()])
  expect(told[1]).toEqual(told[0])
})

describe('what is begun before the question is admitted', () => {
  /** What a refused question asked of objects and the embedder. */
  const refused = async (wanted: Wanted, as?: string) => {
    beginAnew()
    const counted = vi.spyOn(rates, 'requireRate')
    const watched = watch()
    const response = await search({ index: 'meant', ...wanted }, { key: as ?? key })
    const reply = await response.text()
    const turns = counted.mock.calls.filter(([, limit]) => limit === 'RATE_LIMIT_TURNS').length
    vi.restoreAllMocks()
    return { status: response.status, reply, turns, calls: watched.hops.flat() }
  }
  const ABSENT = ['search', 'embedAhead', 'embed', 'recentMessages', 'rewrite', 'ask', 'answer']
  const expectNone = (calls: string[], none = ABSENT) =>
    expect(calls.filter((call) => none.includes(call))).toEqual([])

  it('asks no object for a key that is refused', async () => {
    const memory = await newMemory()
    const { status, calls } = await refused({ memory, rewrites: true }, 'unknown')
    expect(status).toBe(401)
    expectNone(calls, [...ABSENT, 'schema', 'lookBack', 'recorded'])
  })

  it.each([false, true])(
    'embeds and reads nothing for a memory that is not open, rewritten: %s',
    async (rewrites) => {
      const memory = await newMemory()
      const other = await makeKey({ actions: ['documents:search'] })
      const foreign = await refused({ memory, rewrites }, other)
      const unknown = await refused({ memory: await sealedId(env), rewrites }, other)
      expect([foreign.status, unknown.status]).toEqual([401, 404])
      // The object of a memory looks back by itself, before it is known who asks. It tells nobody.
      const own = (calls: string[]) => calls.filter((call) => call === 'recentMessages')
      expect([own(foreign.calls), own(unknown.calls)]).toEqual([['recentMessages'], []])
      const others = (calls: string[]) => calls.filter((call) => call !== 'recentMessages').sort()
      expect(others(foreign.calls)).toEqual(others(unknown.calls))
      expectNone(others(foreign.calls))
      expect([foreign.turns, unknown.turns]).toEqual([0, 0])
    },
  )

  it('embeds nothing for an index that does not exist, and counts no turn', async () => {
    const { status, calls, turns } = await refused({ index: 'nowhere' })
    expect([status, turns]).toEqual([404, 0])
    expectNone(calls)
  })

  it('embeds nothing once a budget is spent', async () => {
    beginDay()
    const spent = await makeKey({ actions: ['documents:search'], limits: { turns_per_day: 1 } })
    beginAnew()
    await hopsOf(() => search({}, { key: spent }))
    await expect.poll(async () => (await refused({}, spent)).status).toBe(429)
    expectNone((await refused({}, spent)).calls)
  })

  it('counts a question once against the rate, and embeds nothing that is above it', async () => {
    beginAnew()
    const counted = vi.spyOn(rates, 'requireRate')
    const memory = await newMemory()
    const turns = () => counted.mock.calls.filter(([, limit]) => limit === 'RATE_LIMIT_TURNS').length
    const watched = watch()
    expect((await search({ index: 'meant', memory })).status).toBe(200)
    expect([turns(), watched.hops.flat()]).toEqual([1, expect.arrayContaining(['embedAhead', 'embed'])])
    vi.restoreAllMocks()
    vi.spyOn(rates, 'requireRate').mockImplementation(async (_, limit) => {
      if (limit === 'RATE_LIMIT_TURNS') throw new ApiError(429, 'Rate limit exceeded or blocked', 60)
    })
    const late = watch()
    expect((await search({ index: 'meant', memory })).status).toBe(429)
    expectNone(late.hops.flat(), ['search', 'embedAhead', 'embed', 'ask'])
  })

  it('embeds a question once', async () => {
    const memory = await newMemory()
    for (const wanted of [{ memory }, { memory, rewrites: true }]) {
      beginAnew()
      const { calls } = await hopsOf(() => search({ index: 'meant', ...wanted }))
      expect(calls.filter((call) => call === 'embed')).toHaveLength(1)
    }
  })

  it("opens the memory that a key fixes, in place of the body's", async () => {
    const [fixed, named] = [await newMemory(), await newMemory()]
    const scoped = await scopedKey(await makeKey({ actions: ['documents:search'] }), {
      conversation_id: fixed,
    })
    beginAnew()
    watch()
    const reply = await (await search({ memory: named }, { key: scoped })).json()
    expect(reply).toMatchObject({ status: 401 })
    expect(JSON.stringify(reply)).toContain(fixed)
    expect(JSON.stringify(reply)).not.toContain(named)
  })

  it('reads the end of a memory again whose object had something to deliver', async () => {
    const memory = await newMemory()
    await cold({ memory })
    vi.spyOn(Conversation.prototype, 'recorded').mockResolvedValue({ ok: true, value: true })
    const hops = await cold({ memory, rewrites: true })
    expect(hops).toEqual([BEGUN, LOOKED, 'recentMessages', 'rewrite', 'search', 'ask', 'answer'])
  })
})

it('waits for what the table of docs/benchmarks.md says', async () => {
  const table = { first: 'facts', embedded: 'meant' } as const
  for (const [kind, index] of Object.entries(table)) {
    const memory = await newMemory()
    const first = await cold({ index, memory })
    const followUp = await cold({ index, memory, rewrites: true })
    const names = kind === 'first' ? ['first', 'followUp'] : ['embedded', 'embeddedFollowUp']
    expectInTable('OpenSearch, with a memory', { [names[0]!]: first, [names[1]!]: followUp })
  }
  const memory = await newMemory()
  const warm = waitedFor(await hopsOf(() => search({ memory })))
  const warmFollowUp = waitedFor(await hopsOf(() => search({ memory, rewrites: true })))
  expectInTable('OpenSearch, with a memory', { warm, warmFollowUp })
})

describe('what could not be read ahead', () => {
  it('is read where it is needed', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {})
    vi.spyOn(prefetch, 'readRegistryRows').mockResolvedValue(undefined)
    const memory = await newMemory()
    const mocked = vi.spyOn(globalThis, 'fetch').mockImplementation(async () => {
      const said = `data: ${JSON.stringify({ choices: [{ delta: { content: '330 metres.' } }] })}\n\ndata: [DONE]\n\n`
      return new Response(said, { headers: { 'content-type': 'text/event-stream' } })
    })
    const response = await search({ memory })
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('330 metres.')])
    expect(mocked).toHaveBeenCalledOnce()
  })

  it.each([
    ['words in place of processors', { response_processors: ['x', 1, null, [1]] }],
    ['no list of processors', { response_processors: 'x' }],
    ['a processor that is none', { response_processors: [{ retrieval_augmented_generation: 'x' }] }],
    ['a model that is none', ragOf('nothing')],
    ['a pipeline that is not stored', 'nowhere'],
  ])('is answered as ever, and not logged: %s', async (_, pipeline) => {
    const logged = vi.spyOn(console, 'error').mockImplementation(() => {})
    const asked = await search({ pipeline })
    const { error } = (await asked.json()) as { error: unknown }
    vi.spyOn(prefetch, 'readRegistryRows').mockResolvedValue(undefined)
    const again = await search({ pipeline })
    expect([again.status, await again.json()]).toEqual([asked.status, expect.objectContaining({ error })])
    expect(asked.status).toBeGreaterThanOrEqual(400)
    expect(logged).not.toHaveBeenCalled()
  })

  it.each([
    ['retrieval_augmented_generation', 'plugins.ml_commons.rag_pipeline_feature_enabled'],
    ['Conversation Memory', 'plugins.ml_commons.memory_feature_enabled'],
  ])('a feature that is switched off: %s', async (_, name) => {
    const memory = await newMemory()
    const set = (value: string | null) =>
      request('PUT', '/_cluster/settings', { persistent: { [name]: value } })
    expect((await set('false'))[0]).toBe(200)
    const refused = await search({ memory })
    await set(null)
    expect([refused.status, await refused.text()]).toEqual([500, expect.stringContaining('is not enabled')])
  })
})
