/** The AI SDK, three major versions of it, over real sockets: say, follow up, cut, resume, stop, ask again, fail. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Counterpart, startCounterpart } from './counterpart'
import { createAssistant, createModel, createShows, KEY, request, UUID, unique, url } from './harness'
import { type ChatOptions, makeChat, textOf, VERSIONS, type Version } from './headless-chat'
import { type Paced, startPaced, words } from './paced'

let counterpart: Counterpart
let shows: string

beforeAll(async () => {
  counterpart = await startCounterpart()
  shows = await createShows()
})
afterAll(() => counterpart.stop())

/** On a machine that has much else to do. */
const SOON = { timeout: 10_000 }

const versions = Object.keys(VERSIONS) as Version[]

/** A key that may search, and nothing else. */
async function searchKey(): Promise<string> {
  const body = { description: 'd', actions: ['documents:search'], collections: ['*'] }
  return (await request('POST', '/keys', body)).body.value
}

/** A fetch whose connections can be broken off. */
function breakable(): { fetch: typeof fetch; breakOff: () => void } {
  const abort = new AbortController()
  return {
    fetch: (input, init) => fetch(input, { ...init, signal: abort.signal }),
    breakOff: () => abort.abort(),
  }
}

// Side by side, since most of it is waiting for words; within each, one after the other.
describe.concurrent.each(versions)('%s', (version) => {
  describe.sequential('in a page', () => conversations(version))
})

