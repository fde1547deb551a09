/** The UI message stream inside workerd: chats, keys, what is replaced, and how it fails. */
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { ask, makeKey, QUESTION, setStage, UUID } from '../parley/stage'
import { call, send } from '../typesense/api'
import { scopedKey } from '../typesense/conversing'

const GUIDE = { model: 'm', collections: ['facts'] }
const PAGE = {
  id: 'bridge',
  text: 'The Golden Bridge is 227 metres high. It opened in 1937.',
  address: 'https://example.org/bridge?a=(1)',
}
const FERRY = { id: 'ferry', title: 'Ferries', text: 'Before the Golden Bridge there were ferries.' }

let pageKey: string
let otherKey: string

beforeAll(async () => {
  await setStage()
  const fields = [{ name: 'text', type: 'string' }]
  await call('POST', '/collections', { body: { name: 'pages', fields } })
  for (const body of [PAGE, FERRY]) await call('POST', '/collections/pages/documents', { body })
  const pages = { model: 'm', collections: ['pages'], url_field: 'address' }
  const curious = { ...pages, followups: true }
  for (const [name, body] of Object.entries({ guide: GUIDE, other: GUIDE, pages, curious })) {
    expect((await call('PUT', `/assistants/${name}`, { body }))[0]).toBe(200)
  }
  pageKey = await makeKey({ actions: ['assistants:ask'], limits: { assistant: 'guide' } })
  otherKey = await makeKey({ actions: ['documents:search'] })
})

const chatName = () => `a chat that nobody guesses ${crypto.randomUUID()}`

const user = (text: string, id = crypto.randomUUID()) => ({
  id,
  role: 'user',
  parts: [{ type: 'text', text }],
})

type Options = NonNullable<Parameters<typeof send>[2]>
interface Part {
  type: string
  delta?: string
  messageId?: string
  // biome-ignore lint/suspicious/noExplicitAny: parts are checked field by field
  [key: string]: any
}

/** Asks, and reads the parts of the answer. */
async function talk(
  id: string | undefined,
  body: Record<string, unknown>,
  options: Options & { path?: string } = {},
) {
  const { path = '/ui/guide', ...rest } = options
  const response = await send('POST', path, { ...rest, body: { id, ...body } })
  const text = await response.text()
  const parts: Part[] = text
    .split('\n\n')
    .filter((frame) => frame.startsWith('data: {'))
    .map((frame) => JSON.parse(frame.slice('data: '.length)))
  return {
    response,
    text,
    parts,
    answer: parts.map(({ delta = '' }) => delta).join(''),
    message: parts.find(({ type }) => type === 'start')?.messageId ?? '',
    conversation: response.headers.get('x-parley-conversation-id') ?? '',
  }
}

const turnsOf = async (conversation: string): Promise<string[]> => {
  const [, read] = await call('GET', `/conversations/${conversation}`)
  return read.turns?.map(({ question }: { question: string }) => question)
}

/** The question of a turn as it was searched. */
async function standaloneOf(conversation: string, turn: number): Promise<string> {
  const [, read] = await call('GET', `/conversations/${conversation}`)
  return read.turns.find((each: { turn: number }) => each.turn === turn).standalone
}

