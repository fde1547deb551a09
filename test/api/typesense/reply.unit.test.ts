import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  type AnswerShape,
  answerStreaming,
  answerWhole,
  messageEncoder,
} from '../../../src/api/typesense/encoder'
import { contentOf } from '../../../src/lib/parts'
import type { TurnEvent, TurnEventBody } from '../../../src/turn/events'
import { found } from '../turn-events'

const shape: AnswerShape = {
  conversationId: 'c1',
  question: 'q',
  shape: 'multi',
  ttl: 60,
  withHistory: false,
}

const QUESTION: TurnEventBody = { type: 'question', question: contentOf('q') }
const [RESULTS, RETRIEVAL] = found([
  {
    result: {
      facet_counts: [],
      found: 0,
      hits: [],
      request_params: { collection_name: 'c', first_q: 'q', per_page: 10, q: 'q' },
      search_cutoff: false,
    },
  },
])
const DONE: TurnEventBody = { type: 'done', finish_reason: 'stop', answer: contentOf('Hello') }
const FAILED: TurnEventBody = {
  type: 'error',
  code: 'model_refused',
  status: 400,
  message: 'OpenAI API error: no',
  retryable: false,
}

const event = (body: TurnEventBody): TurnEvent => ({ ...body, conversation_id: 'c1', turn: 0, seq: 0 })
const line = (body: TurnEventBody): string => `${JSON.stringify(event(body))}\n`
const delta = (text: string): TurnEventBody => ({ type: 'delta', text })

/** A turn whose events come when the test says so. */
function turn() {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
  const writer = writable.getWriter()
  const encoder = new TextEncoder()
  return {
    events: readable,
    say: (...bodies: TurnEventBody[]) => writer.write(encoder.encode(bodies.map(line).join(''))),
    write: (bytes: Uint8Array) => writer.write(bytes),
    end: () => writer.close(),
    left: writer.closed.then(
      () => false,
      () => true,
    ),
  }
}

const encoded = (events: TurnEvent[]): string => {
  const encoder = messageEncoder(shape)
  return events.map((each) => encoder.encode(each)).join('')
}

