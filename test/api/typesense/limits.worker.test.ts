/** What keys fix of conversations, and what they and models may spend. */
import { env } from 'cloudflare:workers'
import { beforeAll, describe, expect, it } from 'vitest'
import { admitTurn } from '../../../src/api/http/admit-turn'
import { newRecord } from '../../../src/api/http/request-log'
import { ADMIN } from '../../../src/auth/access'
import { dayOf, recordCost } from '../../../src/db/turns'
import { call, FORBIDDEN, MAY_NOT, queryString, send } from './api'
import { askingBySearch, HISTORY, scopedKey } from './conversing'

const MODEL = { model_name: 'local/extractive', history_collection: 'history', max_bytes: 16_384 }

beforeAll(async () => {
  await call('POST', '/collections', { body: HISTORY })
  await call('POST', '/collections', { body: { name: 'facts', fields: [{ name: 'text', type: 'string' }] } })
  await call('POST', '/collections/facts/documents', { body: { text: 'The tower is 330 metres high.' } })
  for (const id of ['one', 'two']) {
    expect((await call('POST', '/conversations/models', { body: { ...MODEL, id } }))[0]).toBe(201)
  }
})

const makeKey = async (limits?: Record<string, unknown>): Promise<{ id: number; value: string }> => {
  const body = { description: '', actions: ['documents:search'], collections: ['*'], limits }
  const [status, key] = await call('POST', '/keys', { body })
  expect(status).toBe(201)
  return key
}

const ASKING = { q: 'How high is the tower?', conversation: true }
const { ask, askAcross } = askingBySearch(ASKING)

describe('limits of a key', () => {
  it('are shown with it', async () => {
    const limits = { conversation_model_id: 'one', user_id: 'ann', tokens_per_day: 5, turns_per_day: 6 }
    const { id } = await makeKey(limits)
    expect((await call('GET', `/keys/${id}`))[1].limits).toEqual(limits)
    expect((await call('GET', `/keys/${(await makeKey()).id}`))[1]).not.toHaveProperty('limits')
  })

  it.each([
    [5, 'Wrong format for `limits`. It should be an object.'],
    [null, 'Wrong format for `limits`. It should be an object.'],
    [[], 'Wrong format for `limits`. It should be an object.'],
    [{ user_id: '' }, 'Wrong format for `limits.user_id`. It should be a string of 1 to 256 characters.'],
    [
      { conversation_model_id: 7 },
      'Wrong format for `limits.conversation_model_id`. It should be a string of 1 to 256 characters.',
    ],
    [{ turns_per_day: 0 }, 'Wrong format for `limits.turns_per_day`. It should be a positive integer.'],
    [{ tokens_per_day: 1.5 }, 'Wrong format for `limits.tokens_per_day`. It should be a positive integer.'],
    [{ tokens_per_day: '9' }, 'Wrong format for `limits.tokens_per_day`. It should be a positive integer.'],
    [
      { model: 'one' },
      'Unknown limit `model`; the known ones are `conversation_model_id`, `assistant`, `user_id`, `allowed_origins`, `tokens_per_day`, `turns_per_day`.',
    ],
  ])('%j are refused', async (limits, message) => {
    const body = { description: '', actions: ['*'], collections: ['*'], limits }
    expect(await call('POST', '/keys', { body })).toEqual([400, { message }])
  })

  it('fix the conversation model: it need not be named, and no other one seems to exist', async () => {
    const { value } = await makeKey({ conversation_model_id: 'one' })
    expect((await ask({}, value))[0]).toBe(200)
    expect((await askAcross({}, value))[0]).toBe(200)
    expect((await ask({ conversation_model_id: 'one' }, value))[0]).toBe(200)
    for (const conversation_model_id of ['two', 'none']) {
      expect(await ask({ conversation_model_id }, value)).toEqual([400, { message: 'Model not found' }])
      expect(await askAcross({ conversation_model_id }, value)).toEqual([
        400,
        { message: '`conversation_model_id` is invalid.' },
      ])
    }
  })

  it('hold for the scoped keys of that key too', async () => {
    const { value } = await makeKey({ conversation_model_id: 'one' })
    expect((await ask({}, await scopedKey(value, { user_id: 'ann' })))[0]).toBe(200)
    const other = await scopedKey(value, { conversation_model_id: 'two' })
    expect(await ask({}, other)).toEqual([400, { message: 'Model not found' }])
    expect((await askAcross({}, other))[0]).toBe(400)
  })

  it('have to agree where a request brings several keys', async () => {
    const [one, two] = [await makeKey({ user_id: 'ann' }), await makeKey({ user_id: 'bob' })]
    const searches = [one, two].map(({ value }) => ({
      collection: 'facts',
      query_by: 'text',
      'x-typesense-api-key': value,
    }))
    const path = `/multi_search${queryString({ ...ASKING, conversation_model_id: 'one' })}`
    expect(await call('POST', path, { key: null, body: { searches } })).toEqual([401, FORBIDDEN])
    expect((await call('POST', path, { key: null, body: { searches: [searches[0]] } }))[0]).toBe(200)
  })

  it('refuse an overlong user or idempotency key', async () => {
    const path = `/collections/facts/documents/search${queryString({ ...ASKING, query_by: 'text', conversation_model_id: 'one' })}`
    const long = (name: string, length: number) =>
      call('GET', path, { headers: { [name]: 'x'.repeat(length) } })
    expect(await long('x-typesense-user-id', 257)).toEqual([
      400,
      { message: '`x-typesense-user-id` is longer than 256 characters.' },
    ])
    expect(await long('idempotency-key', 256)).toEqual([
      400,
      { message: '`Idempotency-Key` is longer than 255 characters.' },
    ])
    expect((await long('x-typesense-user-id', 256))[0]).toBe(200)
  })
})

