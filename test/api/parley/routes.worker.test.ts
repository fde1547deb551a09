/** Parley's own routes inside workerd: asking, and who may do what. */
import { env } from 'cloudflare:workers'
import { parse } from 'valibot'
import { beforeAll, describe, expect, it } from 'vitest'
import * as schemas from '../../../src/api/parley/response-schemas'
import { planSearches } from '../../../src/api/parley/searches'
import { ADMIN } from '../../../src/auth/access'
import { call, FORBIDDEN, MAY_NOT, noCollection, send } from '../typesense/api'
import { ASK, ask, makeKey, NOT_FOUND, QUESTION, setStage, UUID } from './stage'

let search: string
let other: string

beforeAll(async () => {
  await setStage()
  search = await makeKey({ actions: ['documents:search'], collections: ['facts'] })
  other = await makeKey({ actions: ['documents:search'] })
})

/** The events of a stream, as far as their three lines go. */
const eventsOf = (text: string) =>
  text
    .split('\n\n')
    .map((block) => /^id: (\d+)\.(\d+)\nevent: (\w+)\ndata: (.*)$/.exec(block))
    .filter((match) => match !== null)
    .map(([, turn, seq, event, data]) => ({
      turn: Number(turn),
      seq: Number(seq),
      event: event as keyof typeof schemas.eventData,
      data: JSON.parse(data!),
    }))

describe('asking', () => {
  it('answers with one object, as its schema says', async () => {
    const [status, answer] = await ask()
    expect(status).toBe(200)
    expect(parse(schemas.Answer, answer)).toEqual(answer)
    expect(answer).toMatchObject({
      conversation_id: expect.stringMatching(UUID),
      question: QUESTION,
      answer: expect.stringContaining('330'),
      citations: [0, 37].map((start) => ({ collection: 'facts', document_id: '0', start })),
      results: [{ found: expect.any(Number), request_params: { collection_name: 'facts' } }],
    })
  })

  it.each([
    ['asked for by the body', { stream: true }, {}],
    ['asked for by Accept', {}, { accept: 'text/event-stream' }],
  ])('streams when it is %s', async (_, body, headers) => {
    const response = await send('POST', '/conversations', { headers, body: { ...ASK, ...body } })
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    const text = await response.text()
    expect(text.startsWith('retry: 1000\n\n')).toBe(true)
    const events = eventsOf(text)
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index))
    for (const { event, data } of events) expect(parse(schemas.eventData[event], data)).toEqual(data)
    expect(events[0]?.data.conversation_id).toBe(response.headers.get('x-parley-conversation-id'))
    expect(events.at(-1)?.event).toBe('done')
    const text_ = events.filter(({ event }) => event === 'delta').map(({ data }) => data.text)
    expect(text_.join('')).toBe(events.at(-1)?.data.answer)
  })

  it('takes nothing of itself for a search parameter', async () => {
    const all = { ...ASK, conversation_id: 'c', replaces: 1, files: [], followups: true, stream: true }
    const planned = await planSearches(env, ADMIN, { address: '' }, {
      ...all,
      filter_by: 'city:Paris',
    } as never)
    const plain = await planSearches(env, ADMIN, { address: '' }, {
      ...ASK,
      filter_by: 'city:Paris',
    } as never)
    expect(planned).toEqual(plain)
    expect(Object.keys(plain[0]!.params)).not.toContain('question')
  })

  it('lets the body overrule Accept', async () => {
    const response = await send('POST', '/conversations', {
      headers: { accept: 'text/event-stream' },
      body: { ...ASK, stream: false },
    })
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(await response.json()).toMatchObject({ question: QUESTION })
  })

  it('goes on with a conversation', async () => {
    const [, first] = await ask()
    const [status, second] = await ask({
      question: 'Who was its architect?',
      conversation_id: first.conversation_id,
    })
    expect([status, second.conversation_id]).toEqual([200, first.conversation_id])
    expect(second.turn).toBeGreaterThan(first.turn)
    expect(second.standalone).toContain('Eiffel Tower')
  })

  it('refuses to go on with an unknown one', async () => {
    for (const stream of [true, false]) {
      expect(await ask({ conversation_id: 'nobody', stream })).toEqual(NOT_FOUND)
    }
  })

  it('takes searches with parameters of their own, over those common to all', async () => {
    const [status, { results }] = await ask({
      collections: undefined,
      searches: [
        { collection: 'facts', query_by: 'text', filter_by: 'city:=Berlin', per_page: 7 },
        { collection: 'more', query_by: 'text' },
      ],
      per_page: 3,
      filter_by: 'text:*metres*',
    })
    expect(status).toBe(200)
    expect(results).toHaveLength(2)
    expect(results[0].request_params).toMatchObject({ collection_name: 'facts', per_page: 7 })
    expect(results[0].hits.every((hit: { document: { id: string } }) => hit.document.id === '1')).toBe(true)
    expect(results[1].request_params).toMatchObject({ collection_name: 'more', per_page: 3 })
  })

  it.each([
    ['{', 'Bad JSON.', ['message', 'detail', 'code']],
    [{ model: 'm', collections: ['facts'] }, /^`question`: /],
    [{ ...ASK, question: '' }, /^`question`: /],
    [{ question: QUESTION, collections: ['facts'] }, '`model` is needed.'],
    [{ ...ASK, model: 5 }, /^`model`: /],
    [{ question: QUESTION, model: 'm' }, 'Give either `collections` or `searches`.'],
    [{ ...ASK, searches: [{ collection: 'facts' }] }, 'Give either `collections` or `searches`.'],
    [{ ...ASK, collections: [] }, /^`collections`: /],
    [{ ...ASK, collections: undefined, searches: [{ query_by: 'text' }] }, /^`searches.0.collection`: /],
    [{ ...ASK, stream: 'yes' }, /^`stream`: /],
    [{ ...ASK, filter_by: ['a'] }, /^`filter_by`: /],
    [{ ...ASK, conversation_id: 'x'.repeat(513) }, /^`conversation_id`: /],
    [{ ...ASK, collections: ['numbers'] }, /^Collection `numbers` has no field of text/],
    ['[]', /Expected/],
  ])('is refused with what is wrong: %j', async (body, message, keys = ['message', 'code']) => {
    const [status, answer] = await call('POST', '/conversations', { body })
    expect([status, Object.keys(answer)]).toEqual([400, keys])
    expect(answer.message).toMatch(message)
  })

  it('knows no other model or collection', async () => {
    expect(await ask({ model: 'nobody' })).toEqual([
      404,
      { message: 'Model not found', code: 'unknown_model' },
    ])
    expect(await ask({ collections: ['nobody'] })).toEqual([
      404,
      { ...noCollection('nobody'), code: 'unknown_collection' },
    ])
  })

  it('is refused an overlong body', async () => {
    expect((await ask({ question: 'x'.repeat(5_000_000) }))[0]).toBe(413)
  })
})

