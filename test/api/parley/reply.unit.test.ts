import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { answerStreaming, answerWhole, logEncoder, RETRY, streamLog } from '../../../src/api/parley/encoder'
import { COMMENT, eventReader } from '../../../src/api/shared/stream'
import { contentOf } from '../../../src/lib/parts'
import type { SearchResult } from '../../../src/search/types'
import type { TurnEvent, TurnEventBody } from '../../../src/turn/events'
import { found } from '../turn-events'

const encodeEvent = (event: TurnEvent): string => logEncoder().encode(event)

const event = (body: TurnEventBody, seq: number): TurnEvent => ({
  ...body,
  conversation_id: 'c-1',
  turn: 1,
  seq,
})
const QUESTION = event({ type: 'question', question: contentOf('how?') }, 0)
const DELTA = event({ type: 'delta', text: 'Füße' }, 1)
const DONE = event({ type: 'done', finish_reason: 'stop', answer: contentOf('Füße') }, 2)
const FAILED = event(
  { type: 'error', code: 'model_refused', status: 400, message: 'OpenAI API error: no', retryable: false },
  1,
)

/** A turn whose events come when the test says so. */
function turn() {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
  const writer = writable.getWriter()
  const encoder = new TextEncoder()
  return {
    read: eventReader(readable),
    say: (...events: TurnEvent[]) =>
      writer.write(encoder.encode(events.map((line) => `${JSON.stringify(line)}\n`).join(''))),
    end: () => writer.close(),
    fail: () => writer.abort(new Error('gone')),
    left: writer.closed.then(
      () => false,
      () => true,
    ),
  }
}

const decoder = new TextDecoder()
const reading = (response: Response) => {
  const reader = response.body!.getReader()
  return {
    next: async () => {
      const { value } = await reader.read()
      return value && decoder.decode(value)
    },
    cancel: () => reader.cancel(),
  }
}

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

