/** Events survive their lines, and a line that is no event is refused before anything is made of it. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { readEvent } from '../../src/turn/event-line'
import { logs } from './logs'

it('reads every event as it was written', () => {
  fc.assert(
    fc.property(logs, (log) => {
      const lines = log.map((event) => JSON.stringify(event))
      expect(lines.map(readEvent).map((event) => JSON.stringify(event))).toEqual(lines)
    }),
  )
})

it.each([
  'null',
  '[]',
  '"delta"',
  '{"type":"delta","text":"a"}',
  '{"type":"delta","text":"a","conversation_id":"c","turn":"1","seq":0}',
  '{"type":"toString","conversation_id":"c","turn":1,"seq":0}',
  '{"conversation_id":"c","turn":1,"seq":0}',
])('refuses %s', (line) => {
  expect(() => readEvent(line)).toThrow('Invalid')
})
