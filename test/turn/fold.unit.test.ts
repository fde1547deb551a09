/** What the events of a turn add up to does not depend on where it was read from, nor in how many pieces. */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { lasting, textOf } from '../../src/lib/parts'
import { audienceOf, type LogEvent, type LogEventBody, type Passage } from '../../src/turn/events'
import {
  emptyTurn,
  fold,
  foldBody,
  foldTurn,
  messagesOf,
  recordOf,
  stepsOf,
  type Turn,
  traceOf,
} from '../../src/turn/fold'
import { spendingOf } from '../../src/turn/trace'
import { logs } from './logs'

const nameOf = ({ collection, id }: Passage) => JSON.stringify([collection, id])

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
        expect(textOf(turn.answer)).toBe(said)
        expect(turn.answer.filter(({ type }) => type !== 'text')).toEqual(
          ofType('part').map(({ part }) => part),
        )
        const record = recordOf(turn, 5_000, 'openai/gpt')
        expect(record).toMatchObject({
          turn: 3,
          question: textOf(turn.question),
          answer: turn.status === 'done' ? said : '',
          citations: turn.citations,
          created_at: 5_000,
        })
        expect(messagesOf(turn, 5).slice(-2)).toEqual([
          { role: 'user', content: lasting(turn.question), timestamp: 5 },
          { role: 'assistant', content: turn.answer, timestamp: 5 },
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
        const found = ofType('retrieval').flatMap((event) => event.passages)
        expect(new Set(turn.passages.map(nameOf))).toEqual(new Set(found.map(nameOf)))
        expect(turn.passages.map(({ rank }) => rank)).toEqual(turn.passages.map((_, index) => index + 1))
        expect(new Set(turn.passages.map(nameOf)).size).toBe(turn.passages.length)
        const steps = stepsOf(turn)
        expect(steps.flatMap(({ content }) => content)).toEqual(turn.answer)
        expect(steps.flatMap(({ passages }) => passages)).toEqual(turn.passages)
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

describe('a turn of several steps', () => {
  const passage = (id: string, rank: number): Passage => ({
    collection: 'films',
    id,
    rank,
    score: 1,
    text: id,
    fields: {},
  })
  const found = (...ids: string[]): LogEventBody => ({
    type: 'retrieval',
    passages: ids.map((id, index) => passage(id, index + 1)),
    searches: [{ collection: 'films', found: ids.length }],
  })
  const call = { type: 'tool_call' as const, id: '1', name: 'search', arguments: '{"q":"crew"}' }
  const result = { type: 'tool_result' as const, id: '1', text: 'seven' }
  const log: LogEventBody[] = [
    found('alien', 'heat'),
    { type: 'delta', text: 'Let me ' },
    { type: 'delta', text: 'look.' },
    { type: 'part', part: call },
    { type: 'part', part: result },
    found('jaws', 'alien'),
    { type: 'delta', text: ' They ' },
    { type: 'delta', text: 'are seven.' },
  ]
  const turn = log.reduce(foldBody, emptyTurn())

  it('has what the model got and wrote in each of them', () => {
    expect(stepsOf(turn)).toEqual([
      {
        passages: [passage('alien', 1), passage('heat', 2)],
        content: [{ type: 'text', text: 'Let me look.' }, call],
      },
      { passages: [passage('jaws', 3)], content: [result, { type: 'text', text: ' They are seven.' }] },
    ])
    expect(traceOf(turn).steps).toEqual(stepsOf(turn))
  })

  it('starts a text of its own where documents were found between two pieces of text', () => {
    const two = [found('alien'), { type: 'delta' as const, text: 'a' }, found('heat')]
      .concat({ type: 'delta' as const, text: 'b' })
      .reduce(foldBody, emptyTurn())
    expect(stepsOf(two).map(({ content }) => textOf(content))).toEqual(['a', 'b'])
    expect(textOf(two.answer)).toBe('ab')
  })

  it('keeps its steps when it is done, and takes the answer from there where its beginning was not read', () => {
    const done: LogEventBody = { type: 'done', finish_reason: 'stop', answer: structuredClone(turn.answer) }
    expect(stepsOf([...log, done].reduce(foldBody, emptyTurn()))).toEqual(stepsOf(turn))
    expect([...log.slice(-1), done].reduce(foldBody, emptyTurn()).answer).toEqual(turn.answer)
  })
})
