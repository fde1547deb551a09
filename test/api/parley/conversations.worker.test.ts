/** Conversations on Parley's own routes inside workerd: listed, read, traced, deleted, followed, stopped. */
import { parse } from 'valibot'
import { beforeAll, describe, expect, it } from 'vitest'
import * as schemas from '../../../src/api/parley/response-schemas'
import { call, send } from '../typesense/api'
import { ASK, ask, makeKey, NOT_FOUND, QUESTION, setStage } from './stage'

let other: string

beforeAll(async () => {
  await setStage()
  other = await makeKey({ actions: ['documents:search'] })
})

describe('conversations', () => {
  it('are listed, newest first, page by page, each in its own list', async () => {
    const actions = ['documents:search', 'conversations:list']
    const key = await makeKey({ actions, collections: ['facts'] })
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
    expect((await call('GET', '/conversations', { key }))[1].conversations).toHaveLength(4)
    const foreign = await makeKey({ actions, collections: ['facts'] })
    expect((await call('GET', '/conversations?user_id=u1', { key: foreign }))[1].conversations).toEqual([])
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
        citations: [0, 37].map((start) => ({ collection: 'facts', document_id: '0', start })),
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
      { message: 'Turn not found', code: 'unknown_turn' },
    ])
  })

  it('are given another title, which later turns leave alone', async () => {
    const [, { conversation_id: id }] = await ask()
    const path = `/conversations/${id}`
    const [status, renamed] = await call('PATCH', path, { body: { title: 'Towers of Paris' } })
    expect([status, renamed.title]).toEqual([200, 'Towers of Paris'])
    expect(parse(schemas.ConversationSummary, renamed)).toEqual(renamed)
    await ask({ question: 'And who designed it?', conversation_id: id })
    expect((await call('GET', path))[1]).toMatchObject({ title: 'Towers of Paris', turn_count: 2 })
    const [, { conversations }] = await call('GET', '/conversations?limit=1')
    expect(conversations).toMatchObject([{ id, title: 'Towers of Paris' }])

    for (const title of ['', ' ', 'x'.repeat(201), undefined]) {
      expect((await call('PATCH', path, { body: { title } }))[0]).toBe(400)
    }
    expect(await call('PATCH', path, { key: other, body: { title: 'Mine' } })).toEqual(NOT_FOUND)
    expect(await call('PATCH', `/conversations/${crypto.randomUUID()}`, { body: { title: 'x' } })).toEqual(
      NOT_FOUND,
    )
    expect((await call('GET', path))[1].title).toBe('Towers of Paris')
  })

  it('have a turn replaced, and whatever came after it', async () => {
    const [, { conversation_id: id }] = await ask()
    await ask({ question: 'And who designed it?', conversation_id: id })
    const edited = 'How high is the Brandenburg Gate?'
    expect((await ask({ question: edited, conversation_id: id, replaces: 1 }))[0]).toBe(200)
    const [, { turns }] = await call('GET', `/conversations/${id}`)
    expect(turns.map(({ question }: { question: string }) => question)).toEqual([edited])
    expect(await ask({ replaces: 1 })).toEqual([
      400,
      { message: '`replaces` needs the `conversation_id` of the turn.', code: 'bad_request' },
    ])
  })

  it('are traced where a turn failed, with what it failed with', async () => {
    const [, { conversation_id: id }] = await ask()
    const failing = { question: 'And now?', conversation_id: id, query_by: 'nothing' }
    const [refused, { message }] = await ask(failing)
    expect(refused).toBe(404)
    const [status, trace] = await call('GET', `/conversations/${id}/trace`)
    expect(status).toBe(200)
    expect(parse(schemas.Trace, trace)).toEqual(trace)
    expect(trace.turns).toMatchObject([
      { turn: 1, question: QUESTION },
      { turn: 2, question: 'And now?', answer: '', error: { status: 404, message } },
    ])
    expect(trace.turns[0]).not.toHaveProperty('error')
    expect(trace.turns[1].trace.searches[0].error).toMatchObject({ status: 404 })
    const [, one] = await call('GET', `/conversations/${id}/trace?turn=2`)
    expect(one.turns).toEqual([trace.turns[1]])
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
    const actions = ['documents:search', 'conversations:delete']
    const key = await makeKey({ actions, collections: ['facts'] })
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
    expect(await call('GET', '/conversations/nobody/events?after=1')).toEqual([
      400,
      { message, code: 'bad_request' },
    ])
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
