/** Collections that live in Cloudflare AI Search. Parley's own wire for the AI Search snippet plays its REST API. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  askAcross,
  client,
  createAssistant,
  createHistory,
  createModel,
  createShows,
  disconnect,
  query,
  request,
  unique,
  url,
} from './harness'
import { Relay } from './relay'

/** where it answers as AI Search does */
let service: Relay
/** the collection here */
let name: string

beforeAll(async () => {
  const shows = await createShows()
  const model = await createModel({
    model_name: 'local/extractive',
    api_key: undefined,
    history_collection: await createHistory(),
  })
  const assistant = await createAssistant({ model, collections: [shows] })
  const { value } = await client()
    .keys()
    .create({
      description: 'a page',
      actions: ['documents:search'],
      collections: ['*'],
      limits: { turns_per_day: 100_000 },
    } as never)
  service = await new Relay(url, (path) =>
    path.endsWith('/search') ? `/ai-search/${encodeURIComponent(value!)}/${assistant}/search` : path,
  ).open()
  service.replies['/stats'] = { success: true, result: { completed: 5, queued: 0 } }
  name = unique('instance')
  const reply = await request('POST', '/collections', { name, engine: engine() })
  if (reply.status !== 201) throw new Error(reply.text)
})

afterAll(async () => {
  await disconnect([name])
  await service.close()
})

const engine = (more: object = {}) => ({
  type: 'ai-search',
  nodes: [service.url],
  credentials: { api_token: 'token-of-the-account' },
  account_id: 'account',
  instance: 'handbook',
  ...more,
})

const search = (parameters: Record<string, string | number>) =>
  request('GET', query(`/collections/${name}/documents/search`, parameters))

test('shows how many documents it has, and no token', async () => {
  const { body, text } = await request('GET', `/collections/${name}`)
  expect(body).toMatchObject({ name, num_documents: 5, engine: { type: 'ai-search', instance: 'handbook' } })
  expect(text).not.toContain('token-of-the-account')
})

test('finds passages for words, at the address of the instance', async () => {
  const { body } = await search({ q: 'a judge and her clerks', query_by: 'title,text', per_page: 1 })
  expect(body).toMatchObject({ hits: [{}] })
  expect(body.hits[0].document).toMatchObject({ text: expect.stringContaining('judge') })
  expect(service.asked).toContain('POST /client/v4/accounts/account/ai-search/instances/handbook/search')
})

test('answers questions in a conversation, of itself and of an object', async () => {
  const model = await createModel({
    model_name: 'local/extractive',
    api_key: undefined,
    history_collection: await createHistory(),
  })
  const { results, conversation } = (
    await askAcross(model, [{ collection: name }], 'Which series is about a judge and her clerks?', {
      query_by: 'title,text',
    })
  ).body
  expect(results[0].found).toBeGreaterThan(0)
  expect(conversation.answer).toContain('judge')
})

test.each([
  ['sort_by', { sort_by: 'title:asc' }],
  ['facet_by', { facet_by: 'title' }],
  ['`||`', { filter_by: 'title:a || title:b' }],
  ['one page', { page: 2 }],
  ['by words', { q: '*' }],
])('refuses by name: %s', async (said, parameters) => {
  const reply = await search({ q: 'judge', query_by: 'title', ...parameters })
  expect(reply.status).toBe(400)
  expect(reply.body.message).toContain(said)
})

test('has its documents managed there', async () => {
  const reply = await request('POST', `/collections/${name}/documents`, { id: 'a' })
  expect(reply).toMatchObject({ status: 400, body: { message: expect.stringContaining('managed') } })
})

test('asks for an account or a binding', async () => {
  const make = (more: object) =>
    request('POST', '/collections', { name: unique('none'), engine: engine({ ...more }) })
  expect((await make({ account_id: undefined })).body.message).toContain('engine.account_id')
  expect((await make({ credentials: {} })).body.message).toContain('AI_SEARCH')
})
