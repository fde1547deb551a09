import { beforeAll, describe, expect, it } from 'vitest'
import { BAD_JSON, call, queryString, send } from './api'
import { askingBySearch, HISTORY, scopedKey } from './conversing'

const MODEL = {
  id: 'm',
  model_name: 'local/extractive',
  history_collection: 'history',
  max_bytes: 16_384,
  ttl: 3_600,
}
const FACTS = [
  {
    id: '0',
    text: 'The Eiffel Tower is 330 metres high. Its architect was Stephen Sauvestre, naïve no more.',
  },
  { id: '1', text: 'The Brandenburg Gate is 26 metres high. Carl Gotthard Langhans designed it.' },
]
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

beforeAll(async () => {
  await call('POST', '/collections', { body: HISTORY })
  for (const name of ['facts', 'more']) {
    await call('POST', '/collections', { body: { name, fields: [{ name: 'text', type: 'string' }] } })
  }
  for (const body of FACTS) await call('POST', '/collections/facts/documents', { body })
  expect((await call('POST', '/conversations/models', { body: MODEL }))[0]).toBe(201)
})

const QUESTION = 'How high is the Eiffel Tower?'
const ASKING = { q: QUESTION, conversation: true, conversation_model_id: 'm' }
const { ask, askAcross } = askingBySearch(ASKING)

describe('models', () => {
  it('are listed, shown, changed and deleted', async () => {
    const other = { ...MODEL, id: 'other/ä' }
    const path = `/conversations/models/${encodeURIComponent(other.id)}`
    expect((await call('POST', '/conversations/models', { body: other }))[0]).toBe(201)
    expect(await call('POST', '/conversations/models', { body: { id: other.id } })).toEqual([
      409,
      { message: 'Model already exists' },
    ])
    expect(
      (await call('GET', '/conversations/models'))[1].map((model: { id: string }) => model.id).sort(),
    ).toEqual(['m', 'other/ä'])
    expect((await call('PUT', path, { body: { system_prompt: 'Be kind.' } }))[1]).toMatchObject({
      ...other,
      system_prompt: 'Be kind.',
    })
    expect((await call('GET', path))[1]).toMatchObject({ system_prompt: 'Be kind.' })
    expect((await call('DELETE', path))[0]).toBe(200)
    for (const method of ['GET', 'DELETE']) {
      expect(await call(method, path)).toEqual([404, { message: 'Model not found' }])
    }
  })

  it.each(['[]', '{', '5'])('are not made from %s', async (body) => {
    const told = body === '{' ? BAD_JSON : { message: 'Bad JSON.' }
    expect(await call('POST', '/conversations/models', { body })).toEqual([400, told])
  })
})

describe('a conversation over one search', () => {
  it('answers beside the hits, and goes on', async () => {
    const [status, first] = await ask()
    expect(status).toBe(200)
    expect(first).toMatchObject({ request_params: { q: QUESTION, first_q: QUESTION } })
    expect(first.found).toBeGreaterThan(0)
    const { conversation } = first
    expect(conversation.answer).toContain('330 metres')
    expect(conversation.query).toBe(QUESTION)
    expect(conversation.conversation_id).toMatch(UUID)
    expect(conversation.conversation_history).toEqual({
      conversation: [{ user: QUESTION }, { assistant: conversation.answer }],
      id: conversation.conversation_id,
      last_updated: expect.any(Number),
      ttl: 3_600,
    })
    expect(conversation.citations[0]).toMatchObject({ collection: 'facts', document_id: '0' })
    expect(conversation.usage.model).toBe('local/extractive')

    const [, second] = await ask({ q: 'Who designed it?', conversation_id: conversation.conversation_id })
    expect(second.request_params.q).toBe('Who designed it?')
    expect(second.conversation.conversation_id).toBe(conversation.conversation_id)
    expect(second.conversation.conversation_history.conversation).toHaveLength(4)

    const filter = encodeURIComponent(`conversation_id:=${conversation.conversation_id}`)
    const exported = await (
      await send('GET', `/collections/history/documents/export?filter_by=${filter}`)
    ).text()
    const stored = exported.split('\n').map((line) => JSON.parse(line))
    expect(stored.map((message) => message.role)).toEqual(['user', 'assistant', 'user', 'assistant'])
    expect(stored[0]).toMatchObject({ message: QUESTION, model_id: 'm' })

    await call('DELETE', `/collections/history/documents?filter_by=${filter}`)
    expect(await ask({ conversation_id: conversation.conversation_id })).toEqual([
      400,
      { message: 'Conversation not found' },
    ])
  })

  it('does not show its history when told so', async () => {
    const [, { conversation }] = await ask({ exclude_fields: 'id,conversation_history' })
    expect(conversation).not.toHaveProperty('conversation_history')
    expect(conversation.answer).toContain('330')
  })

  it('begins anew with an empty id', async () => {
    expect((await ask({ conversation_id: '' }))[1].conversation.conversation_id).toMatch(UUID)
  })

  it.each([
    [{ conversation_id: 'unknown' }, 400, 'Conversation not found'],
    [{ conversation_id: 'x'.repeat(2_000) }, 400, 'Conversation not found'],
    [{ query_by: 'nope' }, 404, 'Could not find a field named `nope` in the schema.'],
  ])('with %j is refused', async (parameters, status, message) => {
    expect(await ask(parameters)).toEqual([status, { message }])
    expect(await ask({ ...parameters, conversation_stream: true })).toEqual([status, { message }])
  })

  it('streams flat pieces, the end marker and then the whole response', async () => {
    const path = `/collections/facts/documents/search${queryString({ ...ASKING, query_by: 'text', conversation_stream: true })}`
    const response = await send('GET', path)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    const text = await response.text()
    expect(text).toMatch(/^[\n\x20-\x7e]*$/)
    const events = text.trim().split(/\n\n+/)
    expect(events.every((event) => event.startsWith('data: '))).toBe(true)
    const data = events.map((event) => event.slice('data: '.length))
    const last = JSON.parse(data.pop()!)
    expect(data.pop()).toBe('[DONE]')
    const pieces = data.map((piece) => JSON.parse(piece))
    const { conversation } = last
    for (const piece of pieces) {
      expect(Object.keys(piece)).toEqual(['conversation_id', 'message'])
      expect(piece.conversation_id).toBe(conversation.conversation_id)
    }
    expect(pieces.at(-1).message).toBe('')
    expect(pieces.map((piece) => piece.message).join('')).toBe(conversation.answer)
    expect(last).toMatchObject({ found: 2, message: '', conversation_id: conversation.conversation_id })
  })
})

