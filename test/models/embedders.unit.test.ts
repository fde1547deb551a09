import { Ai } from '@cloudflare/ai'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createEmbeddingModel, hashVector, probeDimensions } from '../../src/models/embedders'
import type { Served } from '../serve'
import { localEnv } from './ask'
import { rawServer, sendJson } from './raw-server'
import { serveWorkersAi, TOKEN } from './workers-ai/server'
import { WorkersAi } from './workers-ai/workers-ai'

const raw = rawServer()

const dot = (a: Float32Array, b: Float32Array): number =>
  a.reduce((sum, value, index) => sum + value * b[index]!, 0)

const near = (a: string, b: string): number => dot(hashVector(a, 384), hashVector(b, 384))

describe('hashes of words', () => {
  it('gives vectors of length one, and the same ones every time', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), fc.integer({ min: 8, max: 800 }), (text, dimensions) => {
        const vector = hashVector(`word ${text}`, dimensions)
        expect(vector).toHaveLength(dimensions)
        expect(dot(vector, vector)).toBeCloseTo(1, 4)
        expect(hashVector(`word ${text}`, dimensions)).toEqual(vector)
      }),
    )
    expect(hashVector(' ... ', 384).every((value) => value === 0)).toBe(true)
  })

  it('puts texts of the same words close, whatever their form, and others far', () => {
    const question = 'Who directed the horror film?'
    expect(near(question, 'A horror film directed by Ridley Scott')).toBeGreaterThan(0.4)
    expect(near(question, 'Quarterly revenue grew in all regions')).toBeLessThan(0.15)
    expect(near('swimming pools', 'A pool to swim in')).toBeGreaterThan(
      near('swimming pools', 'A bar to sit in'),
    )
    expect(near('colour', 'colors')).toBeGreaterThan(near('colour', 'dishes'))
    expect(near('CAFÉ', 'cafe')).toBeCloseTo(1, 5)
  })

  it('says nothing about words that say nothing', () => {
    expect(near('what is the alien about', 'alien')).toBeGreaterThan(0.9)
  })
})

describe('the model of a name', () => {
  const dimensionsOf = async (model_name: string) => {
    const [vector] = await createEmbeddingModel({ model_name }, localEnv).embed(['text'], 'query')
    expect(await probeDimensions({ model_name }, localEnv)).toBe(vector!.length)
    return vector!.length
  }

  it.each([
    ['local/hash-384', 384],
    ['local/hash-64', 64],
    ['local/minilm-l6-static', 256],
    ['ts/e5-small', 384],
    ['ts/all-MiniLM-L12-v2', 384],
    ['ts/snowflake-arctic-embed-m', 768],
    ['e5-small', 384],
  ])('%s has %i dimensions', async (name, dimensions) => {
    expect(await dimensionsOf(name)).toBe(dimensions)
  })

  it.each([
    'local/nothing',
    'local/hash-0',
    'local/hash-99999',
    'mistral/x',
    'openai/x',
    'azure/x',
    'google/x',
    'cloudflare/@cf/x',
  ])('%s is refused where it cannot be served', (model_name) => {
    expect(() => createEmbeddingModel({ model_name }, localEnv)).toThrow()
  })
})

describe('openai', () => {
  const config = () => ({
    model_name: 'openai/text-embedding-3-small',
    api_key: 'sk-1234567890',
    url: `${raw.url}/`,
  })

  it('asks for all texts at once and puts the answers in their order', async () => {
    raw.respond = (response) =>
      sendJson(response, 200, {
        data: [
          { index: 1, embedding: [3, 4] },
          { index: 0, embedding: [1, 2] },
        ],
      })
    const vectors = await createEmbeddingModel(config(), localEnv, 2).embed(['a', 'b'], 'document')
    expect(vectors).toEqual([Float32Array.from([1, 2]), Float32Array.from([3, 4])])
    expect(raw.received[0]).toMatchObject({
      path: '/v1/embeddings',
      headers: { authorization: 'Bearer sk-1234567890' },
      body: { model: 'text-embedding-3-small', input: ['a', 'b'], dimensions: 2 },
    })
  })

  it('asks for no dimensions that the schema does not give, and takes another path', async () => {
    raw.respond = (response) => sendJson(response, 200, { data: [{ embedding: [1, 2, 3] }] })
    expect(await probeDimensions({ ...config(), path: 'api/embed' }, localEnv)).toBe(3)
    expect(raw.received[0]?.path).toBe('/api/embed')
    expect(raw.received[0]?.body).not.toHaveProperty('dimensions')
  })

  it('gives errors on, without the key, and refuses answers that are not what was asked', async () => {
    raw.respond = (response) => sendJson(response, 401, { error: { message: 'bad sk-1234567890' } })
    const model = createEmbeddingModel(config(), localEnv)
    await expect(model.embed(['a'], 'query')).rejects.toThrow('OpenAI API error: bad sk-12********')
    raw.respond = (response) => sendJson(response, 200, { data: [] })
    await expect(model.embed(['a'], 'query')).rejects.toThrow('Got malformed response from OpenAI API.')
    for (const embedding of [null, [], ['1'], [null], 'AAAA']) {
      raw.respond = (response) => sendJson(response, 200, { data: [{ embedding }] })
      await expect(model.embed(['a'], 'query')).rejects.toThrow('Got malformed response from OpenAI API.')
    }
  })
})

