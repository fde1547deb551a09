import { Ai } from '@cloudflare/ai'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createEmbeddingModel, probeDimensions } from '../../src/models/embedders'
import { hashVector } from '../../src/models/hash-embedder'
import { workersAiEmbedder } from '../../src/models/workers-ai-embedder'
import { localEnv } from './ask'
import { type RawServer, sendJson, startRawServer } from './raw-server'

let raw: RawServer

beforeAll(async () => {
  raw = await startRawServer()
})

afterAll(() => raw.stop())

beforeEach(() => {
  raw.received.length = 0
})

const dot = (a: Float32Array, b: Float32Array): number =>
  a.reduce((sum, value, index) => sum + value * b[index]!, 0)

const near = (a: string, b: string): number => dot(hashVector(a, 384), hashVector(b, 384))

describe('the built-in embedder', () => {
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
    raw.respond = (response) => sendJson(response, 200, { data: [{ embedding: null }] })
    await expect(model.embed(['a'], 'query')).rejects.toThrow('Got malformed response from OpenAI API.')
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
  const binding = (reply: (texts: string[]) => unknown) => {
    const runs: unknown[][] = []
    return {
      runs,
      run: async (...args: unknown[]) => {
        runs.push(args)
        return reply((args[1] as { text: string[] }).text)
      },
    }
  }
  const vectors = (texts: string[]) => ({
    shape: [texts.length, 2],
    data: texts.map((text) => [text.length, 1]),
  })

  // @cloudflare/ai is the SDK from before the binding could be called directly: who still has one may pass it.
  it.each(['binding', 'sdk'])('embeds through the %s', async (kind) => {
    const bound = binding(vectors)
    const runner = kind === 'sdk' ? new Ai(bound as never) : bound
    const model = workersAiEmbedder('ts/e5-small', runner as never)
    expect(await model.embed(['a', 'bcd'], 'document')).toEqual([
      Float32Array.from([1, 1]),
      Float32Array.from([3, 1]),
    ])
    expect(bound.runs[0]?.slice(0, 2)).toEqual(['@cf/baai/bge-m3', { text: ['a', 'bcd'] }])
  })

  it('stands in for Typesense models where the deployment runs on it', async () => {
    const bound = binding(vectors)
    const env = { AI_BACKEND: 'workers-ai', AI: bound } as unknown as Cloudflare.Env
    expect(await probeDimensions({ model_name: 'ts/e5-small' }, env)).toBe(1024)
    await createEmbeddingModel({ model_name: 'cloudflare/@cf/other' }, env).embed(['a'], 'query')
    expect(bound.runs[0]?.[0]).toBe('@cf/other')
  })

  it('gives errors on, and refuses answers of another size', async () => {
    const failing = workersAiEmbedder('x', { run: () => Promise.reject(new Error('3040: out of capacity')) })
    await expect(failing.embed(['a'], 'query')).rejects.toThrow('Cloudflare API error: 3040: out of capacity')
    const short = workersAiEmbedder('x', { run: async () => ({ data: [] }) })
    await expect(short.embed(['a'], 'query')).rejects.toThrow('Got malformed response from Cloudflare API.')
  })
})
