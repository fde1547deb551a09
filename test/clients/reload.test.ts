/** A page that is loaded again, clients that name no chat, and answers asked for again without a word about it. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createAssistant, createModel, createShows, KEY, request, unique, url } from './harness'
import { makeChat, textOf, VERSIONS, type Version } from './headless-chat'
import { type Llm, startLlm } from './llm'

let llm: Llm
let assistant: string

beforeAll(async () => {
  llm = await startLlm()
  const model = await createModel({ model_name: 'openai/gpt-4o', openai_url: llm.url })
  assistant = await createAssistant({ model, collections: [await createShows()] })
})
afterAll(() => llm.stop())
beforeEach(() => llm.forget())

const api = () => `${url}/ui/${assistant}`
const history = (chat: string, key = KEY) =>
  request('GET', `/ui/${assistant}/${chat}/messages`, undefined, key)

describe.each(Object.keys(VERSIONS) as Version[])('%s', (version) => {
  test('goes on after a reload with the messages that Parley has', async () => {
    const id = unique('a chat of mine')
    const before = makeChat(version, { api: api(), key: KEY, id })
    await before.sendMessage({ text: 'an action series' })
    await before.sendMessage({ text: 'another one' })
    const { status, body } = await history(id)
    expect(status).toBe(200)
    expect(body.map(({ role }: { role: string }) => role)).toEqual(['user', 'assistant', 'user', 'assistant'])
    expect(body.map(textOf)).toEqual(before.messages.map(textOf))
    expect(body[3].id).toBe(before.messages[3]?.id)
    const after = makeChat(version, { api: api(), key: KEY, id, messages: body })
    await after.regenerate()
    expect(after.messages.map(textOf)).toEqual(before.messages.map(textOf))
    await after.sendMessage({ text: 'a third' })
    expect((await history(id)).body.filter(({ role }: { role: string }) => role === 'user')).toHaveLength(3)
  })
})

test('the history of a chat is nobody else’s, and an unknown chat has none', async () => {
  const id = crypto.randomUUID()
  const actions = ['documents:search']
  const makeKey = async () =>
    (await request('POST', '/keys', { description: 'd', actions, collections: ['*'] })).body.value
  const [own, other] = [await makeKey(), await makeKey()]
  const chat = makeChat('ai 7', { api: api(), key: own, id })
  await chat.sendMessage({ text: 'My name is Ada Onymous.' })
  expect((await history(id, own)).body).toHaveLength(2)
  const conversation = chat.messages[1]?.id.replace(/\.1$/, '') ?? ''
  for (const name of [id, conversation]) expect((await history(name, other)).body).toEqual([])
  expect((await history(crypto.randomUUID(), own)).body).toEqual([])
  expect((await history(id, 'wrong')).status).toBe(401)
})

interface Said {
  id?: string
  role: string
  content: string
}
/** @returns the id of the answer, and its conversation */
async function post(body: Record<string, unknown>): Promise<{ id: string; conversation: string }> {
  const response = await fetch(api(), {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}` },
    body: JSON.stringify(body),
  })
  const [, id = ''] = /"messageId":"([^"]+)"/.exec(await response.text()) ?? []
  return { id, conversation: response.headers.get('x-parley-conversation-id') ?? '' }
}
const questionsOf = async (id: string) =>
  (await request('GET', `/conversations/${id}`)).body.turns.map(
    ({ question }: { question: string }) => question,
  )

test('a client that names no chat goes on by the answers that it holds', async () => {
  const said: Said[] = [{ role: 'user', content: 'an action series' }]
  const first = await post({ id: '__DEFAULT_ID__', messages: said })
  said.push({ id: first.id, role: 'assistant', content: 'x' }, { role: 'user', content: 'another one' })
  const second = await post({ messages: said })
  expect(second.conversation).toBe(first.conversation)
  expect(await questionsOf(first.conversation)).toEqual(['an action series', 'another one'])
  // From its own answer, and not from what came later.
  const branch = await post({ messages: [...said.slice(0, 2), { role: 'user', content: 'something else' }] })
  expect(branch.conversation).not.toBe(first.conversation)
  expect(await questionsOf(first.conversation)).toHaveLength(2)
  // An answer that Parley never gave leads nowhere.
  const strange = { id: `${crypto.randomUUID()}.1`, role: 'assistant', content: 'x' }
  const other = await post({ messages: [said[0], strange, { role: 'user', content: 'and now?' }] })
  expect(await questionsOf(other.conversation)).toEqual(['and now?'])
})

test('an answer that is asked for again without a trigger does not double a turn', async () => {
  const threadId = crypto.randomUUID()
  const said: Said[] = [{ role: 'user', content: 'an action series' }]
  const first = await post({ threadId, messages: said })
  await post({ threadId, messages: said })
  expect(await questionsOf(first.conversation)).toEqual(['an action series'])
  said.push({ role: 'assistant', content: 'x' }, { role: 'user', content: 'more' })
  await post({ threadId, messages: said })
  await post({ threadId, messages: said })
  expect(await questionsOf(first.conversation)).toEqual(['an action series', 'more'])
  // Somebody who says the same again has the answer in the transcript, or sends no transcript.
  await post({
    threadId,
    messages: [...said, { role: 'assistant', content: 'y' }, { role: 'user', content: 'more' }],
  })
  await post({ threadId, messages: [{ role: 'user', content: 'more' }] })
  expect(await questionsOf(first.conversation)).toEqual(['an action series', 'more', 'more', 'more'])
})
