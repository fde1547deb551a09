/**
 * Microsoft's client of the AI Chat Protocol over real sockets. The numbers are the conformance cases of contract
 * chat-protocols, section 5.
 */
import { AIChatProtocolClient } from '@microsoft/ai-chat-protocol'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Counterpart, startCounterpart } from './counterpart'
import { createAssistant, createHistory, createModel, createShows, KEY, request, UUID, url } from './harness'
import { documentsIn, isStandalone, type Llm, startLlm } from './llm'
import { type Paced, startPaced, words } from './paced'

let llm: Llm
let paced: Paced
let counterpart: Counterpart
let shows: string
/** path of the assistant that the mock answers for */
let help: string

beforeAll(async () => {
  llm = await startLlm({
    answer: (question, system) => {
      const said = question.includes('salvage')
        ? 'They salvage warships [salvage.txt].'
        : `You asked: ${question}`
      return system.includes('double angle brackets') ? `${said}<<Which planets?>><<Who cooks?>>` : said
    },
  })
  paced = await startPaced()
  counterpart = await startCounterpart()
  shows = await createShows()
  help = await assistant({ model_name: 'openai/gpt-4o-mini', openai_url: llm.url })
})
afterAll(() => Promise.all([llm.stop(), paced.stop(), counterpart.stop()]))
beforeEach(() => llm.forget())

/** @returns the path of an assistant with this model */
async function assistant(
  model: Record<string, unknown>,
  more: Record<string, unknown> = {},
): Promise<string> {
  const name = await createAssistant({ model: await createModel(model), collections: [shows], ...more })
  return `/a/${name}`
}

const pacedAssistant = (count: number, gap: number) =>
  assistant({ model_name: `openai/paced-${count}-${gap}`, openai_url: paced.url })

type Options = ConstructorParameters<typeof AIChatProtocolClient>[2]

const client = (path: string, options: Options = {}, key = KEY): AIChatProtocolClient =>
  new AIChatProtocolClient(
    `${url}${path}`,
    { key },
    { credentials: { apiKeyHeaderName: 'x-typesense-api-key' }, ...options },
  )

const user = (content: string) => ({ role: 'user' as const, content })

// biome-ignore lint/suspicious/noExplicitAny: what came back is what the tests look into
type Loose = any

/** A question's stream as curl sees it. */
async function raw(path: string, body: unknown): Promise<{ status: number; text: string }> {
  const headers = { 'x-typesense-api-key': KEY, 'content-type': 'application/json' }
  const response = await fetch(`${url}${path}/chat/stream`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  })
  return { status: response.status, text: await response.text() }
}

async function gather(items: AsyncIterable<Loose>): Promise<Loose[]> {
  const all: Loose[] = []
  for await (const item of items) all.push(item)
  return all
}

const textOf = (items: Loose[]): string => items.map(({ delta }) => delta.content ?? '').join('')

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

describe.each(['/chat', '/chat/'])('an endpoint that ends in %s', (ending) => {
  test('answers in one piece (cases 3, 4)', async () => {
    const answer: Loose = await client(help + ending).getCompletion([user('Who explores the planets?')])
    expect(answer).toMatchObject({
      message: { role: 'assistant', content: 'You asked: Who explores the planets?' },
      sessionState: expect.stringMatching(UUID),
      context: { data_points: { citations: expect.arrayContaining(['quest.txt']) } },
    })
  })

  test('streams (cases 4, 5)', async () => {
    const items = await gather(
      await client(help + ending).getStreamedCompletion([user('Who explores the stars?')]),
    )
    expect(items.length).toBeGreaterThanOrEqual(3)
    expect(items[0]).toMatchObject({ delta: { role: 'assistant' }, context: { data_points: { images: [] } } })
    expect(items.every(({ delta }) => delta !== undefined)).toBe(true)
    expect(textOf(items)).toBe('You asked: Who explores the stars?')
    expect(items.at(-1)).toMatchObject({ delta: {}, sessionState: items[0].sessionState })
  })
})

