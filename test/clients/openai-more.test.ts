/** OpenAI's other routes by its own client, and plain text streams by the AI SDK. */
import { TextStreamChatTransport } from 'ai'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Counterpart, startCounterpart } from './counterpart'
import { client, createAssistant, createModel, createShows, KEY, request, SHOWS, url } from './harness'
import { type Paced, startPaced, words } from './paced'

let paced: Paced
let counterpart: Counterpart
let shows: string
let talker: string

beforeAll(async () => {
  paced = await startPaced()
  counterpart = await startCounterpart()
  shows = await createShows()
  talker = await assistant('paced-40-2', paced.url)
})
afterAll(() => Promise.all([paced.stop(), counterpart.stop()]))

const assistant = async (name: string, openai_url: string) =>
  createAssistant({
    model: await createModel({ model_name: `openai/${name}`, openai_url }),
    collections: [shows],
  })
const openai = (apiKey = KEY) => new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 })
const makeKey = async (key: Record<string, unknown>): Promise<string> =>
  (await request('POST', '/keys', { description: 'd', actions: ['documents:search'], ...key })).body.value

describe('embeddings', () => {
  const cosine = (a: number[], b: number[]) => {
    const dot = (x: number[], y: number[]) => x.reduce((sum, value, at) => sum + value * (y[at] ?? 0), 0)
    return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b))
  }

  test('are those of an assistant’s documents, as numbers and in base64', async () => {
    const input = ['a crew that salvages warships', 'slow cooking with old recipes', 'salvaging warships']
    const { embeddings } = openai()
    const packed = await embeddings.create({ model: talker, input })
    const plain = await embeddings.create({ model: shows, input, encoding_format: 'float' })
    expect(packed.data.map(({ index }) => index)).toEqual([0, 1, 2])
    const [warships, recipes, salvaging] = packed.data.map(({ embedding }) => embedding) as [
      number[],
      number[],
      number[],
    ]
    expect(plain.data[0]?.embedding.map(Math.fround)).toEqual([...warships])
    expect(cosine(warships, salvaging)).toBeGreaterThan(cosine(warships, recipes))
    expect(packed.usage.total_tokens).toBeGreaterThan(0)
  })

  test('are not made for a page, of what a key may not search, or in another size', async () => {
    const create = (key: string, more: object = {}) =>
      openai(key).embeddings.create({ model: talker, input: 'x', ...more })
    const page = await makeKey({ collections: ['*'], limits: { assistant: talker } })
    await expect(create(page)).rejects.toThrow(OpenAI.AuthenticationError)
    const limited = await makeKey({ collections: ['*'], limits: { allowed_origins: ['https://a.example'] } })
    await expect(create(limited)).rejects.toThrow(OpenAI.PermissionDeniedError)
    const other = await makeKey({ collections: ['other'] })
    await expect(create(other)).rejects.toThrow(OpenAI.NotFoundError)
    await expect(create(other, { model: shows })).rejects.toThrow(OpenAI.NotFoundError)
    await expect(create(KEY, { model: 'text-embedding-3-small' })).rejects.toMatchObject({
      status: 404,
      code: 'model_not_found',
    })
    await expect(create(KEY, { dimensions: 7 })).rejects.toMatchObject({ status: 400, param: 'dimensions' })
    await expect(create(KEY, { input: [] })).rejects.toThrow(OpenAI.BadRequestError)
    await expect(create(KEY, { input: [[9906, 1917]] })).rejects.toMatchObject({
      status: 400,
      param: 'input',
      message: expect.stringContaining('check_embedding_ctx_length=False'),
    })
  })

  test('are made of as many texts as LangChain sends at once', async () => {
    const input = Array.from({ length: 1000 }, (_, at) => `episode ${at}`)
    const { data } = await openai().embeddings.create({ model: talker, input })
    expect(data.map(({ index }) => index)).toEqual(input.map((_, at) => at))
    const [alone] = (await openai().embeddings.create({ model: talker, input: 'episode 999' })).data
    expect(data[999]?.embedding).toEqual(alone?.embedding)
  })
})

