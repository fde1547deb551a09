/** Feedback on answers inside workerd: who gives it, who reads it, and that it goes with its turn. */
import { env } from 'cloudflare:workers'
import { parse } from 'valibot'
import { beforeAll, describe, expect, it } from 'vitest'
import * as schemas from '../../../src/api/parley/response-schemas'
import { sweepExpired } from '../../../src/conversation/expiry'
import { call } from '../typesense/api'
import { ask, makeKey, NOT_FOUND, QUESTION, setStage } from './stage'

let page: string
let server: string

const visitor = (name: string) => ({ 'x-parley-visitor': name.padEnd(40, '0') })
const ANN = visitor('ann')
const BOB = visitor('bob')

const pathOf = (id: string, turn: number | string = 1) => `/conversations/${id}/turns/${turn}/feedback`
const rate = (id: string, body: unknown, options: Parameters<typeof call>[2] = {}) =>
  call('PUT', pathOf(id), { ...options, body })
const read = async (id: string, options: Parameters<typeof call>[2] = {}) =>
  (await call('GET', `/conversations/${id}`, options))[1].turns
const rows = async (id: string): Promise<number> =>
  (await env.DB.prepare('SELECT count(*) AS many FROM feedback WHERE conversation_id = ?')
    .bind(id)
    .first('many'))!

const begin = async (options: Parameters<typeof ask>[1] = {}, body = {}) => {
  const [status, answer] = await ask(body, options)
  expect(status).toBe(200)
  return answer.conversation_id as string
}

beforeAll(async () => {
  await setStage()
  page = await makeKey({ actions: ['documents:search'] })
  server = await makeKey({ actions: ['documents:search', 'conversations:get'], collections: ['facts'] })
})

describe('feedback', () => {
  it('is in the record of its turn, and the last word counts', async () => {
    const id = await begin()
    expect((await read(id))[0].feedback).toBeUndefined()
    const [status, given] = await rate(id, { rating: 'up', comment: '  Right.  ', reasons: ['clear'] })
    expect(status).toBe(200)
    expect(parse(schemas.Feedback, given)).toEqual(given)
    expect(given).toMatchObject({ rating: 'up', comment: 'Right.', reasons: ['clear'], own: true })
    const [, changed] = await rate(id, { rating: 'down' })
    expect(changed.created_at).toBe(given.created_at)
    const turns = await read(id)
    expect(turns[0].feedback).toEqual([changed])
    expect(changed).toEqual({
      rating: 'down',
      own: true,
      created_at: given.created_at,
      updated_at: changed.updated_at,
    })
    const [, whole] = await call('GET', `/conversations/${id}`)
    expect(parse(schemas.Conversation, whole)).toEqual(whole)
    const [, trace] = await call('GET', `/conversations/${id}/trace`)
    expect(parse(schemas.Trace, trace).turns[0]?.feedback).toEqual([changed])
  })

  it.each([
    [5, 'up'],
    [4, 'up'],
    [3, undefined],
    [2, 'down'],
    [1, 'down'],
  ])('of the score %i counts as %s', async (score, rating) => {
    const id = await begin()
    expect((await rate(id, { score }))[1]).toMatchObject({ score, ...(rating && { rating }) })
    expect((await read(id))[0].feedback[0].rating).toBe(rating)
  })

  it('can be withdrawn', async () => {
    const id = await begin()
    await rate(id, { rating: 'up' })
    expect(await call('DELETE', pathOf(id))).toEqual([200, { deleted: true }])
    expect(await call('DELETE', pathOf(id))).toEqual([200, { deleted: false }])
    expect((await read(id))[0].feedback).toBeUndefined()
  })

  it.each([
    [{}, /`rating`, a `score` or a `comment`/],
    [{ comment: '  ' }, /`rating`, a `score` or a `comment`/],
    [{ rating: 'good' }, /`rating`: Expected `up` or `down`/],
    [{ score: 6 }, /`score`/],
    [{ score: 1.5 }, /`score`/],
    [{ rating: 'up', comment: 'x'.repeat(2_001) }, /`comment`/],
    [{ rating: 'up', reasons: Array.from({ length: 11 }, String) }, /`reasons`/],
    [{ rating: 'up', reasons: [''] }, /`reasons.0`/],
    [{ rating: 'up', user_id: 'ann' }, /`user_id`/],
  ])('%j is refused', async (body, message) => {
    const id = await begin()
    expect(await rate(id, body)).toEqual([
      400,
      { message: expect.stringMatching(message), code: 'bad_request' },
    ])
    expect(await rows(id)).toBe(0)
  })

  it('needs a turn that was answered', async () => {
    const id = await begin()
    const missing = [404, { message: 'Turn not found', code: 'unknown_turn' }]
    expect(await call('PUT', pathOf(id, 2), { body: { rating: 'up' } })).toEqual(missing)
    expect((await call('PUT', pathOf(id, 'x'), { body: { rating: 'up' } }))[0]).toBe(400)
    expect((await call('PUT', pathOf(id, 0), { body: { rating: 'up' } }))[0]).toBe(400)
    expect(await call('PUT', pathOf('nobody-gave-this-out'), { body: { rating: 'up' } })).toEqual(NOT_FOUND)
  })
})

