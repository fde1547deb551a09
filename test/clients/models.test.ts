/** Conversation models: rows 4 to 23 of the contract. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { HISTORY_FIELDS } from '../history-schema'
import { type Counterpart, startCounterpart } from './counterpart'
import { askBySearch, client, createHistory, createShows, request, UUID, unique } from './harness'
import { type Llm, startLlm } from './llm'

let llm: Llm
let counterpart: Counterpart
let history: string

beforeAll(async () => {
  llm = await startLlm()
  counterpart = await startCounterpart()
  history = await createHistory()
})
afterAll(() => Promise.all([llm.stop(), counterpart.stop()]))

/** A body that is right in every respect but for `changes`. */
const body = (changes: Record<string, unknown> = {}): Record<string, unknown> => ({
  id: unique('model'),
  model_name: 'openai/gpt-4o-mini',
  history_collection: history,
  api_key: 'sk-1234567890',
  openai_url: llm.url,
  max_bytes: 16_384,
  ...changes,
})

const create = (changes: Record<string, unknown> = {}) =>
  request('POST', '/conversations/models', body(changes))

const without = (...names: string[]) =>
  Object.fromEntries(Object.entries(body()).filter(([name]) => !names.includes(name)))

const refusal = async (changes: Record<string, unknown>): Promise<[number, string]> => {
  const reply = await create(changes)
  return [reply.status, reply.body.message]
}

describe('creating', () => {
  test('4: a model comes back with its default ttl, its prompt and a masked key', async () => {
    const id = unique('model')
    const created = await client().conversations().models().create({
      id,
      model_name: 'openai/gpt-4o-mini',
      history_collection: history,
      api_key: 'sk-1234567890',
      openai_url: llm.url,
      system_prompt: 'Be brief.',
      max_bytes: 16_384,
    })
    expect(created).toMatchObject({ id, ttl: 86_400, api_key: 'sk-12********', system_prompt: 'Be brief.' })
    expect((await create()).status).toBe(201)
  })

  test('4: the provider is greeted at most once', async () => {
    const before = counterpart.authorizations.length
    await create({ model_name: 'openai/wide', openai_url: counterpart.url })
    expect(counterpart.authorizations.slice(before)).toEqual(['Bearer sk-1234567890'])
  })

  test('5: a short key is masked at another length', async () => {
    expect((await create({ api_key: 'abc' })).body.api_key).toBe('***********')
  })

  test('6: an id that is taken is a conflict', async () => {
    const id = unique('model')
    await create({ id })
    expect(await refusal({ id })).toEqual([409, 'Model already exists'])
    await expect(
      client().conversations().models().create({ id, model_name: 'x/y', max_bytes: 1 }),
    ).rejects.toMatchObject({
      name: 'ObjectAlreadyExists',
      httpStatus: 409,
    })
  })

  test('7: a missing id is made up', async () => {
    const reply = await request('POST', '/conversations/models', without('id'))
    expect(reply.status).toBe(201)
    expect(reply.body.id).toMatch(UUID)
  })

  test('8: model_name', async () => {
    const message = 'Property `model_name` is not provided or not a string.'
    expect(await refusal({ model_name: undefined })).toEqual([400, message])
    expect(await refusal({ model_name: 5 })).toEqual([400, message])
  })

  test('9, 10: namespaces', async () => {
    expect(await refusal({ model_name: 'gpt-4' })).toEqual([400, 'Model namespace `` is not supported.'])
    expect(await refusal({ model_name: 'mistral/x' })).toEqual([
      400,
      'Model namespace `mistral` is not supported.',
    ])
  })

  test('11: history_collection', async () => {
    const missing = 'Property `history_collection` is missing or is not a string.'
    expect(await refusal({ history_collection: undefined })).toEqual([400, missing])
    expect(await refusal({ history_collection: 'nowhere' })).toEqual([400, 'Collection not found'])
  })

  test.each([0, -1, '10', 1.5, undefined])('12: max_bytes %s', async (max_bytes) => {
    const message = 'Property `max_bytes` is not provided or not a positive integer.'
    expect(await refusal({ max_bytes })).toEqual([400, message])
  })

  test('13: ttl', async () => {
    expect(await refusal({ ttl: -1 })).toEqual([400, 'Property `ttl` is not a positive integer.'])
    expect((await create({ ttl: 0 })).status).toBe(201)
  })

  test.each([
    ['14', 'timestamp', { type: 'int64' }, '`timestamp` field must be an integer'],
    ['1.3', 'conversation_id', { type: 'int32' }, '`conversation_id` field must be a string'],
    ['1.3', 'timestamp', { sort: false }, '`timestamp` field must be a sort field'],
  ])('%s: a history collection with another %s', async (_row, field, change, message) => {
    const name = unique('history')
    const fields = HISTORY_FIELDS.map((known) => (known.name === field ? { ...known, ...change } : known))
    await request('POST', '/collections', { name, fields })
    expect(await refusal({ history_collection: name })).toEqual([400, message])
  })

  test('15: a history collection without model_id', async () => {
    const name = unique('history')
    const fields = HISTORY_FIELDS.filter((field) => field.name !== 'model_id')
    await request('POST', '/collections', { name, fields })
    expect(await refusal({ history_collection: name })).toEqual([400, 'Schema is missing `model_id` field'])
  })

  test('16: the key of openai', async () => {
    expect(await refusal({ api_key: undefined })).toEqual([400, 'API key is not provided'])
    expect(await refusal({ api_key: 123 })).toEqual([400, 'API key is not a string'])
  })

  test('17: what the other providers need', async () => {
    expect(await refusal({ model_name: 'cloudflare/@cf/meta/llama' })).toEqual([
      400,
      'Account ID is not provided',
    ])
    expect(await refusal({ model_name: 'vllm/llama' })).toEqual([400, 'vLLM URL is not provided'])
    expect(await refusal({ model_name: 'azure/gpt' })).toEqual([400, 'url is required for Azure models'])
    const google = await refusal({ model_name: 'google/gemini', api_key: undefined })
    expect(google).toEqual([400, 'Gemini API key is not provided'])
  })

  test.each(['[]', '{', '5'])('19: the body %s', async (text) => {
    const reply = await request('POST', '/conversations/models', text)
    expect([reply.status, reply.body.message]).toEqual([400, 'Bad JSON.'])
  })

  test('20: of two faults the taken id is told', async () => {
    const id = unique('model')
    await create({ id })
    expect(await refusal({ id, model_name: undefined })).toEqual([409, 'Model already exists'])
  })

  test('1.2: a key that the provider refuses', async () => {
    const answer = await refusal({ model_name: 'openai/unwelcoming', openai_url: counterpart.url })
    expect(answer).toEqual([400, 'OpenAI API error: Incorrect API key provided'])
  })

  test('1.2: unknown properties are kept', async () => {
    expect((await create({ note: { by: 'me' } })).body.note).toEqual({ by: 'me' })
  })
})

