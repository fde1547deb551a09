/** OpenAI's own client over real sockets: whole and streamed answers, memory, models, errors. */
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Counterpart, startCounterpart, WIDE } from './counterpart'
import { createAssistant, createModel, createShows, KEY, request, unique, url } from './harness'
import { type Paced, startPaced, words } from './paced'

let paced: Paced
let counterpart: Counterpart
let shows: string

beforeAll(async () => {
  paced = await startPaced()
  counterpart = await startCounterpart()
  shows = await createShows()
})
afterAll(() => Promise.all([paced.stop(), counterpart.stop()]))

const openai = (apiKey = KEY) => new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 })

/** @returns the name of an assistant whose model is on a counterpart */
async function assistant(name: string, openai_url: string): Promise<string> {
  const model = await createModel({ model_name: `openai/${name}`, openai_url })
  return createAssistant({ model, collections: [shows] })
}

const messages = [{ role: 'user' as const, content: 'an action series' }]

/** The text of a stream, and its last chunks. */
async function read(stream: AsyncIterable<OpenAI.ChatCompletionChunk>) {
  let text = ''
  const chunks: OpenAI.ChatCompletionChunk[] = []
  for await (const chunk of stream) {
    chunks.push(chunk)
    text += chunk.choices[0]?.delta.content ?? ''
  }
  return { text, chunks }
}

describe('a chat completion', () => {
  test('is the same whole and streamed', async () => {
    const model = await assistant('paced-40-2', paced.url)
    const whole = await openai().chat.completions.create({ model, messages })
    expect(whole).toMatchObject({
      object: 'chat.completion',
      model,
      choices: [{ finish_reason: 'stop', message: { role: 'assistant', content: words(40).join('') } }],
    })
    expect(whole.usage?.total_tokens).toBeGreaterThan(0)
    const { text, chunks } = await read(
      await openai().chat.completions.create({
        model,
        messages,
        stream: true,
        stream_options: { include_usage: true },
      }),
    )
    expect(text).toBe(words(40).join(''))
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: expect.any(Number) } })
    expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe('stop')
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1)
  })

  test('can be read by the helper that gathers a stream', async () => {
    const model = await assistant('paced-30-2', paced.url)
    const runner = openai().chat.completions.stream({ model, messages })
    expect(await runner.finalContent()).toBe(words(30).join(''))
  })

  test('has every letter whole', async () => {
    const model = await assistant('wide', counterpart.url)
    const { text } = await read(await openai().chat.completions.create({ model, messages, stream: true }))
    expect(text).toBe(WIDE)
  })

  test('goes on with a conversation that the client names', async () => {
    const model = await assistant('paced-5-1', paced.url)
    const metadata = { conversation_id: unique('conversation') }
    const complete = (content: string) =>
      openai()
        .chat.completions.create({ model, messages: [{ role: 'user', content }], metadata })
        .withResponse()
    const first = await complete('an action series')
    const { response } = await complete('another one')
    const id = response.headers.get('x-parley-conversation-id')
    expect(first.response.headers.get('x-parley-conversation-id')).toBe(id)
    const { body } = await request('GET', `/conversations/${id}`)
    expect(body.turns).toMatchObject([{}, { question: 'another one', standalone: 'a question' }])
  })

  test('cites sources that have an address', async () => {
    const collection = unique('pages')
    await request('POST', '/collections', { name: collection, fields: [{ name: 'text', type: 'string' }] })
    await request('POST', `/collections/${collection}/documents`, {
      id: 'tower',
      title: 'The tower',
      text: 'The Eiffel Tower is 330 metres high.',
      url: 'https://example.org/tower',
    })
    const model = await createAssistant({
      model: await createModel({ model_name: 'local/extractive' }),
      collections: [collection],
    })
    const asked = [{ role: 'user' as const, content: 'How high is the Eiffel Tower?' }]
    const { choices } = await openai().chat.completions.create({ model, messages: asked })
    const message = choices[0]?.message
    expect(message?.annotations).toEqual([
      {
        type: 'url_citation',
        url_citation: {
          start_index: 0,
          end_index: message?.content?.length,
          title: 'The tower',
          url: 'https://example.org/tower',
        },
      },
    ])
    const { chunks } = await read(
      await openai().chat.completions.create({ model, messages: asked, stream: true }),
    )
    expect(chunks.at(-1)?.choices[0]?.delta).toMatchObject({ annotations: message?.annotations })
  })
})

