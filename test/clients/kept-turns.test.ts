/** What is kept of a turn, by which a client goes on with it: who was asked, what was searched, and what the documents do not support. */
import { beforeAll, expect, test } from 'vitest'
import { createAssistant, createHistory, createModel, makeCollection, query, request } from './harness'
import { startLlm } from './llm'

const FIELDS = [
  { name: 'title', type: 'string' },
  { name: 'text', type: 'string' },
]
const PRICES = {
  id: 'prices',
  title: 'Prices',
  text: 'A baguette costs two euros. A rye bread costs five euros.',
}
const FIRST = 'What does a baguette cost?'
const NEXT = 'And a rye bread?'

let shop: string
let notes: string
let model: string

beforeAll(async () => {
  shop = await makeCollection('shop', FIELDS, [PRICES])
  notes = await makeCollection('notes', FIELDS, [{ ...PRICES, id: 'noted' }])
  model = await createModel({ model_name: 'local/extractive' })
})

const traceOf = async (id: string) => (await request('GET', `/conversations/${id}/trace`)).body.turns

/** @returns the id of a conversation that begins with a question */
async function begin(more: object): Promise<string> {
  const { status, body } = await request('POST', '/conversations', { question: FIRST, model, ...more })
  expect([status, body.message]).toEqual([200, undefined])
  return body.conversation_id
}

test.each(['OpenAI', 'Parley'])(
  'names the assistant that was asked on the wire of %s, each time',
  async (wire) => {
    const assistants = [
      await createAssistant({ model, collections: [shop] }),
      await createAssistant({ model, collections: [shop] }),
    ]
    for (const assistant of assistants) {
      const { body } =
        wire === 'OpenAI'
          ? await request('POST', '/v1/chat/completions', {
              model: assistant,
              messages: [{ role: 'user', content: FIRST }],
            })
          : await request('POST', `/a/${assistant}/conversations`, { question: FIRST })
      const id = body.conversation_id ?? body.choices[0].message.context.conversation_id
      const next = await request('POST', `/a/${assistant}/conversations`, {
        question: NEXT,
        conversation_id: id,
      })
      expect([next.status, next.body.conversation_id]).toEqual([200, id])
      const asked = (await traceOf(id)).map(({ trace }: { trace: { assistant?: string } }) => trace.assistant)
      expect(asked).toEqual([assistant, assistant])
    }
  },
)

test('has the collection, the filter and the number of documents of a search', async () => {
  const { body } = await request(
    'GET',
    query(`/collections/${shop}/documents/search`, {
      q: FIRST,
      query_by: 'text',
      filter_by: 'id:=prices',
      per_page: 4,
      conversation: true,
      conversation_model_id: model,
    }),
  )
  const [turn] = await traceOf(body.conversation.conversation_id)
  expect(turn.trace.searches).toMatchObject([
    { collection: shop, params: { filter_by: 'id:=prices', per_page: '4' } },
  ])
  expect(turn.trace).not.toHaveProperty('assistant')
})

test('has each of several searches, with a filter of its own', async () => {
  const id = await begin({ searches: [{ collection: shop, filter_by: 'id:=prices' }, { collection: notes }] })
  const [turn] = await traceOf(id)
  const searched = turn.trace.searches.map(
    ({ collection, params }: { collection: string; params: Record<string, string> }) => [
      collection,
      params.filter_by,
    ],
  )
  expect(searched.sort()).toEqual(
    [
      [shop, 'id:=prices'],
      [notes, undefined],
    ].sort(),
  )
})

test('goes on with another model of the same history, and with no other', async () => {
  const { history_collection } = (await request('GET', `/conversations/models/${model}`)).body
  const sibling = await createModel({ model_name: 'local/extractive', history_collection })
  const stranger = await createModel({ model_name: 'local/extractive' })
  const id = await begin({ collections: [shop] })
  const follow = (as: string) =>
    request('POST', '/conversations', { question: NEXT, model: as, collections: [shop], conversation_id: id })
  expect((await follow(sibling)).status).toBe(200)
  const refused = await follow(stranger)
  expect([refused.status, refused.body.code]).toEqual([404, 'unknown_conversation'])
  expect((await request('GET', `/conversations/${id}`)).body.turn_count).toBe(2)
})

test('is there still where its model writes to another history meanwhile, but does not go on', async () => {
  const moving = await createModel({ model_name: 'local/extractive' })
  const id = await begin({ model: moving, collections: [shop] })
  const { body } = await request('GET', `/conversations/models/${moving}`)
  const moved = { ...body, history_collection: await createHistory() }
  expect((await request('PUT', `/conversations/models/${moving}`, moved)).status).toBe(200)
  const next = { question: NEXT, model: moving, collections: [shop], conversation_id: id }
  const refused = await request('POST', '/conversations', next)
  expect([refused.status, refused.body.code]).toEqual([404, 'unknown_conversation'])
  expect((await request('GET', `/conversations/${id}?limit=1`)).status).toBe(200)
})

test('has the sentences of a model that the documents do not support', async () => {
  const answer = 'A baguette costs two euros. Its baker is Ferdinand Huber, since 1931.'
  const llm = await startLlm({ answer: () => answer })
  try {
    const baker = await createModel({ model_name: 'openai/gpt', openai_url: llm.url })
    const id = await begin({ model: baker, collections: [shop] })
    const [turn] = (await request('GET', `/conversations/${id}`)).body.turns
    const end = answer.indexOf('.') + 1
    expect(turn.support).toEqual([
      { start: 0, end, support: 'supported' },
      {
        start: end + 1,
        end: answer.length,
        support: 'not_found',
        missing: expect.arrayContaining(['1931', 'Ferdinand', 'Huber']),
      },
    ])
  } finally {
    await llm.stop()
  }
})

test('is deleted with its conversation, and so is a model that is deleted', async () => {
  const id = await begin({ collections: [shop] })
  expect((await request('DELETE', `/conversations/${id}`)).status).toBe(200)
  expect((await request('GET', `/conversations/${id}`)).status).toBe(404)
  const gone = await createModel({ model_name: 'local/extractive' })
  expect((await request('DELETE', `/conversations/models/${gone}`)).status).toBe(200)
  expect((await request('GET', `/conversations/models/${gone}`)).status).toBe(404)
})