describe('a stream', () => {
  it('begins before the first event, has the bytes of the encoder, and ends with its source', async () => {
    const running = turn()
    const response = streamLog(running.read, { 'x-parley-conversation-id': 'c-1' })
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(response.headers.get('x-parley-conversation-id')).toBe('c-1')
    const { next } = reading(response)
    expect(await next()).toBe(RETRY)
    running.say(QUESTION, DELTA)
    expect(await next()).toBe(encodeEvent(QUESTION) + encodeEvent(DELTA))
    running.say(DONE)
    expect(await next()).toBe(encodeEvent(DONE))
    running.end()
    expect(await next()).toBeUndefined()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('shows the question that was asked beside its results, where another one was searched', async () => {
    const running = turn()
    const { next } = reading(streamLog(running.read))
    await next()
    const [results, retrieval] = found([
      {
        result: {
          found: 0,
          request_params: { collection_name: 'c', per_page: 10, q: 'Who is Ada?', first_q: 'Who is Ada?' },
        } as SearchResult,
      },
      { error: 'Collection not found', code: 404 },
    ])
    const asked = event({ type: 'question', question: contentOf('And her?'), standalone: 'Who is Ada?' }, 0)
    running.say(asked, event(results, 1), event(retrieval, 1))
    const text: string = (await next())!
    const [question, data] = [...text.matchAll(/^data: (.*)$/gm)].map(([, shown]) => JSON.parse(shown!))
    expect(question).toMatchObject({ question: 'And her?' })
    expect(data.replies).toMatchObject([
      { result: { request_params: { q: 'And her?', first_q: 'And her?' } } },
      { error: 'Collection not found', code: 404 },
    ])
  })

  it('goes on from one turn to the next', async () => {
    const running = turn()
    const { next } = reading(streamLog(running.read))
    await next()
    running.say(DONE)
    expect(await next()).toBe(encodeEvent(DONE))
    const later = { ...QUESTION, turn: 2 }
    running.say(later)
    expect(await next()).toBe(encodeEvent(later))
  })

  it('fills silence, and only silence, with comments', async () => {
    const running = turn()
    const { next } = reading(streamLog(running.read))
    await next()
    running.say(QUESTION)
    await next()
    await vi.advanceTimersByTimeAsync(15_000)
    expect(await next()).toBe(COMMENT)
    running.say(DELTA)
    expect(await next()).toBe(encodeEvent(DELTA))
  })

  it('writes an error as an event', async () => {
    const running = turn()
    const { next } = reading(streamLog(running.read))
    await next()
    running.say(FAILED)
    expect(await next()).toBe(encodeEvent(FAILED))
  })

  it('ends when its source breaks off', async () => {
    const running = turn()
    const { next } = reading(streamLog(running.read))
    await next()
    running.say(QUESTION)
    await next()
    running.fail()
    expect(await next()).toBeUndefined()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('lets go of the turn when its reader leaves', async () => {
    const running = turn()
    const { next, cancel } = reading(streamLog(running.read))
    await next()
    await cancel()
    expect(await running.left).toBe(true)
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('a turn as it is written', () => {
  it('is an answer with its own status when it fails at once', async () => {
    const running = turn()
    const answered = answerStreaming(running.read, {})
    answered.catch(() => {})
    running.say(FAILED)
    await expect(answered).rejects.toMatchObject({ status: 400, message: 'OpenAI API error: no' })
    expect(vi.getTimerCount()).toBe(0)
  })

  it('begins with its first event', async () => {
    const running = turn()
    const answered = answerStreaming(running.read, { 'x-parley-conversation-id': 'c-1' })
    running.say(QUESTION, DELTA)
    const response = await answered
    expect(response.headers.get('x-parley-conversation-id')).toBe('c-1')
    const { next } = reading(response)
    expect(await next()).toBe(RETRY)
    expect(await next()).toBe(encodeEvent(QUESTION) + encodeEvent(DELTA))
    running.say(FAILED)
    expect(await next()).toBe(encodeEvent(FAILED))
  })

  it('begins without it after a second, and an error is then an event', async () => {
    const running = turn()
    const answered = answerStreaming(running.read, {})
    await vi.advanceTimersByTimeAsync(1_000)
    const { next } = reading(await answered)
    expect(await next()).toBe(RETRY)
    running.say(FAILED)
    expect(await next()).toBe(encodeEvent(FAILED))
  })

  it('ends when it broke off before its first event', async () => {
    const running = turn()
    const answered = answerStreaming(running.read, {})
    running.fail()
    const { next } = reading(await answered)
    expect([await next(), await next()]).toEqual([RETRY, undefined])
  })
})

describe('a turn in one piece', () => {
  const lost = vi.fn(async (_turn: number) => {})
  const delivery = (turn: number) => ({ lost: () => lost(turn), asked: 0 })

  it('is an object', async () => {
    const running = turn()
    const answered = answerWhole(running.read, { 'x-parley-conversation-id': 'c-1' }, delivery)
    running.say(QUESTION, DELTA, DONE)
    const response = await answered
    expect(response.headers.get('x-parley-conversation-id')).toBe('c-1')
    vi.useRealTimers()
    expect(await response.json()).toMatchObject({ conversation_id: 'c-1', turn: 1, answer: 'Füße' })
  })

  it('is the error that it ended in', async () => {
    const running = turn()
    const answered = answerWhole(running.read, {}, delivery)
    answered.catch(() => {})
    running.say(QUESTION, FAILED)
    await expect(answered).rejects.toMatchObject({ status: 400, message: 'OpenAI API error: no' })
  })

  it('is no answer when the turn was cut off', async () => {
    const running = turn()
    const answered = answerWhole(running.read, {}, delivery)
    answered.catch(() => {})
    running.say(QUESTION, DELTA)
    running.end()
    await expect(answered).rejects.toThrow('interrupted')
  })
})
