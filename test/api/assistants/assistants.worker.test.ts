/** Assistants inside workerd: looking after them, and the keys that are bound to one. */

import { env } from 'cloudflare:workers'
import { parse } from 'valibot'
import { beforeAll, describe, expect, it } from 'vitest'
import { admitAsker, openAssistant } from '../../../src/api/http/chat-names'
import { newRecord } from '../../../src/api/http/request-log'
import * as schemas from '../../../src/api/parley/response-schemas'
import { askAssistant, type Changes } from '../../../src/api/shared/assistant'
import { eventReader } from '../../../src/api/shared/stream'
import { chatOf } from '../../../src/conversation/ask'
import { Prefetch } from '../../../src/conversation/prefetch'
import { ApiError } from '../../../src/errors'
import { contentOf } from '../../../src/lib/parts'
import { SAFE_OVERRIDES } from '../../../src/registry/overrides'
import type { TurnEvent } from '../../../src/turn/events'
import { foldTurn } from '../../../src/turn/fold'
import { makeKey, QUESTION, setStage } from '../parley/stage'
import { ADMIN_KEY, call, FORBIDDEN, MAY_NOT } from '../typesense/api'
import { scopedKey } from '../typesense/conversing'

const UNKNOWN = [404, { message: 'Assistant not found', code: 'unknown_assistant' }]
const GUIDE = { model: 'm', collections: ['facts'], questions: [QUESTION] }

beforeAll(async () => {
  await setStage()
  for (const name of ['guide', 'other']) {
    expect((await call('PUT', `/assistants/${name}`, { body: GUIDE }))[0]).toBe(200)
  }
})

/** What a question comes to: a turn, or the error that its asker is told. */
async function turnOf(
  key: string,
  name: string,
  question = QUESTION,
  changes: Changes = {},
  conversationId?: string,
  user?: string,
) {
  const request = new Request('http://parley/test', {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
  })
  const record = newRecord(request)
  const call = { env, request, record, prefetch: new Prefetch(env, record) }
  try {
    const access = await admitAsker(call)
    const assistant = await openAssistant(call, access, name)
    const { events, retrievals } = await askAssistant({
      env,
      request,
      access,
      record,
      prefetch: call.prefetch,
      assistant,
      question,
      chat: chatOf(conversationId),
      changes,
      protocol: 'test',
      user,
      bodyText: crypto.randomUUID(),
    })
    const read = eventReader(events)
    const all: TurnEvent[] = []
    for (let batch = await read(); batch; batch = await read()) all.push(...batch)
    const failed = all.find((event) => event.type === 'error')
    if (failed) throw new ApiError(failed.status, failed.message)
    return { ...foldTurn(all), modes: retrievals.map(({ mode }) => mode) }
  } catch (error) {
    if (error instanceof ApiError) return { status: error.status, message: error.message }
    throw error
  }
}

