/** OpenSearch's conversation memory, both generations of it, over the one history of all protocols. */
import { beforeAll, describe, expect, test } from 'vitest'
import { call, connect, userKey } from './opensearch-api'

const MEMORY = '/_plugins/_ml/memory'
const GEN1 = `${MEMORY}/conversation`

type Item = Record<string, unknown>

describe('the first generation', () => {
  let key: string
  beforeAll(async () => {
    key = await userKey()
  })
  const memory = (method: string, path: string, body?: unknown) => call(method, GEN1 + path, body, key)
  const create = async (body?: unknown): Promise<string> =>
    (await memory('POST', '', body)).body.conversation_id

  test('A1 to A7: makes and lists conversations, the latest first', async () => {
    expect((await memory('GET', '')).body).toEqual({ conversations: [] })
    const bare = await memory('POST', '')
    expect(bare).toEqual({ status: 200, body: { conversation_id: expect.any(String) } })
    const named = await create({ name: 'name' })
    const { body: first } = await memory('GET', '?max_results=1')
    expect(first).toMatchObject({ conversations: [{ conversation_id: named, name: 'name' }], next_token: 1 })
    expect(first.conversations[0].create_time).toMatch(/^\d{4}-\d\d-\d\dT.*Z$/)
    const { body: second } = await memory('GET', '?max_results=1&next_token=1')
    expect(second).toMatchObject({
      conversations: [{ conversation_id: bare.body.conversation_id, name: '' }],
      next_token: 2,
    })
    expect((await memory('GET', '?max_results=1&next_token=2')).body).toEqual({ conversations: [] })
  })

  test('A8 to A11: adds interactions and lists them, the newest first', async () => {
    const id = await create()
    expect((await memory('GET', `/${id}`)).body).toEqual({ interactions: [] })
    const said = {
      input: 'q',
      prompt_template: 'p',
      response: 'r',
      origin: 'o',
      additional_info: 'some text',
    }
    const { body: made } = await memory('POST', `/${id}`, said)
    expect((await memory('GET', `/${id}`)).body.interactions).toEqual([
      { ...said, conversation_id: id, interaction_id: made.interaction_id, create_time: expect.any(String) },
    ])
    for (const input of ['i2', 'i3', 'i4'])
      await memory('POST', `/${id}`, { input, response: 5, prompt: 'unknown' })
    const { body: page } = await memory('GET', `/${id}?max_results=2`)
    expect(page).toMatchObject({
      interactions: [{ input: 'i4', response: '5', origin: null }, { input: 'i3' }],
      next_token: 2,
    })
    expect(Object.keys(page.interactions[0])).not.toContain('additional_info')
    const { body: rest } = await memory('GET', `/${id}?max_results=2&next_token=2`)
    expect(rest.interactions.map(({ input }: Item) => input)).toEqual(['i2', 'q'])
  })

  test('A13, A15: what is unknown or deleted is not found', async () => {
    const unknown = await memory('GET', '/coffee')
    expect([unknown.status, unknown.body.error.type, unknown.body.error.reason]).toEqual([
      404,
      'resource_not_found_exception',
      'Conversation [coffee] not found',
    ])
    const id = await create()
    await memory('POST', `/${id}`, { input: '', prompt_template: '', response: '' })
    expect((await memory('DELETE', `/${id}`)).body).toEqual({ success: true })
    expect((await memory('GET', `/${id}`)).status).toBe(404)
    expect(
      (await memory('GET', '')).body.conversations.map((item: Item) => item.conversation_id),
    ).not.toContain(id)
    const empty = await create()
    expect((await memory('DELETE', `/${empty}`)).body).toEqual({ success: true })
  })

  test('A17 to A19: pages are checked', async () => {
    const refusal = async (path: string) => {
      const { status, body } = await memory('GET', path)
      return [status, body.error.type, body.error.reason]
    }
    const id = await create()
    expect((await refusal('?max_results=0'))[2]).toContain("Can't list 0 or negative conversations")
    expect(await refusal(`/${id}?max_results=-1&next_token=-1`)).toEqual([
      400,
      'action_request_validation_exception',
      'Validation Failed: 1: The number of interactions to retrieve must be positive;2: The starting position must be nonnegative;',
    ])
    expect(await refusal('?max_results=abc')).toEqual([
      400,
      'number_format_exception',
      'For input string: "abc"',
    ])
    expect((await refusal('?next_token=-1'))[2]).toContain('[from] parameter cannot be negative')
  })
})

