/** The AI Chat Protocol inside workerd: answers and sessions. The numbers are the conformance cases of contract section 5. */
import { beforeAll, describe, expect, it } from 'vitest'
import { makeKey, QUESTION, UUID } from '../parley/stage'
import { call, send } from '../typesense/api'
import { scopedKey } from '../typesense/conversing'
import { ask, lines, type Options, post, setChatStage, user } from './stage'

beforeAll(setChatStage)

describe('an answer', () => {
  it('is JSON with its sources and a session (cases 1, 45)', async () => {
    const response = await post('/chat', { messages: [user(QUESTION)], context: {}, session_state: null })
    expect([response.status, response.headers.get('content-type')]).toEqual([
      200,
      'application/json; charset=utf-8',
    ])
    const body = await response.json<Record<string, never>>()
    expect(body).toMatchObject({
      message: { role: 'assistant', content: expect.stringContaining('330') },
      context: {
        data_points: { images: [], citations: expect.arrayContaining(['0.txt']) },
        followup_questions: null,
      },
      session_state: expect.stringMatching(UUID),
    })
    expect(body).not.toHaveProperty('sessionState')
    expect(response.headers.get('x-parley-conversation-id')).toBe(body.session_state)
    const { text, citations } = (body as never as { context: { data_points: Record<string, string[]> } })
      .context.data_points
    expect(text).toHaveLength(citations!.length)
    for (const [index, citation] of citations!.entries())
      expect(text![index]).toMatch(new RegExp(`^${citation}: .`))
  })

  it('is the same as lines (case 2)', async () => {
    const [, whole] = await ask()
    const { type, lines: all } = await lines()
    expect(type).toBe('application/jsonl')
    expect(all[0]).toMatchObject({
      delta: { role: 'assistant' },
      context: { data_points: whole.context.data_points },
    })
    expect(all[0].delta).not.toHaveProperty('content')
    expect(all.every((line) => 'delta' in line)).toBe(true)
    expect(all.map((line) => line.delta.content ?? '').join('')).toBe(whole.message.content)
    expect(all.at(-1)).toMatchObject({
      delta: {},
      session_state: all[0].session_state,
      sessionState: all[0].session_state,
    })
    expect(all.at(-1).context).not.toHaveProperty('data_points')
  })

  it('is lines where the body asks for a stream, and has a slash behind its address (case 4)', async () => {
    expect((await lines({ stream: true }, {}, '/chat')).lines.at(-1).delta).toEqual({})
    for (const path of ['/chat/', '/a/default/chat', '/a/default/chat/', '/v/2024-05-29/chat']) {
      expect((await ask({}, {}, path))[0]).toBe(200)
    }
    for (const path of ['/chat/stream/', '/a/default/chat/stream', '/v/2024-05-29/chat/stream']) {
      expect((await lines({}, {}, path)).lines.length).toBeGreaterThan(2)
    }
  })

  it('cites in brackets what can be opened (case 31)', async () => {
    const [, { message, context }] = await ask(
      { messages: [user('What does the plan cover for hearing?')] },
      {},
      '/a/plans/chat',
    )
    expect(message.content).toContain('[Plan.pdf#page=2]')
    expect(context.data_points.citations).toContain('Plan.pdf#page=2')
    const open = async (path: string, options?: Options) => {
      const response = await send('GET', path, options)
      return [response.status, await response.text()]
    }
    const page = [200, 'The plan covers hearing care.\nhealth\na']
    expect(await open('/a/plans/content/Plan.pdf%23page=2')).toEqual(page)
    expect(await open('/a/plans/content/Plan.pdf%23page=2%20(figure1.png)')).toEqual(page)
    expect(await open('/a/plans/content/Plan.pdf')).toEqual([
      200,
      'The plan covers dental care.\nhealth\na\n\nThe plan covers hearing care.\nhealth\na',
    ])
    for (const citation of context.data_points.citations) {
      expect((await open(`/a/plans/content/${encodeURIComponent(citation)}`))[0]).toBe(200)
    }
    const odd = await ask({ messages: [user('What covers travel care?')] }, {}, '/a/both/chat')
    const label = odd[1].context.data_points.citations.find((each: string) => each.startsWith('weird'))
    expect(odd[1].message.content).toContain(`[${label}]`)
    expect((await open(`/a/both/content/${encodeURIComponent(label)}`))[1]).toContain('nobody')
    expect((await open(`/a/both/content/${label}`))[0]).toBe(200)
    for (const path of [
      '/a/plans/content/Pla.pdf',
      '/a/plans/content/p9.txt',
      '/content/p1.txt',
      '/content/.txt',
    ]) {
      expect((await open(path))[0]).toBe(404)
    }
    expect((await open('/a/nobody/content/x'))[0]).toBe(404)
    expect((await open('/content/0.txt', { key: 'wrong' }))[0]).toBe(401)
  })

  it('opens its sources as text that nothing can run in', async () => {
    const { headers } = await send('GET', '/content/0.txt')
    expect(headers.get('content-type')).toBe('text/plain; charset=utf-8')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('content-security-policy')).toContain('sandbox')
  })

  it('says so where nothing was found (case 30)', async () => {
    const [status, { message, context }] = await ask({ messages: [user('zzzz')] })
    expect([status, context.data_points]).toEqual([200, { text: [], images: [], citations: [] }])
    expect(message.content).toMatch(/No documents were found/)
    expect((await lines({ messages: [user('zzzz')] })).lines[0].context.data_points.text).toEqual([])
  })

  it('tells how it came about, without the prompt (case 49)', async () => {
    const [, { context }] = await ask({ messages: [user(QUESTION)] }, {}, '/a/vectors/chat')
    expect(context.thoughts.map(({ title }: { title: string }) => title)).toEqual([
      'Generated search query',
      'Search using generated search query',
      'Search results',
      'Prompt to generate answer',
    ])
    expect(JSON.stringify(context.thoughts)).not.toContain('<Data>')
  })

  it('hides what the assistant and the key hide (case 48)', async () => {
    const search = await makeKey({ actions: ['documents:search'], collections: ['plans'] })
    const key = await scopedKey(search, { filter_by: 'tenant:=b' })
    const [status, body] = await ask(
      { messages: [user('What does the plan cover?')] },
      { key },
      '/a/plans/chat',
    )
    expect(status).toBe(200)
    expect(JSON.stringify(body)).not.toMatch(/dental|hearing|Plan\.pdf/)
    expect(body.context.data_points.citations.length).toBeGreaterThan(0)
    for (const label of ['Plan.pdf%23page=1', 'Plan.pdf', 'p1.txt']) {
      expect((await send('GET', `/a/plans/content/${label}`, { key })).status).toBe(404)
    }
    const [, open] = await ask({ messages: [user('plan')] }, {}, '/a/plans/chat')
    expect(JSON.stringify(open)).not.toContain('hush')
    expect(await (await send('GET', '/a/plans/content/Plan.pdf')).text()).not.toContain('hush')
  })
})