describe('an assistant', () => {
  it('is stored with its defaults, listed, replaced and deleted', async () => {
    const [status, made] = await call('PUT', '/assistants/brief', {
      body: { ...GUIDE, questions: undefined },
    })
    expect([status, parse(schemas.Assistant, made)]).toEqual([200, made])
    expect(made).toMatchObject({
      name: 'brief',
      questions: [],
      overrides: SAFE_OVERRIDES,
      category_field: 'category',
      followups: false,
      followup_style: 'list',
      strict: false,
    })
    const searches = [{ collection: 'facts', query_by: 'text', per_page: 1 }]
    const [, replaced] = await call('PUT', '/assistants/brief', { body: { model: 'm', searches } })
    expect(replaced).toMatchObject({ searches, created_at: made.created_at })
    expect(replaced).not.toHaveProperty('collections')
    expect(await call('GET', '/assistants/brief')).toEqual([200, replaced])
    const [, list] = await call('GET', '/assistants')
    expect(parse(schemas.Assistants, list)).toEqual(list)
    expect(list.assistants.map(({ name }: { name: string }) => name)).toEqual(['brief', 'guide', 'other'])
    expect(await call('DELETE', '/assistants/brief')).toEqual([200, replaced])
    for (const method of ['GET', 'DELETE']) expect(await call(method, '/assistants/brief')).toEqual(UNKNOWN)
  })

  it.each([
    ['x', '{', 'Bad JSON.', ['message', 'detail', 'code']],
    ['X', GUIDE, /^`name`: Expected 1 to 64 lower-case/],
    ['x'.repeat(65), GUIDE, /^`name`: /],
    ['x', { ...GUIDE, model: undefined }, /^`model`: /],
    ['x', { ...GUIDE, model: 'nobody' }, '`model`: There is no conversation model `nobody`.'],
    ['x', { ...GUIDE, collections: ['facts', 'none'] }, '`collections`: There is no collection `none`.'],
    ['x', { ...GUIDE, searches: [] }, /^`searches`: /],
    ['x', { model: 'm' }, 'Give either `collections` or `searches`.'],
    ['x', { ...GUIDE, searches: [{ collection: 'facts' }] }, 'Give either `collections` or `searches`.'],
    ['x', { ...GUIDE, overrides: ['sql'] }, /^`overrides.0`: /],
    ['x', { ...GUIDE, colections: [] }, 'Unknown property `colections`; did you mean `collections`?'],
    ['x', { ...GUIDE, followup_style: 'loud' }, /^`followup_style`: /],
    [
      'x',
      { ...GUIDE, citation_field: 'page' },
      '`citation_field`: Collection `facts` has no indexed field of text `page`.',
    ],
  ])(
    'named %s is refused with what is wrong: %j',
    async (name, body, message, keys = ['message', 'code']) => {
      const [status, answer] = await call('PUT', `/assistants/${name}`, { body })
      expect([status, Object.keys(answer)]).toEqual([400, keys])
      expect(answer.message).toMatch(message)
    },
  )

  it('shows a page its questions, whatever way the key comes', async () => {
    const key = await makeKey({ actions: ['documents:search'], collections: ['facts'] })
    const front = [200, { name: 'guide', questions: [QUESTION], followups: false }]
    for (const [name, value] of [
      ['authorization', `Bearer ${key}`],
      ['x-api-key', key],
      ['api-key', key],
    ] as const) {
      expect(await call('GET', '/a/guide', { key: null, headers: { [name]: value } })).toEqual(front)
    }
    expect(await call('GET', `/a/guide?x-typesense-api-key=${key}`, { key: null })).toEqual(front)
    expect(await call('GET', '/a/nobody', { key })).toEqual(UNKNOWN)
    expect(await call('GET', '/a/guide', { key: 'wrong' })).toEqual([
      401,
      { ...FORBIDDEN, code: 'unauthorized' },
    ])
  })

  it('is looked after with keys of their own actions', async () => {
    const key = await makeKey({ actions: ['assistants:get', 'assistants:list'] })
    expect((await call('GET', '/assistants', { key }))[0]).toBe(200)
    expect((await call('GET', '/assistants/guide', { key }))[0]).toBe(200)
    expect(await call('PUT', '/assistants/guide', { key, body: GUIDE })).toEqual([
      401,
      { ...MAY_NOT, code: 'unauthorized' },
    ])
    expect(await call('DELETE', '/assistants/guide', { key })).toEqual([
      401,
      { ...MAY_NOT, code: 'unauthorized' },
    ])
  })

  it('answers from its collections, and with its own prompt', async () => {
    expect(await turnOf(ADMIN_KEY, 'guide')).toMatchObject({
      answer: [{ text: expect.stringContaining('330') }],
      modes: ['text'],
    })
  })

  it('searches as a request changes it', async () => {
    const found = async (changes: Changes) =>
      (await turnOf(ADMIN_KEY, 'guide', 'metres high', changes)) as never as { passages: unknown[] }
    expect((await found({})).passages).toHaveLength(2)
    expect((await found({ top: 1 })).passages).toHaveLength(1)
    expect((await found({ filterBy: 'city:=Berlin' })).passages).toMatchObject([
      { collection: 'facts', id: '1' },
    ])
    expect(await found({ mode: 'vectors' })).toMatchObject({ status: 400 })
    expect(await found({ mode: 'hybrid' })).toMatchObject({ modes: ['text'] })
    expect(await found({ includeCategory: 'Paris' })).toMatchObject({ status: 400, message: /`category`/ })
    expect(await found({ filterBy: 'nope:=1' })).toMatchObject({ status: 400 })
  })
})

