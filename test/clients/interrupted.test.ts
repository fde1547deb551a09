/**
 * The server is killed (SIGKILL) while an answer is read, before its log has what was read. The turn runs again once the server is back:
 * whoever resumes by the id of a piece of the first answer is told to ask again, and who asks again gets the answer of the same turn.
 */
import { createParser } from 'eventsource-parser'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { HISTORY_FIELDS } from '../history-schema'
import { KEY } from './harness'
import { OwnParley } from './own-parley'
import { type Paced, startPaced, words } from './paced'

const WORDS = 40
/** The log is written after a second: deltas that come before it, and after it. */
const DELTAS = process.env.FULL ? [1, 9, 20, 35] : [1, 35]

let paced: Paced
let server: OwnParley

beforeAll(async () => {
  server = new OwnParley()
  paced = await startPaced()
  await server.boot()
  await post('/collections', { name: 'history', fields: HISTORY_FIELDS })
  await post('/collections', { name: 'shows', fields: [{ name: 'title', type: 'string' }] })
  await post('/collections/shows/documents', { title: 'An action series' })
  await post('/conversations/models', {
    id: 'model',
    model_name: `openai/paced-${WORDS}-40`,
    openai_url: paced.url,
    api_key: 'sk-1234567890',
    history_collection: 'history',
    max_bytes: 16_384,
  })
})
afterAll(async () => {
  await server.remove()
  await paced.stop()
})

async function post(path: string, body: unknown): Promise<void> {
  const response = await fetch(server.url + path, {
    method: 'POST',
    headers: { 'x-typesense-api-key': KEY },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
}

interface Received {
  id: string
  event: string
  // biome-ignore lint/suspicious/noExplicitAny: events are checked field by field
  data: any
}

/** Reads events until there are no more, or nobody is left to send them. */
async function read(path: string, init: RequestInit, onEvents: (all: Received[]) => void = () => {}) {
  const all: Received[] = []
  const parser = createParser({
    onEvent: ({ id = '', event = '', data }) => all.push({ id, event, data: JSON.parse(data) }),
  })
  let status = 0
  try {
    const response = await fetch(server.url + path, {
      ...init,
      headers: { 'x-typesense-api-key': KEY, accept: 'text/event-stream', ...init.headers },
    })
    status = response.status
    const decoder = new TextDecoder()
    for await (const bytes of response.body ?? []) {
      parser.feed(decoder.decode(bytes, { stream: true }))
      onEvents(all)
    }
  } catch (error) {
    await server.requireDead(error)
  }
  return { status, events: all }
}

test.each(DELTAS)('after %i pieces of the answer', { timeout: 60_000 }, async (pieces) => {
  const asked = {
    method: 'POST',
    headers: { 'idempotency-key': `after ${pieces}` },
    body: JSON.stringify({ question: 'an action series', model: 'model', collections: ['shows'] }),
  }
  let killed: Promise<void> | undefined
  const { events } = await read('/conversations', asked, (all) => {
    if (all.filter(({ event }) => event === 'delta').length >= pieces) killed ??= server.kill()
  })
  await killed
  const last = events.at(-1)!
  expect(last.event).toBe('delta')
  const [{ data }] = events as [Received]
  await server.boot()

  const path = `/conversations/${data.conversation_id}/events`
  const resumed = await read(path, { headers: { 'last-event-id': last.id } })
  expect(resumed.status).toBe(200)
  expect(resumed.events.at(-1)).toMatchObject({ event: 'error', data: { status: 503, retryable: true } })
  const [turn, seq] = last.id.split('.').map(Number)
  for (const { id } of resumed.events) {
    const [itsTurn, itsSeq] = id.split('.').map(Number)
    expect(itsTurn).toBe(turn)
    expect(itsSeq).toBeGreaterThan(seq!)
  }
  // EventSource stops at a 204, which is right once the end is known.
  const end = { headers: { 'last-event-id': resumed.events.at(-1)!.id } }
  expect((await read(path, end)).status).toBe(204)

  const again = await read('/conversations', asked)
  expect(again.events.at(-1)).toMatchObject({ event: 'done', data: { answer: words(WORDS).join('') } })
  expect(again.events.at(-1)!.id.split('.')[0]).toBe(String(turn))
})
