/** Two visitors of one page, behind one address and in the same browser: neither meets a word of the other's. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { serve } from '../serve'
import { createAssistant, createModel, createShows, request, url } from './harness'
import { type Ask, type Asked, send, waysToAsk, waysToAskInNamedChats } from './ways-to-ask'

/** What the model was sent in every call, those that rewrite a question included. */
const heard: { body: string; answers: boolean }[] = []
/** Words of questions that are asked twice at once: their answers wait until both are here. */
const held = new Set<string>()
/** A word of `Questions`. */
const WORD = /zq[0-9a-f]{8}/
let model: string
let shows: string
let assistant: string
let llm: Awaited<ReturnType<typeof serve>>

/** Makes a key. @returns its value */
const makeKey = async (key: Record<string, unknown>): Promise<string> => {
  const { status, body } = await request('POST', '/keys', { description: 'a page', ...key })
  expect(status).toBe(201)
  return body.value
}

beforeAll(async () => {
  llm = await serve(async (incoming, response) => {
    let body = ''
    for await (const piece of incoming) body += piece
    const { messages, stream } = JSON.parse(body)
    const last = String(messages.at(-1).content)
    const answers = last.includes('<Answer>')
    heard.push({ body, answers })
    // So that requests that are sent together are here together.
    if (answers && [...held].some((one) => body.includes(one))) await sleep(600)
    const [word] = WORD.exec(body) ?? []
    const text = answers ? 'An answer to all.' : `a question that stands alone ${word}`
    if (!stream) {
      response.writeHead(200, { 'content-type': 'application/json' })
      const message = { role: 'assistant', content: text }
      return void response.end(JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }] }))
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text } }] })}\n\n`)
    response.end('data: [DONE]\n\n')
  })
  shows = await createShows()
  model = await createModel({ model_name: 'openai/any', openai_url: llm.url })
  assistant = await createAssistant({ model, collections: [shows] })
})
afterAll(() => llm.stop())

/** The questions of one test, told from those of tests that run at the same time by a word in each of them. */
class Questions {
  readonly word = `zq${crypto.randomUUID().slice(0, 8)}`
  #from = 0

  /** The ways to ask, with the word. @param ask of a protocol */
  by(ask: Ask): Ask {
    return (asking) => ask({ ...asking, question: this.say(asking.question) })
  }

  say(question: string): string {
    return `${question} ${this.word}`
  }

  /** Asks several times at once: no answer is given before all of them are here. */
  async together<T>(asking: () => [Promise<T>, Promise<T>]): Promise<[T, T]> {
    held.add(this.word)
    try {
      return await Promise.all(asking())
    } finally {
      held.delete(this.word)
    }
  }

  /** What the model was sent since `forget`. */
  get calls(): string[] {
    return this.#heard.map(({ body }) => body)
  }

  /** The same of the answers that it began. */
  get prompts(): string[] {
    return this.#heard.filter(({ answers }) => answers).map(({ body }) => body)
  }

  get #heard() {
    return heard.slice(this.#from).filter(({ body }) => body.includes(this.word))
  }

  forget(): void {
    this.#from = heard.length
  }
}

const stage = () => ({ model, shows, assistant })

const secret = () => crypto.randomUUID().repeat(2)
const visitor = (value: string) => ({ 'x-parley-visitor': value })
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
const later = () => sleep(2_500)

/** Keys that may ask by a protocol. */
const keysFor = async (protocol: string): Promise<string[]> => [
  await makeKey({ actions: ['documents:search'], collections: [shows] }),
  ...(protocol.startsWith('/') && protocol !== '/conversations'
    ? [await makeKey({ actions: ['documents:search'], collections: ['*'], limits: { assistant } })]
    : []),
]

/** Goes on in Ann's conversation, and in Bob's: nothing of hers is in his. */
async function goOnApart(questions: Questions, ask: Ask, key: string, ann: Asked, bob: Asked): Promise<void> {
  const follow = await ask({ key, question: 'My name is Ann Onymous.', conversation: ann.chat })
  expect(follow.conversation).toBe(ann.conversation)
  questions.forget()
  const next = await ask({ key, question: 'And then?', conversation: bob.chat })
  expect(next.status, next.text).toBe(200)
  expect(next.conversation).toBe(bob.conversation)
  expect(questions.prompts).toHaveLength(1)
  expect(questions.calls.join()).not.toContain('Onymous')
  expect(next.text).not.toContain('Onymous')
}

/** Begins a conversation with a visitor's secret, and tries to go on in it with another and without. */
async function closedToOthers(way: Ask, key: string): Promise<void> {
  const questions = new Questions()
  const ask = questions.by(way)
  const [mine, other] = [visitor(secret()), visitor(secret())]
  const inAddress = true
  const { conversation, chat } = await ask({ key, question: 'an action series', headers: mine, inAddress })
  const follow = (headers: Record<string, string>, name: string) =>
    ask({ key, question: 'More?', conversation: name, headers })
  questions.forget()
  for (const headers of [other, {}]) {
    for (const name of new Set([conversation, chat])) {
      const { conversation: opened, text } = await follow(headers, name)
      expect(opened === conversation && text.includes('An answer')).toBe(false)
      expect(questions.calls.join()).not.toContain('an action series')
    }
  }
  for (const name of new Set([conversation, chat])) {
    expect((await follow(mine, name)).conversation).toBe(conversation)
  }
}

describe.concurrent.each(waysToAsk(stage))('%s', (name, way) => {
  const keys = () => keysFor(name)

  test('the same question at once: one answer is paid, and each has a conversation of its own', async () => {
    for (const key of await keys()) {
      const questions = new Questions()
      const ask = questions.by(way)
      const asking = { key, question: 'an action series' }
      const [ann, bob] = await questions.together(() => [ask(asking), ask(asking)])
      expect([ann.status, bob.status]).toEqual([200, 200])
      for (const { text } of [ann, bob]) expect(text).toContain('An answer to all.')
      expect(ann.conversation).not.toBe(bob.conversation)
      expect(questions.prompts).toHaveLength(1)

      await goOnApart(questions, ask, key, ann, bob)
    }
  })

  test('a name that nobody guesses joins, and one that anybody has does not', async () => {
    const [key] = (await keys()) as [string]
    const questions = new Questions()
    const ask = questions.by(way)
    const twice = (headers: Record<string, string>, question = 'an action series') =>
      questions.together(() => [ask({ key, question, headers }), ask({ key, question, headers })])
    const [first, again] = await twice({ 'idempotency-key': crypto.randomUUID() })
    expect(again.conversation).toBe(first.conversation)
    expect(questions.prompts).toHaveLength(1)
    const [ann, bob] = await twice({ 'idempotency-key': 'question-number-1' }, 'explorers')
    expect(bob.conversation).not.toBe(ann.conversation)
    expect(questions.prompts).toHaveLength(2)
    // A visitor who is told apart may call a request anything.
    const [one, two] = await twice({ 'idempotency-key': '1', ...visitor(secret()) }, 'recipes')
    expect(two.conversation).toBe(one.conversation)
    expect(questions.prompts).toHaveLength(3)
  })

  test('what is asked with a visitor’s secret is closed to everybody else with the key', async () => {
    const [key] = (await keys()) as [string]
    await closedToOthers(way, key)
  })

  test('a question asked again later, with the answer in hand, is a new one', async () => {
    const [key] = (await keys()) as [string]
    const questions = new Questions()
    const ask = questions.by(way)
    await ask({ key, question: 'an action series' })
    await later()
    await ask({ key, question: 'an action series' })
    expect(questions.prompts).toHaveLength(2)
  })
})

describe.concurrent.each(waysToAskInNamedChats(stage))('%s, whose clients name each chat', (name, way) => {
  test('the same question at once: each has an answer and a conversation of its own', async () => {
    for (const key of await keysFor(name)) {
      const questions = new Questions()
      const ask = questions.by(way)
      const asking = { key, question: 'an action series' }
      const [ann, bob] = await questions.together(() => [ask(asking), ask(asking)])
      for (const { status, text } of [ann, bob]) {
        expect(status).toBe(200)
        expect(text).toContain('An answer to all.')
      }
      expect(ann.conversation).not.toBe(bob.conversation)
      await goOnApart(questions, ask, key, ann, bob)
    }
  })

  test('what is asked with a visitor’s secret is closed to everybody else with the key', async () => {
    const [key] = (await keysFor(name)) as [string]
    await closedToOthers(way, key)
  })
})

describe('the chat id that a client makes up', () => {
  const chat = (key: string, id: string, question: string, headers: Record<string, string> = {}) =>
    send(`/ui/${assistant}`, { key, question, headers }, { id, message: { role: 'user', content: question } })
  const page = () => makeKey({ actions: ['documents:search'], collections: ['*'], limits: { assistant } })

  const GUESSABLE = '1234567 my-support-chat-01 chat-1764282000000 user-42-session-1 MySupportChat001'
  test.each(GUESSABLE.split(' '))('does not let two visitors meet: %s', async (id) => {
    const key = await page()
    const refused = await chat(key, id, 'My name is Ann.')
    expect(refused.status).toBe(400)
    expect(JSON.parse(refused.text).message).toMatch(/random, of 16 characters or more.*X-Parley-Visitor/)
    const questions = new Questions()
    const [ann, bob] = [visitor(secret()), visitor(secret())]
    const first = await chat(key, id, questions.say('My name is Ann Onymous.'), ann)
    const second = await chat(key, id, questions.say('Who am I?'), bob)
    expect(second.conversation).not.toBe(first.conversation)
    expect(questions.calls.at(-1)).not.toContain('Onymous')
    expect((await chat(key, id, 'And?', ann)).conversation).toBe(first.conversation)
  })

  test('is taken as useChat, nanoid and Open WebUI make it', async () => {
    const key = await page()
    for (const id of ['aB3dE5gH7jK9mN1p', 'V1StGXR8_Z5jdHi6B-myT', crypto.randomUUID()]) {
      const first = await chat(key, id, 'an action series')
      expect((await chat(key, id, 'And then?')).conversation).toBe(first.conversation)
    }
  })
})

describe('a response', () => {
  interface Response {
    id: string
    conversation: { id: string }
    error?: { code: string }
  }
  const responder =
    (questions: Questions, key: string) =>
    async (question: string, previous?: string): Promise<Response> => {
      const input = questions.say(question)
      const body = { model: assistant, input, previous_response_id: previous }
      return JSON.parse((await send('/v1/responses', { key, question: input }, body)).text)
    }

  test('goes on from its own turn, and not from the latest', async () => {
    const key = await makeKey({ actions: ['documents:search'], collections: [shows] })
    const questions = new Questions()
    const respond = responder(questions, key)
    const first = await respond('an action series')
    const second = await respond('I prefer marmalade.', first.id)
    expect(second.conversation.id).toBe(first.conversation.id)
    questions.forget()
    const branch = await respond('I prefer zeppelins.', first.id)
    expect(branch.conversation.id).not.toBe(first.conversation.id)
    expect(questions.calls.join()).toContain('an action series')
    expect(questions.calls.join()).not.toContain('marmalade')
    questions.forget()
    await respond('Go on.', second.id)
    expect(questions.calls.join()).toContain('marmalade')
    expect(questions.calls.join()).not.toContain('zeppelins')
    questions.forget()
    await respond('Go on.', branch.id)
    expect(questions.calls.join()).toContain('an action series')
    expect(questions.calls.join()).toContain('zeppelins')
    const unknown = await respond('Go on.', `resp_${first.conversation.id}.99`)
    expect(unknown.error?.code).toBe('previous_response_not_found')
  })

  test('asked twice at once after the same one makes two turns of nobody else’s', async () => {
    const key = await makeKey({ actions: ['documents:search'], collections: [shows] })
    const questions = new Questions()
    const respond = responder(questions, key)
    const first = await respond('an action series')
    const [one, two] = await questions.together(() => [
      respond('I prefer marmalade.', first.id),
      respond('I prefer zeppelins.', first.id),
    ])
    expect(new Set([one.conversation.id, two.conversation.id]).size).toBe(2)
    for (const call of questions.calls) {
      expect(call.includes('marmalade') && call.includes('zeppelins')).toBe(false)
    }
  })
})

describe('the key of a page', () => {
  type Way = [method: string, path: string]
  const manage = async (key: string, [method, path]: Way, headers: Record<string, string> = {}) => {
    const response = await fetch(url + path, { method, headers: { 'x-typesense-api-key': key, ...headers } })
    return { status: response.status, text: await response.text() }
  }
  const ways = (id: string): Way[] => [
    ...['', '/events'].map((rest): Way => ['GET', `/conversations/${id}${rest}`]),
    ['POST', `/conversations/${id}/stop`],
    ...[...stored(id), `/v1/responses/resp_${id}.1/input_items`].map((path): Way => ['GET', path]),
    ['DELETE', `/conversations/${id}`],
  ]
  const stored = (id: string) => [
    `/v1/responses/resp_${id}.1`,
    ...['', '/items', `/items/msg_${id}.1`].map((rest) => `/v1/conversations/${id}${rest}`),
  ]
  const changes = (id: string): Way[] =>
    stored(id).map((path) => [path.endsWith('items') ? 'POST' : 'DELETE', path])
  const chat = (key: string, headers: Record<string, string> = {}) =>
    send(
      `/a/${assistant}/chat`,
      { key, question: '', headers },
      { messages: [{ role: 'user', content: 'a series' }] },
    )

  test.each([
    ['that may search', () => ({ collections: [shows] })],
    ['that is bound to an assistant', () => ({ collections: ['*'], limits: { assistant } })],
  ])('%s lists nobody’s conversations but those of a visitor who is shown to ask', async (_, make) => {
    const key = await makeKey({ actions: ['documents:search'], ...make() })
    const [mine, other] = [visitor(secret()), visitor(secret())]
    const claim = { 'x-typesense-user-id': 'ann' }
    const asked = [await chat(key, mine), await chat(key, other), await chat(key, claim), await chat(key)]
    const [own, foreign] = asked.map(({ conversation }) => conversation) as [string, string]
    for (const headers of [{}, claim]) {
      for (const path of ['/conversations', '/conversations?user_id=ann']) {
        expect((await manage(key, ['GET', path], headers as Record<string, string>)).status).toBe(401)
      }
      const erase = await manage(
        key,
        ['DELETE', '/users/ann/conversations'],
        headers as Record<string, string>,
      )
      expect(erase.status).toBe(401)
    }
    const listed = await manage(key, ['GET', '/conversations'], mine)
    expect(JSON.parse(listed.text).conversations.map(({ id }: { id: string }) => id)).toEqual([own])
    for (const way of [...ways(foreign), ...changes(foreign)]) {
      for (const headers of [mine, claim, {}]) {
        expect((await manage(key, way, headers as Record<string, string>)).status, way.join(' ')).toBe(404)
      }
    }
    // To claim a name opens nothing that the visitor's secret would not.
    expect((await manage(key, ['GET', '/conversations?user_id=ann'], mine)).text).not.toContain(foreign)
    for (const way of ways(own))
      expect((await manage(key, way, mine)).status, way.join(' ')).toBeLessThan(300)
    for (const way of ways(foreign)) expect((await manage(key, way, other)).status).toBeLessThan(300)
  })

  test('refuses a secret that is too short to be one, and lets pages of another origin send one', async () => {
    const key = await makeKey({ actions: ['documents:search'], collections: [shows] })
    for (const value of ['1234567', 'x'.repeat(31), `${'x'.repeat(40)}!`]) {
      const { status, text } = await chat(key, visitor(value))
      expect(status).toBe(400)
      expect(text).toContain('32 to 256 letters')
      expect((await manage(key, ['GET', '/conversations'], visitor(value))).status).toBe(400)
    }
    const preflight = await fetch(`${url}/a/${assistant}/chat`, {
      method: 'OPTIONS',
      headers: {
        origin: 'http://localhost:3000',
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'x-parley-visitor',
      },
    })
    expect(preflight.headers.get('access-control-allow-headers')).toContain('x-parley-visitor')
  })

  test('that is given the action lists all that was begun with it, and no other key’s', async () => {
    const server = await makeKey({ actions: ['documents:search', 'conversations:*'], collections: [shows] })
    const foreign = await makeKey({ actions: ['documents:search'], collections: [shows] })
    const own = await chat(server, { 'x-typesense-user-id': 'ann', ...visitor(secret()) })
    const others = await chat(foreign)
    const { text } = await manage(server, ['GET', '/conversations'])
    expect(JSON.parse(text).conversations.map(({ id }: { id: string }) => id)).toEqual([own.conversation])
    expect((await manage(server, ['GET', `/conversations/${own.conversation}`])).status).toBe(200)
    expect((await manage(server, ['GET', `/conversations/${own.conversation}/trace`])).status).toBe(200)
    for (const way of [
      ...ways(others.conversation),
      ['GET', `/conversations/${others.conversation}/trace`] as Way,
    ]) {
      expect((await manage(server, way)).status, way.join(' ')).toBe(404)
    }
    const all = await makeKey({ actions: ['conversations:*'], collections: ['*'] })
    expect((await manage(all, ['GET', `/conversations/${others.conversation}`])).status).toBe(200)
    const bob = { 'x-typesense-user-id': 'bob' }
    expect((await manage(server, ['GET', `/conversations/${own.conversation}`], bob)).status).toBe(404)
  })
})
