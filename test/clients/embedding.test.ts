/** Embedding in the background over real connections, by an OpenAI-compatible server. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Served, serve } from '../serve'
import { DIMENSIONS, type Embedder, embeddedBy, startEmbedder } from './embedder'
import { client, request, unique } from './harness'

let embedder: Embedder
beforeAll(async () => {
  embedder = await startEmbedder()
})
afterAll(() => embedder.stop())

/** Most of it is the server's, which makes thousands of vectors one after the other. */
const SLOW = { timeout: 90_000 }

const TITLE = { name: 'title', type: 'string' }

async function makeCollection(field: unknown = embeddedBy(embedder, ['title'])): Promise<string> {
  const name = unique('embedded')
  const made = await request('POST', '/collections', { name, fields: [TITLE, field] })
  expect(made.status, made.text).toBe(201)
  return name
}

const titled = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ id: `d${n}`, title: `A tale of number ${n}` }))

const summary = async (name: string) => (await request('GET', `/collections/${name}`)).body

const drained = (name: string) =>
  expect.poll(() => summary(name), { timeout: 60_000, interval: 50 }).not.toHaveProperty('pending_embeddings')

/** Checks that each document has the vector that the server makes of its title. */
async function expectVectors(name: string, count: number): Promise<void> {
  const lines = (await client().collections(name).documents().export()).split('\n')
  const documents: { title: string; embedding?: number[] }[] = lines.map((line) => JSON.parse(line))
  expect(documents.length).toBe(count)
  const expected = await embedder.vectors(documents.map(({ title }) => `${title} `))
  for (const [number, { title, embedding }] of documents.entries()) {
    expect(embedding, title).toHaveLength(DIMENSIONS)
    expect(
      Math.max(...expected[number]!.map((part, i) => Math.abs(part - embedding![i]!))),
      title,
    ).toBeLessThan(1e-6)
  }
}

describe('an OpenAI-compatible server', () => {
  test(
    'makes the vectors of thousands of documents that are found by their words meanwhile',
    SLOW,
    async () => {
      const name = await makeCollection()
      embedder.forget()
      const results = await client().collections(name).documents().import(titled(2_100))
      expect(results.every(({ success }) => success)).toBe(true)
      const words = await client().collections(name).documents().search({ q: 'tale', query_by: 'title' })
      expect(words.found).toBe(2_100)
      await drained(name)
      // 200 texts a call.
      expect(embedder.calls()).toBeGreaterThanOrEqual(11)
      await expectVectors(name, 2_100)
      const both = await client()
        .collections(name)
        .documents()
        .search({ q: 'number 2099', query_by: 'title,embedding', exclude_fields: 'embedding' })
      expect(both.hits![0]!.document).toEqual({ id: 'd2099', title: 'A tale of number 2099' })
    },
  )

  test('that limits its rate is asked when it wants to be, and nothing is lost', SLOW, async () => {
    const name = await makeCollection()
    embedder.limit(5, 2)
    const importing = client().collections(name).documents().import(titled(1_000))
    await expect
      .poll(() => summary(name), { timeout: 10_000, interval: 20 })
      .toMatchObject({ embedding_error: 'OpenAI API error: Rate limit reached' })
    await importing
    await drained(name)
    await expectVectors(name, 1_000)
    expect(await summary(name)).not.toHaveProperty('embedding_error')
  })

  test('takes the place of the built-in model as a whole', async () => {
    const model_config = { model_name: 'local/hash-32' }
    const local = { name: 'embedding', type: 'float[]', embed: { from: ['title'], model_config } }
    const name = await makeCollection(local)
    await client().collections(name).documents().import(titled(300))
    const fields = [{ name: 'embedding', drop: true }, embeddedBy(embedder, ['title'])]
    const altered = await request('PATCH', `/collections/${name}`, { fields })
    expect(altered.status, altered.text).toBe(200)
    expect(altered.text).not.toContain('sk-1234567890')
    await expect
      .poll(() => summary(name), { timeout: 25_000, interval: 20 })
      .toMatchObject({ fields: [{}, { name: 'embedding', num_dim: DIMENSIONS }] })
    await expectVectors(name, 300)
  })
})

