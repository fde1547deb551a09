/** Parley's own routes inside workerd: what they check, and what they answer. */

import { parse } from 'valibot'
import { beforeAll, describe, expect, it } from 'vitest'
import * as schemas from '../../../src/api/parley/schemas'
import { call, FORBIDDEN, send } from '../typesense/api'

const HISTORY = {
  name: 'history',
  fields: [
    { name: 'conversation_id', type: 'string' },
    { name: 'model_id', type: 'string' },
    { name: 'timestamp', type: 'int32' },
    { name: 'role', type: 'string', index: false },
    { name: 'message', type: 'string', index: false },
  ],
}
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
    text: 'The Eiffel Tower is 330 metres high. Its architect was Stephen Sauvestre.',
    city: 'Paris',
  },
  {
    id: '1',
    text: 'The Brandenburg Gate is 26 metres high. Carl Gotthard Langhans designed it.',
    city: 'Berlin',
  },
]
const QUESTION = 'How high is the Eiffel Tower?'
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const NOT_FOUND = [404, { message: 'Conversation not found' }]

const makeKey = async (body: Record<string, unknown>): Promise<string> => {
  const [status, key] = await call('POST', '/keys', {
    body: { description: 'd', collections: ['*'], ...body },
  })
  expect(status).toBe(201)
  return key.value
}

let search: string
let other: string

beforeAll(async () => {
  await call('POST', '/collections', { body: HISTORY })
  const fields = [
    { name: 'text', type: 'string' },
    { name: 'city', type: 'string', facet: true },
  ]
  for (const name of ['facts', 'more']) await call('POST', '/collections', { body: { name, fields } })
  await call('POST', '/collections', { body: { name: 'numbers', fields: [{ name: 'n', type: 'int32' }] } })
  for (const body of FACTS) await call('POST', '/collections/facts/documents', { body })
  expect((await call('POST', '/conversations/models', { body: MODEL }))[0]).toBe(201)
  search = await makeKey({ actions: ['documents:search'], collections: ['facts'] })
  other = await makeKey({ actions: ['documents:search'] })
})

const ASK = { question: QUESTION, model: 'm', collections: ['facts'] }

