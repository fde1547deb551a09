/**
 * A deployment with an AI Gateway: every provider is reached through it and no other way, by the path that Cloudflare
 * documents for it, and answers, streams, fails and breaks off as it does without one.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TOKEN as WORKERS_AI_TOKEN } from '../../models/workers-ai/server'
import { WorkersAi } from '../../models/workers-ai/workers-ai'
import { connect, gather, textOf } from '../event-source'
import { createModel, query, request, turnTo, unique } from '../harness'
import { OwnParley } from '../own-parley'
import { ANSWER, doubled, REFUSED, startDouble, startMock, TOKENS } from './counterparts'
import { type AiGateway, startGateway } from './gateway'
import type { Relay } from './relay'
import { CUT, kept, prepare, question, usageIn, watch, whole } from './turns'

const GATEWAY = 'account/parley'
const TOKEN = 'a token of the gateway'

interface Routed {
  label: string
  model: Record<string, unknown>
  /** behind the gateway, for what is asked in one piece and for an answer */
  paths: [whole: string, stream: string]
}

const once = (path: string): [string, string] => [path, path]
const BEDROCK = 'aws-bedrock/bedrock-runtime/eu-west-1/model/anthropic.claude-3-5-sonnet-20241022-v2%3A0'
const GOOGLE = 'google-ai-studio/v1beta/models/gemini-2.5-flash'

const ROUTED: Record<string, Routed> = {
  OpenAI: {
    label: 'OpenAI',
    model: { model_name: 'openai/gpt-4o' },
    paths: once('openai/chat/completions'),
  },
  'Azure OpenAI': {
    label: 'Azure',
    model: {
      model_name: 'azure/gpt-4o',
      url: 'https://acme.openai.azure.com/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21',
    },
    paths: once('azure-openai/acme/gpt-4o/chat/completions?api-version=2024-10-21'),
  },
  Gemini: {
    label: 'Gemini',
    model: { model_name: 'google/gemini-2.5-flash' },
    paths: [`${GOOGLE}:generateContent`, `${GOOGLE}:streamGenerateContent?alt=sse`],
  },
  Anthropic: {
    label: 'Anthropic',
    model: { model_name: 'anthropic/claude-sonnet-4-5' },
    paths: once('anthropic/v1/messages'),
  },
  Bedrock: {
    label: 'Bedrock',
    model: {
      model_name: 'bedrock/anthropic.claude-3-5-sonnet-20241022-v2:0',
      api_key: undefined,
      region: 'eu-west-1',
      access_key_id: 'AKIDEXAMPLE',
      secret_access_key: 'wJalrXUtnFEMI',
    },
    paths: [`${BEDROCK}/converse`, `${BEDROCK}/converse-stream`],
  },
  'Workers AI': {
    label: 'Cloudflare',
    model: {
      model_name: 'cloudflare/@cf/zai-org/glm-4.7-flash',
      api_key: WORKERS_AI_TOKEN,
      account_id: 'account',
    },
    paths: once('workers-ai/@cf/zai-org/glm-4.7-flash'),
  },
}

const ai = new WorkersAi({ answer: (messages) => doubled(String(messages.at(-1)?.content)) })
const upstreams: Relay[] = []
let gateway: AiGateway
let parley: OwnParley
let shows: string

/** A Parley with the gateway and nothing else that it may call. */
async function boot(token: string): Promise<OwnParley> {
  const started = new OwnParley({
    WORKERS_AI_URL: upstreams[0]!.url,
    VARS: JSON.stringify({
      AI_GATEWAY: GATEWAY,
      AI_GATEWAY_URL: gateway.url,
      AI_GATEWAY_TOKEN: token,
      ALLOWED_HOSTS: '127.0.0.1',
    }),
  })
  await started.boot()
  return started
}

beforeAll(async () => {
  const [workersAi, openai, anthropic, bedrock] = await Promise.all([
    startDouble(ai),
    startMock('content_filter'),
    startMock('refusal'),
    startMock('content_filtered'),
  ])
  upstreams.push(workersAi, openai, anthropic, bedrock)
  gateway = await startGateway(GATEWAY, TOKEN, {
    openai: openai.url,
    'azure-openai': openai.url,
    'google-ai-studio': openai.url,
    anthropic: anthropic.url,
    'aws-bedrock': bedrock.url,
    'workers-ai': workersAi.url,
  })
  parley = await boot(TOKEN)
  turnTo(parley.url)
  shows = await prepare()
})
afterAll(async () => {
  await parley.remove()
  await gateway.stop()
  for (const upstream of upstreams) await upstream.stop()
})