describe('a key that is no longer taken', () => {
  let server: Served
  let key = 'sk-the-first-key'
  let calls = 0

  beforeAll(async () => {
    server = await serve(async (incoming, response) => {
      let body = ''
      for await (const piece of incoming) body += piece
      calls += 1
      const taken = incoming.headers.authorization === `Bearer ${key}`
      response.writeHead(taken ? 200 : 401, { 'content-type': 'application/json' })
      const data = JSON.parse(body).input.map(() => ({ embedding: [1, 2] }))
      const error = { message: `Incorrect API key provided: ${incoming.headers.authorization}` }
      response.end(JSON.stringify(taken ? { data } : { error }))
    })
  })
  afterAll(() => server.stop())

  test('stops the calls, is told without being shown, and makes room for another', async () => {
    const { url } = server
    const field = (api_key: string) => ({
      name: 'embedding',
      type: 'float[]',
      embed: { from: ['title'], model_config: { model_name: 'openai/x', url, api_key } },
    })
    const name = await makeCollection(field(key))
    key = 'sk-the-second-key'
    await client().collections(name).documents().import(titled(50))
    await expect
      .poll(() => summary(name), { timeout: 10_000, interval: 20 })
      .toMatchObject({
        pending_embeddings: 50,
        embedding_error: expect.stringContaining('Incorrect API key'),
      })
    expect(JSON.stringify(await summary(name))).not.toContain('sk-the-first-key')
    const before = calls
    await client().collections(name).documents().create({ title: 'One more' })
    expect((await summary(name)).pending_embeddings).toBe(51)
    expect(calls).toBe(before)
    const altered = await request('PATCH', `/collections/${name}`, { fields: [field(key)] })
    expect(altered.status, altered.text).toBe(200)
    await drained(name)
    expect(await summary(name)).not.toHaveProperty('embedding_error')
  })
})

describe('a search whose server breaks the connection', () => {
  let broken: Served
  /** how many connections are still to be broken */
  let breaks = 0

  beforeAll(async () => {
    broken = await serve(async (incoming, response) => {
      let body = ''
      for await (const piece of incoming) body += piece
      const { input } = JSON.parse(body)
      if (input[0] === 'tale' && breaks > 0) {
        breaks -= 1
        incoming.socket.destroy()
        return
      }
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ data: input.map(() => ({ embedding: [1, 2] })) }))
    })
  })
  afterAll(() => broken.stop())

  test('tries again, and then says so', async () => {
    const model_config = {
      model_name: 'openai/x',
      url: broken.url,
      api_key: 'sk-1234567890',
    }
    const field = { name: 'embedding', type: 'float[]', embed: { from: ['title'], model_config } }
    const name = await makeCollection(field)
    await client().collections(name).documents().create({ id: '1', title: 'A tale' })
    await drained(name)
    const search = () => request('GET', `/collections/${name}/documents/search?q=tale&query_by=embedding`)
    breaks = 1
    expect((await search()).body).toMatchObject({ found: 1 })
    breaks = 100
    // It is asked again for longer than a search waits with its status.
    const reply = await search()
    const message = 'OpenAI API error: the provider could not be reached'
    expect([reply.status, reply.body]).toMatchObject([200, { code: 400, error: message, message, hits: [] }])
  })
})

describe('the built-in embedder', () => {
  const builtIn = (model_name: string) => ({
    name: 'embedding',
    type: 'float[]',
    embed: { from: ['title'], model_config: { model_name } },
  })

  test('finds what shares no word with the question, and is named by the schema', async () => {
    const name = await makeCollection(builtIn('ts/all-MiniLM-L12-v2'))
    const titles = ['Reset your password', 'Bake a loaf of bread', 'Choose a travel insurance']
    await client()
      .collections(name)
      .documents()
      .import(titles.map((title) => ({ title })))
    const search = { q: 'I forgot my login credentials', query_by: 'embedding,title', per_page: 1 }
    const { hits } = await client().collections<{ title: string }>(name).documents().search(search)
    expect(hits?.[0]?.document.title).toBe('Reset your password')
    const { fields } = (await summary(name)) as { fields: unknown[] }
    expect(fields).toContainEqual(
      expect.objectContaining({
        num_dim: 384,
        embed: {
          from: ['title'],
          model_config: { model_name: 'ts/all-MiniLM-L12-v2' },
          served_by: 'local/minilm-l6-static',
        },
      }),
    )
  })

  test('does not take the name of a model that it is not', async () => {
    const fields = [TITLE, builtIn('text-embedding-3-small')]
    const refused = await request('POST', '/collections', { name: unique('unknown'), fields })
    expect(refused.status).toBe(400)
    expect((refused.body as { message: string }).message).toContain(
      '`text-embedding-3-small` is not a built-in embedding model. A model of a provider is named with it, such as `openai/text-embedding-3-small`',
    )
  })
})