const decoder = new TextDecoder()
const next = async (reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string | undefined> => {
  const { value } = await reader.read()
  return value && decoder.decode(value)
}

const lost = vi.fn(async (_turn: number) => {})
const delivery = (turn: number) => ({ lost: () => lost(turn), asked: 0 })

beforeEach(() => {
  lost.mockClear()
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

describe('an answer in one piece', () => {
  it('is the response of the whole turn', async () => {
    const running = turn()
    const answered = answerWhole(running.events, shape, delivery)
    await running.say(QUESTION, RESULTS, RETRIEVAL, delta('Hello'), DONE)
    const response = await answered
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
    vi.useRealTimers()
    expect(await response.json()).toMatchObject({ conversation: { answer: 'Hello', conversation_id: 'c1' } })
    expect(lost).not.toHaveBeenCalled()
  })

  it('is reported as lost when it is not taken to its end', async () => {
    const running = turn()
    const answered = answerWhole(running.events, shape, delivery)
    await running.say(QUESTION, RESULTS, RETRIEVAL, delta('Hello'), DONE)
    const reader = (await answered).body!.getReader()
    await reader.read()
    await reader.cancel()
    await vi.advanceTimersByTimeAsync(100)
    expect(lost.mock.calls).toEqual([[0]])
  })

  it('is the error that the turn ended in', async () => {
    const running = turn()
    const answered = answerWhole(running.events, shape, delivery)
    answered.catch(() => {})
    await running.say(QUESTION, RESULTS, RETRIEVAL, FAILED)
    await expect(answered).rejects.toMatchObject({ status: 400, message: 'OpenAI API error: no' })
  })

  it('is no answer when the turn was cut off', async () => {
    const running = turn()
    const answered = answerWhole(running.events, shape, delivery)
    answered.catch(() => {})
    await running.say(QUESTION, RESULTS, RETRIEVAL, delta('Hel'))
    await running.end()
    await expect(answered).rejects.toThrow('interrupted')
  })
})

describe('an answer as it is written', () => {
  it('has the bytes of the encoder, a write for every read', async () => {
    const running = turn()
    const answered = answerStreaming(running.events, shape)
    await running.say(QUESTION, RESULTS, RETRIEVAL)
    await running.say(delta('He'))
    const response = await answered
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    const reader = response.body!.getReader()
    const pieces = [await next(reader)]
    await running.say(delta('l'), delta('l'))
    pieces.push(await next(reader))
    await running.say(delta('o'), DONE)
    pieces.push(await next(reader))
    expect(await next(reader)).toBeUndefined()

    expect(pieces[0]).toBe('data: {"conversation_id":"c1","message":"He"}\n\n')
    expect(pieces[1]).toBe('data: {"conversation_id":"c1","message":"ll"}\n\n')
    const log = [QUESTION, RESULTS, RETRIEVAL, delta('He'), delta('ll'), delta('o'), DONE].map(event)
    expect(pieces.join('')).toBe(encoded(log))
  })

  it('survives events that the network cut', async () => {
    const running = turn()
    const answered = answerStreaming(running.events, shape)
    const bytes = new TextEncoder().encode(
      [QUESTION, RESULTS, RETRIEVAL, delta('Grüße'), DONE].map(line).join(''),
    )
    const written = (async () => {
      for (const byte of bytes) await running.write(new Uint8Array([byte]))
    })()
    expect(await (await answered).text()).toBe(
      encoded([QUESTION, RESULTS, RETRIEVAL, delta('Grüße'), DONE].map(event)),
    )
    await written
  })

  it('is plain JSON with its status for an error before the first text', async () => {
    const running = turn()
    const answered = answerStreaming(running.events, shape)
    answered.catch(() => {})
    await running.say(QUESTION, RESULTS, RETRIEVAL)
    await vi.advanceTimersByTimeAsync(900)
    await running.say(FAILED)
    await expect(answered).rejects.toMatchObject({ status: 400, message: 'OpenAI API error: no' })
  })

  it.each([
    ['before retrieval', [QUESTION]],
    ['after it', [QUESTION, RESULTS, RETRIEVAL]],
  ])('sends its headers soon, %s, and is never silent for long', async (_, before) => {
    const running = turn()
    let response: Response | undefined
    answerStreaming(running.events, shape).then((value) => {
      response = value
    })
    await running.say(...before)
    await vi.advanceTimersByTimeAsync(1_249)
    expect(response).toBeUndefined()
    await vi.advanceTimersByTimeAsync(1)
    expect(response?.status).toBe(200)
    const reader = response!.body!.getReader()
    expect(await next(reader)).toBe('\n')
    for (let beat = 0; beat < 3; beat++) {
      const beaten = next(reader)
      await vi.advanceTimersByTimeAsync(1_000)
      expect(await beaten).toBe('\n')
    }
    // A piece between two beats puts the next one off by as long.
    await vi.advanceTimersByTimeAsync(900)
    await running.say(delta('Hello'))
    expect(await next(reader)).toContain('"message":"Hello"')
    const beaten = next(reader)
    let isBeaten = false
    beaten.then(() => {
      isBeaten = true
    })
    await vi.advanceTimersByTimeAsync(999)
    expect(isBeaten).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(await beaten).toBe('\n')
    await running.say(DONE)
    expect(await next(reader)).toContain('[DONE]')
    expect(await next(reader)).toBeUndefined()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('ends in a complete event with the error for one after the first text', async () => {
    const running = turn()
    const answered = answerStreaming(running.events, shape)
    await running.say(QUESTION, RESULTS, RETRIEVAL, delta('Hel'))
    const reader = (await answered).body!.getReader()
    expect(await next(reader)).toContain('"message":"Hel"')
    await running.say(delta('lo'), FAILED)
    const [piece, last] = (await next(reader))!.split('\n\n')
    expect(piece).toBe('data: {"conversation_id":"c1","message":"lo"}')
    expect(JSON.parse(last!.slice('data: '.length))).toEqual({
      results: [expect.objectContaining({ found: 0 })],
      error: 'OpenAI API error: no',
      code: 400,
      conversation_id: 'c1',
      message: '',
    })
    expect(await next(reader)).toBeUndefined()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('ends in a complete event even when the error comes before anything was found', async () => {
    const running = turn()
    const answered = answerStreaming(running.events, { ...shape, shape: 'single' })
    await running.say(QUESTION)
    await vi.advanceTimersByTimeAsync(4_000)
    const text = (await answered).text()
    await running.say(FAILED)
    expect(JSON.parse((await text).trim().slice('data: '.length))).toEqual({
      found: 0,
      hits: [],
      error: 'OpenAI API error: no',
      code: 400,
      conversation_id: 'c1',
      message: '',
    })
  })

  it('ends in a complete event when the turn was cut off', async () => {
    const running = turn()
    const answered = answerStreaming(running.events, shape)
    await running.say(QUESTION, RESULTS, RETRIEVAL, delta('Hel'))
    const reader = (await answered).body!.getReader()
    await next(reader)
    await running.end()
    const last = JSON.parse((await next(reader))!.slice('data: '.length))
    expect(last).toMatchObject({ code: 503, error: 'The turn was interrupted. Ask again.' })
  })

  it('is plain JSON when every search failed', async () => {
    const running = turn()
    const answered = answerStreaming(running.events, shape)
    await running.say(QUESTION, ...found([{ error: 'Collection not found', code: 404 }]))
    await running.say({ type: 'done', finish_reason: 'stop', answer: contentOf('') })
    const response = await answered
    expect(response.headers.get('content-type')).toContain('application/json')
    expect(await response.json()).toEqual({ results: [{ code: 404, error: 'Collection not found' }] })
  })

  it('leaves the turn when its reader leaves', async () => {
    const running = turn()
    const answered = answerStreaming(running.events, shape)
    await running.say(QUESTION, RESULTS, RETRIEVAL, delta('Hel'))
    await (await answered).body!.cancel()
    expect(await running.left).toBe(true)
    expect(vi.getTimerCount()).toBe(0)
  })
})