describe('azure and google', () => {
  it('azure is asked at its own URL, with its own header', async () => {
    raw.respond = (response) => sendJson(response, 200, { data: [{ index: 0, embedding: [1] }] })
    const config = { model_name: 'azure/embed', api_key: 'azure-key', url: `${raw.url}/d/e?api-version=1` }
    expect(await createEmbeddingModel(config, localEnv).embed(['a'], 'query')).toEqual([
      Float32Array.from([1]),
    ])
    expect(raw.received[0]).toMatchObject({ path: '/d/e?api-version=1', headers: { 'api-key': 'azure-key' } })
  })

  it('google tells queries from documents', async () => {
    raw.respond = (response) => sendJson(response, 200, { embeddings: [{ values: [1, 2] }] })
    const config = { model_name: 'google/gemini-embedding-001', api_key: 'google-key', url: raw.url }
    await createEmbeddingModel(config, localEnv).embed(['a'], 'query')
    expect(raw.received[0]).toMatchObject({
      path: '/v1beta/models/gemini-embedding-001:batchEmbedContents',
      body: { requests: [{ model: 'models/gemini-embedding-001', taskType: 'RETRIEVAL_QUERY' }] },
    })
  })
})

describe('Workers AI', () => {
  const boundTo = (ai: unknown) => ({ AI_BACKEND: 'workers-ai', AI: ai }) as unknown as Cloudflare.Env
  const named = (model: string, extra = {}) => ({ model_name: `cloudflare/${model}`, ...extra })

  let server: Served
  const served = new WorkersAi()
  beforeAll(async () => {
    server = await serveWorkersAi(served)
  })
  afterAll(() => server.stop())
  beforeEach(() => {
    served.calls.length = 0
  })

  // @cloudflare/ai is the SDK from before the binding could be called directly: who still has one may pass it.
  it.each(['binding', 'sdk'])('embeds through the %s', async (kind) => {
    const ai = new WorkersAi()
    const env = boundTo(kind === 'sdk' ? new Ai(ai as never) : ai)
    const [a, b] = await createEmbeddingModel({ model_name: 'ts/e5-small' }, env).embed(
      ['a', 'b'],
      'document',
    )
    expect([a!.length, b!.length]).toEqual([1024, 1024])
    expect(a).not.toEqual(b)
    expect(ai.calls).toMatchObject([{ model: '@cf/baai/bge-m3', inputs: { text: ['a', 'b'] } }])
  })

  it.each([
    ['@cf/baai/bge-m3', 1024, 100],
    ['@cf/baai/bge-small-en-v1.5', 384, 100],
    ['@cf/baai/bge-base-en-v1.5', 768, 100],
    ['@cf/baai/bge-large-en-v1.5', 1024, 100],
    ['@cf/qwen/qwen3-embedding-0.6b', 1024, 32],
    ['@cf/google/embeddinggemma-300m', 768, 100],
  ])('knows that %s has %i dimensions and takes %i texts', async (name, dimensions, batchSize) => {
    const ai = new WorkersAi()
    expect(await probeDimensions(named(name), boundTo(ai))).toBe(dimensions)
    expect(ai.calls).toEqual([])
    const model = createEmbeddingModel(named(name), boundTo(ai))
    const texts = Array.from({ length: batchSize }, (_, n) => `text ${n}`)
    const vectors = await model.embed(texts, 'document')
    expect([model.batchSize, vectors.length, vectors[0]!.length]).toEqual([batchSize, batchSize, dimensions])
    await expect(model.embed([...texts, 'one more'], 'document')).rejects.toMatchObject({ upstream: 400 })
  })

  it.each<[string, object, object, object]>([
    ['@cf/baai/bge-base-en-v1.5', {}, { text: ['a'], pooling: 'cls' }, { text: ['a'], pooling: 'cls' }],
    ['@cf/qwen/qwen3-embedding-0.6b', {}, { documents: ['a'] }, { queries: ['a'] }],
    [
      '@cf/qwen/qwen3-embedding-0.6b',
      { instruction: 'Find laws.' },
      { documents: ['a'] },
      { queries: ['a'], instruction: 'Find laws.' },
    ],
    [
      '@cf/google/embeddinggemma-300m',
      {},
      { text: ['title: none | text: a'] },
      { text: ['task: search result | query: a'] },
    ],
    ['@cf/google/embeddinggemma-300m', { query_prefix: 'x' }, { text: ['a'] }, { text: ['a'] }],
  ])('%s %j tells documents from queries', async (name, extra, document, query) => {
    const ai = new WorkersAi()
    const model = createEmbeddingModel(named(name, extra), boundTo(ai))
    await model.embed(['a'], 'document')
    await model.embed(['a'], 'query')
    expect(ai.calls.map(({ inputs }) => inputs)).toEqual([document, query])
  })

  it('is asked over its REST API by whoever has a key, wherever the deployment runs', async () => {
    const config = named('@cf/baai/bge-small-en-v1.5', {
      api_key: TOKEN,
      account_id: 'acc',
      cloudflare_url: server.url,
    })
    expect(await probeDimensions(config, localEnv)).toBe(384)
    const [vector] = await createEmbeddingModel(config, localEnv).embed(['a'], 'document')
    const bound = createEmbeddingModel(named('@cf/baai/bge-small-en-v1.5'), boundTo(served))
    expect(await bound.embed(['a'], 'document')).toEqual([vector])
    const denied = createEmbeddingModel({ ...config, api_key: 'wrong-key' }, localEnv)
    await expect(denied.embed(['a'], 'query')).rejects.toMatchObject({ status: 400, fault: 'denied' })
    served.failNext(3040)
    await expect(createEmbeddingModel(config, localEnv).embed(['a'], 'query')).rejects.toMatchObject({
      message: expect.stringContaining('Cloudflare API error: '),
      fault: 'busy',
    })
  })

  it('gives errors on with what they mean for asking again', async () => {
    const ai = new WorkersAi()
    const model = createEmbeddingModel(named('@cf/baai/bge-m3'), boundTo(ai))
    for (const [code, fault] of [
      [3040, 'busy'],
      [3036, 'exhausted'],
      [3006, 'refused'],
      [3041, 'denied'],
    ] as const) {
      ai.failNext(code)
      const message = expect.stringMatching(new RegExp(`^Cloudflare API error: ${code}: `))
      await expect(model.embed(['a'], 'query')).rejects.toMatchObject({ status: 400, message, fault })
    }
  })

  it('reads either shape of a reply, and refuses what is not the vectors that were asked for', async () => {
    const answering = (reply: unknown) =>
      createEmbeddingModel(named('@cf/baai/bge-m3'), boundTo({ run: async () => reply })).embed(
        ['a'],
        'query',
      )
    for (const reply of [{ shape: [1, 2], data: [[1, 2]] }, { response: [[1, 2]] }]) {
      expect(await answering(reply)).toEqual([Float32Array.of(1, 2)])
    }
    for (const reply of [
      { data: [] },
      { data: [[1], [2]] },
      { data: [[]] },
      { data: [['1']] },
      { request_id: 'later' },
      'text',
      null,
    ]) {
      await expect(answering(reply), JSON.stringify(reply)).rejects.toThrow(
        'Got malformed response from Cloudflare API.',
      )
    }
  })

  it('is given up when it says nothing', async () => {
    const silent = { run: () => new Promise(() => {}) }
    const model = createEmbeddingModel(named('@cf/baai/bge-m3', { timeout: 0.05 }), boundTo(silent))
    await expect(model.embed(['a'], 'query')).rejects.toMatchObject({ fault: 'silent' })
  })
})
