/** Streamed answers: rows 47 to 53, and what a stream must survive. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Counterpart, SILENCE_MS, startCounterpart, WIDE } from './counterpart'
import {
  client,
  createHistory,
  createModel,
  createShows,
  query,
  type RawStream,
  rawStream,
  request,
  UUID,
} from './harness'
import { type Llm, startLlm } from './llm'

let llm: Llm
let counterpart: Counterpart
let shows: string
let model: string

beforeAll(async () => {
  llm = await startLlm()
  counterpart = await startCounterpart()
  shows = await createShows()
  model = await createModel({ model_name: 'openai/gpt', openai_url: llm.url })
})
afterAll(() => Promise.all([llm.stop(), counterpart.stop()]))

interface Watched {
  chunks: { message: string; conversation_id: string }[]
  completed: unknown[]
  errors: Error[]
  result: unknown
}

/** Asks through the client and keeps what its callbacks were given. */
async function watch(parameters: Record<string, unknown>): Promise<Watched> {
  const watched: Watched = { chunks: [], completed: [], errors: [], result: undefined }
  watched.result = await client()
    .collections(shows)
    .documents()
    .search(
      {
        q: 'an action series',
        query_by: 'embedding',
        exclude_fields: 'embedding',
        conversation: true,
        conversation_stream: true,
        conversation_model_id: model,
        streamConfig: {
          onChunk: (chunk) => watched.chunks.push(chunk),
          onComplete: (reply) => watched.completed.push(reply),
          onError: (error) => watched.errors.push(error),
        },
        ...parameters,
      },
      {},
    )
    .catch((error: unknown) => error)
  return watched
}

const raw = (parameters: Record<string, string | boolean> = {}): Promise<RawStream> =>
  rawStream(
    query(`/collections/${shows}/documents/search`, {
      q: 'an action series',
      query_by: 'embedding',
      exclude_fields: 'embedding',
      conversation: true,
      conversation_stream: true,
      conversation_model_id: model,
      ...parameters,
    }),
  )

/** The contents of a stream's data lines. */
const dataLines = (text: string): string[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      expect(line.startsWith('data: ')).toBe(true)
      return line.slice('data: '.length)
    })

describe('through the client', () => {
  test('47: chunks, then the whole, once', async () => {
    const { chunks, completed, errors, result } = await watch({})
    expect(errors).toEqual([])
    expect(chunks.length).toBeGreaterThan(1)
    expect(chunks.map(({ message }) => message).join('')).toBe('You asked: an action series')
    expect(new Set(chunks.map(({ conversation_id }) => conversation_id)).size).toBe(1)
    expect(completed).toEqual([result])
    expect(result).toMatchObject({
      found: 5,
      hits: expect.any(Array),
      conversation: {
        answer: 'You asked: an action series',
        conversation_id: chunks[0]?.conversation_id,
        conversation_history: {
          conversation: [{ user: 'an action series' }, { assistant: expect.any(String) }],
        },
      },
    })
  })

  test('47: a streamed follow-up', async () => {
    const first = await watch({})
    const conversation_id = first.chunks[0]?.conversation_id ?? ''
    const { chunks, result } = await watch({ q: 'another one', conversation_id })
    expect(chunks.map(({ message }) => message).join('')).toBe('You asked: standalone: another one')
    expect(chunks[0]?.conversation_id).toBe(conversation_id)
    expect(result).toMatchObject({ conversation: { query: 'standalone: another one' } })
  })

  test('47: multi_search', async () => {
    const chunks: { message: string }[] = []
    const result = await client().multiSearch.perform(
      { searches: [{ collection: shows, query_by: 'title,overview' }] } as never,
      {
        q: 'an action series',
        conversation: true,
        conversation_stream: true,
        conversation_model_id: model,
        streamConfig: { onChunk: (chunk: { message: string }) => chunks.push(chunk) },
      } as never,
    )
    expect(chunks.map(({ message }) => message).join('')).toBe('You asked: an action series')
    expect(result).toMatchObject({
      results: [{ found: 2 }],
      conversation: { answer: 'You asked: an action series' },
    })
  })

  test('1.11: a break in the middle rejects once, with nothing kept', async () => {
    const history_collection = await createHistory()
    for (const name of ['cut', 'unfinished']) {
      const id = await createModel({
        model_name: `openai/${name}`,
        openai_url: counterpart.url,
        history_collection,
      })
      const before = counterpart.asked.length
      const { errors, result } = await watch({ conversation_model_id: id })
      // Either the connection breaks, and the client rejects, or a complete event carries the error.
      if (result instanceof Error) expect(errors).toHaveLength(1)
      else expect(result).toMatchObject({ error: expect.any(String), code: expect.any(Number) })
      expect(counterpart.asked.slice(before)).toEqual([name])
    }
    expect((await request('GET', `/collections/${history_collection}`)).body.num_documents).toBe(0)
  })

  test('1.11: letters that arrive in pieces arrive whole', async () => {
    const id = await createModel({ model_name: 'openai/wide', openai_url: counterpart.url })
    const { chunks, result } = await watch({ conversation_model_id: id })
    expect(chunks.map(({ message }) => message).join('')).toBe(WIDE)
    expect(result).toMatchObject({ conversation: { answer: WIDE } })
  })

  test('5: nulls, reasoning and usage do not spoil an answer', async () => {
    const id = await createModel({ model_name: 'openai/chatty', openai_url: counterpart.url })
    const { chunks, result } = await watch({ conversation_model_id: id })
    expect(chunks.map(({ message }) => message).join('')).toBe('Plain words.')
    expect(result).toMatchObject({ conversation: { usage: { input_tokens: 7, output_tokens: 2 } } })
  })

  test(`1.11: a model that is silent for ${SILENCE_MS} ms is waited for, and asked once`, async () => {
    const id = await createModel({ model_name: 'openai/slow', openai_url: counterpart.url })
    const before = counterpart.asked.length
    const { chunks, errors } = await watch({ conversation_model_id: id })
    expect(errors).toEqual([])
    expect(chunks.map(({ message }) => message).join('')).toBe('At last.')
    expect(counterpart.asked.slice(before)).toEqual(['slow'])
  })
})

