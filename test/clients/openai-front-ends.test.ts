/** What Open WebUI and LibreChat send beside questions: prompts of their own, names of chats, and answers asked for again. */
import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Counterpart, startCounterpart } from './counterpart'
import { createAssistant, createModel, createShows, KEY, request, url } from './harness'
import { type Llm, startLlm } from './llm'

let llm: Llm
let counterpart: Counterpart
let shows: string
let talker: string
let extractive: string

beforeAll(async () => {
  llm = await startLlm({
    answer: (question) => (question.includes('### Task') ? '{"title": "A Crew"}' : `You asked: ${question}`),
  })
  counterpart = await startCounterpart()
  shows = await createShows()
  const assistant = async (config: Record<string, unknown>) =>
    createAssistant({ model: await createModel(config), collections: [shows] })
  talker = await assistant({ model_name: 'openai/gpt-4o', openai_url: llm.url })
  extractive = await assistant({ model_name: 'local/extractive' })
})
afterAll(() => Promise.all([llm.stop(), counterpart.stop()]))
beforeEach(() => llm.forget())

const openai = (apiKey = KEY, defaultHeaders: Record<string, string> = {}) =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0, defaultHeaders })
const makeKey = async (key: Record<string, unknown> = {}): Promise<string> => {
  const all = {
    description: 'a server',
    actions: ['documents:search', 'conversations:*'],
    collections: [shows],
  }
  return (await request('POST', '/keys', { ...all, ...key })).body.value
}
const listed = async (key: string): Promise<unknown[]> =>
  (await request('GET', '/conversations', undefined, key)).body.conversations

const HISTORY =
  '<chat_history>\nUSER: Which series has a crew that salvages warships?\nASSISTANT: One.\n</chat_history>'
const task = (output: string, history = HISTORY) =>
  `### Task:\nDo something with the chat.\n### Guidelines:\n- Be brief.\n### Output:\nJSON format: ${output}\n### Chat History:\n${history}`
const complete = async (client: OpenAI, model: string, content: string): Promise<string> => {
  const { choices } = await client.chat.completions.create({ model, messages: [{ role: 'user', content }] })
  return choices[0]?.message.content ?? ''
}

