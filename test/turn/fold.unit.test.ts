/** What the events of a turn add up to does not depend on where it was read from, nor in how many pieces. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { audienceOf, type LogEvent } from '../../src/turn/events'
import { emptyTurn, fold, foldTurn, messagesOf, recordOf, type Turn, traceOf } from '../../src/turn/fold'
import { spendingOf } from '../../src/turn/spending'
import { logs } from './logs'

const copy = <Value>(value: Value): Value => JSON.parse(JSON.stringify(value))

describe('the fold of a log', () => {
  it('is that of any split of it, resumed from what was kept in between', () => {
    fc.assert(
      fc.property(logs, fc.array(fc.nat(20), { maxLength: 4 }), (log, cuts) => {
        const borders = [0, ...cuts.map((cut) => Math.min(cut, log.length)).sort((a, b) => a - b), log.length]
        let turn: Turn = emptyTurn()
        for (const [at, border] of borders.slice(1).entries()) {
          for (const event of log.slice(borders[at], border)) fold(turn, copy(event))
          turn = copy(turn)
        }
        expect(turn).toEqual(copy(foldTurn(log)))
      }),
    )
  })

  it('says what the record, the history and the trace say', () => {
    fc.assert(
      fc.property(logs, (log) => {
        const turn = foldTurn(log)
        const ofType = <Type extends LogEvent['type']>(type: Type) =>
          log.filter((event): event is Extract<LogEvent, { type: Type }> => event.type === type)
        const said = ofType('delta')
          .map((event) => event.text)
          .join('')
        expect(turn.answer).toBe(said)
        const record = recordOf(turn, 5_000, 'openai/gpt')
        expect(record).toMatchObject({
          turn: 3,
          question: turn.question,
          answer: turn.status === 'done' ? said : '',
          citations: turn.citations,
          created_at: 5_000,
        })
        expect(messagesOf(turn, 5).slice(-2)).toEqual([
          { role: 'user', message: turn.question, timestamp: 5 },
          { role: 'assistant', message: said, timestamp: 5 },
        ])
        expect(messagesOf(turn, 5).slice(0, -2)).toEqual(
          ofType('transcript').flatMap((event) => event.messages),
        )
        const trace = traceOf(turn)
        expect(trace.question).toBe(record.question)
        expect(trace.standalone).toBe(record.standalone)
        expect(trace.followups).toEqual(record.followups)
        expect(trace.searches).toHaveLength(ofType('search').length)
        const [{ inputTokens }] = spendingOf(trace.calls, 'm')
        expect(inputTokens).toBe(ofType('call').reduce((sum, event) => sum + event.call.input_tokens, 0))
        expect(turn.passages).toEqual(ofType('retrieval').flatMap((event) => event.passages))
      }),
    )
  })

  it('is for readers what it is without the events for operators', () => {
    fc.assert(
      fc.property(logs, (log) => {
        const { searches, calls, transcript, ...shown } = foldTurn(log)
        const read = foldTurn(log.filter((event) => audienceOf(event) === 'reader'))
        expect(read).toEqual({ ...shown, searches: [], calls: [], transcript: [] })
      }),
    )
  })
})
