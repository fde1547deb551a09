/** What keys fix and limit, on Parley's own routes. */
import { env } from 'cloudflare:workers'
import { beforeAll, describe, expect, it } from 'vitest'
import { deleteExpiredApiKeys } from '../../../src/db/api-keys'
import { call, send } from '../typesense/api'
import { HISTORY, scopedKey } from '../typesense/conversing'
import { ASK, ask, NOT_FOUND } from './stage'

const UNPROVEN = { message: expect.stringMatching(/^Forbidden - .*X-Parley-Visitor/), code: 'unauthorized' }

const makeKey = async (limits: Record<string, unknown> = {}, actions = ['documents:search']) => {
  const body = { description: '', actions, collections: ['*'], limits }
  const [status, key] = await call('POST', '/keys', { body })
  expect(status).toBe(201)
  return key.value as string
}

beforeAll(async () => {
  await call('POST', '/collections', { body: HISTORY })
  for (const name of ['facts', 'more']) {
    const fields = [
      { name: 'text', type: 'string' },
      { name: 'customer', type: 'int32' },
    ]
    await call('POST', '/collections', { body: { name, fields } })
    for (const [customer, text] of [
      'The Eiffel Tower is 330 metres high.',
      'The Eiffel Tower in Las Vegas is 165 metres high.',
    ].entries()) {
      await call('POST', `/collections/${name}/documents`, { body: { id: `${customer}`, text, customer } })
    }
  }
  for (const id of ['m', 'two']) {
    const model = { id, model_name: 'local/extractive', history_collection: 'history', max_bytes: 16_384 }
    expect((await call('POST', '/conversations/models', { body: model }))[0]).toBe(201)
  }
})

describe('a scoped key', () => {
  it('keeps its filter in every search, whatever the request filters', async () => {
    const key = await scopedKey(await makeKey(), { filter_by: 'customer:=1', user_id: 'ann' })
    for (const body of [
      {},
      { filter_by: 'customer:=0' },
      { filter_by: 'customer:=0 || customer:>=0' },
      { collections: undefined, searches: [{ collection: 'facts', filter_by: 'customer:>=0' }] },
    ]) {
      const [status, { results, answer }] = await ask(body, { key })
      expect(status).toBe(200)
      const ids = results.flatMap(({ hits }: { hits: { document: { id: string } }[] }) =>
        hits.map(({ document }) => document.id),
      )
      expect(ids).not.toContain('0')
      expect(answer).not.toContain('330')
    }
    const open = { filter_by: 'customer:=0) || (customer:>=0' }
    expect((await ask(open, { key }))[0]).toBe(400)
  })

  it('keeps to its collection', async () => {
    const key = await scopedKey(await makeKey(), { collection: 'more', user_id: 'ann' })
    const [status, { results }] = await ask({}, { key })
    expect(status).toBe(200)
    expect(results[0].request_params.collection_name).toBe('more')
  })

  it('opens its own user’s conversations alone, and lists no others', async () => {
    const parent = await makeKey({}, ['documents:search'])
    const [ann, bob] = [
      await scopedKey(parent, { user_id: 'ann' }),
      await scopedKey(parent, { user_id: 'bob' }),
    ]
    const [, { conversation_id: id }] = await ask({}, { key: ann })
    const pretending = { 'x-typesense-user-id': 'ann' }
    expect(await call('GET', `/conversations/${id}`, { key: bob, headers: pretending })).toEqual(NOT_FOUND)
    const listed = async (key: string, query = '') =>
      (await call('GET', `/conversations${query}`, { key, headers: pretending }))[1].conversations
    expect(await listed(ann)).toMatchObject([{ id, user_id: 'ann' }])
    expect(await listed(bob)).toEqual([])
    expect(await listed(bob, '?user_id=ann')).toEqual([])
  })

  it('that fixes no user lists nothing', async () => {
    const parent = await makeKey()
    for (const parameters of [{ filter_by: 'customer:=1' }, { expires_at: 4_000_000_000 }, {}]) {
      const key = await scopedKey(parent, parameters)
      const [status, { conversation_id: id }] = await ask({}, { key })
      expect(status).toBe(200)
      expect((await call('GET', `/conversations/${id}`, { key }))[0]).toBe(200)
      for (const path of ['/conversations', '/conversations?user_id=ann']) {
        expect(await call('GET', path, { key })).toEqual([401, UNPROVEN])
      }
    }
  })
})