describe('the second generation', () => {
  let key: string
  beforeAll(async () => {
    key = await userKey()
  })
  const ml = () => connect({ auth: { username: 'somebody', password: key } }).ml
  const create = async (name: string): Promise<string> => {
    const { body } = await ml().createMemory({ body: { name } })
    return (body as { memory_id: string }).memory_id
  }
  const say = async (memory_id: string, body: Item): Promise<string> =>
    ((await ml().createMessage({ memory_id, body: body as never })).body as { message_id: string }).message_id

  test('B1 to B7: a memory is made, read, renamed and listed', async () => {
    const id = await create('Test memory 1')
    const other = await create('Test memory 2')
    const { body: made } = await ml().getMemory({ memory_id: id })
    expect(made).toEqual({
      memory_id: id,
      name: 'Test memory 1',
      create_time: expect.any(String),
      updated_time: expect.any(String),
      user: expect.any(String),
    })
    const names = async () => {
      const { body } = await ml().getAllMemories({ max_results: 2 })
      return (body as { memories: Item[] }).memories.map(({ name }) => name)
    }
    expect(await names()).toEqual(['Test memory 2', 'Test memory 1'])
    await say(id, { input: 'bump' })
    expect(await names()).toEqual(['Test memory 1', 'Test memory 2'])
    const { body: updated } = await ml().updateMemory({
      memory_id: other,
      body: { name: 'renamed', user: 'eve', memory_id: 'zz' } as never,
    })
    expect(updated).toMatchObject({
      _index: '.plugins-ml-memory-meta',
      _id: other,
      _version: 2,
      result: 'updated',
    })
    expect((await ml().getMemory({ memory_id: other })).body).toMatchObject({
      name: 'renamed',
      memory_id: other,
    })
    await expect(ml().updateMemory({ memory_id: other, body: {} })).rejects.toThrow(/Request body is empty/)
    await call('PUT', `${MEMORY}/${other}`, { additional_info: { a: 1 } }, key)
    await call('PUT', `${MEMORY}/${other}`, { additional_info: { b: { c: 2 } } }, key)
    expect((await ml().getMemory({ memory_id: other })).body).toMatchObject({
      additional_info: { a: 1, b: { c: 2 } },
    })
  })

  test('B8 to B16: messages, traces and what they say of themselves', async () => {
    const id = await create('messages')
    const all = { input: 'in', prompt_template: 'p', response: 'out', additional_info: { suggestion: 'x' } }
    const first = await say(id, all)
    const { body } = await ml().getMessage({ message_id: first })
    expect(body).toEqual({
      ...all,
      memory_id: id,
      message_id: first,
      create_time: expect.any(String),
      updated_time: expect.any(String),
    })
    const second = await say(id, { input: 'later', additional_info: 'a text' })
    const { body: page } = await ml().getAllMessages({ memory_id: id, max_results: 1 })
    expect(page).toMatchObject({ messages: [{ message_id: first }], next_token: 1 })
    const { body: next } = await ml().getAllMessages({ memory_id: id, max_results: 1, next_token: 1 })
    expect(next).toMatchObject({
      messages: [{ message_id: second, additional_info: { metadata: 'a text' } }],
    })
    for (const bad of [{}, { input: '  ' }])
      await expect(say(id, bad)).rejects.toThrow(/At least one of the following parameters must be non-empty/)
    const { body: changed } = await ml().updateMessage({
      message_id: first,
      body: { additional_info: { feedback: 'positive' } } as never,
    })
    expect(changed).toMatchObject({ result: 'updated', _index: '.plugins-ml-memory-message', _id: first })
    expect((await ml().getMessage({ message_id: first })).body).toMatchObject({
      additional_info: { suggestion: 'x', feedback: 'positive' },
    })
    for (const trace_number of [2, 1])
      await say(id, { input: `step ${trace_number}`, parent_message_id: first, trace_number })
    await say(id, { input: 'no trace', trace_number: 1 })
    const { body: left } = await ml().getAllMessages({ memory_id: id })
    expect((left as { messages: Item[] }).messages.map(({ input }) => input)).toEqual([
      'in',
      'later',
      'no trace',
    ])
    const { body: traces } = await ml().getMessageTraces({ message_id: first })
    expect(traces).toMatchObject({
      traces: [
        { input: 'step 1', parent_message_id: first, trace_number: 1 },
        { input: 'step 2', parent_message_id: first, trace_number: 2 },
      ],
    })
  })

  test('B17 to B19: memories and messages are searched', async () => {
    const id = await create('a conversation about books')
    const { body } = await ml().searchMemory({
      body: { query: { term: { name: { value: 'conversation' } } }, size: 1000 } as never,
    })
    const found = (reply: unknown) => (reply as { hits: { hits: Item[] } }).hits.hits.map(({ _id }) => _id)
    expect(found(body)).toEqual([id])
    await say(id, { input: 'a novel question', response: 'r1' })
    await say(id, { input: 'another one', response: 'r2' })
    const search = async (query: unknown) =>
      (
        await ml().searchMessage({
          memory_id: id,
          body: { query, sort: [{ create_time: { order: 'DESC' } }] } as never,
        })
      ).body
    expect(found(await search({ match_all: {} }))).toHaveLength(2)
    expect(await search({ match: { input: 'novel' } })).toMatchObject({
      hits: { hits: [{ _source: { response: 'r1' } }] },
    })
    expect((await call('POST', `${MEMORY}/_search/`, { query: { foo: {} } }, key)).status).toBe(400)
  })

  test('B21: a memory that was deleted is gone', async () => {
    const id = await create('to go')
    await say(id, { input: 'x' })
    expect((await ml().deleteMemory({ memory_id: id })).body).toEqual({ success: true })
    for (const path of ['', '/messages', '/_search'])
      expect((await call('GET', `${MEMORY}/${id}${path}`, undefined, key)).status).toBe(404)
  })

  test('B27: 30 messages at once have 30 ids, page by page', async () => {
    const id = await create('many')
    const ids = await Promise.all(
      Array.from({ length: 30 }, (_, at) => say(id, { input: `message ${at} 🐟` })),
    )
    expect(new Set(ids).size).toBe(30)
    const seen: unknown[] = []
    const tokens: unknown[] = []
    for (let token: number | undefined = 0; token !== undefined; ) {
      const { body } = await call('GET', `${MEMORY}/${id}/messages?next_token=${token}`, undefined, key)
      seen.push(...body.messages.map((item: Item) => item.message_id))
      token = body.next_token
      tokens.push(token)
    }
    expect(tokens).toEqual([10, 20, 30, undefined])
    expect(new Set(seen)).toEqual(new Set(ids))
  })

  test('a conversation added between two pages repeats an entry, as the documentation says', async () => {
    const user = await userKey()
    const page = async (token: number) =>
      (await call('GET', `${MEMORY}?max_results=2&next_token=${token}`, undefined, user)).body.memories.map(
        ({ name }: Item) => name,
      )
    for (const name of ['a', 'b', 'c']) await call('POST', MEMORY, { name }, user)
    expect(await page(0)).toEqual(['c', 'b'])
    await call('POST', MEMORY, { name: 'd' }, user)
    expect(await page(2)).toEqual(['b', 'a'])
  })

  test('large texts and any characters come back as they were', async () => {
    const id = await create('large')
    const input = `${'Grüße 🐟 "quoted" \\ \n\t\u0007 '.repeat(5_000)}end`
    const message_id = await say(id, { input, response: '\u{1F9D1}\u200d\u{1F680}' })
    expect((await ml().getMessage({ message_id })).body).toMatchObject({
      input,
      response: '\u{1F9D1}\u200d\u{1F680}',
    })
    const tooLong = await call('POST', `${MEMORY}/${id}/messages`, { input: 'x'.repeat(1_100_000) }, key)
    expect([tooLong.status, tooLong.body.error.type]).toEqual([413, 'illegal_argument_exception'])
  })
})