function conversations(version: Version): void {
  let paced: Paced

  beforeAll(async () => {
    paced = await startPaced()
  })
  afterAll(() => paced.stop())

  /** @returns the address of an assistant that writes `count` words, one in `gap` milliseconds */
  const pacedApi = async (count: number, gap: number): Promise<string> => {
    const model = await createModel({ model_name: `openai/paced-${count}-${gap}`, openai_url: paced.url })
    return `${url}/ui/${await createAssistant({ model, collections: [shows] })}`
  }

  const chatOf = (options: Omit<ChatOptions, 'key'> & { key?: string }) =>
    makeChat(version, { key: KEY, id: unique('a chat'), ...options })

  const say = (chat: ReturnType<typeof chatOf>, text = 'an action series') => chat.sendMessage({ text })

  /** Waits until an answer is being written. */
  const begun = (chat: ReturnType<typeof chatOf>) =>
    expect.poll(() => textOf(chat.lastMessage).length, SOON).toBeGreaterThan(20)

  const conversationOf = ({ lastMessage }: ReturnType<typeof chatOf>): string =>
    (lastMessage?.metadata as { conversation_id?: string } | undefined)?.conversation_id ?? ''

  const QUESTION = {
    id: 'u1',
    role: 'user' as const,
    parts: [{ type: 'text' as const, text: 'an action series' }],
  }

  test('reads an answer with its sources and what it cost', async () => {
    const chat = chatOf({ api: await pacedApi(40, 2) })
    await say(chat)
    expect([chat.status, chat.error]).toEqual(['ready', undefined])
    const answer = chat.lastMessage
    expect(textOf(answer)).toBe(words(40).join(''))
    expect(answer?.role).toBe('assistant')
    const id = conversationOf(chat)
    expect(id).toMatch(UUID)
    expect(answer?.id).toBe(`${id}.1`)
    expect(answer?.metadata).toMatchObject({ finish_reason: 'stop', usage: { model: 'openai/paced-40-2' } })
    const sources = answer?.parts.filter(({ type }) => type === 'source-document')
    expect(sources).toContainEqual(
      expect.objectContaining({ sourceId: `${shows}/quest`, title: 'Galactic Quest' }),
    )
  })

  test.each([false, true])('follows up (only the last message is sent: %s)', async (trimmed) => {
    const chat = chatOf({ api: await pacedApi(5, 1), trimmed })
    await say(chat)
    await say(chat, 'another one')
    const id = conversationOf(chat)
    const { body } = await request('GET', `/conversations/${id}`)
    expect(body.turns).toMatchObject([
      { question: 'an action series', answer: words(5).join('') },
      { question: 'another one', standalone: 'a question' },
    ])
  })

  test('resumes an answer after its connection broke', async () => {
    const api = await pacedApi(500, 5)
    const id = crypto.randomUUID()
    const { fetch, breakOff } = breakable()
    const cut = chatOf({ api, id, fetch })
    const asked = say(cut)
    await begun(cut)
    breakOff()
    await asked
    const again = chatOf({ api, id, messages: [QUESTION] })
    await again.resumeStream()
    expect(again.status).toBe('ready')
    expect(again.messages).toHaveLength(2)
    expect(textOf(again.lastMessage)).toBe(words(500).join(''))
    expect(again.lastMessage?.parts.filter(({ type }) => type === 'source-document').length).toBeGreaterThan(
      0,
    )
  })

  test('has nothing to resume when nothing is running', async () => {
    const api = await pacedApi(3, 1)
    const id = crypto.randomUUID()
    await say(chatOf({ api, id }))
    for (const name of [id, unique('nobody')]) {
      const chat = chatOf({ api, id: name, messages: [QUESTION] })
      await chat.resumeStream()
      expect([chat.status, chat.error, chat.messages]).toEqual(['ready', undefined, [QUESTION]])
    }
  })

  test('sees an answer end that another reader stops', async () => {
    const api = await pacedApi(2_000, 5)
    const id = crypto.randomUUID()
    const chat = chatOf({ api, id })
    const before = paced.abandoned
    const asked = say(chat)
    await begun(chat)
    const { body } = await request('POST', new URL(`${api}/${encodeURIComponent(id)}/stop`).pathname)
    expect(body).toEqual({ stopped: true })
    await asked
    expect([chat.status, chat.error]).toEqual(['ready', undefined])
    expect(words(2_000).join('')).toContain(textOf(chat.lastMessage))
    await expect.poll(() => paced.abandoned, SOON).toBe(before + 1)
  })

  test('writes an answer again in the place of the first', async () => {
    const chat = chatOf({ api: await pacedApi(5, 1) })
    await say(chat)
    await say(chat, 'another one')
    const id = conversationOf(chat)
    await chat.regenerate()
    expect(chat.messages).toHaveLength(4)
    expect(chat.lastMessage?.id).toBe(`${id}.3`)
    const numbers = async () =>
      (await request('GET', `/conversations/${id}`)).body.turns.map((each: { turn: number }) => each.turn)
    expect(await numbers()).toEqual([1, 3])
    await chat.regenerate()
    expect(await numbers()).toEqual([1, 4])
    const first = chat.messages[1]?.id ?? ''
    await chat.regenerate({ messageId: first })
    expect(chat.messages).toHaveLength(2)
    expect(await numbers()).toEqual([5])
  })

  test('keeps the part of an answer that came before it failed, and asks again', async () => {
    const model = await createModel({ model_name: 'openai/cut', openai_url: counterpart.url })
    const chat = chatOf({ api: `${url}/ui/${await createAssistant({ model, collections: [shows] })}` })
    await say(chat)
    expect(chat.status).toBe('error')
    expect(chat.error?.message).toMatch(/OpenAI API error/)
    expect(textOf(chat.lastMessage)).toBe('The first half ')
    await chat.regenerate()
    expect(chat.status).toBe('error')
    expect(chat.messages).toHaveLength(2)
  })

  test('is told in short JSON what is wrong with a request', async () => {
    const chat = chatOf({ api: `${url}/ui/nobody` })
    await say(chat)
    expect([chat.status, chat.error?.message]).toEqual(['error', '{"message":"Assistant not found"}'])
  })

  test('shares its chats with no other key', async () => {
    const api = await pacedApi(500, 5)
    const id = crypto.randomUUID()
    const own = chatOf({ api, id, key: await searchKey() })
    const asked = say(own)
    await begun(own)
    const stranger = chatOf({ api, id, key: await searchKey(), messages: [QUESTION] })
    await stranger.resumeStream()
    expect(stranger.messages).toEqual([QUESTION])
    expect(own.status).toBe('streaming')
    await asked
  })

  // What Parley sends is the same for all versions: one of them reads the whole of it, the others a part without FULL.
  const pieces = version === versions.at(-1) || process.env.FULL ? 10_000 : 2_000
  test(`reads an answer of ${pieces} pieces`, async () => {
    const chat = chatOf({ api: await pacedApi(pieces, 0) })
    await say(chat)
    expect(textOf(chat.lastMessage)).toBe(words(pieces).join(''))
  })
}
