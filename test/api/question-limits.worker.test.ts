/** How long a question may be, and what its asker is told whose searches all fail, on every protocol. */
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { unwrap } from '../../src/errors'
import { putAssistant } from '../../src/registry/assistants'
import { createCollection } from '../../src/registry/collections'
import { createModel } from '../../src/registry/models'
import { LONGEST_QUESTION } from '../../src/turn/question-length'
import { collectionNamed, setStage, speaking } from '../conversation/stage'
import { asked, type Sent, send } from './stage'

const GUIDE = {
  model: 'roomy',
  collections: ['films'],
  questions: [],
  overrides: [],
  followups: false,
  category_field: 'category',
  followup_style: 'list' as const,
  strict: false,
}

/** A model that knows who it was where the documents of its prompt say so. */
const reading = ((url, init) => {
  const { messages } = JSON.parse(String(init?.body))
  const isToldOf = messages.at(-1).content.includes('directed by Ridley Scott')
  return speaking(isToldOf ? 'It was R. Scott.' : 'Nobody knows.')(url, init)
}) as typeof fetch

beforeEach(() => {
  vi.spyOn(globalThis, 'fetch').mockImplementation(reading)
})
afterEach(() => vi.restoreAllMocks())

beforeAll(async () => {
  await setStage()
  vi.spyOn(globalThis, 'fetch').mockImplementation(reading)
  const model = {
    model_name: 'openai/gpt',
    openai_url: 'https://llm.test',
    api_key: 'sk-1234567890',
    history_collection: 'talk',
  }
  await createModel(env, { ...model, id: 'roomy', max_bytes: 400_000 })
  await createModel(env, { ...model, id: 'narrow', max_bytes: 1_000 })
  await putAssistant(env, 'guide', GUIDE)
})

const protocols = Object.keys(asked('', '', false))

/** What is told of a failed question: the status and the body. */
async function told(sent: Sent): Promise<{ status: number; body: unknown; text: string }> {
  const response = await send(sent)
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.includes('application/json')
  return { status: response.status, body: isJson ? JSON.parse(text) : text, text }
}

/** A long question about a film, with its words among many that say nothing. */
const longQuestion = (length: number): string => {
  const filler = 'I would like to ask you about that which is there and then there is more to say of it '
  const noise = Array.from({ length: 400 }, (_, index) => `unheard${index}`).join(' ')
  const begun = `${noise} Who directed Alien? `
  return begun + filler.repeat(Math.ceil(length / filler.length)).slice(0, length - begun.length)
}

describe('a long question', () => {
  it.each(protocols)('is searched by its words and answered: %s', async (protocol) => {
    // What a query string carries of it is a matter of the platform.
    const length = protocol === 'a search' ? 3_500 : LONGEST_QUESTION
    const question =
      protocol === 'a search' ? `Who directed Alien? ${'and then '.repeat(300)}` : longQuestion(length)
    const { status, text } = await told(asked(question, 'roomy', false)[protocol]!)
    expect({ status, protocol }).toEqual({ status: 200, protocol })
    expect(text).toContain('It was R. Scott.')
  })

  it.each([
    ['parley', { message: expect.stringMatching(/100000 characters/) }],
    [
      'chat completions',
      {
        error: {
          message: expect.stringMatching(/100000 characters/),
          type: 'invalid_request_error',
          param: 'messages.0.content',
          code: 'string_above_max_length',
        },
      },
    ],
    [
      'responses',
      {
        error: {
          message: expect.stringMatching(/100000 characters/),
          type: 'invalid_request_error',
          param: 'input.0.content',
          code: 'string_above_max_length',
        },
      },
    ],
    ['ai chat', { error: expect.stringMatching(/100000 characters/), code: 'bad_request' }],
    ['ui stream', { message: expect.stringMatching(/100000 characters/) }],
    ['several searches', { message: expect.stringMatching(/100000 characters/) }],
  ])('past the limit is refused in the words of %s', async (protocol, body) => {
    const question = `${longQuestion(LONGEST_QUESTION)}x`
    for (const stream of [false, true]) {
      const reply = await told(asked(question, 'roomy', stream)[protocol]!)
      expect(reply.status).toBe(400)
      expect(reply.body).toMatchObject(body)
    }
  })
})