describe('a key that is made after another was deleted', () => {
  const newest = async () => {
    const body = { description: '', actions: ['documents:search'], collections: ['*'] }
    return (await call('POST', '/keys', { body }))[1] as { id: number; value: string }
  }

  it('takes over neither its id nor its conversations', async () => {
    const gone = await newest()
    const [, { conversation_id: id }] = await ask({}, { key: gone.value })
    expect((await call('GET', `/conversations/${id}`, { key: gone.value }))[0]).toBe(200)
    for (let previous = gone.id, turns = 0; turns < 2; turns++) {
      expect((await call('DELETE', `/keys/${previous}`))[0]).toBe(200)
      const next = await newest()
      expect(next.id).toBeGreaterThan(previous)
      expect(await call('GET', `/conversations/${id}`, { key: next.value })).toEqual(NOT_FOUND)
      const headers = { 'x-parley-visitor': 'v'.repeat(32) }
      expect((await call('GET', '/conversations', { key: next.value, headers }))[1].conversations).toEqual([])
      previous = next.id
    }
  })

  it('does not see the deleted one', async () => {
    const { id } = await newest()
    const listed = async () => (await call('GET', '/keys'))[1].keys.map((key: { id: number }) => key.id)
    expect(await listed()).toContain(id)
    expect(await call('DELETE', `/keys/${id}`)).toEqual([200, { id }])
    expect(await listed()).not.toContain(id)
    const unknown = [404, { message: 'Not found.' }]
    expect(await call('GET', `/keys/${id}`)).toEqual(unknown)
    expect(await call('DELETE', `/keys/${id}`)).toEqual(unknown)
  })

  it('has another id than one that expired, too', async () => {
    const body = { description: '', actions: ['*'], collections: ['*'], expires_at: 1, autodelete: true }
    const [, { id }] = await call('POST', '/keys', { body })
    await deleteExpiredApiKeys(env.DB, 2)
    await deleteExpiredApiKeys(env.DB, 2)
    expect((await call('GET', `/keys/${id}`))[0]).toBe(404)
    expect((await newest()).id).toBeGreaterThan(id)
  })
})

describe('a key with limits', () => {
  it('fixes the model, which need not be named, and no other one seems to exist', async () => {
    const key = await makeKey({ conversation_model_id: 'two' })
    const [status, { conversation_id: id }] = await ask({ model: undefined }, { key })
    expect(status).toBe(200)
    expect((await call('GET', `/conversations/${id}`, { key }))[1].model_id).toBe('two')
    for (const model of ['m', 'none']) {
      expect(await ask({ model }, { key })).toEqual([
        404,
        { message: 'Model not found', code: 'unknown_model' },
      ])
    }
  })

  it('fixes the user, also for deleting all of a user’s conversations', async () => {
    const actions = ['documents:search', 'conversations:delete']
    const key = await makeKey({ user_id: 'carol' }, actions)
    const [, { conversation_id: id }] = await ask({}, { key, headers: { 'x-typesense-user-id': 'dave' } })
    expect((await call('GET', `/conversations/${id}`))[1].user_id).toBe('carol')
    expect(await call('DELETE', '/users/dave/conversations', { key })).toEqual(NOT_FOUND)
    expect((await call('GET', `/conversations/${id}`, { key }))[0]).toBe(200)
    expect(await call('DELETE', '/users/carol/conversations', { key })).toEqual([
      200,
      { deleted: 1, done: true },
    ])
  })

  it('asks as often as its budget says, and is told when it may again', async () => {
    const key = await makeKey({ turns_per_day: 1 })
    expect((await ask({}, { key }))[0]).toBe(200)
    const body = { ...ASK, stream: true }
    await expect
      .poll(async () => (await send('POST', '/conversations', { key, body })).status, { timeout: 5_000 })
      .toBe(429)
    const refused = await send('POST', '/conversations', { key, body })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await refused.json()).toEqual({
      message: expect.stringMatching(/^The budget of 1 turns a day/),
      code: 'over_budget',
    })
  })
})

describe('an idempotency key', () => {
  it('leads to the turn that it named, and to no other question', async () => {
    const key = await makeKey()
    const headers = { 'idempotency-key': crypto.randomUUID() }
    const [, first] = await ask({}, { key, headers })
    expect(await ask({}, { key, headers })).toEqual([200, first])
    expect((await ask({ question: 'Another one?' }, { key, headers }))[0]).toBe(422)
    const [, other] = await ask({}, { key: await makeKey(), headers })
    expect(other.conversation_id).not.toBe(first.conversation_id)
  })
})
