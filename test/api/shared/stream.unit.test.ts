import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  chatReader,
  type Streaming,
  streamTurn,
  type TurnEncoder,
  wholeTurn,
} from '../../../src/api/shared/stream'
import { contentOf } from '../../../src/lib/parts'
import type { TurnEventBody } from '../../../src/turn/events'
import { ANSWER, FAILED_SEARCHES, logOf, RETRIEVAL, TURN } from '../turn-events'

/** An encoder that shows what it is given. */
const plain = (): TurnEncoder => ({
  encode: (event) => (event.type === 'delta' ? `<${event.text}>` : event.type === 'done' ? '.' : ''),
  fail: ({ status, message }) => `!${status} ${message}`,
})

/** A turn whose events come when the test says so. */
function running() {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
  const writer = writable.getWriter()
  return {
    read: chatReader(readable),
    say: (...bodies: TurnEventBody[]) => writer.write(logOf(bodies)),
    write: (bytes: Uint8Array) => writer.write(bytes),
    end: () => writer.close(),
    left: writer.closed.then(
      () => false,
      () => true,
    ),
  }
}

const QUESTION = TURN[0]!
const DONE = TURN.at(-1)!
const FAILED: TurnEventBody = {
  type: 'error',
  code: 'rate_limited',
  status: 429,
  message: 'Too fast.',
  retryable: true,
}
const delta = (text: string): TurnEventBody => ({ type: 'delta', text })
const stream = (
  read: ReturnType<typeof chatReader>,
  opensAt: Streaming['opensAt'] = 'event',
  heartbeat?: string,
) =>
  streamTurn(read, plain(), {
    headers: { 'x-a': 'b' },
    opensAt,
    ...(heartbeat !== undefined && { heartbeat }),
  })

const decoder = new TextDecoder()
const next = async (reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string | undefined> => {
  const { value } = await reader.read()
  return value && decoder.decode(value)
}

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0)
  vi.useRealTimers()
  vi.restoreAllMocks()
})

describe('a streamed turn', () => {
  it('goes out as it comes, pieces together that came together', async () => {
    const turn = running()
    const answered = stream(turn.read)
    await turn.say(QUESTION, RETRIEVAL)
    const response = await answered
    expect(Object.fromEntries(response.headers)).toEqual({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      'x-a': 'b',
    })
    const reader = response.body!.getReader()
    expect(await next(reader)).toBe(': ping\n\n')
    await turn.say(delta('a'), delta('b'))
    expect(await next(reader)).toBe('<ab>')
    await turn.say(delta('c'), DONE)
    expect(await next(reader)).toBe('<c>.')
    expect(await next(reader)).toBeUndefined()
  })

  it('survives events that the network cut', async () => {
    const turn = running()
    const answered = stream(turn.read, 'text')
    const written = (async () => {
      for (const byte of logOf([QUESTION, RETRIEVAL, delta(ANSWER), DONE]))
        await turn.write(Uint8Array.of(byte))
    })()
    expect(await (await answered).text()).toBe(`<${ANSWER}>.`)
    await written
  })

  it.each<[string, Streaming['opensAt'], TurnEventBody[]]>([
    ['at once', 'event', []],
    ['before the first text', 'text', [QUESTION, RETRIEVAL]],
  ])('is an error with its own status that came %s', async (_, opensAt, before) => {
    const turn = running()
    const answered = stream(turn.read, opensAt)
    answered.catch(() => {})
    if (before.length > 0) await turn.say(...before)
    await turn.say(FAILED)
    await expect(answered).rejects.toMatchObject({ status: 429, message: 'Too fast.' })
  })

  it('fails when no search succeeded', async () => {
    const turn = running()
    const answered = stream(turn.read, 'text')
    answered.catch(() => {})
    await turn.say(QUESTION, FAILED_SEARCHES)
    await expect(answered).rejects.toMatchObject({ status: 404, message: 'Collection not found' })
  })

  it('ends with the error that comes later', async () => {
    const turn = running()
    const answered = stream(turn.read)
    await turn.say(QUESTION)
    const text = (await answered).text()
    await turn.say(delta('a'), FAILED)
    expect(await text).toBe(': ping\n\n<a>!429 Too fast.')
  })

  it('ends with an error when it was cut off', async () => {
    const turn = running()
    const answered = stream(turn.read)
    await turn.say(QUESTION, delta('a'))
    const text = (await answered).text()
    await turn.end()
    expect(await text).toBe('<a>!503 The turn was interrupted. Ask again.')
  })

  it.each<[Streaming['opensAt'], number]>([
    ['event', 1_000],
    ['found', 1_000],
    ['text', 2_500],
  ])('that opens at its first %s waits for it no longer than %i ms', async (opensAt, ms) => {
    const turn = running()
    let response: Response | undefined
    stream(turn.read, opensAt).then((value) => {
      response = value
    })
    if (opensAt !== 'event') await turn.say(QUESTION)
    await vi.advanceTimersByTimeAsync(ms - 1)
    expect(response).toBeUndefined()
    await vi.advanceTimersByTimeAsync(1)
    expect(response?.status).toBe(200)
    await response!.body!.cancel()
  })

  it.each([
    ['a comment', undefined, ': ping\n\n'],
    ['what its protocol passes over (case 39 of the AI Chat Protocol)', '\n', '\n'],
  ])('fills silence with %s every 15 s', async (_, heartbeat, beat) => {
    const turn = running()
    const reader = (await stream(turn.read, 'once', heartbeat)).body!.getReader()
    expect(await next(reader)).toBe(beat)
    for (let count = 0; count < 3; count++) {
      const beaten = next(reader)
      await vi.advanceTimersByTimeAsync(15_000)
      expect(await beaten).toBe(beat)
    }
    await reader.cancel()
  })

  it('leaves the turn when its reader leaves, which is no failure', async () => {
    const logged = vi.spyOn(console, 'error').mockImplementation(() => {})
    const turn = running()
    const answered = stream(turn.read)
    await turn.say(QUESTION)
    const reader = (await answered).body!.getReader()
    await next(reader)
    const waiting = next(reader)
    await reader.cancel()
    expect(await waiting).toBeUndefined()
    expect(await turn.left).toBe(true)
    await vi.advanceTimersByTimeAsync(0)
    expect(logged).not.toHaveBeenCalled()
  })
})

describe('a whole turn', () => {
  it('is what its events add up to', async () => {
    const turn = running()
    const whole = wholeTurn(turn.read)
    await turn.say(...TURN)
    expect(await whole).toMatchObject({
      conversationId: 'c-1',
      turn: 3,
      answer: contentOf(ANSWER),
      finishReason: 'stop',
    })
  })

  it.each([
    ['it failed', [QUESTION, FAILED], 'Too fast.'],
    ['its searches failed', [QUESTION, FAILED_SEARCHES], 'Collection not found'],
  ])('is an error when %s', async (_, events, message) => {
    const turn = running()
    const whole = wholeTurn(turn.read)
    whole.catch(() => {})
    await turn.say(...events)
    await expect(whole).rejects.toThrow(message)
  })

  it('is no answer when the turn was cut off', async () => {
    const turn = running()
    const whole = wholeTurn(turn.read)
    whole.catch(() => {})
    await turn.say(QUESTION, delta('a'))
    await turn.end()
    await expect(whole).rejects.toThrow('interrupted')
  })
})