describe('a visitor', () => {
  it('rates answers of their own, and nobody else does', async () => {
    const id = await begin({ key: page, headers: ANN })
    expect(await rate(id, { rating: 'down' }, { key: page, headers: BOB })).toEqual(NOT_FOUND)
    expect(await rate(id, { rating: 'down' }, { key: page })).toEqual(NOT_FOUND)
    const claimed = { ...BOB, 'x-typesense-user-id': 'ann' }
    expect(await rate(id, { rating: 'down' }, { key: page, headers: claimed })).toEqual(NOT_FOUND)
    const [status] = await rate(id, { rating: 'up', comment: 'Thanks' }, { key: page, headers: ANN })
    expect(status).toBe(200)
    expect(await call('DELETE', pathOf(id), { key: page, headers: BOB })).toEqual(NOT_FOUND)
    expect((await read(id, { key: page, headers: ANN }))[0].feedback).toMatchObject([
      { rating: 'up', own: true },
    ])
    expect((await read(id))[0].feedback).toMatchObject([{ rating: 'up', comment: 'Thanks', own: false }])
  })

  it('does not see what the operator says of the answer, nor change it', async () => {
    const id = await begin({ key: page, headers: ANN })
    await rate(id, { rating: 'down', comment: 'for the team' })
    expect((await read(id, { key: page, headers: ANN }))[0].feedback).toBeUndefined()
    await rate(id, { rating: 'up' }, { key: page, headers: ANN })
    expect(await call('DELETE', pathOf(id), { key: page, headers: ANN })).toEqual([200, { deleted: true }])
    expect((await read(id))[0].feedback).toMatchObject([
      { rating: 'down', comment: 'for the team', own: true },
    ])
  })

  it('with the id of a conversation that nobody is shown to own has a rating of their own in it', async () => {
    const id = await begin({ key: page })
    await rate(id, { rating: 'up', comment: 'by ann' }, { key: page, headers: ANN })
    await rate(id, { rating: 'down' }, { key: page, headers: BOB })
    expect((await read(id, { key: page, headers: ANN }))[0].feedback).toMatchObject([{ rating: 'up' }])
    expect((await read(id, { key: page, headers: BOB }))[0].feedback).toMatchObject([{ rating: 'down' }])
    expect(await read(id)).toMatchObject([{ feedback: [{ rating: 'up' }, { rating: 'down' }] }])
  })

  it('cannot fill the database by being many', async () => {
    const id = await begin({ key: page })
    for (let at = 0; at < 100; at += 1) {
      expect((await rate(id, { score: 5 }, { key: page, headers: visitor(`many${at}x`) }))[0]).toBe(200)
    }
    const late = await rate(id, { score: 1 }, { key: page, headers: BOB })
    expect(late).toEqual([409, { message: expect.stringContaining('100 people'), code: 'conflict' }])
    expect((await rate(id, { score: 1 }, { key: page, headers: visitor('many7x') }))[0]).toBe(200)
    expect(await rows(id)).toBe(100)
  })
})

