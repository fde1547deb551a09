/**
 * Every fault of a provider at every place of its reply: what the caller gets, as JSON and as both streams, and
 * that history holds whole turns only, to which the next question can follow.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { askInStream, gather, textOf } from './event-source'
import { type Faulty, FIRST, PLACES, type Place, SECOND, STATUSES, startFaulty, WAYS } from './faulty'
import { client, createHistory, createModel, createShows, query, rawStream, request } from './harness'

let faulty: Faulty
let shows: string

beforeAll(async () => {
  faulty = await startFaulty()
  shows = await createShows()
})
afterAll(() => faulty.stop())

const WHOLE = FIRST + SECOND
const UNREACHED = 'OpenAI API error: the provider could not be reached'
const CUT = 'OpenAI API error: the stream ended before the answer was complete'
const MALFORMED = 'Got malformed response from OpenAI API.'
const TIMEOUT = 'OpenAI API timeout.'

/** How an answer came to the caller, in whatever shape it was asked for. */
interface Outcome {
  /** whether the reply was plain JSON */
  plain: boolean
  status: number
  /** text shown before the end */
  text: string
  error?: string
  conversationId: string
}

const SHAPES = ['json', 'stream', 'parley'] as const
type Shape = (typeof SHAPES)[number]

const search = (q: string, model: string, conversationId: string | undefined, stream: boolean): string =>
  query(`/collections/${shows}/documents/search`, {
    q,
    query_by: 'embedding',
    exclude_fields: 'embedding',
    conversation: true,
    conversation_stream: stream,
    conversation_model_id: model,
    ...(conversationId !== undefined && { conversation_id: conversationId }),
  })

const ASK: Record<Shape, (question: string, model: string, conversationId?: string) => Promise<Outcome>> = {
  json: async (question, model, conversationId) => {
    const { status, body } = await request('GET', search(question, model, conversationId, false))
    const { answer = '', conversation_id = '' } = body.conversation ?? {}
    // What fails after a moment comes in an answer that has begun.
    return {
      plain: status >= 400,
      status: body.code ?? status,
      text: answer,
      error: body.message,
      conversationId: conversation_id,
    }
  },
  stream: async (question, model, conversationId) => {
    const stream = await rawStream(search(question, model, conversationId, true))
    expect(stream.error).toBeUndefined()
    if (!stream.contentType.startsWith('text/event-stream')) {
      const { message: error } = JSON.parse(stream.text)
      return { plain: true, status: stream.status, text: '', error, conversationId: '' }
    }
    const lines = stream.text.split('\n').filter((line) => line !== '' && line !== 'data: [DONE]')
    const events = lines.map((line) => JSON.parse(line.replace(/^data: /, '')))
    const last = events.at(-1)
    // Either the whole reply or the failure, and [DONE] before the first of them only.
    expect(stream.text.includes('data: [DONE]')).toBe(last.error === undefined)
    return {
      plain: false,
      status: last.code ?? stream.status,
      text: events.map(({ message }) => message).join(''),
      error: last.error,
      conversationId: last.conversation_id,
    }
  },
  parley: async (question, model, conversationId) => {
    const asked = { question, model, collections: [shows], conversation_id: conversationId }
    const connection = await askInStream(asked)
    const events = await gather(connection)
    if (!connection.headers.get('content-type')?.startsWith('text/event-stream')) {
      const { message: error } = JSON.parse(connection.bytes().toString())
      return { plain: true, status: connection.status, text: '', error, conversationId: '' }
    }
    const last = events.at(-1)
    return {
      plain: false,
      status: last?.data.status ?? connection.status,
      text: textOf(events),
      error: last?.event === 'error' ? last.data.message : undefined,
      conversationId: connection.headers.get('x-parley-conversation-id') ?? '',
    }
  },
}

interface Expected {
  /** what a caller of each shape is told */
  error: string
  /** the same for a rewritten question, which is asked for in one piece, where it differs */
  whole?: string
  /** text that a stream has shown by then */
  shown?: string
}

function expected(way: string, place: Place): Expected {
  const shown = place === 'between chunks' || place === 'in a letter' ? FIRST : ''
  if (way === 'stall') return { error: TIMEOUT, shown }
  if (place === 'before the headers') return { error: UNREACHED }
  if (way === 'cut') return { error: CUT, shown }
  // A body in one piece that ends too early is no JSON, wherever it ends.
  if (way === 'end' && place === 'between chunks') return { error: CUT, whole: MALFORMED, shown }
  return { error: MALFORMED, shown }
}