describe('as bytes', () => {
  test('48: flat chunks, [DONE], then the whole reply, and nothing else', async () => {
    const { status, contentType, text, error } = await raw()
    expect([status, error]).toEqual([200, undefined])
    expect(contentType).toMatch(/^text\/event-stream/)
    expect(text).not.toContain('\r')
    // Escaped throughout: then no read can split a letter.
    expect(text).toMatch(/^[\n -~]*$/)

    const lines = dataLines(text)
    expect(lines.at(-2)).toBe('[DONE]')
    const chunks = lines.slice(0, -2).map((line) => JSON.parse(line))
    for (const chunk of chunks) expect(Object.keys(chunk).sort()).toEqual(['conversation_id', 'message'])
    const [id, ...others] = new Set(chunks.map(({ conversation_id }) => conversation_id))
    expect(id).toMatch(UUID)
    expect(others).toEqual([])

    const whole = JSON.parse(lines.at(-1) ?? '')
    expect(whole).toMatchObject({
      found: 5,
      conversation_id: id,
      message: '',
      conversation: { conversation_id: id },
    })
    expect(chunks.map(({ message }) => message).join('')).toBe(whole.conversation.answer)
  })

  test('48: each event ends with an empty line', async () => {
    const { text } = await raw()
    const events = text.replace(/^\n+/, '').split('\n\n')
    expect(events.filter((event) => event.trim() !== '').every((event) => /^\n*data: .*$/.test(event))).toBe(
      true,
    )
  })

  test('48: the bytes of letters beyond ASCII', async () => {
    const id = await createModel({ model_name: 'openai/wide', openai_url: counterpart.url })
    const { text } = await raw({ conversation_model_id: id })
    expect(text).toMatch(/^[\n -~]*$/)
    expect(JSON.parse(dataLines(text).at(-1) ?? '').conversation.answer).toBe(WIDE)
  })

  test('50: an unknown model is plain JSON', async () => {
    const { status, contentType, text } = await raw({ conversation_model_id: 'nobody' })
    expect([status, JSON.parse(text)]).toEqual([400, { message: 'Model not found' }])
    expect(contentType).toMatch(/^application\/json/)
  })

  test('50: so is a model that fails before its first word', async () => {
    const id = await createModel({ model_name: 'openai/refusal', openai_url: counterpart.url })
    const { status, text } = await raw({ conversation_model_id: id })
    expect([status, JSON.parse(text)]).toEqual([
      400,
      { message: 'OpenAI API error: the model is out of order' },
    ])
  })

  test('53: without a conversation there is no stream', async () => {
    const { status, contentType, text } = await raw({ conversation: false })
    expect(status).toBe(200)
    expect(contentType).toMatch(/^application\/json/)
    expect(JSON.parse(text)).toMatchObject({ found: 5 })
  })
})
