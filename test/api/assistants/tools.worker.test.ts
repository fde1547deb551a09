/** Tools of assistants by the API: how they are stored, called, allowed and read again. A scripted model calls them. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of tools look like this
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { makeKey, setStage } from '../parley/stage'
import { call, send } from '../typesense/api'

const SECRET = 'Bearer very-secret-token'
const ORDERS = {
  title: 'Look up an order',
  description: 'Looks up an order by its number.',
  parameters: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
  leave: 'never',
  http: { method: 'GET', url: 'https://shop.test/orders/${parameters.id}?full=1' },
  headers: { authorization: SECRET },
}
const BOOK = {
  title: 'Book a table',
  description: 'Books a table.',
  parameters: {
    type: 'object',
    properties: { at: { type: 'string' }, guests: { type: 'integer' } },
    required: ['at'],
  },
  http: {
    method: 'POST',
    url: 'https://shop.test/tables',
    body: '{"time": "${parameters.at}", "by": "chat"}',
  },
}
const WHERE = { description: 'Says where the visitor is.', page: true }

/** what the model replies, in order: texts, or calls by name and arguments */
let script: (string | Record<string, object>)[]
/** requests that reached the shop */
let reached: { method: string; url: string; headers: Headers; body: string }[]
let told: Record<string, unknown>[][]

function shop(url: string, init: { method: string; headers: HeadersInit; body?: string }): Response {
  reached.push({ method: init.method, url, headers: new Headers(init.headers), body: init.body ?? '' })
  if (url.endsWith('/tables')) return Response.json({ booked: true }, { status: 201 })
  if (url.includes('/orders/redirect'))
    return new Response(null, { status: 302, headers: { location: 'https://evil.test' } })
  return Response.json({ state: 'sent', echo: SECRET, token: SECRET.replace('Bearer ', '') })
}

function world(url: string, init: { method: string; headers: HeadersInit; body: string }): Response {
  if (url.startsWith('https://shop.test')) return shop(url, init)
  const { messages } = JSON.parse(init.body)
  if (messages.at(-1).content === 'hello') return Response.json({ choices: [{ message: { content: 'Hi' } }] })
  told.push(messages)
  const reply = script.shift() ?? 'The end.'
  const message =
    typeof reply === 'string'
      ? { content: reply }
      : {
          content: '',
          tool_calls: Object.entries(reply).map(([name, given], at) => ({
            id: `call_${told.length}_${at}`,
            type: 'function',
            function: { name, arguments: JSON.stringify(given) },
          })),
        }
  return Response.json({ choices: [{ message, finish_reason: 'stop' }] })
}

const put = (name: string, body: object) => call('PUT', `/tools/${name}`, { body })
const assist = (name: string, tools: string[], more = {}) =>
  call('PUT', `/assistants/${name}`, { body: { model: 'remote', collections: ['facts'], tools, ...more } })

