/** The nodes of a cluster, one by one: which answer, and why one does not. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createModel, createShows, disconnect, KEY, query, request, unique, url } from './harness'
import { Relay } from './relay'

let there: string
const connected: string[] = []
const nodes: Relay[] = []

beforeAll(async () => {
  there = await createShows()
  for (let node = 0; node < 2; node++) nodes.push(await new Relay(url).open())
})
afterAll(async () => {
  await disconnect(connected)
  for (const node of nodes) await node.close()
})

/** @returns the name of a collection that is connected, and what the server said of it */
async function connect(relays: Relay[]) {
  const name = unique('linked')
  const engine = {
    type: 'typesense',
    nodes: relays.map((node) => node.url),
    credentials: { api_key: KEY },
    collection: there,
  }
  const { status, body, text } = await request('POST', '/collections', { name, engine })
  expect(status).toBe(201)
  connected.push(name)
  return { name, body, text }
}

test('are told with how they answer, and without the key that they are asked with', async () => {
  const { name, body, text } = await connect(nodes)
  expect([body.num_documents, text.includes(`"${KEY}"`)]).toEqual([5, false])
  const { body: all } = await request('GET', `/collections/${name}/nodes`)
  const answers = nodes.map((node) => ({ url: node.url, answers: true, took_ms: expect.any(Number) }))
  expect(all.nodes).toEqual(answers)
  nodes[1]!.fault = 'cut'
  const { body: one } = await request('GET', `/collections/${name}/nodes`)
  nodes[1]!.fault = undefined
  expect(one.nodes).toEqual([
    answers[0],
    { ...answers[1], answers: false, error: expect.stringContaining('it could not be reached') },
  ])
})

test('are told while none of them answers, and the collection is not', async () => {
  const only = await new Relay(url).open()
  const { name } = await connect([only])
  await only.close()
  expect((await request('GET', `/collections/${name}`)).status).toBe(503)
  const { body } = await request('GET', `/collections/${name}/nodes`)
  expect(body.nodes).toMatchObject([{ url: only.url, answers: false }])
})

test('are named in the trace of an answer, with their time', async () => {
  const { name } = await connect(nodes)
  const model = await createModel({ model_name: 'local/extractive', api_key: undefined })
  const { body } = await request(
    'GET',
    query(`/collections/${name}/documents/search`, {
      q: 'Which series is about a judge and her clerks?',
      query_by: 'title,overview',
      exclude_fields: 'embedding',
      conversation: 'true',
      conversation_model_id: model,
    }),
  )
  const { turns } = (await request('GET', `/conversations/${body.conversation.conversation_id}/trace`)).body
  expect(turns[0].trace.searches).toMatchObject([{ engine: 'typesense', took: expect.any(Number) }])
})
