import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { QueuedTurn } from '../../src/conversation/turn-queue'
import { Reader, TurnStream } from '../../src/conversation/turn-stream'
import { contentOf } from '../../src/lib/parts'
import type { TurnEvent, Wording } from '../../src/turn/events'

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

const parse = (text: string): TurnEvent[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

const read = async (reader: Reader) => parse(await new Response(reader.stream).text())

const makeStream = () => {
  const logged: string[] = []
  const stream = new TurnStream('c', 1, (lines) => void logged.push(lines))
  const reader = new Reader()
  stream.join(reader)
  return { stream, reader, logged }
}

const done = { type: 'done', finish_reason: 'stop', answer: contentOf('') } as const

const texts = (events: TurnEvent[]) => events.flatMap((event) => (event.type === 'delta' ? [event.text] : []))

describe('the stream of a turn', () => {
  it('writes the first piece at once, gathers what follows, and keeps the order', async () => {
    const { stream, reader } = makeStream()
    for (const text of ['a', 'b', 'c']) stream.emit({ type: 'delta', text })
    vi.advanceTimersByTime(32)
    stream.emit({ type: 'delta', text: 'd' })
    stream.emit(done)
    const events = await read(reader)
    expect(texts(events)).toEqual(['a', 'bc', 'd'])
    expect(events.map(({ seq }) => seq)).toEqual([0, 1, 2, 3])
  })

  it('writes at once again after a silence', async () => {
    const { stream, reader } = makeStream()
    stream.emit({ type: 'delta', text: 'a' })
    vi.advanceTimersByTime(40)
    stream.emit({ type: 'delta', text: 'b' })
    stream.emit({ type: 'delta', text: 'c' })
    stream.emit(done)
    expect(texts(await read(reader))).toEqual(['a', 'b', 'c'])
  })

  it('does not let more than 4 KiB wait', async () => {
    const { stream, reader } = makeStream()
    stream.emit({ type: 'delta', text: 'a' })
    for (let count = 0; count < 6; count++) stream.emit({ type: 'delta', text: 'x'.repeat(1024) })
    stream.emit(done)
    expect(texts(await read(reader)).map((text) => text.length)).toEqual([1, 4096, 2048])
  })

  it('logs everything once, in order, in segments', async () => {
    const { stream, reader, logged } = makeStream()
    for (let count = 0; count < 100; count++) {
      stream.emit({ type: 'delta', text: `${count} ` })
      vi.advanceTimersByTime(17)
    }
    stream.emit(done)
    expect(parse(logged.join(''))).toEqual(await read(reader))
    expect(logged.length).toBe(2)
    stream.emit({ type: 'delta', text: 'late' })
    vi.advanceTimersByTime(1000)
    expect(logged.join('')).not.toContain('late')
  })

  it('logs an answer each five seconds, and at once when it is flushed', () => {
    const { stream, logged } = makeStream()
    const seconds = 60
    for (let ms = 0; ms < seconds * 1_000; ms += 50) {
      stream.emit({ type: 'delta', text: 'word ' })
      vi.advanceTimersByTime(50)
    }
    expect(logged.length).toBeLessThanOrEqual(seconds / 5 + 1)
    expect(logged.length).toBeGreaterThan(seconds / 10)
    stream.flush()
    expect(texts(parse(logged.join(''))).join('')).toHaveLength(5 * 20 * seconds)
  })

  it('does not let more than 256 KiB wait for the log', () => {
    const { stream, logged } = makeStream()
    for (let count = 0; count < 400; count++) stream.emit({ type: 'delta', text: 'x'.repeat(4_096) })
    expect(logged.length).toBeGreaterThan(4)
    for (const lines of logged) expect(lines.length).toBeLessThan(270_000)
  })

  it('gives whoever joins, from wherever, what they have not seen', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ minLength: 1 }), { maxLength: 20 }),
        fc.nat(25),
        fc.integer({ min: -1, max: 25 }),
        async (pieces, joinsAt, seq) => {
          const { stream, reader } = makeStream()
          const late = new Reader()
          pieces.forEach((text, index) => {
            if (index === joinsAt) stream.join(late, Math.min(seq, index - 1))
            stream.emit({ type: 'delta', text })
            vi.advanceTimersByTime(40)
          })
          if (joinsAt >= pieces.length) stream.join(late, Math.min(seq, pieces.length - 1))
          stream.emit(done)
          const all = await read(reader)
          const from = Math.min(seq, Math.min(joinsAt, pieces.length) - 1)
          expect(texts(all)).toEqual(pieces)
          expect(await read(late)).toEqual(all.slice(from + 1))
        },
      ),
    )
  })

  it('lets go of a reader who left', async () => {
    const { stream } = makeStream()
    let gone = 0
    const left = new Reader(() => {
      gone += 1
    })
    stream.join(left)
    await left.stream.cancel()
    stream.emit({ type: 'delta', text: 'x' })
    stream.emit(done)
    expect([left.open, left.gone, gone]).toEqual([false, true, 1])
  })

  it('makes nothing for a reader that it does not read, and all of it when it does', async () => {
    const { stream, reader } = makeStream()
    const encode = vi.spyOn(TextEncoder.prototype, 'encode')
    for (let count = 0; count < 20; count++) {
      stream.emit({ type: 'delta', text: 'x'.repeat(100_000) })
    }
    stream.emit(done)
    expect(encode).not.toHaveBeenCalled()
    expect(texts(await read(reader)).join('')).toBe('x'.repeat(2_000_000))
    // No more than a line of it at once, as these are long.
    for (const [text] of encode.mock.calls) expect(text!.length).toBeLessThan(101_000)
    encode.mockRestore()
  })

  it('ends a stream whose source is deleted in an error', async () => {
    const reader = new Reader()
    reader.follow(() => {
      throw new Error('deleted')
    })
    reader.end()
    await expect(new Response(reader.stream).text()).rejects.toThrow('deleted')
    expect(reader.gone).toBe(true)
  })

  describe('the words of an answer', () => {
    const WORDS: Wording = {
      line: ['<', { slot: 'piece', from: 0 }, ':', { slot: 'seq' }, ' ', { slot: 'text' }, '>'],
      escapes: 'nothing',
      heartbeat: '.',
      heartbeatMs: 1_000,
    }
    const say = (stream: TurnStream, ...pieces: string[]): void => {
      for (const text of pieces) {
        stream.emit({ type: 'delta', text })
        vi.advanceTimersByTime(40)
      }
    }
    const begin = () => {
      const stream = new TurnStream('c', 1, () => {})
      const [events, words] = [new Reader(), new Reader()]
      stream.join(events, -1, { without: 'words' })
      stream.joinWords(words, WORDS)
      stream.emit({ type: 'question', question: contentOf('q') })
      return { stream, events, words: () => new Response(words.stream).text() }
    }

    it('are the pieces after the first, which the events do not have', async () => {
      const { stream, events, words } = begin()
      const written = words()
      say(stream, 'a', 'b', 'c')
      stream.emit(done)
      expect(await written).toBe('<1:2 b><2:3 c>')
      expect((await read(events)).map(({ type, seq }) => [type, seq])).toEqual([
        ['question', 0],
        ['delta', 1],
        ['done', 4],
      ])
    })

    it('end at another event, and the events have what follows it', async () => {
      const { stream, events, words } = begin()
      say(stream, 'a', 'b')
      stream.emit({ type: 'followups', questions: [] })
      say(stream, 'c')
      stream.emit(done)
      expect(await words()).toBe('<1:2 b>')
      expect(texts(await read(events))).toEqual(['a', 'c'])
    })

    it('are none of a turn that was refused, whenever it is asked for', async () => {
      const turn = new QueuedTurn({ conversationId: 'c', words: WORDS } as never, {})
      const before = turn.readsOf(turn.request)
      turn.refuse({ type: 'error', code: 'overloaded', status: 503, message: 'no', retryable: true } as never)
      const after = turn.readsOf(turn.request)
      for (const { events, words } of [before, after]) {
        expect(parse(await new Response(events).text()).map(({ type }) => type)).toEqual(['error'])
        expect(await new Response(words).text()).toBe('')
      }
    })

    it('are none where nothing is said, or one piece', async () => {
      const silent = begin()
      silent.stream.emit(done)
      expect(await silent.words()).toBe('')
      const { stream, events, words } = begin()
      say(stream, 'a')
      stream.emit(done)
      expect(await words()).toBe('')
      expect(texts(await read(events))).toEqual(['a'])
    })

    it('have a heartbeat while the model says nothing', async () => {
      const { stream, words } = begin()
      const written = words()
      say(stream, 'a', 'b')
      await vi.advanceTimersByTimeAsync(3_100)
      say(stream, 'c')
      stream.emit(done)
      expect(await written).toBe('<1:2 b>...<2:3 c>')
    })
  })
})
