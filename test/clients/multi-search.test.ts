/** A conversation through POST /multi_search: rows 26 to 38. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { askAcross, client, createModel, createShows, query, type Reply, request, UUID } from './harness'
import { documentsIn, isStandalone, type Llm, startLlm } from './llm'

let llm: Llm
let shows: string
let model: string

beforeAll(async () => {
  llm = await startLlm()
  shows = await createShows()
  model = await createModel({ model_name: 'openai/gpt', openai_url: llm.url })
})
afterAll(() => llm.stop())

const search = (changes: Record<string, unknown> = {}) => ({
  collection: shows,
  query_by: 'embedding',
  exclude_fields: 'embedding',
  ...changes,
})

const multi = (
  parameters: Record<string, string | number | boolean>,
  searches: unknown = [search()],
  extra: Record<string, unknown> = {},
): Promise<Reply> => request('POST', query('/multi_search', parameters), { searches, ...extra })

const refusal = async (reply: Promise<Reply>): Promise<[number, string]> => {
  const { status, body } = await reply
  return [status, body.message]
}

describe('asking', () => {
  test('26: one conversation beside the results, none inside', async () => {
    const { status, body } = await askAcross(model, [search()], 'can you suggest an action series')
    expect(status).toBe(200)
    expect(Object.keys(body).sort()).toEqual(['conversation', 'results'])
    expect(body.results).toHaveLength(1)
    expect(body.results[0]).not.toHaveProperty('conversation')
    expect(body.conversation).toMatchObject({
      query: 'can you suggest an action series',
      answer: 'You asked: can you suggest an action series',
      conversation_id: expect.stringMatching(UUID),
    })
  })

  test('26: a follow-up searches the standalone question and shows the raw one', async () => {
    const first = await askAcross(model, [search()], 'can you suggest an action series')
    llm.forget()
    const conversation_id = first.body.conversation.conversation_id
    const { body } = await askAcross(model, [search()], 'how about another one', { conversation_id })
    expect(body.conversation.query).toBe('how about another one')
    expect(body.conversation.answer).toBe('You asked: standalone: how about another one')
    expect(body.results[0].request_params.q).toBe('how about another one')
    expect(body.conversation.conversation_history.conversation).toHaveLength(4)
    const [standalone, answer] = llm.calls()
    expect(isStandalone(standalone?.messages[0]?.content ?? '')).toBe(true)
    expect(answer?.messages.at(-1)?.content).toContain('<Question>\nstandalone: how about another one\n')
  })

  test('1.7: the model reads the documents of all searches in one list', async () => {
    llm.forget()
    const only = (id: string) => search({ filter_by: `id:=${id}` })
    await askAcross(model, [only('reef'), only('court')], 'two of them')
    const documents = documentsIn(llm.calls()[0]?.messages.at(-1)?.content ?? '')
    expect(documents.map(({ id }) => id)).toEqual(['reef', 'court'])
    expect(documents[0]).not.toHaveProperty('embedding')
  })

  test('the same through the client', async () => {
    const reply = await client().multiSearch.perform({ searches: [search()] as never }, {
      q: 'where is the coral',
      conversation: true,
      conversation_model_id: model,
    } as never)
    expect(reply).toMatchObject({ conversation: { answer: 'You asked: where is the coral' } })
  })

  test('28: the history can be left out by the query or by the only search', async () => {
    for (const reply of [
      await askAcross(model, [search()], 'quiet', { exclude_fields: 'conversation_history' }),
      await askAcross(model, [search({ exclude_fields: 'conversation_history,embedding' })], 'quiet'),
    ]) {
      expect(reply.body.conversation).not.toHaveProperty('conversation_history')
      expect(reply.body.conversation.answer).toBe('You asked: quiet')
    }
  })

  test('37: a union search holds no conversation', async () => {
    llm.forget()
    const { status, body } = await multi(
      { q: 'action', conversation: true, conversation_model_id: model },
      [search({ query_by: 'title,overview' }), search({ query_by: 'title,overview' })],
      { union: true },
    )
    expect(status).toBe(200)
    expect(body).not.toHaveProperty('conversation')
    expect(body.hits[0]).toMatchObject({ collection: shows, search_index: 0 })
    expect(body.union_request_params).toHaveLength(2)
    expect(llm.calls()).toEqual([])
  })

  test('38: one bad collection does not spoil the answer of another', async () => {
    const { status, body } = await askAcross(
      model,
      [search({ collection: 'nowhere' }), search()],
      'an action series',
    )
    expect(status).toBe(200)
    expect(body.results[0]).toEqual({ code: 404, error: 'Collection not found' })
    expect(body.results[1].hits.length).toBeGreaterThan(0)
    expect(body.conversation.answer).toBe('You asked: an action series')
  })

  test('38: when all searches fail no model is asked', async () => {
    llm.forget()
    const { status, body } = await askAcross(model, [search({ collection: 'nowhere' })], 'an action series')
    expect([status, body]).toEqual([200, { results: [{ code: 404, error: 'Collection not found' }] }])
    expect(llm.calls()).toEqual([])
  })
})

const QUERY_ONLY = (name: string): string =>
  `\`${name}\` cannot be used in POST body. Please set \`${name}\` as a query parameter in the request, instead of inside the POST body`

describe('refusing', () => {
  test('29: no model', async () => {
    const message = '`conversation_model_id` is needed if conversation is enabled.'
    expect(await refusal(multi({ q: 'x', conversation: true }))).toEqual([400, message])
  })

  test('30: an unknown model', async () => {
    const reply = askAcross(model, [search()], 'x', { conversation_model_id: 'nobody' })
    expect(await refusal(reply)).toEqual([400, '`conversation_model_id` is invalid.'])
  })

  test.each([crypto.randomUUID(), ''])('31, 33: the conversation id "%s"', async (conversation_id) => {
    expect(await refusal(askAcross(model, [search()], 'x', { conversation_id }))).toEqual([
      400,
      '`conversation_id` is invalid.',
    ])
  })

  test('32: an id without a conversation', async () => {
    const message = '`conversation_id` can only be used if `conversation` is enabled.'
    expect(await refusal(multi({ q: 'x', conversation_id: 'abc' }))).toEqual([400, message])
  })

  test('34: q in the body only', async () => {
    const reply = multi({ conversation: true, conversation_model_id: model }, [search({ q: 'x' })])
    const message =
      '`q` parameter has to be common for all searches if conversation is enabled. Please set `q` as a query parameter in the request, instead of inside the POST body'
    expect(await refusal(reply)).toEqual([400, message])
  })

  test('35: q in the query and in the body', async () => {
    const message =
      '`q` parameter cannot be used in POST body if `conversation` is enabled. Please set `q` as a query parameter in the request, instead of inside the POST body'
    expect(await refusal(askAcross(model, [search({ q: 'y' })], 'x'))).toEqual([400, message])
  })

  test.each(['conversation_model_id', 'conversation_id', 'conversation'])(
    '1.7: %s in the body',
    async (name) => {
      expect(await refusal(askAcross(model, [search({ [name]: 'true' })], 'x'))).toEqual([
        400,
        QUERY_ONLY(name),
      ])
    },
  )

  test('1.7: `conversation` in the body, even without one', async () => {
    expect(await refusal(multi({ q: 'x' }, [search({ conversation: true })]))).toEqual([
      400,
      QUERY_ONLY('conversation'),
    ])
  })

  test('1.7: bodies of another shape', async () => {
    const raw = (body: string) => refusal(request('POST', '/multi_search?q=x', body))
    expect(await raw('{')).toEqual([400, 'Bad JSON.'])
    expect(await raw('{}')).toEqual([400, 'Missing `searches` array.'])
    expect(await raw('{"searches":5}')).toEqual([400, 'Missing `searches` array.'])
    expect(await raw('{"searches":["x"]}')).toEqual([
      400,
      'The value of `searches` must be an array of objects.',
    ])
    const many = JSON.stringify({ searches: Array(51).fill(search()) })
    expect(await raw(many)).toEqual([
      400,
      'Number of multi searches exceeds `limit_multi_searches` parameter.',
    ])
    const [status] = await raw('{"searches":[]}')
    expect(status).toBeGreaterThanOrEqual(400)
    expect(status).toBeLessThan(500)
  })
})