const ask = (body: Record<string, unknown> = {}, options: Parameters<typeof send>[2] = {}) =>
  call('POST', '/conversations', { ...options, body: { ...ASK, ...body } })

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
      citations: [{ collection: 'facts', document_id: '0' }],
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
    ['{', 'Bad JSON.'],
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
  ])('is refused with what is wrong: %j', async (body, message) => {
    const [status, answer] = await call('POST', '/conversations', { body })
    expect([status, Object.keys(answer)]).toEqual([400, ['message']])
    expect(answer.message).toMatch(message)
  })

  it('knows no other model or collection', async () => {
    expect(await ask({ model: 'nobody' })).toEqual([404, { message: 'Model not found' }])
    expect(await ask({ collections: ['nobody'] })).toEqual([404, { message: 'Collection not found' }])
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
    for (const key of [null, 'wrong', unfit])
      expect(await call(method, path, { key })).toEqual([401, FORBIDDEN])
  })

  it('may search, and so ask, in their collections alone', async () => {
    expect((await ask({}, { key: search }))[0]).toBe(200)
    for (const collections of [['more'], ['facts', 'more']]) {
      expect(await ask({ collections }, { key: search })).toEqual([401, FORBIDDEN])
    }
  })

  it('need an action of their own for traces and for all of a user', async () => {
    expect(await call('GET', '/conversations/c/trace', { key: search })).toEqual([401, FORBIDDEN])
    expect(await call('DELETE', '/users/u/conversations', { key: search })).toEqual([401, FORBIDDEN])
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

describe('conversations', () => {
  it('are listed, newest first, page by page, each in its own list', async () => {
    const key = await makeKey({ actions: ['documents:search'] })
    const began: string[] = []
    for (const user of ['u1', 'u2', 'u1', 'u1']) {
      const [, { conversation_id }] = await ask({}, { key, headers: { 'x-typesense-user-id': user } })
      if (user === 'u1') began.unshift(conversation_id)
    }
    const listed: string[] = []
    let cursor = ''
    for (let pages = 0; pages < 5; pages++) {
      const [status, page] = await call('GET', `/conversations?user_id=u1&limit=2${cursor}`, { key })
      expect(status).toBe(200)
      expect(parse(schemas.ConversationPage, page)).toEqual(page)
      listed.push(...page.conversations.map(({ id }: { id: string }) => id))
      if (page.next_cursor === undefined) break
      cursor = `&cursor=${encodeURIComponent(page.next_cursor)}`
    }
    expect(listed).toEqual(began)
    const headers = { 'x-typesense-user-id': 'u1' }
    expect((await call('GET', '/conversations', { key, headers }))[1].conversations).toHaveLength(3)
    expect((await call('GET', '/conversations?user_id=u2', { key, headers }))[1].conversations).toEqual([])
    expect((await call('GET', '/conversations?user_id=u1', { key: other }))[1].conversations).toEqual([])
    const all = (await call('GET', '/conversations?user_id=u1'))[1].conversations
    expect(all.map(({ id }: { id: string }) => id)).toEqual(expect.arrayContaining(began))
  })

  it.each(['limit=0', 'limit=101', 'limit=x', 'cursor=nonsense', `user_id=${'x'.repeat(513)}`])(
    'are not listed by %s',
    async (query) => {
      expect((await call('GET', `/conversations?${query}`))[0]).toBe(400)
    },
  )

  it('are read with their turns, whatever protocol began them', async () => {
    const query = new URLSearchParams({
      q: QUESTION,
      query_by: 'text',
      conversation: 'true',
      conversation_model_id: 'm',
    })
    const [, { conversation }] = await call('GET', `/collections/facts/documents/search?${query}`)
    const id = conversation.conversation_id
    await ask({ question: 'Who was its architect?', conversation_id: id })
    const [status, read] = await call('GET', `/conversations/${id}`)
    expect(status).toBe(200)
    expect(parse(schemas.Conversation, read)).toEqual(read)
    expect(read).toMatchObject({ id, model_id: 'm', protocol: 'typesense', turn_count: 2, title: QUESTION })
    expect(read.turns).toMatchObject([
      {
        question: QUESTION,
        answer: conversation.answer,
        citations: [{ collection: 'facts', document_id: '0' }],
        usage: { model: 'local/extractive' },
        timings: { finished: expect.any(Number) },
      },
      { question: 'Who was its architect?', standalone: expect.stringContaining('Eiffel Tower') },
    ])
    const [, latest] = await call('GET', `/conversations/${id}?limit=1`)
    expect(latest.turns).toMatchObject([{ question: 'Who was its architect?' }])
    const [, earlier] = await call('GET', `/conversations/${id}?before=${latest.earlier}`)
    expect(earlier.turns).toMatchObject([{ question: QUESTION }])
    expect(earlier.earlier).toBeUndefined()
  })

  it('are traced', async () => {
    const [, { conversation_id: id }] = await ask()
    const [, { turn, standalone }] = await ask({ question: 'Who was its architect?', conversation_id: id })
    const [status, trace] = await call('GET', `/conversations/${id}/trace`)
    expect(status).toBe(200)
    expect(parse(schemas.Trace, trace)).toEqual(trace)
    expect(trace.turns).toHaveLength(2)
    const [, one] = await call('GET', `/conversations/${id}/trace?turn=${turn}`)
    expect(one.turns).toEqual([trace.turns[1]])
    const asked = one.turns[0].trace.searches.map(({ params }: { params: { q: string } }) => params.q)
    expect(asked).toEqual(['Who was its architect?', standalone])
    const answering = one.turns[0].trace.calls.find(
      ({ purpose }: { purpose: string }) => purpose === 'answer',
    )
    expect(answering.prompt.at(-1).content).toContain('The Eiffel Tower is 330 metres high.')
    expect(await call('GET', `/conversations/${id}/trace?turn=${turn + 1}`)).toEqual([
      404,
      { message: 'Turn not found' },
    ])
  })

  it('are deleted, one by one', async () => {
    const [, { conversation_id: id }] = await ask({}, { key: other })
    const path = `/conversations/${id}`
    expect(await call('DELETE', path, { key: other })).toEqual([200, { id }])
    for (const way of [path, `${path}/events`, `${path}/trace`])
      expect(await call('GET', way)).toEqual(NOT_FOUND)
    expect(await call('DELETE', path)).toEqual(NOT_FOUND)
    expect(await ask({ conversation_id: id })).toEqual(NOT_FOUND)
    const query = `q=*&filter_by=conversation_id:=${id}`
    expect((await call('GET', `/collections/history/documents/search?${query}`))[1].found).toBe(0)
  })

  it('are deleted for a user, of the key that asks, or of all keys', async () => {
    const key = await makeKey({ actions: ['documents:search', 'conversations:delete'] })
    const headers = { 'x-typesense-user-id': 'leaving' }
    const mine = [await ask({}, { key, headers }), await ask({}, { key, headers })]
    const theirs = await ask({}, { key: other, headers })
    expect(await call('DELETE', '/users/leaving/conversations', { key })).toEqual([
      200,
      { deleted: 2, done: true },
    ])
    for (const [, { conversation_id }] of mine) {
      expect(await call('GET', `/conversations/${conversation_id}`)).toEqual(NOT_FOUND)
    }
    const left = `/conversations/${theirs[1].conversation_id}`
    expect((await call('GET', left))[0]).toBe(200)
    expect((await call('DELETE', '/users/leaving/conversations'))[1]).toEqual({ deleted: 1, done: true })
    expect(await call('GET', left)).toEqual(NOT_FOUND)
  })
})

describe('events', () => {
  it('replay the latest turn, or what came after a position', async () => {
    const response = await send('POST', '/conversations', { body: { ...ASK, stream: true } })
    const id = response.headers.get('x-parley-conversation-id')
    const whole = await response.text()
    const path = `/conversations/${id}/events`
    expect(await (await send('GET', path)).text()).toBe(whole)
    const blocks = whole.split('\n\n').slice(0, -1)
    const rest = `${[blocks[0], ...blocks.slice(3)].join('\n\n')}\n\n`
    const [, known] = /^id: (\S+)/.exec(blocks[2]!) ?? []
    expect(await (await send('GET', `${path}?after=${known}`)).text()).toBe(rest)
    const headers = { 'last-event-id': known! }
    expect(await (await send('GET', `${path}?after=1.0`, { headers })).text()).toBe(rest)

    const [, last] = /^id: (\S+)/.exec(blocks.at(-1)!) ?? []
    const nothing = await send('GET', `${path}?after=${last}`)
    expect([nothing.status, await nothing.text()]).toEqual([204, ''])
  })

  it('are unknown of an unknown conversation, and refused for a position that is none', async () => {
    expect(await call('GET', '/conversations/nobody/events')).toEqual(NOT_FOUND)
    const message = '`after`: Expected an event id of the form <turn>.<seq>.'
    expect(await call('GET', '/conversations/nobody/events?after=1')).toEqual([400, { message }])
  })

  it('leave the conversation models where they were', async () => {
    expect((await call('GET', '/conversations/models'))[1]).toMatchObject([{ id: 'm' }])
    for (const [method, path] of [
      ['DELETE', '/conversations/models'],
      ['POST', '/conversations/models/stop'],
    ] as const) {
      expect(await call(method, path)).toEqual([404, { message: 'Not Found' }])
    }
  })
})

it('a finished conversation has nothing to stop', async () => {
  const [, { conversation_id: id }] = await ask()
  expect(await call('POST', `/conversations/${id}/stop`)).toEqual([200, { stopped: false }])
  expect(await call('POST', '/conversations/nobody/stop')).toEqual(NOT_FOUND)
})