describe('a question', () => {
  it('is answered as a stream of parts with its sources', async () => {
    const { response, parts, answer, message, conversation, text } = await talk(chatName(), {
      messages: [user(QUESTION)],
    })
    expect(response.status).toBe(200)
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'x-vercel-ai-ui-message-stream': 'v1',
      'cache-control': 'no-cache, no-transform',
      'x-parley-conversation-id': expect.stringMatching(UUID),
    })
    expect(response.headers.get('access-control-expose-headers')).toContain('X-Vercel-AI-UI-Message-Stream')
    expect(answer).toContain('330 metres')
    expect(message).toBe(`${conversation}.1`)
    expect(parts.filter(({ type }) => type === 'source-document')[0]).toMatchObject({ sourceId: 'facts/0' })
    expect(parts.at(-1)?.messageMetadata).toMatchObject({
      conversation_id: conversation,
      usage: { model: 'local/extractive' },
      citations: [0, 37].map((start) => ({ sourceId: 'facts/0', start })),
    })
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
  })

  it('goes on with the chat of its name, whatever the client says was said', async () => {
    const chat = chatName()
    const first = await talk(chat, { messages: [user(QUESTION)] })
    const lie = { id: 'x', role: 'assistant', parts: [{ type: 'text', text: 'It is 5 metres high.' }] }
    const second = await talk(chat, { messages: [user('And what?'), lie, user('Who was its architect?')] })
    expect(second.conversation).toBe(first.conversation)
    expect(second.message).toBe(`${first.conversation}.2`)
    expect(await standaloneOf(first.conversation, 2)).toContain('Eiffel')
  })

  it('begins with what the client remembers where nothing is known', async () => {
    const before = {
      id: 'x',
      role: 'assistant',
      parts: [{ type: 'text', text: 'The Eiffel Tower stands there.' }],
    }
    const { conversation } = await talk(chatName(), {
      messages: [user(QUESTION), before, user('Who was its architect?')],
    })
    expect(await standaloneOf(conversation, 1)).toContain('Eiffel')
  })

  it('without a name of its own begins a conversation each time', async () => {
    const one = await talk(undefined, { messages: [user(QUESTION)] })
    const two = await talk('DEFAULT_THREAD_ID', { messages: [user('How high is the gate?')] })
    expect(one.conversation).toMatch(UUID)
    expect(two.conversation).not.toBe(one.conversation)
  })

  it('can go on with a conversation of another protocol by its id', async () => {
    const [, { conversation_id }] = await ask()
    const { conversation, message } = await talk(conversation_id, { message: user('Who was its architect?') })
    expect([conversation, message]).toEqual([conversation_id, `${conversation_id}.2`])
  })

  it('is answered with the overrides that the assistant allows', async () => {
    const body = (overrides: Record<string, unknown>) => ({
      messages: [user(QUESTION)],
      context: { overrides },
    })
    const { parts } = await talk(chatName(), body({ top: 1 }))
    expect(parts.filter(({ type }) => type === 'source-document')).toHaveLength(1)
    const refused = await talk(chatName(), body({ top: 'all' }))
    expect([refused.response.status, JSON.parse(refused.text).message]).toEqual([
      400,
      expect.stringContaining('context.overrides.top'),
    ])
  })

  it('comes with suggestions where the assistant makes them', async () => {
    const { parts } = await talk(
      chatName(),
      { messages: [user('How high is the Golden Bridge?')] },
      { path: '/ui/curious' },
    )
    const types = parts.map(({ type }) => type)
    expect(types.slice(-4)).toEqual(['text-end', 'data-suggestions', 'finish-step', 'finish'])
    expect(parts.at(-3)?.data).toEqual({ suggestions: ['What is “Ferries” about?'] })
  })

  it.each(['header', 'query'])('has links for citations where the %s asks for them', async (where) => {
    const asked = { path: where === 'query' ? '/ui/pages?citations=markdown' : '/ui/pages' }
    const headers: Record<string, string> = where === 'header' ? { 'x-parley-citations': 'markdown' } : {}
    const { answer, parts } = await talk(
      chatName(),
      { messages: [user('How high is the Golden Bridge?')] },
      { ...asked, headers },
    )
    expect(answer).toContain('227 metres high. [[1]](https://example.org/bridge?a=%281%29)')
    expect(parts).toContainEqual({
      type: 'source-url',
      sourceId: 'pages/bridge',
      url: 'https://example.org/bridge?a=(1)',
      title: 'bridge',
    })
  })
})