describe('a key', () => {
  it('bound to an assistant rates answers of its visitors', async () => {
    const body = { model: 'm', collections: ['facts'] }
    expect((await call('PUT', '/assistants/rated', { body }))[0]).toBe(200)
    const key = await makeKey({ actions: ['documents:search'], limits: { assistant: 'rated' } })
    const asked = await call('POST', '/a/rated/conversations', {
      key,
      headers: ANN,
      body: { question: QUESTION },
    })
    const id = asked[1].conversation_id
    expect((await rate(id, { rating: 'up' }, { key, headers: ANN }))[0]).toBe(200)
    expect(await rate(id, { rating: 'up' }, { key, headers: BOB })).toEqual(NOT_FOUND)
  })

  it('that may read what was begun with it may rate that, and sees what everybody says', async () => {
    const id = await begin({ key: server })
    await rate(id, { rating: 'down' })
    expect((await rate(id, { rating: 'up' }, { key: server }))[0]).toBe(200)
    expect((await read(id, { key: server }))[0].feedback).toHaveLength(2)
    expect(await rate(await begin(), { rating: 'up' }, { key: server })).toEqual(NOT_FOUND)
  })

  it('that may do nothing but rate does that', async () => {
    const id = await begin()
    const key = await makeKey({ actions: ['conversations:feedback'] })
    expect((await rate(id, { rating: 'up' }, { key }))[0]).toBe(200)
    expect((await call('GET', `/conversations/${id}`, { key }))[0]).toBe(401)
  })

  it('without any of these may not', async () => {
    const id = await begin()
    const key = await makeKey({ actions: ['documents:get'] })
    expect((await rate(id, { rating: 'up' }, { key }))[0]).toBe(401)
  })
})

it('stays with its answer when another one takes the place, and is read with that version', async () => {
  const id = await begin()
  await rate(id, { rating: 'down' })
  const [status, again] = await ask({ conversation_id: id, replaces: 1 })
  expect(status).toBe(200)
  expect(await read(id)).toMatchObject([{ turn: again.turn, versions: [1, again.turn] }])
  expect((await read(id))[0]).not.toHaveProperty('feedback')
  const [, before] = await call('GET', `/conversations/${id}?version=1`)
  expect(before.turns).toMatchObject([{ turn: 1, feedback: [{ rating: 'down' }] }])
})

describe('feedback goes', () => {
  it('with its conversation', async () => {
    const id = await begin()
    await rate(id, { rating: 'up' })
    expect((await call('DELETE', `/conversations/${id}`))[0]).toBe(200)
    expect(await rows(id)).toBe(0)
  })

  it('with all that a user said', async () => {
    const key = await makeKey({ actions: ['documents:search', 'conversations:*'] })
    const id = await begin({ key, headers: { 'x-typesense-user-id': 'going' } })
    await rate(id, { rating: 'up' }, { key })
    expect((await call('DELETE', '/users/going/conversations', { key }))[1]).toEqual({
      deleted: 1,
      done: true,
    })
    expect(await rows(id)).toBe(0)
  })

  it('with the messages of its turn', async () => {
    const id = await begin()
    await rate(id, { rating: 'up' })
    const query = `filter_by=conversation_id:=${id}`
    await call('DELETE', `/collections/history/documents?${query}`)
    await expect.poll(() => rows(id), { timeout: 10_000 }).toBe(0)
  })

  it('when its turn expires, however many expire with it', async () => {
    const ids = [await begin(), await begin(), await begin()]
    for (const id of ids) {
      for (const headers of [ANN, BOB, visitor('eve')]) await rate(id, { rating: 'up' }, { headers })
      await env.DB.prepare('UPDATE turns SET expires_at = 1 WHERE conversation_id = ?').bind(id).run()
    }
    expect((await sweepExpired(env, Math.floor(Date.now() / 1000), { batch: 1 })).done).toBe(true)
    for (const id of ids) expect(await rows(id)).toBe(0)
  })
})