describe('a key that is bound to an assistant', () => {
  const bind = (more: Record<string, unknown> = {}) =>
    makeKey({ actions: ['documents:search'], collections: ['none'], limits: { assistant: 'guide' }, ...more })

  it('asks that one, whatever collections it lacks, and no other', async () => {
    const key = await bind()
    expect(await turnOf(key, 'guide')).toMatchObject({ answer: [{ text: expect.stringContaining('330') }] })
    expect(await turnOf(key, 'other')).toEqual(await turnOf(key, 'nobody'))
    expect(await turnOf(key, 'other')).toEqual({ status: 404, message: 'Assistant not found' })
  })

  it.each([['*'], ['documents:search'], ['conversations:create'], ['conversations:*']])(
    'with the action %s may do nothing else',
    async (action) => {
      const key = await bind({ actions: [action], collections: ['*'] })
      expect(await turnOf(key, 'guide')).toMatchObject({ answer: [{ text: expect.stringContaining('330') }] })
      const refused: [string, string, unknown?][] = [
        ['GET', '/collections'],
        ['GET', '/collections/facts'],
        ['GET', '/collections/facts/documents/0'],
        ['GET', '/collections/facts/documents/search?q=tower&query_by=text'],
        [
          'GET',
          '/collections/facts/documents/search?q=tower&query_by=text&conversation=true&conversation_model_id=m',
        ],
        ['POST', '/multi_search', { searches: [{ collection: 'facts', q: '*' }] }],
        ['POST', '/conversations', { question: QUESTION, model: 'm', collections: ['facts'] }],
        ['GET', '/conversations/models'],
        ['GET', '/conversations/c/trace'],
        ['GET', '/assistants'],
        ['GET', '/assistants/guide'],
        ['PUT', '/assistants/guide', GUIDE],
        ['GET', '/keys'],
        ['GET', '/usage'],
      ]
      for (const [method, path, body] of refused) {
        // Only Parley's own routes have a code.
        const [status, { code = 'unauthorized', ...told }] = await call(method, path, { key, body })
        expect([path, status, told, code]).toEqual([path, 401, FORBIDDEN, 'unauthorized'])
      }
    },
  )

  it('may do nothing at all where its actions let it neither search nor converse', async () => {
    expect(await turnOf(await bind({ actions: ['collections:get'] }), 'guide')).toMatchObject({ status: 401 })
  })

  it('reads, follows, lists and stops what it asked, and not what others did', async () => {
    const key = await bind()
    const mine = (await turnOf(key, 'guide')) as { conversationId: string }
    const theirs = (await turnOf(await bind(), 'guide')) as { conversationId: string }
    const paths = (id: string): [string, string][] => [
      ['GET', `/conversations/${id}`],
      ['POST', `/conversations/${id}/stop`],
    ]
    for (const [method, path] of paths(mine.conversationId)) {
      expect((await call(method, path, { key }))[0]).toBe(200)
    }
    for (const [method, path] of paths(theirs.conversationId)) {
      expect(await call(method, path, { key })).toEqual([
        404,
        { message: 'Conversation not found', code: 'unknown_conversation' },
      ])
    }
    // A key of a page is its visitors': what one of them asked is not listed to the others.
    await turnOf(key, 'guide', QUESTION, {}, undefined, 'ann')
    const claims: Record<string, string>[] = [{}, { 'x-typesense-user-id': 'ann' }]
    for (const headers of claims) {
      expect((await call('GET', '/conversations', { key, headers }))[0]).toBe(401)
      expect((await call('DELETE', '/users/ann/conversations', { key, headers }))[0]).toBe(401)
    }
    expect(await turnOf(key, 'guide', 'Who was its architect?', {}, mine.conversationId)).toMatchObject({
      conversationId: mine.conversationId,
    })
    expect(await turnOf(key, 'guide', 'Who?', {}, theirs.conversationId)).toEqual({
      status: 404,
      message: 'Conversation not found',
    })
  })

  it('signs scoped keys that narrow, and none that could show more', async () => {
    const parent = await bind()
    const berlin = (await turnOf(
      await scopedKey(parent, { filter_by: 'city:=Berlin' }),
      'guide',
    )) as never as {
      passages: unknown[]
    }
    expect(berlin.passages).toMatchObject([{ collection: 'facts', id: '1' }])
    for (const parameters of [
      { include_fields: '*' },
      { exclude_fields: '' },
      { query_by: 'city' },
      { q: 'x', per_page: 250 },
    ]) {
      expect(await turnOf(await scopedKey(parent, parameters), 'guide')).toMatchObject({ status: 401 })
    }
    // Neither another collection nor another model can be reached through it.
    for (const parameters of [{ collection: 'more' }, { conversation_model_id: 'x' }]) {
      expect(await turnOf(await scopedKey(parent, parameters), 'guide')).toMatchObject({ status: 404 })
    }
    expect(
      await turnOf(await scopedKey(parent, { collection: 'facts', q: QUESTION }), 'guide', 'Other?'),
    ).toMatchObject({
      question: contentOf(QUESTION),
    })
  })

  it('is refused with an assistant that is no name', async () => {
    const body = { description: '', actions: ['*'], collections: ['*'], limits: { assistant: 5 } }
    expect((await call('POST', '/keys', { body }))[0]).toBe(400)
  })
})

describe('another key', () => {
  it('may ask where all collections are open to it, and else knows nothing of the assistant', async () => {
    await call('PUT', '/assistants/wide', { body: { model: 'm', collections: ['facts', 'more'] } })
    const narrow = await makeKey({ actions: ['documents:search'], collections: ['facts'] })
    const wide = await makeKey({ actions: ['conversations:create'], collections: ['facts', 'more'] })
    expect(await turnOf(narrow, 'guide')).toHaveProperty('answer')
    expect(await turnOf(narrow, 'wide')).toEqual({ status: 404, message: 'Assistant not found' })
    expect(await turnOf(wide, 'wide')).toHaveProperty('answer')
    expect(await turnOf(await makeKey({ actions: ['collections:*'] }), 'guide')).toMatchObject({
      status: 401,
    })
    expect(
      await turnOf(await makeKey({ actions: ['assistants:*'], collections: ['none'] }), 'guide'),
    ).toMatchObject({ status: 404 })
  })

  it('that is pinned to a model asks assistants with that model alone', async () => {
    const limits = { conversation_model_id: 'another' }
    const key = await makeKey({ actions: ['documents:search'], limits })
    expect(await turnOf(key, 'guide')).toEqual({ status: 404, message: 'Assistant not found' })
  })
})