beforeAll(async () => {
  vi.stubGlobal('fetch', world)
  script = []
  reached = []
  told = []
  await setStage()
  const remote = {
    id: 'remote',
    model_name: 'openai/x',
    api_key: 'sk',
    openai_url: 'https://llm.test',
    history_collection: 'history',
    max_bytes: 16_384,
  }
  expect((await call('POST', '/conversations/models', { body: remote }))[0]).toBe(201)
  for (const [name, tool] of Object.entries({ orders: ORDERS, book: BOOK, where: WHERE })) {
    expect((await put(name, tool))[0]).toBe(200)
  }
  expect((await assist('shop', ['search', 'orders', 'book', 'where']))[0]).toBe(200)
})
beforeEach(() => {
  vi.stubGlobal('fetch', world)
  script = []
  reached = []
  told = []
})
afterEach(() => {
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

const ask = (body: object, options: Parameters<typeof call>[2] = {}) =>
  call('POST', '/a/shop/conversations', {
    ...options,
    headers: { 'idempotency-key': crypto.randomUUID(), ...options.headers },
    body,
  })
const results = () =>
  told
    .at(-1)!
    .filter(({ role }) => role === 'tool')
    .map(({ content }) => content)

describe('a stored tool', () => {
  it('shows its secrets masked, keeps them where they come back so, and never sends them to another host', async () => {
    const [, shown] = await call('GET', '/tools/orders')
    expect(shown).toMatchObject({ name: 'orders', leave: 'never', http: ORDERS.http })
    expect(JSON.stringify(shown)).not.toContain('very-secret')
    const { name: _, created_at: __, updated_at: ___, ...masked } = shown
    expect((await put('orders', { ...masked, title: 'Find an order' }))[0]).toBe(200)
    script = [{ orders: { id: '7' } }, 'It was sent.']
    await ask({ question: 'Where is order 7?' })
    expect(reached[0]?.headers.get('authorization')).toBe(SECRET)
    const elsewhere = { ...masked, http: { ...ORDERS.http, url: 'https://other.test/${parameters.id}' } }
    expect(await put('orders', elsewhere)).toMatchObject([
      400,
      { message: expect.stringContaining('another host') },
    ])
    const row = await env.DB.prepare("SELECT body, sealed FROM resources WHERE id = 'orders'").first()
    expect(JSON.stringify(row)).not.toContain('very-secret')
    expect((await call('GET', '/tools'))[1].tools).toHaveLength(3)
  })

  it.each([
    [
      'a host with a parameter',
      { ...ORDERS, http: { method: 'GET', url: 'https://${parameters.id}.test/' } },
      'its model|host',
    ],
    [
      'an address inside',
      { ...ORDERS, http: { method: 'GET', url: 'http://169.254.169.254/' } },
      'not allowed',
    ],
    ['a body of a GET', { ...ORDERS, http: { ...ORDERS.http, body: '{}' } }, 'GET'],
    ['no leave for what changes something', { ...BOOK, leave: 'never' }, '`never`'],
    ['two kinds', { ...ORDERS, page: true }, 'Give one of'],
    ['no description', { http: ORDERS.http }, 'description'],
    ['a schema that refers to nothing', { ...ORDERS, parameters: { $ref: '#/$defs/none' } }, '\\$ref'],
    ['a header that none can have', { ...ORDERS, headers: { 'a b': 'x' } }, 'headers'],
    ['a header of the connection', { ...ORDERS, headers: { host: 'other.test' } }, '`host`'],
    ['a body that is no JSON', { ...BOOK, http: { ...BOOK.http, body: '{"at": ' } }, 'JSON'],
  ])('is refused with %s', async (_, body, words) => {
    const [status, { message }] = await put('bad', body)
    expect([status, message]).toEqual([400, expect.stringMatching(words)])
  })

  it('is not stored by keys without the right, nor under the name of a built-in one', async () => {
    const key = await makeKey({ actions: ['assistants:ask', 'documents:search'] })
    expect((await call('PUT', '/tools/orders', { key, body: ORDERS }))[0]).toBe(401)
    // Whoever may change assistants of some collections acts with no secret of others.
    const some = await makeKey({ actions: ['tools:*', 'assistants:*'], collections: ['facts'] })
    expect((await call('GET', '/tools/orders', { key: some }))[0]).toBe(401)
    const own = { model: 'remote', collections: ['facts'] }
    const putting = (tools: string[]) =>
      call('PUT', '/assistants/own', { key: some, body: { ...own, tools } })
    expect((await putting(['orders']))[0]).toBe(401)
    expect((await putting(['search']))[0]).toBe(200)
    expect((await put('search', ORDERS))[0]).toBe(400)
    expect((await call('GET', '/tools/none'))[0]).toBe(404)
  })

  it('has to be there, and its assistant needs a model that calls', async () => {
    expect(await assist('none', ['missing'])).toMatchObject([
      400,
      { message: expect.stringContaining('PUT /tools/missing') },
    ])
    expect(await assist('none', ['search'], { model: 'm' })).toMatchObject([
      400,
      { message: expect.stringContaining('language model') },
    ])
  })

  it('may be deleted under an assistant, which goes on without it', async () => {
    await put('gone', ORDERS)
    await call('PUT', '/assistants/short', {
      body: { model: 'remote', collections: ['facts'], tools: ['gone'] },
    })
    expect((await call('DELETE', '/tools/gone'))[0]).toBe(200)
    const [status] = await call('POST', '/a/short/conversations', {
      body: { question: 'How high is the tower?' },
    })
    expect(status).toBe(200)
  })
})

describe('a call', () => {
  it('runs with its arguments in the address, and its reply without secrets is told and kept', async () => {
    script = [{ orders: { id: 'a/../b?x=1' } }, 'It was sent.']
    const [, { conversation_id: id, answer, calls }] = await ask({ question: 'Where is my order?' })
    expect(reached.map(({ method, url }) => `${method} ${url}`)).toEqual([
      'GET https://shop.test/orders/a%2F..%2Fb%3Fx%3D1?full=1',
    ])
    expect(answer).toBe('It was sent.')
    expect(results()[0]).toContain('"state":"sent"')
    expect(JSON.stringify([results(), calls])).not.toContain('very-secret')
    // What is read again is what was said.
    const [, read] = await call('GET', `/conversations/${id}`)
    expect(read.turns[0]).toMatchObject({ answer, calls })
    const [, { turns }] = await call('GET', `/conversations/${id}/trace`)
    expect(turns[0].trace.calls[0]).toMatchObject({ purpose: 'answer', tools: ['orders'] })
    expect(JSON.stringify(turns)).not.toContain('very-secret')
  })

  it('answers the question, though nothing is cited, and a turn that waits has not been answered', async () => {
    script = [{ orders: { id: '7' } }, 'It was sent.', { book: { at: '19:00' } }]
    const [, { conversation_id: id }] = await ask({ question: 'Where did the parcel go?' })
    const [, waiting] = await ask({ question: 'May I have a table by the window?' })
    const [, { conversations }] = await call('GET', '/conversations?unanswered=true&limit=100')
    const ids = conversations.map((each: { id: string }) => each.id)
    expect([ids.includes(id), ids.includes(waiting.conversation_id)]).toEqual([false, false])
    const [, { gaps }] = await call('GET', '/gaps')
    expect(JSON.stringify(gaps)).not.toMatch(/parcel|window/)
  })

  it('cannot leave its path or follow a redirect, and its failure is told', async () => {
    script = [{ orders: { id: '..' } }, { orders: { id: 'redirect' } }, 'Sorry.']
    const [status, { calls }] = await ask({ question: 'Where is it?' })
    expect(status).toBe(200)
    expect(calls.map(({ failed, result }: { failed: boolean; result: string }) => [failed, result])).toEqual([
      [true, '`..` cannot be a part of an address.'],
      [true, expect.stringContaining('302')],
    ])
    expect(reached).toHaveLength(1)
  })

  it('is a thought of an answer on the AI Chat Protocol', async () => {
    script = [{ orders: { id: '7' } }, 'It was sent.']
    const body = { messages: [{ role: 'user', content: 'Where is order 7?' }] }
    const [status, { message, context }] = await call('POST', '/a/shop/chat', {
      headers: { 'content-type': 'application/json' },
      body,
    })
    expect([status, message.content]).toEqual([200, 'It was sent.'])
    expect(context.thoughts).toContainEqual(
      expect.objectContaining({
        title: 'Called a tool: Find an order',
        description: expect.stringContaining('sent'),
      }),
    )
  })

  it('is streamed as it happens', async () => {
    script = [{ orders: { id: '7' } }, 'It was sent.']
    const response = await send('POST', '/a/shop/conversations', {
      headers: { accept: 'text/event-stream', 'idempotency-key': crypto.randomUUID() },
      body: { question: 'Where is order 7?' },
    })
    const types = [...(await response.text()).matchAll(/^event: (\w+)/gm)].map(([, type]) => type)
    expect(types.slice(0, 5)).toEqual(['question', 'retrieval', 'tool_call', 'tool_result', 'delta'])
  })
})

it('is read again through every protocol, none of which shows a secret', async () => {
  script = ['Give me its number.']
  const [, { conversation_id: id }] = await ask({ question: 'Where is my order?' })
  script = ['Where is order 7?', { orders: { id: '7' } }, 'It was sent.']
  const [, { turn }] = await ask({
    conversation_id: id,
    question: 'It is number 7.',
  })
  const admin = { key: null, headers: { authorization: 'Bearer xyz' } }
  const read = async (path: string, options = {}) => {
    const [status, body] = await call('GET', path, options)
    expect([path, status]).toEqual([path, 200])
    expect(JSON.stringify(body)).not.toContain('very-secret')
    return body
  }
  const called = { name: 'orders', title: 'Find an order', arguments: '{"id":"7"}' }
  expect((await read(`/conversations/${id}`)).turns[1]).toMatchObject({
    answer: 'It was sent.',
    calls: [called],
  })
  // OpenSearch's agents keep what their tools did as traces of a message.
  const memory = '/_plugins/_ml/memory'
  const { messages } = await read(`${memory}/${id}/messages`)
  expect(messages.map(({ response }: { response: string }) => response)).toEqual([
    'Give me its number.',
    'It was sent.',
  ])
  const { traces } = await read(`${memory}/message/${messages[1].message_id}/traces`)
  expect(traces).toEqual([
    expect.objectContaining({
      parent_message_id: messages[1].message_id,
      trace_number: 1,
      origin: 'orders',
      input: '{"id":"7"}',
      response: expect.stringContaining('"state":"sent"'),
    }),
  ])
  expect(await read(`${memory}/message/${traces[0].message_id}`)).toEqual(traces[0])
  expect((await read(`${memory}/message/${messages[0].message_id}/traces`)).traces).toEqual([])
  const { output } = await read(`/v1/responses/resp_${id}.${turn}`, admin)
  expect(JSON.stringify(output)).toContain('It was sent.')
  const { data } = await read(`/v1/conversations/${id}/items?order=asc`, admin)
  expect(data.at(-1)).toMatchObject({ role: 'assistant', content: [{ text: 'It was sent.' }] })
  const ui = await read(`/ui/shop/${id}/messages`)
  expect(ui.at(-1).parts).toContainEqual(
    expect.objectContaining({ type: 'dynamic-tool', toolName: 'orders', state: 'output-available' }),
  )
  expect((await read(`/deep-chat/shop/${id}`)).at(-1)).toMatchObject({ text: 'It was sent.' })
  const found = await read(`/collections/history/documents/search?q=*&filter_by=conversation_id:=${id}`)
  expect(found.hits.map(({ document }: { document: { message: string } }) => document.message)).toContain(
    'It was sent.',
  )
})

describe('a call that waits', () => {
  const wait = async (name = 'book', given: object = { at: '19:00', guests: 2 }) => {
    script = [{ [name]: given }]
    const [status, reply] = await ask({ question: 'A table for two at seven, please.' })
    expect([status, reply.finish_reason]).toEqual([200, 'tool_calls'])
    expect(reached).toEqual([])
    return reply
  }
  const decide = (
    { conversation_id, turn }: { conversation_id: string; turn: number },
    decisions: object,
    options: Parameters<typeof call>[2] = {},
  ) => ask({ conversation_id, replaces: turn, decisions }, options)

  it('runs once it is allowed, and the conversation has one turn', async () => {
    const waiting = await wait()
    expect(waiting.calls).toEqual([
      {
        id: waiting.calls[0].id,
        name: 'book',
        title: 'Book a table',
        arguments: '{"at":"19:00","guests":2}',
        awaits: 'leave',
      },
    ])
    script = ['Your table is booked.']
    const [status, reply] = await decide(waiting, { [waiting.calls[0].id]: true })
    expect([status, reply.answer, reply.turn]).toEqual([200, 'Your table is booked.', 2])
    expect(reached).toMatchObject([{ method: 'POST', body: '{"time":"19:00","by":"chat"}' }])
    expect(reached[0]?.headers.get('idempotency-key')).toBe(waiting.calls[0].id)
    const [, { turns }] = await call('GET', `/conversations/${waiting.conversation_id}`)
    expect(turns.map(({ turn, question }: { turn: number; question: string }) => [turn, question])).toEqual([
      [2, 'A table for two at seven, please.'],
    ])
    expect(turns[0].calls[0]).toMatchObject({ name: 'book', result: '{"booked":true}' })
    // A second click does not book a second table.
    const again = await decide(waiting, { [waiting.calls[0].id]: true })
    expect(again).toMatchObject([409, { code: 'conflict' }])
    expect(reached).toHaveLength(1)
    // The next question knows of it.
    script = ['When is my table?', 'At seven.']
    await ask({ conversation_id: waiting.conversation_id, question: 'When is it?' })
    expect(JSON.stringify(told)).toContain('{\\\\\\"booked\\\\\\":true}')
  })

  it('does not run where it is refused', async () => {
    const waiting = await wait()
    script = ['Then not.']
    const [, { answer }] = await decide(waiting, { [waiting.calls[0].id]: false })
    expect(answer).toBe('Then not.')
    expect(results()).toEqual(['The visitor did not allow this.'])
    expect(reached).toEqual([])
  })

  it('gets the result that the page made', async () => {
    const waiting = await wait('where', {})
    expect(waiting.calls[0].awaits).toBe('page')
    script = ['You are in Rome.']
    await decide(waiting, { [waiting.calls[0].id]: { result: 'Rome' } })
    expect(results()).toEqual(['Rome'])
  })

  it('waits a quarter of an hour', async () => {
    const waiting = await wait()
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 15 * 60_000 + 1_000 })
    expect(await decide(waiting, { [waiting.calls[0].id]: true })).toMatchObject([
      400,
      { message: expect.stringContaining('15 minutes') },
    ])
  })

  it('is decided by whoever asked, about calls that wait, and not beside a question', async () => {
    const key = await makeKey({ actions: ['assistants:ask'], limits: { assistant: 'shop' } })
    script = [{ book: { at: '8' } }]
    const mine = { 'x-parley-visitor': 'v'.repeat(32) }
    const [status, waiting] = await ask({ question: 'A table at eight?' }, { key, headers: mine })
    expect([status, waiting]).toMatchObject([200, { finish_reason: 'tool_calls' }])
    const yes = { [waiting.calls[0].id]: true }
    const other = { 'x-parley-visitor': 'w'.repeat(32) }
    expect((await decide(waiting, yes, { key, headers: other }))[0]).toBe(404)
    expect((await decide(waiting, { nothing: true }, { key, headers: mine }))[0]).toBe(400)
    const both = { conversation_id: waiting.conversation_id, replaces: 1, decisions: yes, question: 'x' }
    expect((await ask(both))[0]).toBe(400)
    expect((await ask({ decisions: yes }))[0]).toBe(400)
    expect(reached).toEqual([])
    script = ['Done.']
    expect((await decide(waiting, yes, { key, headers: mine }))[0]).toBe(200)
    expect(reached).toHaveLength(1)
  })

  it('is not asked for on a wire that has no way to ask', async () => {
    script = [{ book: { at: '19:00' } }, 'Please call us.']
    const body = { model: 'shop', messages: [{ role: 'user', content: 'Book a table.' }] }
    const [, { choices }] = await call('POST', '/v1/chat/completions', { body })
    expect(choices[0]).toMatchObject({ message: { content: 'Please call us.' }, finish_reason: 'stop' })
    expect(results()[0]).toContain('cannot be asked')
    expect(reached).toEqual([])
  })
})