describe('a session', () => {
  const first = user('Which show has explorers?')
  const second = user('What else do they do?')

  test('is gone on with by the new message alone, and the model knows what was said (case 6)', async () => {
    const chat = client(`${help}/chat`)
    const { sessionState } = await chat.getCompletion([first])
    llm.forget()
    const answer = await chat.getCompletion([second], { sessionState })
    expect(answer.sessionState).toBe(sessionState)
    const rewriting = llm
      .calls()
      .map(({ messages }) => messages.at(-1)!.content)
      .find(isStandalone)
    expect(rewriting).toContain(first.content)
    expect(rewriting).toContain(`You asked: ${first.content}`)
  })

  test('is not told twice by a client that sends all of it (case 7)', async () => {
    const chat = client(`${help}/chat`)
    const { sessionState, message } = await chat.getCompletion([first])
    llm.forget()
    await chat.getCompletion([first, message, second], { sessionState })
    const rewriting = llm
      .calls()
      .map(({ messages }) => messages.at(-1)!.content)
      .find(isStandalone)!
    expect(rewriting.split(first.content)).toHaveLength(3)
    const { body } = await request('GET', `/conversations/${sessionState}`)
    expect(body.turns).toHaveLength(2)
  })

  test('begins with all of it where the client keeps none (case 8)', async () => {
    const chat = client(`${help}/chat`)
    await chat.getCompletion([first, { role: 'assistant', content: 'Galactic Quest.' }, second])
    const rewriting = llm
      .calls()
      .map(({ messages }) => messages.at(-1)!.content)
      .find(isStandalone)
    expect(rewriting).toContain('Galactic Quest.')
  })
})

describe('an answer', () => {
  test('cites what was found by labels that open (case 31)', async () => {
    const { message, context }: Loose = await client(`${help}/chat`).getCompletion([
      user('Who does salvage?'),
    ])
    expect(message.content).toBe('They salvage warships [salvage.txt].')
    expect(context.data_points.citations).toContain('salvage.txt')
    const [asked] = llm.calls()
    expect(documentsIn(asked!.messages.at(-1)!.content)).toContainEqual(
      expect.objectContaining({ id: 'salvage', citation_label: 'salvage.txt' }),
    )
    const opened = await request('GET', `${help}/content/salvage.txt`)
    expect([opened.status, opened.text]).toEqual([
      200,
      expect.stringContaining('a crew that salvages warships'),
    ])
  })

  test('suggests questions only where they are asked for (case 27)', async () => {
    const overrides = { suggest_followup_questions: true }
    const suggested: Loose = await client(`${help}/chat`).getCompletion([user('Hello?')], {
      context: { overrides },
    })
    expect(suggested.message.content).toBe('You asked: Hello?')
    expect(suggested.context.followup_questions).toEqual(['Which planets?', 'Who cooks?'])
    const items = await gather(
      await client(`${help}/chat`).getStreamedCompletion([user('Hello there?')], { context: { overrides } }),
    )
    expect(textOf(items)).toBe('You asked: Hello there?')
    expect(items.at(-1).context.followup_questions).toEqual(['Which planets?', 'Who cooks?'])
    const without: Loose = await client(`${help}/chat`).getCompletion([user('Hello again?')], {
      context: { overrides: { suggest_followup_questions: false } },
    })
    expect(without.context.followup_questions).toBeNull()
  })

  test('has suggestions in its text where the assistant says so', async () => {
    const inline = await assistant(
      { model_name: 'openai/gpt-4o-mini', openai_url: llm.url },
      { followups: true, followup_style: 'inline' },
    )
    const items = await gather(await client(`${inline}/chat`).getStreamedCompletion([user('Hello?')]))
    expect(textOf(items)).toBe('You asked: Hello?<<Which planets?>><<Who cooks?>>')
  })

  test('is set by the overrides that the assistant allows', async () => {
    const overrides = {
      temperature: 0.1,
      seed: 5,
      max_response_tokens: 9,
      prompt_template: '>>>Be brief.',
      language: 'de',
    }
    await client(`${help}/chat`).getCompletion([user('Hi?')], { context: { overrides } })
    const [{ body, messages }] = llm.calls() as Loose
    expect(body).toMatchObject({ temperature: 0.1, seed: 5 })
    expect(body.max_tokens ?? body.max_completion_tokens).toBe(9)
    expect(messages[0].content).toContain('Be brief.')
    expect(messages[0].content).toContain('`de`')
  })

  test('of a model that refuses a setting comes without it, with a note', async () => {
    const path = await assistant({ model_name: 'openai/o3-mini', openai_url: llm.url })
    llm.forget()
    const context = { overrides: { temperature: 0.1, seed: 5 } }
    const { context: shown }: Loose = await client(`${path}/chat`).getCompletion([user('Hi?')], { context })
    expect(shown.thoughts[1].props.ignored).toEqual(['temperature'])
    const [{ body }] = llm.calls() as Loose
    expect([body.temperature, body.seed]).toEqual([undefined, 5])
  })

  test('arrives whole, whatever letters and breaks are in it (case 40)', async () => {
    const path = await pacedAssistant(60, 1)
    const items = await gather(await client(`${path}/chat`).getStreamedCompletion([user('an action series')]))
    expect(textOf(items)).toBe(words(60).join(''))
  })

  test('of long documents has no long lines (case 41)', async () => {
    const { body } = await request('POST', '/collections', {
      name: `${shows}-long`,
      fields: [{ name: 'text', type: 'string' }],
    })
    for (let id = 0; id < 5; id++) {
      await request('POST', `/collections/${body.name}/documents`, {
        id: String(id),
        text: 'coral reef "日本" '.repeat(15_000),
      })
    }
    const path = await assistant(
      { model_name: 'openai/gpt-4o-mini', openai_url: llm.url, max_bytes: 4_000_000 },
      { collections: [body.name] },
    )
    const { status, text } = await raw(path, {
      messages: [user('coral')],
      context: { overrides: { top: 5 } },
    })
    expect(status).toBe(200)
    const lines = text.trimEnd().split('\n')
    expect(JSON.parse(lines[0]!).context.data_points.text).toHaveLength(5)
    for (const line of lines) expect(Buffer.byteLength(line)).toBeLessThan(64 * 1024)
  })
})

