/** Feedback by real clients over sockets, in the form that each protocol has for it, and read back on Parley's own routes. */
import { beforeAll, expect, test } from 'vitest'
import { createAssistant, createModel, createShows, request, unique, url } from './harness'
import { makeChat } from './headless-chat'
import { connect, userKey } from './opensearch-api'

let assistant: string
let page: string

const VISITOR = 'a-visitor-of-the-page-with-a-long-secret'
const STRANGER = 'another-visitor-of-it-with-a-long-secret'
const headersOf = (secret: string) => ({ authorization: `Bearer ${page}`, 'x-parley-visitor': secret })

const feedbackOn = async (id: string) => (await request('GET', `/conversations/${id}`)).body.turns[0].feedback

beforeAll(async () => {
  const model = await createModel({ model_name: 'local/extractive' })
  assistant = await createAssistant({ model, collections: [await createShows()] })
  const key = { description: 'd', actions: ['documents:search'], collections: ['*'], limits: { assistant } }
  page = (await request('POST', '/keys', key)).body.value
})

test('a page with a bound key rates an answer of its visitor, who alone can change it', async () => {
  const asked = await fetch(`${url}/a/${assistant}/conversations`, {
    method: 'POST',
    headers: headersOf(VISITOR),
    body: JSON.stringify({ question: 'an action series' }),
  })
  const { conversation_id: id, turn } = (await asked.json()) as { conversation_id: string; turn: number }
  const path = `${url}/conversations/${id}/turns/${turn}/feedback`
  const rate = (secret: string, method = 'PUT', body?: unknown) =>
    fetch(path, {
      method,
      headers: headersOf(secret),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  expect((await rate(VISITOR, 'PUT', { rating: 'down', comment: 'Zu kurz – 😕' })).status).toBe(200)
  expect((await rate(STRANGER, 'PUT', { rating: 'up' })).status).toBe(404)
  expect((await rate(STRANGER, 'DELETE')).status).toBe(404)
  expect(await feedbackOn(id)).toMatchObject([{ rating: 'down', comment: 'Zu kurz – 😕' }])
  const preflight = await fetch(path, {
    method: 'OPTIONS',
    headers: {
      origin: url,
      'access-control-request-method': 'PUT',
      'access-control-request-headers': 'x-parley-visitor',
    },
  })
  expect(preflight.headers.get('access-control-allow-methods')).toContain('PUT')
  expect((await rate(VISITOR, 'DELETE')).status).toBe(200)
  expect(await feedbackOn(id)).toBeUndefined()
})

test('a chat of the AI SDK rates the message that it shows', async () => {
  const api = `${url}/ui/${assistant}`
  const chat = makeChat('ai 7', {
    api,
    key: page,
    id: unique('a chat'),
    headers: { 'x-parley-visitor': VISITOR },
  })
  await chat.sendMessage({ text: 'an action series' })
  const { id: messageId, metadata } = chat.messages.at(-1)!
  const { conversation_id: id } = metadata as { conversation_id: string }
  const vote = (secret: string, body: unknown) =>
    fetch(`${api}/feedback`, { method: 'POST', headers: headersOf(secret), body: JSON.stringify(body) })
  const said = await vote(VISITOR, {
    messageId,
    agentId: assistant,
    vote: 0,
    notes: 'Old.',
    tags: ['outdated'],
  })
  expect(said.status).toBe(200)
  expect(await feedbackOn(id)).toMatchObject([{ rating: 'down', comment: 'Old.', reasons: ['outdated'] }])
  expect((await vote(STRANGER, { messageId, vote: 1 })).status).toBe(404)
  expect((await vote(VISITOR, { messageId: 'a-message-of-the-page', vote: 1 })).status).toBe(404)
  const wrong = await vote(VISITOR, { messageId, vote: 2 })
  expect([wrong.status, await wrong.json()]).toEqual([
    400,
    { message: expect.stringMatching(/`vote`.*0 .*1/) },
  ])
  expect((await vote(VISITOR, { messageId, vote: 1 })).status).toBe(200)
  expect(await feedbackOn(id)).toMatchObject([{ rating: 'up' }])
})

test("OpenSearch's client rates a message by its additional_info", async () => {
  const { ml } = connect({ headers: { authorization: `Bearer ${await userKey()}` } })
  const { body: memory } = await ml.createMemory({ body: { name: 'rated' } as never })
  const id = (memory as { memory_id: string }).memory_id
  const { body: message } = await ml.createMessage({
    memory_id: id,
    body: { input: 'q', response: 'r' } as never,
  })
  const rate = (feedback: string) =>
    ml.updateMessage({
      message_id: (message as { message_id: string }).message_id,
      body: { additional_info: { feedback } } as never,
    })
  await rate('negative')
  expect(await feedbackOn(id)).toMatchObject([{ rating: 'down' }])
  await rate('positive')
  expect(await feedbackOn(id)).toMatchObject([{ rating: 'up' }])
})
