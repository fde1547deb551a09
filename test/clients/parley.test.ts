/** Parley's own routes over real sockets: ask, drop, resume, join, stop, list, read, trace, delete. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { askInStream, connect, gather, type Received, textOf } from './event-source'
import { client, createModel, createShows, KEY, query, question, request, UUID, unique, url } from './harness'
import { type Paced, startPaced, words } from './paced'
import { random } from './random'

let paced: Paced
let shows: string

beforeAll(async () => {
  paced = await startPaced()
  shows = await createShows()
})
afterAll(() => paced.stop())

/** @returns the id of a model that writes `count` words, one in `gap` milliseconds */
const pacedModel = (count: number, gap: number): Promise<string> =>
  createModel({ model_name: `openai/paced-${count}-${gap}`, openai_url: paced.url })

const idOf = (connection: { headers: Headers }): string =>
  connection.headers.get('x-parley-conversation-id') ?? ''

describe('a stream', () => {
  test('has the whole turn, in order, under ids that count', async () => {
    const model = await pacedModel(40, 2)
    const connection = await askInStream(question(model, shows))
    expect(connection.status).toBe(200)
    expect(connection.headers.get('content-type')).toMatch(/^text\/event-stream/)
    const events = await gather(connection)
    expect(connection.bytes().toString()).toMatch(/^retry: 1000\n\n/)
    const [turn] = events[0]?.id.split('.') ?? []
    expect(events.map(({ id }) => id)).toEqual(events.map((_, index) => `${turn}.${index}`))
    expect(events[0]).toMatchObject({
      event: 'question',
      data: { conversation_id: expect.stringMatching(UUID), question: 'an action series' },
    })
    expect(events[1]).toMatchObject({ event: 'retrieval', data: { replies: [{ result: { found: 5 } }] } })
    expect(textOf(events)).toBe(words(40).join(''))
    expect(events.at(-1)).toMatchObject({ event: 'done', data: { answer: words(40).join('') } })
  })

  test('dropped at 200 random places and resumed, it is the same to the last byte', async () => {
    const seed = Math.floor(Math.random() * 2 ** 31)
    const next = random(seed)
    /** Bytes until the next drop: often few, and now and then enough to get past the longest event. */
    const somewhere = () => 1 + Math.floor(-Math.log(1 - next()) * (next() < 0.1 ? 4_000 : 400))
    const model = await pacedModel(150, 4)
    const whole = words(150).join('')
    const search = { collection: shows, query_by: 'title', include_fields: 'title', per_page: 1 }
    const body = { question: 'an action series', model, searches: [search] }
    let drops = 0

    const one = async (): Promise<void> => {
      const first = await connect('/conversations', { method: 'POST', body, cutAfter: somewhere() })
      const id = idOf(first)
      const events: Received[] = []
      let connection = first
      for (;;) {
        for await (const event of connection.events) events.push(event)
        if (events.at(-1)?.event === 'done') break
        drops += 1
        connection = await connect(`/conversations/${id}/events`, {
          lastEventId: events.at(-1)?.id,
          cutAfter: somewhere(),
        })
        expect(connection.status, `seed ${seed}`).toBe(200)
      }
      const again = await connect(`/conversations/${id}/events`)
      expect(events, `seed ${seed}`).toEqual(await gather(again))
      expect(textOf(events), `seed ${seed}`).toBe(whole)
      expect(events.at(-1)?.data.answer, `seed ${seed}`).toBe(whole)
      const after = { lastEventId: events.at(-1)?.id }
      expect((await connect(`/conversations/${id}/events`, after)).status, `seed ${seed}`).toBe(204)
    }

    while (drops < 200) await Promise.all([one(), one(), one(), one()])
  }, 90_000)

  test('can be joined by a second reader, who gets the same events', async () => {
    const connection = await askInStream(question(await pacedModel(60, 5), shows))
    const path = `/conversations/${idOf(connection)}/events`
    const events: Received[] = []
    let joined: Promise<Received[]> | undefined
    for await (const event of connection.events) {
      events.push(event)
      if (event.event === 'delta') joined ??= connect(path).then(gather)
    }
    expect(await joined).toEqual(events)
    expect((await connect(path, { lastEventId: events.at(-1)?.id })).status).toBe(204)
  })

  test('goes on without its reader, and is stored', async () => {
    const model = await pacedModel(30, 5)
    const connection = await askInStream(question(model, shows))
    const id = idOf(connection)
    connection.close()
    const events = await gather(await connect(`/conversations/${id}/events`))
    expect(events.at(-1)?.event).toBe('done')
    const { body } = await request('GET', `/conversations/${id}`)
    expect(body.turns).toMatchObject([{ answer: words(30).join('') }])
  })

  test('begun by the Typesense client can be followed here', async () => {
    const model = await pacedModel(60, 5)
    let followed: Promise<Received[]> | undefined
    const chunks: string[] = []
    const result = await client()
      .collections(shows)
      .documents()
      .search(
        {
          q: 'an action series',
          query_by: 'embedding',
          exclude_fields: 'embedding',
          conversation: true,
          conversation_stream: true,
          conversation_model_id: model,
          streamConfig: {
            onChunk: ({ message, conversation_id }) => {
              chunks.push(message)
              followed ??= connect(`/conversations/${conversation_id}/events`).then(gather)
            },
          },
        },
        {},
      )
    const events = (await followed) ?? []
    expect(textOf(events)).toBe(chunks.join(''))
    expect(events.at(-1)?.data.answer).toBe(result.conversation?.answer)
  })
})

