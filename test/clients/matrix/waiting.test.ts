/** Each client, with its own default settings, waits for a model that thinks for twelve seconds before its first word. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { client, createAssistant, createModel, createShows, query, request, unique } from '../harness'
import { connect, ragPipeline } from '../opensearch-api'
import { type Paced, startPaced, words } from '../paced'
import { ROWS } from './rows'

/** Then there are three seconds of silence between its words. */
const [WORDS, GAP, SILENCE] = [3, 3_000, 12_000]
const WHOLE = words(WORDS).join('')

let paced: Paced
let model: string
let shows: string
let assistant: string

beforeAll(async () => {
  paced = await startPaced()
  shows = await createShows()
  model = await createModel({
    model_name: `openai/paced-${WORDS}-${GAP}-${SILENCE}`,
    openai_url: paced.url,
  })
  assistant = await createAssistant({ model, collections: [shows] })
})
afterAll(() => paced.stop())

/** Typesense's documentation sets this number of seconds everywhere. */
const hasty = () => client(undefined, { connectionTimeoutSeconds: 2 })

const shared = (stream: boolean) => ({
  q: unique('an action series'),
  conversation: true,
  conversation_model_id: model,
  ...(stream && { conversation_stream: true, streamConfig: {} }),
})

const answerOf = (found: unknown): string =>
  (found as { conversation: { answer: string } }).conversation.answer

test('every client has the answer of a model that thinks long, and asks once', async () => {
  const asked: [name: string, answer: Promise<string>][] = ROWS.flatMap(({ name, open }) => {
    const streamed = open(assistant)
      .ask(unique('an action series'))
      .then(({ text }) => text)
    const whole = open(assistant).whole?.(unique('an action series'))
    return [
      [`${name}, streamed`, streamed],
      ...(whole ? ([[name, whole]] as [string, Promise<string>][]) : []),
    ]
  })
  // Thirty clients that begin at once take a busy machine longer than the hasty ones wait.
  await vi.waitFor(() => expect(paced.begun).toBe(asked.length), { timeout: 60_000 })
  for (const stream of [true, false]) {
    const single = hasty()
      .collections(shows)
      .documents()
      .search({ ...shared(stream), query_by: 'title' } as never)
    const several = hasty().multiSearch.perform(
      { searches: [{ collection: shows, query_by: 'title' }] } as never,
      shared(stream) as never,
    )
    asked.push([`a search, 2 s, streamed: ${stream}`, single.then(answerOf)])
    asked.push([`a multi_search, 2 s, streamed: ${stream}`, several.then(answerOf)])
  }
  // OpenSearch's clients for Python wait 10 s.
  const pipeline = await ragPipeline(model, { context_field_list: ['title'] })
  const question = unique('an action series')
  const found = connect().transport.request(
    {
      method: 'POST',
      path: `/${shows}/_search?search_pipeline=${pipeline}`,
      body: {
        query: { match: { overview: question } },
        ext: { generative_qa_parameters: { llm_question: question } },
      },
    },
    { requestTimeout: 10_000, maxRetries: 0 },
  )
  const answered = found.then(
    ({ body }) =>
      (body as { ext: { retrieval_augmented_generation: { answer: string } } }).ext
        .retrieval_augmented_generation.answer,
  )
  asked.push(['a search of OpenSearch, 10 s', answered])
  const answers = await Promise.allSettled(asked.map(([, answer]) => answer))
  const seen = asked.map(([name], at) => {
    const answer = answers[at]!
    return [name, answer.status === 'fulfilled' ? answer.value : String(answer.reason)]
  })
  expect(seen).toEqual(asked.map(([name]) => [name, WHOLE]))
  expect(paced.begun).toBe(asked.length)
}, 120_000)

test('an answer that fails after its client began to wait says why', async () => {
  const silent = await createModel({ model_name: 'openai/paced-0-1-2500', openai_url: paced.url })
  const { q } = shared(false)
  const asked = { q, conversation: true, conversation_model_id: silent, query_by: 'title' }
  const { status, body } = await request('GET', query(`/collections/${shows}/documents/search`, asked))
  expect([status, body.conversation, body.hits]).toEqual([200, undefined, []])
  expect(body.code).toBeGreaterThanOrEqual(400)
  expect(body.error).toBe(body.message)
}, 60_000)