const FAULTS: [string, Expected][] = [
  ...WAYS.flatMap((way) =>
    PLACES.map((place): [string, Expected] => [`${way} ${place}`, expected(way, place)]),
  ),
  ['error between chunks', { error: 'OpenAI API error: overloaded', whole: MALFORMED, shown: FIRST }],
  ...Object.entries(STATUSES).map(([name, { status, body }]): [string, Expected] => {
    const said = body.startsWith('{') ? JSON.parse(body).error.message : body || `HTTP status ${status}`
    return [name, { error: `OpenAI API error: ${said}` }]
  }),
]

/** Faults before any reply that can be over at the next attempt. */
const PASSING = [
  'cut before the headers',
  'end before the headers',
  'garble before the headers',
  'rate limit of a second',
  'server error',
  'bad gateway',
  'unavailable',
]

const documents = async (history: string): Promise<Record<string, unknown>[]> =>
  (await client().collections(history).documents().export())
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

/** Two good turns with failing ones between, in one conversation, and a conversation that only fails. */
async function converse(
  shape: Shape,
  fault: string,
  rewriting: boolean,
  { error, whole, shown = '' }: Expected,
) {
  const history_collection = await createHistory()
  const model = await createModel({
    model_name: 'openai/faulty',
    openai_url: faulty.url,
    history_collection,
    // Long enough for three attempts.
    timeout: 2,
  })
  const ask = ASK[shape]
  const first = await ask('What is good?', model)
  expect(first).toMatchObject({
    status: shape === 'parley' ? first.status : 200,
    text: WHOLE,
    error: undefined,
  })
  expect(first.status).toBeLessThan(300)
  const { conversationId } = first

  const purpose = rewriting ? 'rewriting' : 'answer'
  const question = `Does it hold [${purpose}: ${fault}] as ${shape}?`
  const failures = [await ask(question, model, conversationId)]
  if (!rewriting) failures.push(await ask(`${question} Alone`, model))
  const streams = !rewriting && shape !== 'json'
  for (const failure of failures) {
    expect(failure.error).toBe(rewriting ? (whole ?? error) : error)
    expect(failure.status).toBe(400)
    expect(failure.text).toBe(streams ? shown : '')
    // Text that was shown cannot be taken back. (Before it there is a status of its own, if that comes soon.)
    if (streams && shown !== '') expect(failure.plain).toBe(false)
  }
  // Nobody pays twice: only a provider that had not begun to answer is asked again, and not for ever.
  const asked = [...faulty.asked].filter(
    ([key]) => key.startsWith(`${purpose}: `) && key.includes(`[${purpose}: ${fault}] as ${shape}?`),
  )
  expect(asked).toHaveLength(failures.length)
  for (const [, times] of asked) {
    if (PASSING.includes(fault)) expect([2, 3]).toContain(times)
    else expect(times).toBe(1)
  }

  const again = await ask('And then?', model, conversationId)
  expect(again).toMatchObject({ text: WHOLE, error: undefined, conversationId })
  const turn = (message: unknown) => [
    { role: 'user', message, conversation_id: conversationId },
    { role: 'assistant', message: WHOLE, conversation_id: conversationId },
  ]
  expect(await documents(history_collection)).toMatchObject([...turn('What is good?'), ...turn('And then?')])
  const { body } = await request('GET', `/conversations/${conversationId}`)
  expect(body.turns).toMatchObject([
    { question: 'What is good?', answer: WHOLE },
    { question: 'And then?', answer: WHOLE },
  ])
}

/**
 * All faults in all shapes, one fault after the other: those that wait wait at the same time. Without FULL each fault comes in one shape,
 * and another one while a question is rewritten.
 */
const asked = (drawn: number) =>
  FAULTS.flatMap(([fault, expectation], at) =>
    SHAPES.filter((_, nth) => process.env.FULL || nth === (at + drawn) % SHAPES.length).map((shape) => ({
      shape,
      fault,
      expectation,
    })),
  )

// A provider may be silent for five times the timeout before an answer in one piece: twenty seconds for two of them.
describe('an answer', { timeout: 60_000 }, () => {
  test.concurrent.each(asked(1))('asked as $shape, with the fault: $fault', ({ shape, fault, expectation }) =>
    converse(shape, fault, false, expectation),
  )
})

describe('a question that is being rewritten', () => {
  test.concurrent.each(asked(0))('asked as $shape, with the fault: $fault', ({ shape, fault, expectation }) =>
    converse(shape, fault, true, expectation),
  )
})
