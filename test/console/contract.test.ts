/** A fake server that answers what Parley does not is found out, and so is a console that asks what Parley refuses. */
import { expect, test } from 'vitest'
import { bodyFault, eventFault, queryFault, replyFault } from './contract'
import { assistant, collection, summary } from './sample'

test.each([
  [
    'a property that is not described',
    200,
    { conversations: [summary('c', 'Why?', { mood: 'good' })] },
    /mood/,
  ],
  ['a property that is missing', 200, { conversations: [{ id: 'c' }] }, /required property/],
  [
    'a value of another type',
    200,
    { conversations: [summary('c', 'Why?', { turn_count: '1' })] },
    /turn_count/,
  ],
  ['a status that the route does not have', 201, {}, /201/],
  ['a failure without a message', 500, { detail: 'It broke' }, /required property "message"/],
])('a reply with %s is a fault', (_, status, value, said) => {
  expect(replyFault('GET', '/conversations', status, value)).toMatch(said)
})

test('a reply as it is described is none, on routes of Parley and of Typesense', () => {
  expect(replyFault('GET', '/conversations', 200, { conversations: [summary('c')] })).toBe('')
  expect(replyFault('GET', '/collections/docs', 200, collection('docs'))).toBe('')
  expect(replyFault('GET', '/collections/docs', 404, { message: 'Not found' })).toBe('')
})

test('a shape is a description too', () => {
  expect(replyFault('GET', '/collections/docs', 200, { ...collection('docs'), colour: 1 })).toMatch(/colour/)
  expect(replyFault('POST', '/collections', 200, collection('docs'))).toMatch(/200/)
  expect(replyFault('GET', '/nowhere', 200, {})).toMatch(/no such route/)
})

test('a body, a query and an event are held against their descriptions', () => {
  const { name: _, created_at: __, updated_at: ___, ...body } = assistant('help')
  expect(bodyFault('PUT', '/assistants/help', body)).toBe('')
  expect(bodyFault('PUT', '/assistants/help', { ...body, model: 5 })).toMatch(/model/)
  expect(queryFault('GET', '/conversations', new URLSearchParams('limit=1&rating=up'))).toBe('')
  expect(queryFault('GET', '/conversations', new URLSearchParams('limit=1&mood=good'))).toMatch(/mood/)
  expect(eventFault('delta', { text: 'A' })).toBe('')
  expect(eventFault('delta', { words: 'A' })).not.toBe('')
  expect(eventFault('mood', {})).toMatch(/no event/)
})