describe('a session', () => {
  const follow = (session: Record<string, unknown>, options: Options = {}) =>
    ask({ messages: [user('Who was its architect?')], ...session }, options)

  it('goes on where it was, with the new message alone (case 6)', async () => {
    const [, first] = await ask()
    for (const session of [
      { session_state: first.session_state },
      { sessionState: { conversation_id: first.session_state } },
      { context: { sessionId: first.session_state } },
    ]) {
      const [status, second] = await follow(session)
      expect([status, second.session_state ?? second.sessionState]).toEqual([200, first.session_state])
      expect(second.context.thoughts[0].description).toContain('Eiffel Tower')
    }
  })

  it('begins with a transcript, and has it in its history (case 8)', async () => {
    const messages = [
      user(QUESTION),
      { role: 'assistant', content: 'It is 330 metres high.' },
      user('Who was its architect?'),
    ]
    const [status, { context, session_state: id }] = await ask({ messages })
    expect([status, context.thoughts[0].description]).toEqual([200, expect.stringContaining('Eiffel Tower')])
    const [, second] = await ask({ messages: [user('How high is it?')], session_state: id })
    expect(second.context.thoughts[0].description).toContain('Eiffel Tower')
  })

  it('is unknown to another key, as is one that nobody began (case 10)', async () => {
    const [mine, theirs] = await Promise.all(
      [1, 2].map(() => makeKey({ actions: ['documents:search'], collections: ['facts'] })),
    )
    const [, { session_state: id }] = await ask({}, { key: mine })
    const nobody = await follow({ session_state: 'nobody' }, { key: theirs })
    expect(nobody).toMatchObject([400, { error: expect.stringContaining('session is unknown') }])
    for (const path of ['/chat', '/chat/stream']) {
      const asked = await ask({ messages: [user('Who?')], session_state: id }, { key: theirs }, path)
      expect(asked).toEqual(nobody)
    }
    expect((await follow({ session_state: id }, { key: mine }))[0]).toBe(200)
    for (const session of [5, { turn: 1 }, 'x'.repeat(600)]) {
      expect((await follow({ session_state: session }))[0]).toBe(400)
    }
  })

  it('is another one for each who asks the same at once, with the same answer (case 38)', async () => {
    const key = await makeKey({ actions: ['documents:search', 'conversations:list'], collections: ['facts'] })
    const body = { messages: [user('How high is the Brandenburg Gate?')] }
    const [a, b] = await Promise.all([ask(body, { key }), ask(body, { key })])
    expect(a[1].session_state).not.toBe(b[1].session_state)
    expect(a[1].message).toEqual(b[1].message)
    const [, { conversations }] = await call('GET', '/conversations', { key })
    const began = { protocol: 'ai-chat', turn_count: 1 }
    expect(conversations).toMatchObject([began, began])
  })
})