test('a stopped turn ends for every reader, leaves the provider, and is no history', async () => {
  const model = await pacedModel(2_000, 5)
  const connection = await askInStream(question(model, shows))
  const path = `/conversations/${idOf(connection)}`
  const before = paced.abandoned
  const events: Received[] = []
  let second: Promise<Received[]> | undefined
  let stopped: Promise<unknown> | undefined
  for await (const event of connection.events) {
    events.push(event)
    if (event.event !== 'delta' || stopped) continue
    second = connect(`${path}/events`).then(gather)
    stopped = request('POST', `${path}/stop`).then(({ body }) => body)
  }
  expect(await stopped).toEqual({ stopped: true })
  expect(events.at(-1)).toMatchObject({ event: 'error', data: { retryable: false } })
  expect((await second)?.at(-1)).toEqual(events.at(-1))
  await expect.poll(() => paced.abandoned).toBe(before + 1)
  expect((await request('POST', `${path}/stop`)).body).toEqual({ stopped: false })
  expect((await request('GET', path)).body).toMatchObject({ turn_count: 0, turns: [] })
})

describe('conversations', () => {
  test('are listed, read, traced and deleted, on whatever protocol they go on', async () => {
    const model = await pacedModel(5, 1)
    const user = unique('user')
    const headers = { 'x-typesense-user-id': user }
    const first = await gather(await askInStream(question(model, shows), headers))
    const id = first[0]?.data.conversation_id
    const further = await request(
      'POST',
      query('/multi_search', {
        q: 'another one',
        conversation: true,
        conversation_model_id: model,
        conversation_id: id,
      }),
      { searches: [{ collection: shows, query_by: 'title,overview' }] },
    )
    expect(further.body.conversation.conversation_id).toBe(id)

    const { body: page } = await request('GET', `/conversations?user_id=${user}`)
    expect(page).toEqual({
      conversations: [expect.objectContaining({ id, user_id: user, protocol: 'parley', turn_count: 2 })],
    })
    const { body: read } = await request('GET', `/conversations/${id}`)
    expect(read.turns).toMatchObject([
      { question: 'an action series', answer: words(5).join(''), usage: { model: 'openai/paced-5-1' } },
      { question: 'another one', standalone: 'a question' },
    ])
    const { body: trace } = await request('GET', `/conversations/${id}/trace`)
    expect(trace.turns[1].trace).toMatchObject({
      searches: [{ collection: shows, params: { q: 'another one' } }, { params: { q: 'a question' } }],
      calls: [
        { purpose: 'standalone', text: 'a question' },
        { purpose: 'answer', prompt: [{ content: expect.stringContaining('<Question>\na question') }] },
      ],
    })
    expect(await request('DELETE', `/conversations/${id}`)).toMatchObject({ status: 200, body: { id } })
    for (const path of ['', '/events', '/trace']) {
      const { status, body } = await request('GET', `/conversations/${id}${path}`)
      expect([status, body]).toEqual([
        404,
        { message: 'Conversation not found', code: 'unknown_conversation' },
      ])
    }
  })

  test('of a user are deleted at once', async () => {
    const model = await pacedModel(3, 1)
    const user = unique('user')
    const headers = { 'x-typesense-user-id': user }
    for (let count = 0; count < 3; count++) {
      await gather(await askInStream(question(model, shows), headers))
    }
    expect((await request('DELETE', `/users/${user}/conversations`)).body).toEqual({ deleted: 3, done: true })
    expect((await request('GET', `/conversations?user_id=${user}`)).body).toEqual({ conversations: [] })
  })
})

test('a second request with the same idempotency key asks and pays nothing', async () => {
  const model = await pacedModel(40, 5)
  const before = paced.begun
  const headers = { 'idempotency-key': unique('key') }
  const twice = () => askInStream(question(model, shows), headers)
  const [first, second] = await Promise.all([twice(), twice()])
  expect(await gather(first)).toEqual(await gather(second))
  expect(idOf(first)).toBe(idOf(second))
  expect(textOf(await gather(await twice()))).toBe(words(40).join(''))
  expect(paced.begun).toBe(before + 1)
})

test('the document of the API and its page are served', async () => {
  const response = await fetch(`${url}/openapi.json`)
  expect(response.headers.get('content-type')).toMatch(/^application\/json/)
  expect(response.headers.get('access-control-allow-origin')).toBe('*')
  const { openapi, paths } = (await response.json()) as {
    openapi: string
    paths: Record<string, Record<string, { operationId: string }>>
  }
  expect(openapi).toBe('3.1.0')
  // Every route of the document is there: without a key it answers 401, and what is not there 404.
  for (const [path, methods] of Object.entries(paths)) {
    for (const method of Object.keys(methods)) {
      const place = url + path.replace('{id}', 'nobody')
      expect((await fetch(place, { method: method.toUpperCase() })).status, `${method} ${path}`).toBe(401)
    }
  }
  const headers = { 'x-typesense-api-key': KEY }
  expect((await fetch(`${url}/conversations/nobody/nothing`, { headers })).status).toBe(404)
  expect(await (await fetch(`${url}/api`)).text()).toContain('<title>Parley')
})