describe('a conversation', () => {
  const asked = { conversation_model_id: 'one' }

  it('goes on for the key and the user that began it, and is unknown to anybody else', async () => {
    const parent = (await makeKey()).value
    const [ann, bob] = [
      await scopedKey(parent, { user_id: 'ann' }),
      await scopedKey(parent, { user_id: 'bob' }),
    ]
    const stranger = (await makeKey()).value
    const [, { conversation }] = await ask(asked, ann)
    const goesOn = { ...asked, conversation_id: conversation.conversation_id, q: 'How many metres is that?' }
    for (const key of [bob, stranger, parent]) {
      expect(await ask(goesOn, key)).toEqual([400, { message: 'Conversation not found' }])
      const invalid = [400, { message: '`conversation_id` is invalid.' }]
      expect(await askAcross(goesOn, key)).toEqual(invalid)
      // Nor does a fault elsewhere in the request show that it is there.
      const path = `/multi_search${queryString({ ...ASKING, ...goesOn })}`
      const body = { searches: [{ collection: 'facts', query_by: 'text', q: 'x' }] }
      expect(await call('POST', path, { key, body })).toEqual(invalid)
    }
    expect((await ask(goesOn, ann))[0]).toBe(200)
    expect((await ask(goesOn))[0]).toBe(200)
  })
})

const today = () => dayOf(Date.now())
const spend = (owner: string, modelId: string, inputTokens: number, outputTokens = 0) =>
  recordCost(env.DB, { usage: { day: today(), owner, modelId, inputTokens, outputTokens } })

describe('budgets', () => {
  const SPENT =
    /^The budget of \d+ (tokens|turns) a day of this (API key|conversation model) is spent\. It begins anew at \d{4}-\d\d-\d\dT00:00:00\.000Z\.$/

  it('of tokens of a key', async () => {
    const { id, value } = await makeKey({ tokens_per_day: 100 })
    const asked = { conversation_model_id: 'two' }
    await spend(String(id), 'two', 60, 39)
    expect((await ask(asked, value))[0]).toBe(200)
    await spend(String(id), 'one', 1, 0)
    for (const way of [ask, askAcross]) {
      const [status, { message }] = await way(asked, value)
      expect(status).toBe(429)
      expect(message).toMatch(SPENT)
      expect(message).toContain('100 tokens')
    }
    // Searching costs nothing.
    expect(
      (await call('GET', '/collections/facts/documents/search?q=tower&query_by=text', { key: value }))[0],
    ).toBe(200)
    expect((await ask(asked))[0]).toBe(200)
  })

  it('of turns of a key, its scoped keys together', async () => {
    const { id, value } = await makeKey({ turns_per_day: 2 })
    await spend(String(id), 'one', 0)
    await spend(String(id), 'two', 0)
    const path = `/collections/facts/documents/search${queryString({ ...ASKING, query_by: 'text', conversation_model_id: 'one' })}`
    const response = await send('GET', path, { key: await scopedKey(value, { user_id: 'ann' }) })
    expect(response.status).toBe(429)
    const wait = Number(response.headers.get('retry-after'))
    expect(wait).toBeGreaterThan(0)
    expect(wait).toBeLessThanOrEqual(86_400)
    expect((await response.json<{ message: string }>()).message).toMatch(SPENT)
  })

  it('are spent by turns', async () => {
    const { id, value } = await makeKey({ turns_per_day: 2 })
    const asked = { conversation_model_id: 'one' }
    const statuses: number[] = []
    for (let turn = 0; turn < 3; turn++) {
      statuses.push((await ask({ ...asked, q: `How high is tower ${turn}?` }, value))[0])
    }
    expect(statuses).toEqual([200, 200, 429])
    const [, { usage }] = await call('GET', `/usage?key=${id}`)
    expect(usage).toMatchObject([{ day: today(), key: String(id), conversation_model_id: 'one', turns: 2 }])
  })

  it('of a model, whoever asks', async () => {
    const model = { ...MODEL, id: 'dear', tokens_per_day: 10, turns_per_day: 1_000 }
    expect((await call('POST', '/conversations/models', { body: model }))[1]).toMatchObject(model)
    const asked = { conversation_model_id: 'dear' }
    expect((await ask(asked))[0]).toBe(200)
    await spend('77', 'dear', 5, 5)
    const [status, { message }] = await ask(asked)
    expect([status, message]).toEqual([429, expect.stringMatching(SPENT)])
    // As much as it needs, from now on.
    await call('PUT', '/conversations/models/dear', { body: { tokens_per_day: 11 } })
    expect((await ask(asked))[0]).toBe(200)
  })

  it('of a model that are taken away bind nobody', async () => {
    const model = { ...MODEL, id: 'freed', tokens_per_day: 10 }
    expect((await call('POST', '/conversations/models', { body: model }))[0]).toBe(201)
    await spend('77', 'freed', 5, 5)
    expect((await ask({ conversation_model_id: 'freed' }))[0]).toBe(429)
    const [, freed] = await call('PUT', '/conversations/models/freed', { body: { tokens_per_day: null } })
    expect(freed).not.toHaveProperty('tokens_per_day')
    expect((await ask({ conversation_model_id: 'freed' }))[0]).toBe(200)
  })

  it.each([0, -1, 1.5, '5'])('of %j are refused', async (turns_per_day) => {
    const body = { ...MODEL, turns_per_day }
    expect(await call('POST', '/conversations/models', { body })).toEqual([
      400,
      { message: 'Property `turns_per_day` is not a positive integer.' },
    ])
  })
})