describe.each(Object.entries(ROUTED))('%s', (_, { label, model: properties, paths }) => {
  const [wholePath, streamPath] = paths
  let model: string

  beforeAll(async () => {
    model = await createModel(properties)
  })

  const pathsOf = async (work: () => Promise<unknown>): Promise<string[]> => {
    gateway.passed.length = 0
    await work()
    return gateway.passed.map(({ path }) => decodeURIComponent(path))
  }

  test('answers and rewrites through the gateway', async () => {
    let first: Record<string, unknown> = {}
    const asked = await pathsOf(async () => {
      first = (await whole(model, 'answer')).body
      expect(first).toMatchObject({ answer: ANSWER, finish_reason: 'stop' })
    })
    expect(asked).toEqual([decodeURIComponent(streamPath)])
    const followed = await pathsOf(() =>
      request('POST', '/conversations', {
        ...question(model, 'answer'),
        conversation_id: first.conversation_id,
      }),
    )
    // The follow-up is rewritten in one piece before it is answered.
    expect(followed).toEqual([wholePath, streamPath].map((path) => decodeURIComponent(path)))
  })

  test('streams through the gateway, with the tokens that the provider counted', async () => {
    const [input_tokens, output_tokens] = TOKENS
    const asked = await pathsOf(async () => {
      const { events, id } = await watch(model, 'stream')
      expect(textOf(events)).toBe(ANSWER)
      expect(usageIn(events)).toEqual({ model: properties.model_name, input_tokens, output_tokens })
      expect(await kept(id)).toMatchObject([{ answer: ANSWER }])
    })
    expect(asked).toEqual([decodeURIComponent(streamPath)])
  })

  test('fails in its own words', async () => {
    const { last, id } = await watch(model, 'error')
    expect(last.data.message).toMatch(new RegExp(`^${label} API error: .*${REFUSED}`))
    expect(await kept(id)).toEqual([])
    expect((await whole(model, 'error')).body.message).toContain(REFUSED)
  })

  test('is no answer where the gateway loses it in the middle', async () => {
    const { last, id } = await watch(model, 'cut')
    expect(last.data.message).toMatch(CUT)
    expect(await kept(id)).toEqual([])
  })

  test('answers from the cache of the gateway where the model asks for one', async () => {
    const caching = await createModel({ ...properties, headers: { 'cf-aig-cache-ttl': '60' } })
    gateway.passed.length = 0
    for (let turn = 0; turn < 2; turn++) {
      const { events, last } = await watch(caching, 'stream')
      expect(textOf(events)).toBe(ANSWER)
      expect(last.data).toMatchObject({ answer: ANSWER, finish_reason: 'stop' })
    }
    expect(gateway.passed.map(({ cache }) => cache)).toEqual(['MISS', 'HIT'])
  })
})

test('the binding of Workers AI names the gateway for answers and vectors', async () => {
  const model = await createModel({
    model_name: 'cloudflare/@cf/zai-org/glm-4.7-flash',
    api_key: undefined,
  })
  ai.calls.length = 0
  // In other words than before: the vectors of a question are kept for a few seconds.
  const body = { ...question(model, 'stream'), question: 'Which of them is good? [case: stream]' }
  const events = await gather(await connect('/conversations', { method: 'POST', body }))
  expect(textOf(events)).toBe(ANSWER)
  expect(ai.calls.map(({ model, options }) => [model, options])).toEqual([
    ['@cf/baai/bge-m3', { gateway: { id: 'parley' } }],
    ['@cf/zai-org/glm-4.7-flash', { gateway: { id: 'parley' } }],
  ])
})

test('the binding of Workers AI names the gateway where it reranks', async () => {
  ai.calls.length = 0
  const search = query(`/collections/${shows}/documents/search`, {
    q: 'action series',
    query_by: 'overview',
    rerank_model: 'cloudflare/@cf/baai/bge-reranker-base',
    rerank_timeout_ms: 5_000,
  })
  const { body } = await request('GET', search)
  expect(body.rerank).toMatchObject({ reranked: 2 })
  expect(ai.calls.map(({ model, options }) => [model, options])).toEqual([
    ['@cf/baai/bge-reranker-base', { gateway: { id: 'parley' } }],
  ])
})

test.each<[string, Record<string, unknown>, string]>([
  ['OpenAI', { model_name: 'openai/text-embedding-3-small' }, 'openai/embeddings'],
  [
    'Azure OpenAI',
    {
      model_name: 'azure/text-embedding-3-small',
      url: 'https://acme.openai.azure.com/openai/deployments/embed/embeddings?api-version=2024-10-21',
    },
    'azure-openai/acme/embed/embeddings?api-version=2024-10-21',
  ],
  [
    'Workers AI',
    { model_name: 'cloudflare/@cf/baai/bge-m3', api_key: WORKERS_AI_TOKEN, account_id: 'account' },
    'workers-ai/@cf/baai/bge-m3',
  ],
])('vectors of %s are made through the gateway', async (_, config, path) => {
  gateway.passed.length = 0
  const name = unique('embedded')
  const model_config = { api_key: 'sk-1234567890', ...config }
  const fields = [
    { name: 'title', type: 'string' },
    { name: 'embedding', type: 'float[]', embed: { from: ['title'], model_config } },
  ]
  const made = await request('POST', '/collections', { name, fields })
  expect(made.status, made.text).toBe(201)
  await request('POST', `/collections/${name}/documents`, { id: 'one', title: 'A tale' })
  const vector = async () => (await request('GET', `/collections/${name}/documents/one`)).body.embedding
  await expect.poll(vector, { timeout: 20_000 }).toHaveLength(made.body.fields[1].num_dim)
  expect(new Set(gateway.passed.map(({ path }) => path))).toEqual(new Set([path]))
})

test('a gateway that does not know the caller says so', async () => {
  const stranger = await boot('a token of somebody else')
  try {
    turnTo(stranger.url)
    await expect(createModel({ model_name: 'openai/gpt-4o' })).rejects.toThrow(
      'OpenAI API error: Unauthorized',
    )
  } finally {
    turnTo(parley.url)
    await stranger.remove()
  }
})