describe('a conversation over several searches', () => {
  it('answers once, beside the results', async () => {
    const searches = [
      { collection: 'none', query_by: 'text' },
      { collection: 'facts', query_by: 'text' },
    ]
    const [status, first] = await askAcross({}, undefined, searches)
    expect(status).toBe(200)
    expect(first.results[0]).toEqual({ code: 404, error: 'Collection not found' })
    expect(first.results[1].request_params.q).toBe(QUESTION)
    expect(first.results[1]).not.toHaveProperty('conversation')
    expect(first.conversation.answer).toContain('330 metres')

    const { conversation_id } = first.conversation
    const [, second] = await askAcross({ q: 'And the gate?', conversation_id }, undefined, searches)
    expect(second.conversation).toMatchObject({ query: 'And the gate?', conversation_id })
    expect(second.conversation.conversation_history.conversation).toHaveLength(4)
  })

  it('has no conversation when every search failed, streamed or not', async () => {
    const searches = [{ collection: 'none', query_by: 'text' }]
    const failed = [200, { results: [{ code: 404, error: 'Collection not found' }] }]
    expect(await askAcross({}, undefined, searches)).toEqual(failed)
    expect(await askAcross({ conversation_stream: true }, undefined, searches)).toEqual(failed)
  })

  it('reads exclude_fields of the last search, and of the query string before it', async () => {
    const hiding = { collection: 'facts', query_by: 'text', exclude_fields: 'conversation_history' }
    const showing = { collection: 'facts', query_by: 'text' }
    const shown = async (query: Record<string, unknown>, searches: unknown[]) =>
      'conversation_history' in (await askAcross(query, undefined, searches))[1].conversation
    expect(await shown({}, [showing, hiding])).toBe(false)
    expect(await shown({}, [hiding, showing])).toBe(true)
    expect(await shown({ exclude_fields: 'conversation_history' }, [showing])).toBe(false)
    expect(await shown({ exclude_fields: 'id' }, [hiding])).toBe(true)
  })

  const facts = { collection: 'facts', query_by: 'text' }
  it.each([
    [{ conversation_id: '' }, facts, '`conversation_id` is invalid.'],
    [{ conversation_id: 'unknown' }, facts, '`conversation_id` is invalid.'],
    // An unknown conversation is reported before faults of the body.
    [{ conversation_id: 'unknown' }, { ...facts, q: 'x' }, '`conversation_id` is invalid.'],
    [
      {},
      { ...facts, q: 'x' },
      '`q` parameter cannot be used in POST body if `conversation` is enabled. Please set `q` as a query parameter in the request, instead of inside the POST body',
    ],
    [
      {},
      { ...facts, conversation_model_id: 'm' },
      '`conversation_model_id` cannot be used in POST body. Please set `conversation_model_id` as a query parameter in the request, instead of inside the POST body',
    ],
  ])('with %j and %j is refused', async (query, search, message) => {
    expect(await askAcross(query, undefined, [search])).toEqual([400, { message }])
  })

  it('runs on the model that a scoped key pins', async () => {
    const parent = (
      await call('POST', '/keys', {
        body: { description: '', actions: ['documents:search'], collections: ['facts'] },
      })
    )[1].value as string
    const key = await scopedKey(parent, { conversation_model_id: 'm' })
    expect((await ask({ conversation_model_id: 'none' }))[0]).toBe(400)
    expect((await ask({ conversation_model_id: 'none' }, key))[1].conversation.answer).toContain('330')
    const [status, answer] = await askAcross({ conversation_model_id: 'none' }, key)
    expect(status).toBe(200)
    expect(answer.conversation.answer).toContain('330')
  })

  it('says so when the history collection is gone', async () => {
    await call('POST', '/collections', { body: { ...HISTORY, name: 'short' } })
    const model = { ...MODEL, id: 'orphan', history_collection: 'short' }
    expect((await call('POST', '/conversations/models', { body: model }))[0]).toBe(201)
    await call('DELETE', '/collections/short')
    const [status, { message }] = await ask({ conversation_model_id: 'orphan' })
    expect(status).toBe(400)
    expect(message).toContain('`short`')
  })
})
