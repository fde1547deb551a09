/** OpenSearch's memory: whose it is, and that its conversations are those of all protocols. */
import { beforeAll, describe, expect, test } from 'vitest'
import { askAcross, KEY, request, unique, url } from './harness'
import { call, connect, userKey } from './opensearch-api'
import { type ScriptedLlm, says, startScriptedLlm } from './scripted-llm'

const MEMORY = '/_plugins/_ml/memory'

type Item = Record<string, unknown>

describe('owners', () => {
  test('A22, B22: never see each other, on no route; the admin key sees both', async () => {
    const [own, other] = [await userKey(), await userKey()]
    const { body: made } = await call('POST', MEMORY, { name: 'private' }, own)
    const id = made.memory_id
    const { body: said } = await call('POST', `${MEMORY}/${id}/messages`, { input: 'secret' }, own)
    const as = (key: string) => async (method: string, path: string, body?: unknown) => {
      const reply = await call(method, MEMORY + path, body, key)
      return [reply.status, reply.body.error?.type ?? reply.body] as const
    }
    const stranger = as(other)
    const denied = [401, 'status_exception']
    expect(await stranger('GET', `/${id}`)).toEqual(denied)
    expect(await stranger('PUT', `/${id}`, { name: 'mine' })).toEqual(denied)
    expect(await stranger('POST', `/${id}/messages`, { input: 'x' })).toEqual(denied)
    expect(await stranger('GET', `/${id}/messages`)).toEqual(denied)
    expect(await stranger('POST', `/${id}/_search`, {})).toEqual(denied)
    expect(await stranger('GET', `/message/${said.message_id}`)).toEqual(denied)
    expect(await stranger('PUT', `/message/${said.message_id}`, { response: 'x' })).toEqual(denied)
    expect(await stranger('GET', `/message/${said.message_id}/traces`)).toEqual(denied)
    expect(await stranger('DELETE', `/${id}`)).toEqual([404, 'status_exception'])
    expect(await stranger('GET', `/conversation/${id}`)).toEqual([500, 'security_exception'])
    expect(await stranger('POST', `/conversation/${id}`, { input: 'x' })).toEqual([500, 'security_exception'])
    expect(await stranger('DELETE', `/conversation/${id}`)).toEqual([200, { success: false }])
    expect(await stranger('GET', '')).toEqual([200, { memories: [] }])
    expect(await stranger('GET', '/conversation')).toEqual([200, { conversations: [] }])
    expect(await stranger('POST', '/_search', {})).toMatchObject([200, { hits: { hits: [] } }])
    expect(
      await stranger('POST', `/${id}/messages`, {
        input: 'x',
        parent_message_id: said.message_id,
        trace_number: 1,
      }),
    ).toEqual(denied)
    for (const key of [own, KEY]) {
      const [status, body] = await as(key)('GET', `/${id}/messages`)
      expect([status, (body as { messages: Item[] }).messages.map(({ input }) => input)]).toEqual([
        200,
        ['secret'],
      ])
    }
    // A message of one's own memory is no way to another memory's.
    const { body: mine } = await call('POST', MEMORY, {}, other)
    const parent = { input: 'x', parent_message_id: said.message_id, trace_number: 1 }
    expect(await stranger('POST', `/${mine.memory_id}/messages`, parent)).toEqual([
      404,
      'resource_not_found_exception',
    ])
    expect((await call('GET', `${MEMORY}/${id}`, undefined, null)).status).toBe(401)
  })
})

describe('the one history', () => {
  let llm: ScriptedLlm
  let model: string
  beforeAll(async () => {
    llm = await startScriptedLlm()
    llm.script.body = says('Boats are slow.')
    // The history collection of memories is made with the first one.
    await call('POST', MEMORY, {})
    const { body } = await request('POST', '/conversations/models', {
      id: unique('model'),
      model_name: 'openai/gpt-4o-mini',
      openai_url: llm.url,
      api_key: 'sk-1234567890',
      history_collection: 'opensearch_memory',
      max_bytes: 16_384,
    })
    model = body.id
    return () => llm.stop()
  })

  test("a memory is continued by a Typesense search, and read by Parley's own routes", async () => {
    const index = unique('boats')
    await connect().index({ index, id: '1', body: { title: 'Boats are slow' } })
    const { body: made } = await call('POST', MEMORY, { name: 'boats' })
    const id = made.memory_id
    await call('POST', `${MEMORY}/${id}/messages`, { input: 'What is a boat?', response: 'A small ship.' })
    const follow = () =>
      askAcross(model, [{ collection: index, query_by: 'title' }], 'Is it slow?', { conversation_id: id })
    const reply = await follow()
    expect([reply.status, reply.body.conversation?.answer]).toEqual([200, 'Boats are slow.'])
    expect(JSON.stringify(llm.sent.map(({ body }) => body))).toContain('A small ship.')
    const { body: list } = await call('GET', `${MEMORY}/${id}/messages`)
    expect(list.messages.map(({ input, response }: Item) => [input, response])).toEqual([
      ['What is a boat?', 'A small ship.'],
      ['Is it slow?', 'Boats are slow.'],
    ])
    const own = await request('GET', `/conversations/${id}`)
    expect(own.body).toMatchObject({
      title: 'boats',
      turns: [{ question: 'What is a boat?' }, { question: 'Is it slow?' }],
    })
    await call('PUT', `${MEMORY}/message/${list.messages[0].message_id}`, { response: 'A large ship.' })
    const again = await follow()
    expect(JSON.stringify(again.body.conversation.conversation_history)).toContain('A large ship.')
  })

  test('a conversation that a Typesense search began is a memory', async () => {
    const index = unique('boats')
    await connect().index({ index, id: '1', body: { title: 'Boats are slow' } })
    const { body } = await askAcross(model, [{ collection: index, query_by: 'title' }], 'Are boats slow?')
    const id = body.conversation.conversation_id
    expect((await call('GET', `${MEMORY}/${id}`)).body).toMatchObject({
      memory_id: id,
      name: 'Are boats slow?',
    })
    await call('POST', `${MEMORY}/${id}/messages`, { input: 'Noted elsewhere', response: 'Yes' })
    const { body: list } = await call('GET', `${MEMORY}/conversation/${id}`)
    expect(list.interactions.map(({ input }: Item) => input)).toEqual(['Noted elsewhere', 'Are boats slow?'])
    const follow = await fetch(`${url}/conversations/${id}/events?after=1.0`, {
      headers: { 'x-typesense-api-key': KEY },
    })
    expect(await follow.text()).toContain('Noted elsewhere')
    expect((await call('DELETE', `${MEMORY}/${id}`)).body).toEqual({ success: true })
    expect((await request('GET', `/conversations/${id}`)).status).toBe(404)
  })
})