describe('keys', () => {
  const paths: [string, string][] = [
    ['POST', '/conversations'],
    ['GET', '/conversations'],
    ['GET', '/conversations/c'],
    ['GET', '/conversations/c/events'],
    ['POST', '/conversations/c/stop'],
    ['DELETE', '/conversations/c'],
    ['GET', '/conversations/c/trace'],
    ['DELETE', '/users/u/conversations'],
  ]

  it.each(paths)('%s %s needs one that is valid and may do it', async (method, path) => {
    const unfit = await makeKey({ actions: ['collections:get'] })
    for (const key of [null, 'wrong'])
      expect(await call(method, path, { key })).toEqual([401, { ...FORBIDDEN, code: 'unauthorized' }])
    expect(await call(method, path, { key: unfit })).toEqual([401, { ...MAY_NOT, code: 'unauthorized' }])
  })

  it('may search, and so ask, in their collections alone', async () => {
    expect((await ask({}, { key: search }))[0]).toBe(200)
    for (const collections of [['more'], ['facts', 'more']]) {
      expect(await ask({ collections }, { key: search })).toEqual([401, { ...MAY_NOT, code: 'unauthorized' }])
    }
  })

  it('need an action of their own for traces and for all of a user', async () => {
    expect(await call('GET', '/conversations/c/trace', { key: search })).toEqual([
      401,
      { ...MAY_NOT, code: 'unauthorized' },
    ])
    expect((await call('DELETE', '/users/u/conversations', { key: search }))[0]).toBe(401)
    const tracing = await makeKey({ actions: ['conversations:trace'] })
    expect(await call('GET', '/conversations/c/trace', { key: tracing })).toEqual(NOT_FOUND)
  })

  it('open what they began, for the user for whom they began it', async () => {
    const user = { 'x-typesense-user-id': 'ann' }
    const [, { conversation_id: id }] = await ask({}, { key: search, headers: user })
    const path = `/conversations/${id}`
    expect((await call('GET', path, { key: search, headers: user }))[0]).toBe(200)
    expect((await call('GET', path))[0]).toBe(200)
    const strangers = [
      { key: search },
      { key: search, headers: { 'x-typesense-user-id': 'bob' } },
      { key: other, headers: user },
      { headers: { 'x-typesense-user-id': 'bob' } },
    ]
    for (const stranger of strangers) {
      expect(await call('GET', path, stranger)).toEqual(NOT_FOUND)
      expect(await call('GET', `${path}/events`, stranger)).toEqual(NOT_FOUND)
      expect(await call('POST', `${path}/stop`, stranger)).toEqual(NOT_FOUND)
      expect(await call('DELETE', path, stranger)).toEqual(NOT_FOUND)
    }
    expect((await call('GET', path, { key: search, headers: user }))[0]).toBe(200)
  })
})