describe('a completion of a prompt', () => {
  test('is the same whole and streamed', async () => {
    const { completions } = openai()
    const whole = await completions.create({ model: talker, prompt: 'an action series' })
    expect(whole).toMatchObject({
      object: 'text_completion',
      choices: [{ text: words(40).join(''), finish_reason: 'stop' }],
    })
    let text = ''
    let finish: string | null = null
    for await (const { choices } of await completions.create({
      model: talker,
      prompt: 'an action series',
      stream: true,
    })) {
      text += choices[0]?.text ?? ''
      finish = choices[0]?.finish_reason ?? finish
    }
    expect([text, finish]).toEqual([words(40).join(''), 'stop'])
  })

  test('refuses what it cannot do', async () => {
    const create = (more: object) => openai().completions.create({ model: talker, prompt: 'q', ...more })
    for (const more of [
      { n: 2 },
      { suffix: 'end' },
      { echo: true },
      { prompt: ['a', 'b'] },
      { prompt: '' },
    ]) {
      await expect(create(more)).rejects.toThrow(OpenAI.BadRequestError)
    }
  })
})

describe('a search of a vector store', () => {
  test('finds what the assistant would find', async () => {
    const found: OpenAI.VectorStoreSearchResponse[] = []
    const page = await openai().vectorStores.search(talker, {
      query: 'a crew that salvages warships',
      max_num_results: 2,
    })
    for await (const each of page) found.push(each)
    expect(found).toHaveLength(2)
    const [best] = found
    expect(best).toMatchObject({
      file_id: `${shows}/salvage`,
      filename: 'Starship Salvage',
      attributes: { collection: shows },
    })
    expect(best?.content[0]?.text).toContain(SHOWS[0]?.overview)
    expect(best?.score).toBeGreaterThanOrEqual(found[1]?.score ?? 0)
  })

  test('keeps to what the key may see', async () => {
    const { body } = await request('POST', '/keys', {
      description: 'd',
      actions: ['documents:search'],
      collections: ['other'],
    })
    const search = (key: string, store: string, more: object = {}) =>
      openai(key).vectorStores.search(store, { query: 'series', ...more })
    await expect(search(body.value, talker)).rejects.toThrow(OpenAI.NotFoundError)
    const bound = await makeKey({ actions: ['*'], collections: ['*'], limits: { assistant: talker } })
    await expect(search(bound, talker)).rejects.toThrow(OpenAI.AuthenticationError)
    const parent = await makeKey({ collections: [shows] })
    const scoped = client().keys().generateScopedSearchKey(parent, { filter_by: 'points:>70' })
    const { data } = await search(scoped, talker)
    expect(data.map(({ filename }) => filename).sort()).toEqual(['Galactic Quest', 'Starship Salvage'])
    await expect(search(KEY, 'vs_nobody')).rejects.toThrow(OpenAI.NotFoundError)
    const filters = { type: 'eq' as const, key: 'title', value: 'x' }
    await expect(search(KEY, talker, { filters })).rejects.toMatchObject({ status: 400, param: 'filters' })
  })
})

describe('a plain text stream', () => {
  const transport = (name: string) =>
    new TextStreamChatTransport({
      api: `${url}/ui/${name}/text`,
      headers: { authorization: `Bearer ${KEY}` },
    })
  const said = async (name: string): Promise<string> => {
    const stream = await transport(name).sendMessages({
      chatId: crypto.randomUUID(),
      messages: [{ id: 'q', role: 'user', parts: [{ type: 'text', text: 'an action series' }] }],
      trigger: 'submit-message',
      messageId: undefined,
      abortSignal: undefined,
    })
    let text = ''
    for await (const chunk of stream) if (chunk.type === 'text-delta') text += chunk.delta
    return text
  }

  test('is read by the AI SDK’s transport', async () => {
    expect(await said(talker)).toBe(words(40).join(''))
  })

  test('answers the prompt of `useCompletion`', async () => {
    const response = await fetch(`${url}/ui/${talker}/text`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({ prompt: 'an action series' }),
    })
    expect(response.headers.get('content-type')).toContain('text/plain')
    expect(await response.text()).toBe(words(40).join(''))
  })

  test('comes piece by piece, and says so if it breaks off', async () => {
    const post = async (name: string) =>
      fetch(`${url}/ui/${name}/text`, {
        method: 'POST',
        headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
        body: JSON.stringify({ prompt: 'an action series' }),
      })
    const slow = await post(await assistant('paced-100-20', paced.url))
    const pieces: Uint8Array[] = []
    for await (const piece of slow.body ?? []) pieces.push(piece as Uint8Array)
    expect(pieces.length).toBeGreaterThan(1)
    const broken = await (await post(await assistant('cut', counterpart.url))).text()
    expect(broken).toMatch(/^The first half \n\n\[The answer broke off: .+\]$/)
  })
})