describe('a caller who leaves', () => {
  test('finds the answer in the history, once (case 37)', async () => {
    const path = await pacedAssistant(80, 5)
    const chat = client(`${path}/chat`)
    let session = ''
    for await (const item of (await chat.getStreamedCompletion([
      user('an action series'),
    ])) as AsyncIterable<Loose>) {
      session = item.sessionState ?? session
      if (item.delta.content) break
    }
    const turnsOf = async () => (await request('GET', `/conversations/${session}`)).body.turns ?? []
    for (let turns = await turnsOf(); turns.length === 0; turns = await turnsOf()) await sleep(100)
    expect(await turnsOf()).toMatchObject([{ question: 'an action series', answer: words(80).join('') }])
    const again = await chat.getCompletion([user('And then?')], { sessionState: session })
    expect(again.sessionState).toBe(session)
    expect(await turnsOf()).toHaveLength(2)
  })

  test('and asks the same again gets the same answer (case 38)', async () => {
    const path = await pacedAssistant(200, 5)
    const before = paced.begun
    const abort = new AbortController()
    const chat = client(`${path}/chat`)
    const left = chat
      .getCompletion([user('an action series')], { abortSignal: abort.signal })
      .catch(() => 'left')
    await sleep(100)
    abort.abort()
    expect(await left).toBe('left')
    const answer = await chat.getCompletion([user('an action series')])
    expect(answer.message.content).toBe(words(200).join(''))
    expect(paced.begun - before).toBe(1)
  })
})