describe('an answer that is written again', () => {
  it('takes the place of the one that the client names', async () => {
    const chat = chatName()
    const first = await talk(chat, { messages: [user(QUESTION, 'u1')] })
    const second = await talk(chat, { message: user('Who was its architect?', 'u2') })
    const again = await talk(chat, {
      message: user('Who was its architect?', 'u2'),
      trigger: 'regenerate-message',
      messageId: second.message,
    })
    expect(again.message).toBe(`${first.conversation}.3`)
    expect(await turnsOf(first.conversation)).toEqual([QUESTION, 'Who was its architect?'])
  })

  it('takes the place of everything after it', async () => {
    const chat = chatName()
    const first = await talk(chat, { messages: [user(QUESTION, 'u1')] })
    await talk(chat, { message: user('Who was its architect?', 'u2') })
    await talk(chat, {
      messages: [user(QUESTION, 'u1')],
      trigger: 'regenerate-message',
      messageId: first.message,
    })
    expect(await turnsOf(first.conversation)).toEqual([QUESTION])
  })

  it('takes nobody’s place when the last question had failed', async () => {
    const chat = chatName()
    const first = await talk(chat, { messages: [user(QUESTION, 'u1')] })
    const answer = { id: first.message, role: 'assistant', parts: [{ type: 'text', text: first.answer }] }
    await talk(chat, {
      messages: [user(QUESTION, 'u1'), answer, user('Who was its architect?', 'u2')],
      trigger: 'regenerate-message',
    })
    expect(await turnsOf(first.conversation)).toEqual([QUESTION, 'Who was its architect?'])
  })

  it('takes the place of an edited question’s', async () => {
    const chat = chatName()
    const first = await talk(chat, { messages: [user('How high is the gate?', 'u1')] })
    await talk(chat, { messages: [user(QUESTION, 'u1')], trigger: 'submit-message', messageId: 'u1' })
    expect(await turnsOf(first.conversation)).toEqual([QUESTION])
  })
})

describe('a chat', () => {
  it('is another one for another key, user and assistant', async () => {
    const chat = chatName()
    const messages = [user(QUESTION)]
    const all = await Promise.all([
      talk(chat, { messages }),
      talk(chat, { messages }, { path: '/ui/other' }),
      talk(chat, { messages }, { key: pageKey }),
      talk(chat, { messages }, { key: otherKey }),
      talk(chat, { messages }, { key: otherKey, headers: { 'x-typesense-user-id': 'anna' } }),
      talk(chat, { messages }, { key: await scopedKey(otherKey, { user_id: 'otto' }) }),
    ])
    expect(new Set(all.map(({ conversation }) => conversation)).size).toBe(6)
    for (const { parts } of all) expect(parts.at(-1)?.type).toBe('finish')
  })

  it('of another key cannot be gone on with by the id of its conversation', async () => {
    const { conversation } = await talk(chatName(), { messages: [user(QUESTION)] }, { key: otherKey })
    const stranger = await talk(conversation, { messages: [user(QUESTION)] }, { key: pageKey })
    expect(stranger.conversation).not.toBe(conversation)
    expect(stranger.message).toBe(`${stranger.conversation}.1`)
  })

  it('is the one that a scoped key fixes, whatever the client calls it', async () => {
    const { conversation } = await talk(chatName(), { messages: [user(QUESTION)] }, { key: otherKey })
    const key = await scopedKey(otherKey, { conversation_id: conversation })
    const { message } = await talk('1', { messages: [user('Who was its architect?')] }, { key })
    expect(message).toBe(`${conversation}.2`)
  })

  it('is not looked for by the id of a message that another program wrote', async () => {
    const said = { ...user('Hello.', 'msg.1'), role: 'assistant' }
    const { parts } = await talk(undefined, { messages: [said, user(QUESTION)] }, { key: pageKey })
    expect(parts.at(-1)?.type).toBe('finish')
  })

  it('needs a name that nobody guesses, unless it is shown who asks', async () => {
    const messages = [user(QUESTION)]
    const guessed = await talk('1', { messages }, { key: pageKey })
    expect(guessed.response.status).toBe(400)
    expect(JSON.parse(guessed.text).message).toMatch(/16 characters/)
    const claimed = await talk(
      '1',
      { messages },
      { key: pageKey, headers: { 'x-typesense-user-id': 'anna' } },
    )
    expect(claimed.response.status).toBe(400)
    const headers = { 'x-parley-visitor': crypto.randomUUID() }
    const shown = await talk('1', { messages }, { key: pageKey, headers })
    expect(shown.parts.at(-1)?.type).toBe('finish')
  })

  it('is known by the answers in it where assistant-ui makes up too short a name', async () => {
    const local = (messages: unknown[], headers = {}) =>
      talk('__LOCALID_a1B2c3D', { messages }, { key: pageKey, headers })
    const question = user(QUESTION)
    const { conversation, message } = await local([question])
    const held = { id: message, role: 'assistant', parts: [{ type: 'text', text: '330 metres.' }] }
    const next = await local([question, held, user('Who was its architect?')])
    expect(next.message).toBe(`${conversation}.2`)
    const stranger = await local([user('And what did I ask?')])
    expect(stranger.message).toBe(`${stranger.conversation}.1`)
    expect(stranger.conversation).not.toBe(conversation)
    const headers = { 'x-parley-visitor': crypto.randomUUID() }
    const own = await local([question], headers)
    expect((await local([user('Who was its architect?')], headers)).message).toBe(`${own.conversation}.2`)
  })

  it.each(['/ui/guide/nobody-knows/stream', '/ui/guide?chatId=nobody-knows', '/ui/guide'])(
    'that has nothing running answers 204 on %s',
    async (path) => {
      const response = await send('GET', path)
      expect([response.status, await response.text()]).toEqual([204, ''])
    },
  )

  it('that is done has nothing to resume and nothing to stop', async () => {
    const chat = chatName()
    await talk(chat, { messages: [user(QUESTION)] })
    const path = `/ui/guide/${encodeURIComponent(chat)}`
    expect((await send('GET', `${path}/stream`)).status).toBe(204)
    expect(await call('POST', `${path}/stop`)).toEqual([200, { stopped: false }])
  })
})