describe('reading, changing and deleting', () => {
  test('21: list, get and delete', async () => {
    const id = unique('model')
    await create({ id })
    const models = client().conversations().models()
    expect(await models.retrieve()).toEqual(
      expect.arrayContaining([expect.objectContaining({ id, api_key: 'sk-12********' })]),
    )
    const one = client().conversations().models(id)
    expect(await one.retrieve()).toMatchObject({ id, api_key: 'sk-12********' })
    expect(await one.delete()).toMatchObject({ id, api_key: 'sk-12********' })

    const unknown = [404, { message: 'Model not found' }]
    for (const method of ['GET', 'DELETE']) {
      const reply = await request(method, `/conversations/models/${id}`)
      expect([reply.status, reply.body]).toEqual(unknown)
    }
  })

  test('22: an update keeps what it does not name, the key among it', async () => {
    const id = unique('model')
    await create({ id, system_prompt: 'Old.' })
    const updated = await request('PUT', `/conversations/models/${id}`, { system_prompt: 'New.' })
    expect(updated.status).toBe(200)
    expect(updated.body).toMatchObject({ id, system_prompt: 'New.', model_name: 'openai/gpt-4o-mini' })

    const shows = await createShows()
    const asked = await askBySearch(id, shows, 'an action series')
    expect(asked.body.conversation.answer).toBe('You asked: an action series')

    const unknown = await request('PUT', '/conversations/models/nobody', {})
    expect([unknown.status, unknown.body]).toEqual([404, { message: 'Model not found' }])
  })

  test('1.2: what was read can be written back without losing the key', async () => {
    const before = counterpart.authorizations.length
    const id = unique('model')
    await create({ id, model_name: 'openai/wide', openai_url: counterpart.url })
    const read = (await request('GET', `/conversations/models/${id}`)).body
    expect((await request('PUT', `/conversations/models/${id}`, read)).status).toBe(200)
    expect(new Set(counterpart.authorizations.slice(before))).toEqual(new Set(['Bearer sk-1234567890']))
  })

  test('23: renaming', async () => {
    const [id, other, renamed] = [unique('model'), unique('model'), unique('model')]
    await create({ id })
    await create({ id: other })
    const taken = await request('PUT', `/conversations/models/${id}`, { id: other })
    expect(taken.status).toBe(409)
    const moved = await request('PUT', `/conversations/models/${id}`, { id: renamed })
    expect([moved.status, moved.body.id]).toEqual([200, renamed])
    expect((await request('GET', `/conversations/models/${id}`)).status).toBe(404)
    expect((await request('GET', `/conversations/models/${renamed}`)).status).toBe(200)
  })

  test('1.1: conversations have no routes of their own in this protocol', async () => {
    expect((await request('PUT', '/conversations/x')).status).toBe(405)
    expect((await request('DELETE', '/conversations/x')).status).toBe(404)
  })
})
