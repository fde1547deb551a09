/**
 * A data folder of the version in which questions, answers and messages were strings (logs of version 2): it is read, told
 * again, changed and gone on with.
 */
import { expect, test } from 'vitest'
import { openFolder } from './open-folder'

const ALIEN = 'c96621d5-0931-4342-904e-e335005a7f8a'
const MEMORY = 'fe9db951-7351-4cd6-b82b-4491146b5104'
const ANSWER =
  'The crew of the spaceship Nostromo is hunted by a creature from another world. Ridley Scott directed Alien.'

const { send } = openFolder('folder-before-parts')

async function call(path: string, body?: string, headers: Record<string, string> = {}, method?: string) {
  const { status, text } = await send(method ?? (body ? 'POST' : 'GET'), path, body, headers)
  expect(status).toBe(200)
  return text
}

const events = (id: string, after: string) =>
  call(`/conversations/${id}/events?after=${after}`, undefined, { accept: 'text/event-stream' })

test('a request that was answered before is answered the same again', async () => {
  const asked = '{"model": "films", "collections": ["films"], "question": "Who directed Alien?"}'
  const again = await call('/conversations', asked, { 'Idempotency-Key': 'kept-from-strings' })
  expect(JSON.parse(again)).toMatchObject({
    conversation_id: ALIEN,
    turn: 1,
    question: 'Who directed Alien?',
    answer: ANSWER,
    citations: [
      { collection: 'films', document_id: 'alien', start: 0 },
      { collection: 'films', document_id: 'alien', start: 79 },
    ],
  })
})

test('the events of a turn say question and answer as they did', async () => {
  const text = await events(ALIEN, '1.0')
  expect(text).toContain(`"answer":${JSON.stringify(ANSWER)}`)
  expect(text).toContain('"question":"And when was it made?"')
})

test('a conversation goes on with what was said then', async () => {
  const asked = {
    model: 'films',
    collections: ['films'],
    question: 'Who directed it?',
    conversation_id: ALIEN,
  }
  expect(JSON.parse(await call('/conversations', JSON.stringify(asked)))).toMatchObject({
    turn: 3,
    standalone: expect.any(String),
  })
})

test('an answer of then is changed, and read changed by every protocol', async () => {
  await call(`/_plugins/_ml/memory/message/${MEMORY}_1`, '{"response": "Jaws, and no other."}', {}, 'PUT')
  const text = await events(MEMORY, '1.0')
  expect(text).toContain('"answer":"Jaws, and no other."')
  expect(text).toContain('event: delta\ndata: {"text":"Jaws, and no other."}')
})