describe('files', () => {
  test('of text are read for their question (case 43)', async () => {
    const data = new File(['Kane is the guest.'], 'notes.md')
    const message = { ...user('Who is the guest?'), files: [{ contentType: 'text/markdown', data }] }
    const answer = await client(`${help}/chat`).getCompletion([message])
    expect(answer.message.content).toBe('You asked: Who is the guest?')
    const [asked] = llm.calls()
    expect(documentsIn(asked!.messages.at(-1)!.content)[0]).toEqual({
      file: 'notes.md',
      text: 'Kane is the guest.',
    })
  })

  test('of other kinds are refused by their name (case 42)', async () => {
    const data = new File([Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)], 'logo.png')
    const message = { ...user('What is this?'), files: [{ contentType: 'image/png', data }] }
    for (const ask of [
      () => client(`${help}/chat`).getCompletion([message]),
      () => client(`${help}/chat`).getStreamedCompletion([message]),
    ]) {
      await expect(ask()).rejects.toMatchObject({
        code: 'unsupported_file',
        message: expect.stringContaining('logo.png'),
      })
    }
  })
})

describe('a failure', () => {
  const quick: Options = { retryOptions: { maxRetries: 1, retryDelayInMs: 1, maxRetryDelayInMs: 1 } }

  test('of the request is an object with a code (case 35)', async () => {
    const refused = { code: 'bad_request', message: expect.stringContaining('`messages`'), field: 'messages' }
    await expect(client(`${help}/chat`).getCompletion([])).rejects.toEqual(refused)
    await expect(client(`${help}/chat`).getStreamedCompletion([])).rejects.toEqual(refused)
    await expect(client(`${help}/chat`, {}, 'wrong').getCompletion([user('Hi')])).rejects.toMatchObject({
      code: 'unauthorized',
    })
    await expect(client('/a/nobody/chat').getCompletion([user('Hi')])).rejects.toMatchObject({
      code: 'not_found',
    })
  })

  test('of the model is repeated by the client, and leaves nothing in the history (case 32)', async () => {
    const history_collection = await createHistory()
    const path = await assistant({
      model_name: 'openai/server-error',
      openai_url: counterpart.url,
      history_collection,
    })
    await expect(client(`${path}/chat`, quick).getCompletion([user('Hi')])).rejects.toMatchObject({
      code: 'model_failed',
      message: expect.stringContaining('the model is out of order'),
    })
    expect((await request('GET', `/collections/${history_collection}`)).body.num_documents).toBe(0)
  })

  test('of the model before a word is a line that the client throws (case 33)', async () => {
    const path = await assistant({ model_name: 'openai/server-error', openai_url: counterpart.url })
    const reading = client(`${path}/chat`, quick)
      .getStreamedCompletion([user('Hi')])
      .then(gather)
    await expect(reading).rejects.toMatchObject({ code: 'model_failed' })
  })

  test('of the model in mid-answer is a line, after what was said', async () => {
    const path = await assistant({ model_name: 'openai/cut', openai_url: counterpart.url })
    const items: Loose[] = []
    const reading = async () => {
      for await (const item of await client(`${path}/chat`).getStreamedCompletion([user('Hi')]))
        items.push(item)
    }
    await expect(reading()).rejects.toMatchObject({ code: 'model_failed', message: expect.any(String) })
    expect(textOf(items)).toBe('The first half ')
    const cut = await raw(path, { messages: [user('Hi')] })
    const last = cut.text.trimEnd().split('\n').at(-1)!
    expect([cut.status, cut.text.endsWith('\n')]).toEqual([200, true])
    expect(JSON.parse(last)).toMatchObject({ error: expect.any(String), code: 'model_failed' })
  })
})

test('the front end of the Azure Search demo is told what to show, and that nobody signs in', async () => {
  for (const [path, status] of [
    [help, 200],
    ['/a/nobody', 404],
  ] as const) {
    const [config, auth] = [
      await request('GET', `${path}/config`),
      await request('GET', `${path}/auth_setup`),
    ]
    expect([config.status, auth.status]).toEqual([status, status])
    if (status !== 200) continue
    expect(config.body).toMatchObject({
      streamingEnabled: true,
      showVectorOption: true,
      showSemanticRankerOption: false,
      showUserUpload: false,
    })
    expect(auth.body).toMatchObject({
      useLogin: false,
      requireAccessControl: false,
      msalConfig: { auth: {} },
    })
    expect((await request('GET', `${path}/auth_setup`, undefined, null)).status).toBe(401)
  }
})
