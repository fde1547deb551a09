/** What the outside sees of keys, limits and headers, through the official client where it has a word in it. */
import { beforeAll, describe, expect, test } from 'vitest'
import { client, createModel, createShows, KEY, query, request, unique, url } from './harness'

let shows: string
let model: string
beforeAll(async () => {
  shows = await createShows()
  model = await createModel({ model_name: 'local/extractive' })
})

const asking = () => ({
  q: 'Who settles odd cases?',
  query_by: 'title,overview',
  conversation: true,
  conversation_model_id: model,
})

const limitedKey = (limits: Record<string, unknown>) =>
  client()
    .keys()
    .create({ description: '', actions: ['documents:search'], collections: ['*'], limits } as never)

describe('a key with limits', () => {
  test('asks its own model without naming it, and no other', async () => {
    const { value } = await limitedKey({ conversation_model_id: model })
    const documents = client(value).collections(shows).documents()
    const { conversation_model_id, ...unnamed } = asking()
    expect(conversation_model_id).toBe(model)
    expect((await documents.search(unnamed, {})).conversation?.answer).toContain('judge')
    const other = await createModel({ model_name: 'local/extractive' })
    for (const wrong of [other, 'nothing']) {
      await expect(documents.search({ ...asking(), conversation_model_id: wrong }, {})).rejects.toMatchObject(
        {
          httpStatus: 400,
          message: expect.stringContaining('Model not found'),
        },
      )
    }
  })

  test('a scoped key of the client fixes a model and a user', async () => {
    const parent = await limitedKey({})
    const scoped = client()
      .keys()
      .generateScopedSearchKey(parent.value!, { conversation_model_id: model, user_id: 'ann' } as never)
    const { conversation_model_id: _, ...unnamed } = asking()
    const found = await client(scoped).collections(shows).documents().search(unnamed, {})
    expect(found.conversation?.conversation_id).toBeTruthy()
  })
})

describe('headers', () => {
  test('an idempotency key leads a new conversation to one place, for one user', async () => {
    const name = unique('idempotency')
    const idOf = async (headers: Record<string, string>) => {
      const response = await fetch(url + query(`/collections/${shows}/documents/search`, asking()), {
        headers: { 'X-TYPESENSE-API-KEY': KEY, ...headers },
      })
      const { conversation } = (await response.json()) as { conversation: { conversation_id: string } }
      return conversation.conversation_id
    }
    const first = await idOf({ 'Idempotency-Key': name })
    expect(first).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(await idOf({ 'Idempotency-Key': name })).toBe(first)
    expect(await idOf({ 'Idempotency-Key': name, 'X-TYPESENSE-USER-ID': 'bob' })).not.toBe(first)
    expect(await idOf({})).not.toBe(await idOf({}))
  })

  test('every answer, the stream too, names its request', async () => {
    for (const path of [
      '/health',
      '/nope',
      query(`/collections/${shows}/documents/search`, { ...asking(), conversation_stream: true }),
    ]) {
      const response = await fetch(url + path, {
        headers: { 'X-TYPESENSE-API-KEY': KEY, 'X-Request-Id': 'my-own.id', origin: 'http://localhost:5173' },
      })
      await response.text()
      expect(response.headers.get('x-request-id')).toBe('my-own.id')
      expect(response.headers.get('x-content-type-options')).toBe('nosniff')
      expect(response.headers.get('access-control-expose-headers')).toContain('X-Request-Id')
    }
  })
})

describe('a model on a private address', () => {
  test('is refused, unless the start lists it', async () => {
    for (const openai_url of ['http://169.254.169.254', 'https://10.1.2.3', 'http://[::ffff:10.1.2.3]']) {
      const reply = await request('POST', '/conversations/models', {
        model_name: 'openai/x',
        api_key: 'sk-1234567890',
        history_collection: 'none',
        max_bytes: 1000,
        openai_url,
      })
      // The history is checked before the provider: this one has none, and the next one has.
      expect(reply.status).toBe(400)
      await expect(createModel({ model_name: 'openai/x', openai_url })).rejects.toThrow('ALLOWED_HOSTS')
    }
  })
})