describe('GET /usage', () => {
  it('lists what was spent, by day, key and model', async () => {
    const row = { day: '2025-03-01', owner: '5', modelId: 'm', inputTokens: 3, outputTokens: 4 }
    const db = env.DB
    await recordCost(db, { usage: row })
    await recordCost(db, { usage: row })
    await recordCost(db, { usage: { ...row, day: '2025-03-02', owner: 'admin' } })
    await recordCost(db, { usage: { ...row, modelId: 'n' } })
    const list = async (parameters: Record<string, unknown>) => {
      const [status, answer] = await call('GET', `/usage${queryString(parameters)}`)
      expect(status).toBe(200)
      return answer.usage
    }
    const shown = (parts: Record<string, unknown>) => ({
      day: '2025-03-01',
      key: '5',
      conversation_model_id: 'm',
      turns: 1,
      input_tokens: 3,
      output_tokens: 4,
      ...parts,
    })
    const both = { turns: 2, input_tokens: 6, output_tokens: 8 }
    const march = { from: '2025-03-01', to: '2025-03-31' }
    expect(await list(march)).toEqual([
      shown({ day: '2025-03-02', key: 'admin' }),
      shown(both),
      shown({ conversation_model_id: 'n' }),
    ])
    expect(await list({ ...march, key: '5', model: 'm' })).toEqual([shown(both)])
    expect(await list({ ...march, limit: 1, offset: 2 })).toEqual([shown({ conversation_model_id: 'n' })])
    expect(await list({ from: '2025-03-03', to: '2025-03-31' })).toEqual([])
    expect((await list({})).every(({ day }: { day: string }) => day > '2025-04-01')).toBe(true)
  })

  it.each([
    ['from=yesterday', '`from`: Expected a day in the form YYYY-MM-DD.'],
    ['to=2025-02-30', '`to`: Expected a day in the form YYYY-MM-DD.'],
    ['limit=-1', '`limit`: Expected a number from 1 to 1000.'],
    ['limit=1001', '`limit`: Expected a number from 1 to 1000.'],
  ])('refuses %s', async (query, message) => {
    expect(await call('GET', `/usage?${query}`)).toEqual([400, { message, code: 'bad_request' }])
  })

  it('needs a key that may list it', async () => {
    const { value } = await makeKey()
    expect(await call('GET', '/usage', { key: value })).toEqual([401, { ...MAY_NOT, code: 'unauthorized' }])
  })
})

describe('the same question of two visitors', () => {
  const record = newRecord(new Request('http://parley/'))
  const admitted = (headers: Record<string, string>) =>
    admitTurn(
      {
        env,
        request: new Request('http://parley/multi_search?q=a', {
          method: 'POST',
          headers,
        }),
        record,
        accesses: [ADMIN],
        body: '{}',
        userId: undefined,
      },
      { ...MODEL, id: 'one', ttl: 1 },
    )

  const VISITOR = {
    'cf-connecting-ip': '192.0.2.1',
    'x-forwarded-for': '198.51.100.7, 192.0.2.1',
    'user-agent': 'Mozilla/5.0 (X11; Linux x86_64)',
    'accept-language': 'de,en;q=0.7',
    origin: 'https://shop.example',
  }

  it.each([
    ['cf-connecting-ip', '192.0.2.2'],
    ['x-forwarded-for', '198.51.100.8, 192.0.2.1'],
    ['user-agent', 'Mozilla/5.0 (Windows NT 10.0; Win64; x64)'],
    ['accept-language', 'de'],
    ['origin', 'https://blog.example'],
  ])('is two questions where they differ in their %s, unless it has a name', async (header, value) => {
    const other = { ...VISITOR, [header]: value }
    const one = await admitted(VISITOR)
    expect((await admitted(VISITOR)).fingerprint).toBe(one.fingerprint)
    expect((await admitted(other)).fingerprint).not.toBe(one.fingerprint)
    const named = { 'idempotency-key': 'mine' }
    expect(await admitted({ ...VISITOR, ...named })).toEqual(await admitted({ ...other, ...named }))
  })
})