describe('a request that cannot be served', () => {
  const body = { id: 'a long name', messages: [user(QUESTION)] }

  it.each([
    ['no key', { key: null }, '/ui/guide', 401, /Forbidden/],
    ['a wrong key', { key: 'wrong' }, '/ui/guide', 401, /Forbidden/],
    ['an unknown assistant', {}, '/ui/nobody', 404, /Assistant not found/],
    ['bad JSON', { body: '{' }, '/ui/guide', 400, /Bad JSON/],
    ['no messages', { body: {} }, '/ui/guide', 400, /last of `messages`/],
    ['other citations', {}, '/ui/guide?citations=html', 400, /`citations`/],
  ])(
    'for %s is told so in a short JSON',
    async (_, options: { key?: string | null; body?: unknown }, path, status, message) => {
      const response = await send('POST', path, { body, ...options })
      const answer = (await response.json()) as { message: string }
      const keys = options.body === '{' ? ['message', 'detail'] : ['message']
      expect([response.status, Object.keys(answer)]).toEqual([status, keys])
      expect(answer.message).toMatch(message)
    },
  )

  it('is told that an assistant is unknown which its key may not ask', async () => {
    const response = await send('POST', '/ui/other', { key: pageKey, body })
    expect([response.status, await response.json()]).toEqual([404, { message: 'Assistant not found' }])
  })

  it('has its answer refused in words when the model fails', async () => {
    vi.stubGlobal('fetch', async () =>
      Response.json({ choices: [{ message: { content: 'Hello.' }, finish_reason: 'stop' }] }),
    )
    const [made] = await call('POST', '/conversations/models', {
      body: {
        id: 'broken',
        model_name: 'openai/x',
        api_key: 'sk',
        openai_url: 'https://llm.test',
        history_collection: 'history',
        max_bytes: 16_384,
      },
    })
    expect(made).toBe(201)
    vi.stubGlobal('fetch', async () => Response.json({ error: { message: 'out of order' } }, { status: 400 }))
    try {
      await call('PUT', '/assistants/broken', { body: { ...GUIDE, model: 'broken' } })
      const { response, parts, text } = await talk(
        chatName(),
        { messages: [user(QUESTION)] },
        { path: '/ui/broken' },
      )
      expect(response.status).toBe(200)
      expect(parts.at(-1)).toEqual({ type: 'error', errorText: expect.stringContaining('out of order') })
      expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
    } finally {
      vi.unstubAllGlobals()
    }
  })
})
