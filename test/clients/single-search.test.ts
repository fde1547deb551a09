/** A conversation through GET /collections/:c/documents/search: rows 24 to 33, 40 to 45. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Counterpart, startCounterpart } from './counterpart'
import {
  askBySearch,
  client,
  createHistory,
  createModel,
  createShows,
  query,
  type Reply,
  request,
  UUID,
  unique,
} from './harness'
import { documentsIn, isStandalone, type Llm, startLlm } from './llm'

let llm: Llm
let counterpart: Counterpart
let shows: string
let model: string

beforeAll(async () => {
  llm = await startLlm()
  counterpart = await startCounterpart()
  shows = await createShows()
  model = await createModel({ model_name: 'openai/gpt', openai_url: llm.url, system_prompt: 'Be brief.' })
})
afterAll(() => Promise.all([llm.stop(), counterpart.stop()]))

const search = (parameters: Record<string, string | number | boolean>, collection = shows): Promise<Reply> =>
  request(
    'GET',
    query(`/collections/${collection}/documents/search`, {
      query_by: 'embedding',
      prefix: false,
      ...parameters,
    }),
  )

const refusal = async (reply: Promise<Reply>): Promise<[number, string]> => {
  const { status, body } = await reply
  return [status, body.message]
}

describe('asking', () => {
  test('24: the answer comes with the search result and the history', async () => {
    const q = 'can you suggest an action series'
    const { status, body } = await askBySearch(model, shows, q)
    expect(status).toBe(200)
    expect(body.hits.length).toBeGreaterThan(0)
    expect(body.request_params).toMatchObject({ q, first_q: q })
    const { conversation } = body
    expect(conversation).toMatchObject({ query: q, answer: `You asked: ${q}` })
    expect(conversation.conversation_id).toMatch(UUID)
    const history = conversation.conversation_history
    expect(history.conversation).toEqual([{ user: q }, { assistant: `You asked: ${q}` }])
    expect(history.last_updated).toBeTypeOf('number')
  })

  test('24: the prompt holds the system prompt, whole documents and no vectors', async () => {
    llm.forget()
    await askBySearch(model, shows, 'which series plays in a kitchen?', { exclude_fields: '' })
    const [call, ...more] = llm.calls()
    expect(more).toEqual([])
    expect(call?.messages.map(({ role }) => role)).toEqual(['system', 'user'])
    expect(call?.messages[0]?.content).toBe('Be brief.')
    const documents = documentsIn(call?.messages[1]?.content ?? '')
    expect(documents.length).toBe(5)
    expect(documents.map((document) => document.id)).toContain('kitchen')
    for (const document of documents) expect(document).not.toHaveProperty('embedding')
  })

  test('24: what was cited and what it cost comes along', async () => {
    const local = await createModel({ model_name: 'local/extractive', api_key: undefined })
    const { body } = await askBySearch(model, shows, 'Who settles odd cases?', {
      conversation_model_id: local,
    })
    const { answer, citations, usage } = body.conversation
    expect(citations.length).toBeGreaterThan(0)
    for (const citation of citations) {
      expect(body.hits.map((hit: { document: { id: string } }) => hit.document.id)).toContain(
        citation.document_id,
      )
      expect(answer.slice(citation.start, citation.end)).not.toBe('')
    }
    expect(usage.model).toBe('local/extractive')
  })

  test('25: a follow-up is rewritten with the history and answered without it', async () => {
    const first = await askBySearch(model, shows, 'can you suggest an action series')
    llm.forget()
    const q = 'how about another one'
    const { body } = await askBySearch(model, shows, q, {
      conversation_id: first.body.conversation.conversation_id,
    })
    const [standalone, answer, ...more] = llm.calls()
    expect(more).toEqual([])

    expect(standalone?.messages.map(({ role }) => role)).toEqual(['user'])
    const rewrite = standalone?.messages[0]?.content ?? ''
    expect(isStandalone(rewrite)).toBe(true)
    expect(rewrite).toContain('can you suggest an action series')
    expect(rewrite).toContain('You asked: can you suggest an action series')
    expect(rewrite).toContain(`<Question>\n${q}`)

    const prompt = answer?.messages.at(-1)?.content ?? ''
    expect(prompt).toContain(`<Question>\nstandalone: ${q}\n`)
    expect(prompt).not.toContain('<Conversation history>')
    expect(answer?.messages[0]?.content).toBe('Be brief.')

    expect(body.conversation.query).toBe(`standalone: ${q}`)
    expect(body.request_params.q).toBe(q)
    expect(body.conversation.conversation_id).toBe(first.body.conversation.conversation_id)
    expect(body.conversation.conversation_history.conversation).toEqual([
      { user: 'can you suggest an action series' },
      { assistant: 'You asked: can you suggest an action series' },
      { user: q },
      { assistant: `You asked: standalone: ${q}` },
    ])
  })

  test('two follow-ups sent at once are two turns, one after the other', async () => {
    const first = await askBySearch(model, shows, 'where is the reef')
    const id = first.body.conversation.conversation_id
    const [a, b] = await Promise.all([
      askBySearch(model, shows, 'and who lives there?', { conversation_id: id }),
      askBySearch(model, shows, 'how deep is it?', { conversation_id: id }),
    ])
    const histories = [a, b].map(({ body }) => body.conversation.conversation_history.conversation)
    const [short, long] = histories.sort((x, y) => x.length - y.length)
    expect(short).toHaveLength(4)
    expect(long).toHaveLength(6)
    expect(long.slice(0, 4)).toEqual(short)
    const roles = long.map((message: object) => Object.keys(message)[0])
    expect(roles).toEqual(['user', 'assistant', 'user', 'assistant', 'user', 'assistant'])
  })

  test('28: the history can be left out', async () => {
    const { conversation } = (
      await askBySearch(model, shows, 'quiet', { exclude_fields: 'embedding,conversation_history' })
    ).body
    expect(conversation).not.toHaveProperty('conversation_history')
    expect(conversation).toMatchObject({
      answer: 'You asked: quiet',
      conversation_id: expect.stringMatching(UUID),
    })
  })

  test('1.6: grouped hits reach the model too', async () => {
    const name = unique('grouped')
    const fields = [
      { name: 'title', type: 'string' },
      { name: 'kind', type: 'string', facet: true },
    ]
    await request('POST', '/collections', { name, fields })
    await client()
      .collections(name)
      .documents()
      .import([{ id: 'a', title: 'blue whale', kind: 'sea' }])
    llm.forget()
    const parameters = { q: 'whale', query_by: 'title', group_by: 'kind' }
    const { body } = await search({ ...parameters, conversation: true, conversation_model_id: model }, name)
    expect(body.grouped_hits).toHaveLength(1)
    expect(documentsIn(llm.calls()[0]?.messages.at(-1)?.content ?? '')).toEqual([
      { id: 'a', kind: 'sea', title: 'blue whale' },
    ])
  })
})

describe('refusing', () => {
  test('29: no model', async () => {
    const message = 'Conversation is enabled but no conversation model ID is provided.'
    expect(await refusal(search({ q: 'x', conversation: true }))).toEqual([400, message])
  })

  test('30: an unknown model', async () => {
    expect(await refusal(askBySearch(model, shows, 'x', { conversation_model_id: 'nobody' }))).toEqual([
      400,
      'Model not found',
    ])
  })

  test('31: an unknown conversation', async () => {
    const conversation_id = crypto.randomUUID()
    expect(await refusal(askBySearch(model, shows, 'x', { conversation_id }))).toEqual([
      400,
      'Conversation not found',
    ])
  })

  test('31: an id that would be a filter is only an unknown id', async () => {
    await askBySearch(model, shows, 'leave something behind')
    expect(
      await refusal(askBySearch(model, shows, 'x', { conversation_id: 'x || model_id:!=nobody' })),
    ).toEqual([400, 'Conversation not found'])
  })

  test('32: an id without a conversation', async () => {
    const message = 'Conversation ID provided but conversation is not enabled for this collection.'
    expect(await refusal(search({ q: 'x', conversation_id: 'abc' }))).toEqual([400, message])
  })

  test('33: an empty id starts a conversation', async () => {
    const { status, body } = await askBySearch(model, shows, 'x', { conversation_id: '' })
    expect([status, body.conversation.conversation_id]).toEqual([200, expect.stringMatching(UUID)])
  })

  test('40: a search that fails asks no model', async () => {
    llm.forget()
    expect(await refusal(askBySearch(model, shows, 'x', { query_by: 'nothing' }))).toEqual([
      404,
      'Could not find a field named `nothing` in the schema.',
    ])
    expect(llm.calls()).toEqual([])
  })

  test.each([
    ['server-error', 3, 'OpenAI API error: the model is out of order'],
    ['garbage', 1, 'Got malformed response from OpenAI API.'],
    ['no-choices', 1, 'Got malformed response from OpenAI API.'],
  ])('41: a model that fails (%s) is told once and leaves nothing behind', async (name, times, message) => {
    const history_collection = await createHistory()
    const id = await createModel({
      model_name: `openai/${name}`,
      openai_url: counterpart.url,
      history_collection,
    })
    const before = counterpart.asked.length
    const search = client()
      .collections(shows)
      .documents()
      .search({ q: 'x', query_by: 'title', conversation: true, conversation_model_id: id }, {})
    // What fails after a moment comes in an answer that has begun.
    const told = await search.then(
      (found) => found as unknown as { code: number; message: string; conversation?: unknown },
      ({ httpStatus: code, message }) => ({ code, message, conversation: undefined }),
    )
    expect(told).toMatchObject({ code: 400, message: expect.stringContaining(message) })
    expect(told.conversation).toBeUndefined()
    expect(counterpart.asked.slice(before)).toEqual(Array(times).fill(name))
    expect((await request('GET', `/collections/${history_collection}`)).body.num_documents).toBe(0)
  })

  test('42: a budget below the minimum', async () => {
    const small = await createModel({ model_name: 'openai/gpt', openai_url: llm.url, max_bytes: 31 })
    const message = '`max_bytes` of the conversation model is less than the minimum required bytes(30).'
    expect(await refusal(askBySearch(model, shows, 'hello there', { conversation_model_id: small }))).toEqual(
      [400, message],
    )
  })

  test('43: a small budget keeps the best documents, whole', async () => {
    const max_bytes = 400
    const small = await createModel({ model_name: 'openai/gpt', openai_url: llm.url, max_bytes })
    llm.forget()
    const q = 'an action series'
    const { body } = await askBySearch(model, shows, q, {
      conversation_model_id: small,
      query_by: 'title,overview,embedding',
    })
    const prompt = llm.calls()[0]?.messages.at(-1)?.content ?? ''
    const sent = documentsIn(prompt)
    expect(sent.length).toBeGreaterThan(0)
    expect(sent.length).toBeLessThan(body.hits.length)
    const best = body.hits.slice(0, sent.length).map((hit: { document: object }) => hit.document)
    expect(sent).toEqual(best)
    const data = /<Data>\n([\s\S]*?)\n\n<Question>/.exec(prompt)?.[1] ?? ''
    expect(Buffer.byteLength(data)).toBeLessThanOrEqual(max_bytes - 30 - Buffer.byteLength(q))
  })

  test('45: a budget too small for a follow-up', async () => {
    const small = await createModel({ model_name: 'openai/gpt', openai_url: llm.url, max_bytes: 200 })
    const first = await askBySearch(model, shows, 'hello', { conversation_model_id: small })
    const conversation_id = first.body.conversation.conversation_id
    const followUp = askBySearch(model, shows, 'and then?', { conversation_model_id: small, conversation_id })
    expect(await refusal(followUp)).toEqual([400, 'Max bytes is not enough to generate standalone question.'])
  })
})