describe('a response', () => {
  test('is the same whole, streamed, and gathered by the helper', async () => {
    const model = await assistant('paced-40-2', paced.url)
    const input = 'an action series'
    const whole = await openai().responses.create({ model, input })
    expect(whole).toMatchObject({
      object: 'response',
      status: 'completed',
      model,
      output_text: words(40).join(''),
    })
    const stream = await openai().responses.create({ model, input, stream: true })
    let text = ''
    const types: string[] = []
    for await (const event of stream) {
      types.push(event.type)
      if (event.type === 'response.output_text.delta') text += event.delta
    }
    expect(text).toBe(words(40).join(''))
    expect([types[0], types.at(-1)]).toEqual(['response.created', 'response.completed'])
    const final = await openai().responses.stream({ model, input }).finalResponse()
    expect(final.output_text).toBe(words(40).join(''))
  })

  test('goes on after an earlier one, and with a conversation', async () => {
    const model = await assistant('paced-5-1', paced.url)
    const first = await openai().responses.create({ model, input: 'an action series' })
    const second = await openai().responses.create({
      model,
      input: 'another one',
      previous_response_id: first.id,
    })
    const id = first.conversation?.id ?? ''
    expect(second).toMatchObject({ previous_response_id: first.id, conversation: { id } })
    await openai().responses.create({ model, input: 'a third', conversation: id })
    const { body } = await request('GET', `/conversations/${id}`)
    expect(body.turns).toMatchObject([
      {},
      { question: 'another one', standalone: 'a question' },
      { question: 'a third' },
    ])
  })

  test('has errors of the classes of the client', async () => {
    const model = await assistant('cut', counterpart.url)
    const { responses } = openai()
    await expect(responses.create({ model: 'gpt-4o', input: 'q' })).rejects.toThrow(OpenAI.NotFoundError)
    const unknown = { model, input: 'q', previous_response_id: `resp_${crypto.randomUUID()}.1` }
    await expect(responses.create(unknown)).rejects.toMatchObject({
      status: 400,
      code: 'previous_response_not_found',
    })
    let failed: OpenAI.Responses.Response | undefined
    for await (const event of await responses.create({ model, input: 'q', stream: true })) {
      if (event.type === 'response.failed') failed = event.response
    }
    expect(failed?.error?.message).toMatch(/OpenAI API error/)
  })
})

test('a base address without /v1 serves the whole client', async () => {
  const api = new OpenAI({ baseURL: url, apiKey: KEY, maxRetries: 0 })
  const name = await assistant('paced-5-1', paced.url)
  const model = await openai().models.retrieve(name)
  expect((await api.models.list()).data).toContainEqual(model)
  expect(await api.models.retrieve(name)).toEqual(model)
  const [choice] = (await api.chat.completions.create({ model: name, messages })).choices
  expect(choice?.message.content).toBe(words(5).join(''))
  const made = await api.responses.create({ model: name, input: 'an action series' })
  expect(await api.responses.retrieve(made.id)).toMatchObject({ id: made.id, output_text: made.output_text })
  expect((await api.responses.inputItems.list(made.id)).data).toHaveLength(1)
  await expect(api.responses.cancel(made.id)).rejects.toThrow(OpenAI.BadRequestError)
  await api.responses.delete(made.id)
  await expect(openai().responses.retrieve(made.id)).rejects.toThrow(OpenAI.NotFoundError)
})

describe('models', () => {
  test('are listed and read', async () => {
    const name = await assistant('paced-1-1', paced.url)
    const ids: string[] = []
    for await (const { id } of openai().models.list()) ids.push(id)
    expect(ids).toContain(name)
    expect(await openai().models.retrieve(name)).toMatchObject({
      id: name,
      object: 'model',
      owned_by: 'parley',
    })
  })
})

describe('errors', () => {
  test('have the classes of the client', async () => {
    const { completions } = openai().chat
    await expect(completions.create({ model: 'gpt-4o', messages })).rejects.toThrow(OpenAI.NotFoundError)
    await expect(completions.create({ model: 'gpt-4o', messages })).rejects.toMatchObject({
      code: 'model_not_found',
      param: 'model',
      type: 'invalid_request_error',
    })
    await expect(openai('wrong').models.list()).rejects.toThrow(OpenAI.AuthenticationError)
    await expect(openai().models.retrieve('gpt-4o')).rejects.toThrow(OpenAI.NotFoundError)
    const model = await assistant('paced-1-1', paced.url)
    await expect(completions.create({ model, messages: [] })).rejects.toThrow(OpenAI.BadRequestError)
    await expect(openai().images.generate({ model, prompt: 'x' })).rejects.toThrow(OpenAI.NotFoundError)
  })

  test('of a model are told with their status, in a stream too', async () => {
    const broken = await assistant('server-error', counterpart.url)
    for (const stream of [false, true]) {
      const asked = openai().chat.completions.create({ model: broken, messages, stream })
      await expect(asked).rejects.toMatchObject({
        status: 400,
        message: expect.stringContaining('out of order'),
      })
    }
  })

  test('in the middle of a stream are thrown after what came before', async () => {
    const model = await assistant('cut', counterpart.url)
    const stream = await openai().chat.completions.create({ model, messages, stream: true })
    let text = ''
    const reading = (async () => {
      for await (const { choices } of stream) text += choices[0]?.delta.content ?? ''
    })()
    await expect(reading).rejects.toThrow(OpenAI.APIError)
    expect(text).toBe('The first half ')
  })

  test('of the server are safe to repeat: a retry joins the running turn', async () => {
    const model = await assistant('paced-60-5', paced.url)
    const before = paced.begun
    const create = () => openai().chat.completions.create({ model, messages, stream: true })
    const [first, second] = await Promise.all([create(), create()])
    const texts = await Promise.all([read(first), read(second)])
    expect(texts.map(({ text }) => text)).toEqual([words(60).join(''), words(60).join('')])
    expect(paced.begun).toBe(before + 1)
  })
})