describe('a prompt of the front end', () => {
  test('goes to the model alone, without a search, and is not stored', async () => {
    const key = await makeKey()
    const prompt = task('{ "title": "your concise title here" }')
    expect(await complete(openai(key), talker, prompt)).toBe('{"title": "A Crew"}')
    expect(llm.calls().map(({ messages }) => messages)).toEqual([[{ role: 'user', content: prompt }]])
    expect(llm.calls()[0]?.body.max_tokens).toBe(500)
    const stream = await openai(key).chat.completions.create({
      model: talker,
      messages: [{ role: 'user', content: prompt }],
      stream: true,
    })
    let text = ''
    for await (const { choices } of stream) text += choices[0]?.delta.content ?? ''
    expect(text).toBe('{"title": "A Crew"}')
    expect(await listed(key)).toEqual([])
  })

  test.each([
    'Provide a concise, 5-word-or-less title for the conversation, using title case conventions. Only return the title itself.\n\nConversation:\nUser: hi\nAI: hello',
    'Analyze this conversation and provide:\n1. The detected language of the conversation\n2. A concise title in the detected language (5 words or less, no punctuation or quotation)\n\nUser: hi\nAI: hello',
  ])('of LibreChat is known too: %s', async (prompt) => {
    const key = await makeKey()
    await complete(openai(key), talker, prompt)
    expect(llm.calls().map(({ messages }) => messages)).toEqual([[{ role: 'user', content: prompt }]])
    expect(await listed(key)).toEqual([])
  })

  test('is answered without a model, too, in the JSON that it asks for', async () => {
    const about = (output: string) =>
      complete(openai(), extractive, task(output)).then((text) => JSON.parse(text))
    expect(await about('{ "title": "your concise title here" }')).toEqual({
      title: 'Which series has a crew that salvages',
    })
    expect(await about('{ "tags": ["tag1", "tag2", "tag3"] }')).toEqual({
      tags: ['Series', 'Crew', 'Salvages'],
    })
    expect(await about('{ "follow_ups": ["Question 1?"] }')).toEqual({ follow_ups: [] })
    const plain =
      'Provide a concise, 5-word-or-less title for the conversation, using title case conventions.\n\nConversation:\nUser: what is reef?\nAI: A documentary.'
    expect(await complete(openai(), extractive, plain)).toBe('What is reef')
  })

  test('that is longer than a prompt may be keeps its beginning and its end', async () => {
    const long = `<chat_history>\nUSER: ${'An endless story. '.repeat(4_000)}THE END\n</chat_history>`
    await complete(openai(), talker, task('{ "title": "" }', long))
    const [message] = llm.calls()[0]?.messages ?? []
    expect(message?.content).toMatch(/^### Task:[\s\S]*THE END\n<\/chat_history>$/)
    expect(message?.content.length).toBeLessThan(16_384)
  })

  test('with a key made for pages is a question like any other', async () => {
    const key = await makeKey({ actions: ['documents:search'], limits: { assistant: talker } })
    await complete(openai(key), talker, task('{ "title": "" }'))
    expect(llm.calls()[0]?.messages.at(-1)?.content).toContain('<Data>')
  })

  test('that only looks like one is a question', async () => {
    await complete(openai(), talker, '### Task: which series has a crew?')
    expect(llm.calls()[0]?.messages.at(-1)?.content).toContain('<Data>')
  })
})

describe('a chat of Open WebUI', () => {
  const turnsOf = async (id: string) => (await request('GET', `/conversations/${id}`)).body
  const said = (client: OpenAI, messages: OpenAI.ChatCompletionMessageParam[]) =>
    client.chat.completions.create({ model: talker, messages }).withResponse()

  test('is one conversation of its user, and an answer that is asked for again is replaced', async () => {
    const names = { 'x-openwebui-chat-id': crypto.randomUUID(), 'x-openwebui-user-id': 'ada' }
    const client = openai(KEY, names)
    const first = await said(client, [{ role: 'user', content: 'an action series' }])
    const id = first.response.headers.get('x-parley-conversation-id') ?? ''
    const again = await said(client, [{ role: 'user', content: 'an action series' }])
    expect(again.response.headers.get('x-parley-conversation-id')).toBe(id)
    const answer = { role: 'assistant' as const, content: again.data.choices[0]?.message.content ?? '' }
    const before = [{ role: 'user' as const, content: 'an action series' }, answer]
    await said(client, [...before, { role: 'user', content: 'another one' }])
    await said(client, [...before, { role: 'user', content: 'another one' }])
    const conversation = await turnsOf(id)
    expect(conversation).toMatchObject({
      user_id: 'ada',
      turns: [{ question: 'an action series' }, { question: 'another one' }],
    })
    // Somebody who repeats a question has its answer in the transcript.
    await said(client, [...before, { role: 'user', content: 'an action series' }])
    expect((await turnsOf(id)).turns).toHaveLength(3)
  })

  test('is not somebody else’s who claims the name', async () => {
    const names = { 'x-openwebui-chat-id': crypto.randomUUID(), 'x-openwebui-user-id': 'ada' }
    const [one, other] = [await makeKey(), await makeKey()]
    const first = await said(openai(one, names), [{ role: 'user', content: 'My name is Ada Onymous.' }])
    const second = await said(openai(other, names), [{ role: 'user', content: 'Who am I?' }])
    const idOf = ({ response }: { response: Response }) => response.headers.get('x-parley-conversation-id')
    expect(idOf(second)).not.toBe(idOf(first))
    expect(JSON.stringify(llm.calls().at(-1))).not.toContain('Onymous')
    const page = await makeKey({ actions: ['documents:search'], limits: { assistant: talker } })
    const guessable = openai(page, { 'x-openwebui-chat-id': '1', 'x-openwebui-user-id': 'ada' })
    await expect(said(guessable, [{ role: 'user', content: 'Who am I?' }])).rejects.toThrow(
      OpenAI.BadRequestError,
    )
  })
})

test('a fault in the middle of a stream is the server’s, not the request’s', async () => {
  const model = await createAssistant({
    model: await createModel({ model_name: 'openai/cut', openai_url: counterpart.url }),
    collections: [shows],
  })
  const messages = [{ role: 'user' as const, content: 'an action series' }]
  const stream = await openai().chat.completions.create({ model, messages, stream: true })
  const reading = (async () => {
    for await (const _ of stream);
  })()
  await expect(reading).rejects.toMatchObject({ type: 'server_error', code: 'model_error' })
})
