/** History as documents: rows 54 to 57. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { askBySearch, client, createHistory, createModel, createShows, sweep } from './harness'
import { isStandalone, type Llm, startLlm } from './llm'

let llm: Llm
let shows: string

beforeAll(async () => {
  llm = await startLlm()
  shows = await createShows()
})
afterAll(() => llm.stop())

const modelWith = async (
  changes: Record<string, unknown> = {},
): Promise<{ model: string; history: string }> => {
  const history = await createHistory()
  const base = { model_name: 'openai/gpt', openai_url: llm.url, history_collection: history }
  return { model: await createModel({ ...base, ...changes }), history }
}

const documents = async (history: string): Promise<Record<string, unknown>[]> =>
  (await client().collections(history).documents().export())
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

test('54: a turn is two documents', async () => {
  const { model, history } = await modelWith()
  const { body } = await askBySearch(model, shows, 'where is the reef')
  const conversation_id = body.conversation.conversation_id
  const stored = await documents(history)
  expect(stored).toMatchObject([
    { conversation_id, model_id: model, role: 'user', message: 'where is the reef' },
    { conversation_id, model_id: model, role: 'assistant', message: 'You asked: where is the reef' },
  ])
  for (const { id, timestamp } of stored) {
    expect(id).toMatch(/^\d+$/)
    expect(Number.isInteger(timestamp)).toBe(true)
    expect(Math.abs(Number(timestamp) - Date.now() / 1000)).toBeLessThan(600)
  }
})

test('54: history is searched and filtered like any collection', async () => {
  const { model, history } = await modelWith()
  const first = (await askBySearch(model, shows, 'where is the reef')).body.conversation.conversation_id
  await askBySearch(model, shows, 'who cooks slowly')
  const found = await client()
    .collections(history)
    .documents()
    .search({ q: '*', filter_by: `conversation_id:=${first}`, sort_by: 'timestamp:asc' }, {})
  expect(found.found).toBe(2)
})

test('55: an imported conversation can be continued', async () => {
  const { model, history } = await modelWith()
  const conversation_id = crypto.randomUUID()
  const now = Math.floor(Date.now() / 1000)
  const message = (role: string, message: string, timestamp: number) => ({
    conversation_id,
    model_id: model,
    role,
    message,
    timestamp,
  })
  await client()
    .collections(history)
    .documents()
    .import([
      message('user', 'What is the oldest ship in the fleet?', now - 60),
      message('assistant', 'The Marigold, launched in 2140.', now - 59),
    ])
  llm.forget()
  const { status, body } = await askBySearch(model, shows, 'who commands her?', { conversation_id })
  expect(status).toBe(200)
  const rewrite = llm.calls().find(({ messages }) => isStandalone(messages[0]?.content ?? ''))
  expect(rewrite?.messages[0]?.content).toContain('What is the oldest ship in the fleet?')
  expect(rewrite?.messages[0]?.content).toContain('The Marigold, launched in 2140.')
  expect(body.conversation.conversation_history.conversation).toHaveLength(4)
})

test('55: a corrected message is what the next turn reads', async () => {
  const { model, history } = await modelWith()
  const id = (await askBySearch(model, shows, 'where is the reef')).body.conversation.conversation_id
  const answer = (await documents(history)).find(({ role }) => role === 'assistant')
  await client()
    .collections(history)
    .documents(String(answer?.id))
    .update({ message: 'Off the north coast.' })
  llm.forget()
  await askBySearch(model, shows, 'how deep is it?', { conversation_id: id })
  expect(llm.calls()[0]?.messages[0]?.content).toContain('Off the north coast.')
})

test('56: a conversation whose documents were deleted is unknown', async () => {
  const { model, history } = await modelWith()
  const id = (await askBySearch(model, shows, 'where is the reef')).body.conversation.conversation_id
  const kept = (await askBySearch(model, shows, 'who cooks slowly')).body.conversation.conversation_id
  const deleted = await client()
    .collections(history)
    .documents()
    .delete({ filter_by: `conversation_id:=${id}` })
  expect(deleted.num_deleted).toBe(2)
  const { status, body } = await askBySearch(model, shows, 'how deep is it?', { conversation_id: id })
  expect([status, body]).toEqual([400, { message: 'Conversation not found' }])
  expect((await askBySearch(model, shows, 'and fast?', { conversation_id: kept })).status).toBe(200)
})

test('57: what is older than its ttl goes with the next sweep', async () => {
  const { model, history } = await modelWith({ ttl: 1 })
  const lasting = await modelWith({ ttl: 86_400 })
  const id = (await askBySearch(model, shows, 'where is the reef')).body.conversation.conversation_id
  await askBySearch(lasting.model, shows, 'where is the reef')
  await sweep(Date.now() + 10_000)
  expect(await documents(history)).toEqual([])
  expect(await documents(lasting.history)).toHaveLength(2)
  const { status, body } = await askBySearch(model, shows, 'how deep is it?', { conversation_id: id })
  expect([status, body]).toEqual([400, { message: 'Conversation not found' }])
})

test('57: messages of a deleted model expire too', async () => {
  const { model, history } = await modelWith({ ttl: 1 })
  await askBySearch(model, shows, 'where is the reef')
  await client().conversations().models(model).delete()
  expect(await documents(history)).toHaveLength(2)
  await sweep(Date.now() + 10_000)
  expect(await documents(history)).toEqual([])
})

test('1.3: a history collection that was dropped is told in words', async () => {
  const { model, history } = await modelWith()
  await client().collections(history).delete()
  const { status, body } = await askBySearch(model, shows, 'where is the reef')
  expect(status).toBe(400)
  expect(body.message).toBeTypeOf('string')
})
