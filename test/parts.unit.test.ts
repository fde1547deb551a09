/** Content of messages: each kind of part has its place in stores, prompts and budgets. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  addText,
  contentOf,
  fromStored,
  lasting,
  type Part,
  promptText,
  textOf,
  toStored,
} from '../src/parts'
import { fitHistory } from '../src/turn/budget'
import type { LogEvent } from '../src/turn/events'
import { foldTurn } from '../src/turn/fold'
import { historyOf, toChat } from '../src/turn/look-back'
import { byteLength } from '../src/turn/serialise'
import { fitTranscript } from '../src/turn/transcript'
import { upgrade } from '../src/turn/upgrade'
import { contents, logs, otherParts } from './turn/logs'

describe('content', () => {
  it('is stored and read back as it is, beside the text that every protocol reads', () => {
    fc.assert(
      fc.property(contents, (content) => {
        const { message, parts } = toStored(content)
        expect(message).toBe(textOf(content))
        const back = fromStored(message, parts)
        expect(textOf(back)).toBe(message)
        if (content.some(({ type }) => type !== 'text')) expect(back).toEqual(content)
        else expect(parts).toBeUndefined()
      }),
    )
  })

  it('is the text where somebody has edited the document, or where its parts are none', () => {
    const content: Part[] = [...contentOf('a'), { type: 'tool_result', id: '1', text: 'b' }]
    const { parts } = toStored(content)
    expect(fromStored('edited', parts)).toEqual(contentOf('edited'))
    for (const wrong of ['{', '[{"type":"sound"}]', '{}', 7, null, undefined]) {
      expect(fromStored('a', wrong)).toEqual(contentOf('a'))
    }
  })

  it('grows at its end, piece by piece', () => {
    fc.assert(
      fc.property(fc.array(fc.string()), (pieces) => {
        const content: Part[] = []
        for (const piece of pieces) addText(content, piece)
        expect(content).toEqual(contentOf(pieces.join('')))
      }),
    )
  })

  it('is in a history without its files, and with everything else', () => {
    fc.assert(
      fc.property(contents, (content) => {
        expect(lasting(content)).toEqual(content.filter(({ type }) => type !== 'file'))
      }),
    )
  })
})

describe('a part of each kind', () => {
  it('counts in the budget of a prompt with what the prompt shows of it', () => {
    fc.assert(
      fc.property(
        fc.array(contents, { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 210, max: 600 }),
        (said, bytes) => {
          const history = said.map((content) => toChat({ role: 'user', content, timestamp: 0 }))
          const kept = fitHistory(history, 'q', bytes, 'tags', 'openai')
          expect(kept.reduce((sum, { content }) => sum + byteLength(content), 0)).toBeLessThan(bytes)
          expect(history.slice(history.length - kept.length)).toEqual(kept)
        },
      ),
    )
    fc.assert(
      fc.property(otherParts, (part) => {
        expect(byteLength(promptText([part]))).toBeGreaterThan(0)
      }),
    )
  })

  it('counts in a transcript with all that is stored of it, a picture with its data', () => {
    const picture = (length: number): Part => ({
      type: 'image',
      media_type: 'image/png',
      data: 'a'.repeat(length),
    })
    const said = (content: Part[]) => [{ role: 'user' as const, content }]
    expect(fitTranscript(said([picture(99_000)]))).toHaveLength(1)
    expect(fitTranscript(said([picture(100_000)]))).toEqual([])
    expect(historyOf(said([picture(10)]), 5_000).messages).toEqual([
      { role: 'user', content: [picture(10)], timestamp: 4 },
    ])
  })
})

describe('a log of the version with strings', () => {
  /** Writes an event as version 2 did. */
  const before = (event: LogEvent): unknown => {
    if (event.type === 'begin' || event.type === 'question')
      return { ...event, question: textOf(event.question) }
    if (event.type === 'done') return { ...event, answer: textOf(event.answer) }
    if (event.type !== 'transcript') return event
    return {
      ...event,
      messages: event.messages.map(({ content, ...said }) => ({ ...said, message: textOf(content) })),
    }
  }
  const inText = (event: LogEvent): LogEvent[] => {
    if (event.type === 'part' || event.type === 'history') return []
    return [event.type === 'done' ? { ...event, answer: contentOf(textOf(event.answer)) } : event]
  }

  it('adds up to what it was, also where this version wrote its end', () => {
    fc.assert(
      fc.property(logs, fc.boolean(), (log, endedNow) => {
        const texts = log.flatMap(inText)
        const now = texts.map((event) => upgrade(JSON.parse(JSON.stringify(before(event))), 2).event)
        const last = texts.at(-1)!
        const events = endedNow && last.type === 'done' ? [...now.slice(0, -1), upgrade(last, 2).event] : now
        const { question, answer, transcript, ...turn } = foldTurn(events)
        const { question: asked, answer: said, transcript: given, ...rest } = foldTurn(texts)
        expect(turn).toEqual(rest)
        expect([textOf(question), textOf(answer)]).toEqual([textOf(asked), textOf(said)])
        expect(transcript.map(({ content }) => textOf(content))).toEqual(
          given.map(({ content }) => textOf(content)),
        )
      }),
    )
  })
})