describe('a question that its model has no room for', () => {
  const long = 'Who directed it? '.repeat(100)
  const message =
    'The question is too long for its conversation model. Ask a shorter one, or raise `max_bytes` of the model.'
  const told400 = { status: 400, body: { message, code: 'too_long' } }

  it("is refused in plain words on Parley's own routes, the first one and a follow-up", async () => {
    const first = await told(asked('Who directed Alien at all?', 'narrow', false).parley!)
    const { conversation_id } = first.body as { conversation_id: string }
    for (const more of [{}, { conversation_id }]) {
      const { path, body } = asked(long, 'narrow', false).parley!
      expect(await told({ path, body: { ...(body as object), ...more } })).toMatchObject(told400)
      const { text } = await told({ path, body: { ...(body as object), ...more, stream: true } })
      expect(text).toContain(JSON.stringify(message).slice(1, -1))
      expect(text).not.toContain('ax bytes')
    }
  })

  it("is refused in Typesense's words on its wire", async () => {
    const { path } = asked(long, 'narrow', false)['a search']!
    expect(await told({ path })).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining('is less than the minimum required bytes') },
    })
  })
})

describe('no question', () => {
  const empty = { message: '`question`: The question is empty. Write one.' }
  const none = { error: { message: 'The last message must have the role `user`: it is the question.' } }

  it.each([
    ['/conversations', { question: '', model: 'roomy', collections: ['films'] }, empty],
    ['/a/guide/conversations', { question: '' }, empty],
    ['/v1/chat/completions', { model: 'guide', messages: [] }, none],
    ['/v1/responses', { model: 'guide', input: [] }, none],
  ])('is refused by %s in words that say what to do', async (path, body, expected) => {
    expect(await told({ path, body })).toMatchObject({ status: 400, body: expected })
  })
})

describe('searches of a field that was dropped', () => {
  const searches = [{ collection: 'films', query_by: 'title,text' }]

  beforeAll(async () => {
    const { collections: _, ...guide } = GUIDE
    await putAssistant(env, 'guide', { ...guide, searches })
    const { object } = await collectionNamed('films')
    unwrap(await object.alter({ fields: [{ name: 'title', drop: true }] }))
  })

  const message = 'Could not find a field named `title` in the schema.'

  it.each([
    ['parley', { message }],
    ['chat completions', { error: { message } }],
    ['responses', { error: { message } }],
    ['ai chat', { error: message }],
    ['ui stream', { message }],
    ['a search', { message }],
  ])('are the error of the answer on %s', async (protocol, body) => {
    for (const stream of [false, true]) {
      const question = `Who directed Alien, ${protocol} ${stream}?`
      const all = asked(question, 'm', stream)
      // As one is made of what is known of a collection, which is remembered for seconds.
      all.parley!.body = { question, model: 'm', searches, stream }
      const reply = await told(all[protocol]!)
      if (protocol === 'parley' && stream) {
        expect(reply.text).toMatch(/event: error\ndata: \{"status":404,"message":"Could not find a field/)
        expect(reply.text).not.toMatch(/event: done/)
        continue
      }
      expect(reply).toMatchObject({ status: 404, body })
    }
  })

  it('are told one by one where results are shown: a multi_search', async () => {
    for (const stream of [false, true]) {
      const question = `Who directed Alien, all of them ${stream}?`
      const { status, body } = await told(asked(question, 'm', stream)['several searches']!)
      expect({ status, body }).toEqual({ status: 200, body: { results: [{ code: 404, error: message }] } })
    }
  })

  it('leave an answer to the others, and are told beside it', async () => {
    await createCollection(env, { name: 'series', fields: [{ name: 'text', type: 'string' }] })
    const { object } = await collectionNamed('series')
    unwrap(await object.write('{"text":"Alien Worlds was directed by Daniel Smith."}', { action: 'create' }))
    const { status, body } = await told({
      path: '/conversations',
      body: {
        question: 'Who directed Alien Worlds?',
        model: 'm',
        searches: [...searches, { collection: 'series', query_by: 'text' }],
      },
    })
    expect(status).toBe(200)
    expect(body).toMatchObject({
      answer: expect.stringContaining('Daniel Smith'),
      results: [{ error: message, code: 404 }, { found: 1 }],
    })
  })
})
