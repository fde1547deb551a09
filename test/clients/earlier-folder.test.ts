/**
 * A data folder that an earlier version wrote: its conversations are read, told again and gone on with.
 *
 * The folder's logs are of version 1: a `retrieval` holds the engine's whole replies, `done` holds the history, and
 * errors have no code. One turn failed, and one was cut off with its answer half written.
 */
import { expect, test } from 'vitest'
import { openFolder } from './open-folder'

const VISITOR = 'visitor-secret-of-the-fixture-0001'

const ALIEN = '0c00544c-1295-4404-ab5f-ab7f83e0bb34'
const ROBBERS = '76c2014d-ab18-4905-b9f7-2dfd89ca87ec'
const SHARK = '9457b807-abf0-412a-b5eb-fb10e01486e6'
const HEAT = '7d88d070-3275-4386-86ba-40ae9052dee5'
const FAILED = '9e6feea3-085b-4063-80c0-5be35bfec872'
const ALIEN_ANSWER =
  'The crew of the spaceship Nostromo is hunted by a creature from another world. Ridley Scott directed Alien.'

const { send } = openFolder('folder-before-turn-log')

// biome-ignore lint/suspicious/noExplicitAny: replies are compared as JSON
type Json = any

interface Call {
  method?: string
  body?: object | string
  headers?: Record<string, string>
}

const call = (path: string, { method, body, headers }: Call = {}) =>
  send(method ?? (body ? 'POST' : 'GET'), path, body, headers)

const json = async (...given: Parameters<typeof call>): Promise<Json> =>
  JSON.parse((await call(...given)).text)

const search = (question: string, more: Record<string, string> = {}) =>
  `/collections/films/documents/search?${new URLSearchParams({
    q: question,
    query_by: 'embedding,title,plot',
    exclude_fields: 'embedding',
    conversation: 'true',
    conversation_model_id: 'films',
    ...more,
  })}`

/** The names of server-sent events. */
const eventsOf = (text: string): string[] => [...text.matchAll(/^event: (\w+)$/gm)].map(([, name]) => name!)

test('conversations are listed, with their turns, answers, citations and traces', async () => {
  const { conversations } = await json('/conversations?limit=10')
  expect(conversations.map(({ id }: Json) => id)).toEqual(
    expect.arrayContaining([ALIEN, ROBBERS, SHARK, HEAT]),
  )
  const alien = await json(`/conversations/${ALIEN}`)
  expect(alien.turns).toMatchObject([
    { turn: 1, question: 'Who directed Alien?', answer: ALIEN_ANSWER, finish_reason: 'stop' },
    { turn: 2, question: 'And when was it made?', standalone: expect.stringContaining('Alien') },
  ])
  expect(alien.turns[0].citations[0]).toMatchObject({ collection: 'films', document_id: 'alien' })
  const trace = await json(`/conversations/${ALIEN}/trace`)
  expect(JSON.stringify(trace)).toContain('"id":"alien"')
})

test('the events of a finished turn are read again, from any of them', async () => {
  const { text } = await call(`/conversations/${ALIEN}/events?after=1.0`, {
    headers: { accept: 'text/event-stream' },
  })
  const events = eventsOf(text)
  expect(events).toEqual(expect.arrayContaining(['retrieval', 'delta', 'citation', 'usage', 'done']))
  expect(text).toContain(JSON.stringify(ALIEN_ANSWER).slice(1, -1))
  const rest = await call(`/conversations/${ALIEN}/events?after=1.2`, {
    headers: { accept: 'text/event-stream' },
  })
  expect(eventsOf(rest.text).length).toBeGreaterThan(0)
  expect(eventsOf(rest.text).length).toBeLessThan(events.length)
})

test('a request that was answered before is answered the same again, with its sources', async () => {
  const again = await json('/conversations', {
    body: '{"model": "films", "collections": ["films"], "question": "Who chases the bank robbers?"}',
    headers: { 'Idempotency-Key': 'kept-from-before', 'X-Parley-Visitor': VISITOR },
  })
  expect(again).toMatchObject({
    conversation_id: ROBBERS,
    turn: 1,
    answer: 'A detective in Los Angeles chases a crew of bank robbers.',
    citations: [{ collection: 'films', document_id: 'heat' }],
  })
})

test("Typesense's multi_search is told its results and its history again", async () => {
  const again = await json(
    '/multi_search?q=Who+directed+Heat%3F&query_by=title,plot&conversation=true&conversation_model_id=films',
    {
      body: '{"searches": [{"collection": "films"}, {"collection": "films", "filter_by": "year:>1990"}]}',
      headers: { 'Idempotency-Key': 'multi-before' },
    },
  )
  expect(again.conversation).toMatchObject({
    conversation_id: HEAT,
    query: 'Who directed Heat?',
    conversation_history: {
      conversation: [{ user: 'Who directed Heat?' }, { assistant: again.conversation.answer }],
    },
  })
  expect(again.results).toHaveLength(2)
  expect(again.results[0].hits[0].document.id).toBe('heat')
})

test('a turn that failed, and one that was cut off, run again when they are asked again', async () => {
  for (const key of ['failed-before', 'cut-before']) {
    const question = key === 'failed-before' ? 'Who directed Jaws?' : 'Who directed Heat, and when?'
    const { status, text } = await call('/conversations', {
      body: { model: 'dead', collections: ['films'], question },
      headers: { 'Idempotency-Key': key },
    })
    // The provider is gone now: what comes back is today's failure, not the one of then.
    expect({ status, text }).toMatchObject({
      status: 400,
      text: expect.stringContaining('could not be reached'),
    })
  }
})

test('documents of then are found by their words, as they are written', async () => {
  const found = (q: string): Promise<Json> =>
    json(`/collections/films/documents/search?q=${q}&query_by=plot&prefix=false&num_typos=0`)
  await expect.poll(async () => (await found('chase')).found).toBe(0)
  expect((await found('chases')).hits.map(({ document }: Json) => document.id)).toEqual(['heat'])
})

test('conversations go on, through the protocol that began them and through another', async () => {
  const followed = await json(search('Who directed Jaws?', { conversation_id: ALIEN }))
  expect(followed.conversation.conversation_id).toBe(ALIEN)
  expect(followed.conversation.conversation_history.conversation).toHaveLength(6)
  expect(followed.conversation.answer).toContain('Steven Spielberg')

  const other = await json('/conversations', {
    body: { model: 'films', collections: ['films'], question: 'Who directed Heat?', conversation_id: SHARK },
  })
  expect(other).toMatchObject({ conversation_id: SHARK, turn: 2 })
  expect(other.answer).toContain('Michael Mann')
  const { turns } = await json(`/conversations/${SHARK}`)
  expect(turns.map(({ turn }: Json) => turn)).toEqual([1, 2])
})

test('a conversation of then can be deleted, and its messages go with it', async () => {
  expect((await call(`/conversations/${HEAT}`, { method: 'DELETE' })).status).toBe(200)
  expect((await call(`/conversations/${HEAT}`)).status).toBe(404)
  const { found } = await json(`/collections/chats/documents/search?q=*&filter_by=conversation_id:=${HEAT}`)
  expect(found).toBe(0)
})

test('what failed then is no history', async () => {
  expect((await call(`/conversations/${FAILED}`)).status).toBe(200)
  const { turns } = await json(`/conversations/${FAILED}`)
  expect(turns).toEqual([])
})
