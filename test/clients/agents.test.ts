/** Cloudflare's `useAgent` and `useAgentChat` from their own package, over a WebSocket. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type AgentChat, type AgentOptions, openAgentChat, textIn } from './agent-chat'
import { type Counterpart, startCounterpart } from './counterpart'
import { createAssistant, createModel, createShows, KEY, request, unique, url } from './harness'
import { type Llm, startLlm } from './llm'
import { type Paced, startPaced, words } from './paced'

let llm: Llm
let paced: Paced
let counterpart: Counterpart
let shows: string
let assistant: string
/** writes for a minute, if nobody stops it */
let slow: string
/** writes for ten seconds */
let long: string
let cut: string

beforeAll(async () => {
  llm = await startLlm()
  paced = await startPaced()
  counterpart = await startCounterpart()
  shows = await createShows()
  const made = async (model_name: string, openai_url: string) =>
    createAssistant({ model: await createModel({ model_name, openai_url }), collections: [shows] })
  assistant = await made('openai/gpt-4o-mini', llm.url)
  slow = await made('openai/paced-6000-10', paced.url)
  long = await made('openai/paced-1000-10', paced.url)
  cut = await made('openai/cut', counterpart.url)
})
afterAll(() => Promise.all([llm.stop(), paced.stop(), counterpart.stop()]))

const opened: AgentChat[] = []
afterEach(() => {
  for (const chat of opened.splice(0)) chat.leave()
})

const SOON = { timeout: 20_000 }

/** Opens a chat, and waits until its socket is open. */
async function open(name: string, chat: string, options: AgentOptions = {}): Promise<AgentChat> {
  const made = await openAgentChat(name, chat, options)
  opened.push(made)
  await expect.poll(() => made.agent()?.identified, SOON).toBe(true)
  return made
}

/** Asks, and waits for the end of the answer. */
async function say(chat: AgentChat, text: string): Promise<string> {
  await chat.chat()!.sendMessage({ text })
  return textIn(chat.last())
}

/** Asks, and waits until the answer is being written. */
async function begin(chat: AgentChat, text: string): Promise<void> {
  const asked = chat.chat()!.sendMessage({ text })
  asked?.catch(() => {})
  await expect.poll(() => chat.last()?.role === 'assistant' && textIn(chat.last()).length, SOON).toBeTruthy()
}

describe('a chat', () => {
  test('is answered piece by piece, with its sources, and goes on', async () => {
    const chat = await open(assistant, crypto.randomUUID())
    expect(await say(chat, 'an action series')).toBe('You asked: an action series')
    const sources = chat
      .last()!
      .parts.flatMap((part) => (part.type === 'source-document' ? [part.title] : []))
    expect(sources).toContain('Galactic Quest')
    expect(await say(chat, 'and another?')).toBe('You asked: standalone: and another?')
    expect(chat.messages().map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant'])
  })

  test('is there again after a reload, and nobody else has it', async () => {
    const name = crypto.randomUUID()
    const first = await open(assistant, name)
    await say(first, 'My name is Ann Onymous.')
    first.leave()
    const again = await open(assistant, name)
    await expect
      .poll(() => again.messages().map(textIn), SOON)
      .toEqual(['My name is Ann Onymous.', 'You asked: My name is Ann Onymous.'])
    const { body } = await request('POST', '/keys', {
      description: 'a page',
      actions: ['documents:search'],
      collections: [shows],
    })
    // The hook keeps what it loaded once, by the address alone.
    const other = await fetch(`${url}/agents/${assistant}/${name}/get-messages`, {
      headers: { authorization: `Bearer ${body.value}` },
    })
    expect([other.status, await other.json()]).toEqual([200, []])
  })

  test('resumes the answer that is being written, with its question, and stops it', async () => {
    const name = crypto.randomUUID()
    const first = await open(slow, name)
    const question = unique('an action series')
    await begin(first, question)
    first.leave()
    const again = await open(slow, name)
    await expect.poll(() => textIn(again.last()).length, SOON).toBeGreaterThan(20)
    expect(textIn(again.messages()[0])).toBe(question)
    // What was loaded may show this much before the client has resumed the stream, and until then it sends no stop.
    await expect.poll(() => again.chat()?.status, SOON).toBe('streaming')
    const { abandoned } = paced
    await again.chat()!.stop()
    await expect.poll(() => paced.abandoned, SOON).toBeGreaterThan(abandoned)
    // Nothing of a stopped answer is stored.
    const { body } = await request('GET', `/agents/${slow}/${name}/get-messages`)
    expect(body).toEqual([])
  })

  test('reads the whole of an answer that it resumes, also where a deployment ends its socket', async () => {
    const name = crypto.randomUUID()
    const first = await open(long, name)
    await begin(first, unique('an action series'))
    first.leave()
    const again = await open(long, name)
    await expect.poll(() => again.chat()?.status, SOON).toBe('streaming')
    again.agent()!.reconnect()
    await expect.poll(() => textIn(again.last()), { timeout: 28_000 }).toBe(words(1000).join(''))
  })

  test('answers again, and is cleared', async () => {
    const name = crypto.randomUUID()
    const chat = await open(assistant, name)
    await say(chat, 'an action series')
    await chat.chat()!.regenerate()
    expect(chat.messages().map(({ role }) => role)).toEqual(['user', 'assistant'])
    const stored = async () => (await request('GET', `/agents/${assistant}/${name}/get-messages`)).body
    expect(await stored()).toHaveLength(2)
    chat.chat()!.clearHistory()
    await expect.poll(stored, SOON).toEqual([])
    expect(await say(chat, 'and another?')).toBe('You asked: and another?')
  })

  test('that is changed by its client shows what Parley has', async () => {
    const chat = await open(assistant, crypto.randomUUID())
    await say(chat, 'an action series')
    chat.chat()!.setMessages([])
    await expect
      .poll(() => chat.messages().map(textIn), SOON)
      .toEqual(['an action series', 'You asked: an action series'])
  })

  test('shows what went wrong, before an answer and in its middle', async () => {
    const chat = await open(cut, crypto.randomUUID())
    await chat.chat()!.sendMessage({ text: unique('an action series') })
    await expect.poll(() => chat.chat()?.error?.message, SOON).toMatch(/./)
    const asked = await open(assistant, crypto.randomUUID())
    await asked.chat()!.sendMessage({ text: ' ' })
    await expect.poll(() => String(asked.chat()?.error), SOON).toContain('has no text')
    expect(await say(asked, 'an action series')).toBe('You asked: an action series')
  })
})

describe('the socket', () => {
  test('says at once that an assistant keeps no state and has no methods', async () => {
    const chat = await open(assistant, crypto.randomUUID())
    await expect.poll(() => chat.agent()?.identified, SOON).toBe(true)
    await expect(chat.agent()!.call('remember', [])).rejects.toThrow('no methods')
  })

  const connected = async (path: string): Promise<boolean> => {
    const socket = new WebSocket(url.replace('http', 'ws') + path)
    const opened = await new Promise<boolean>((resolve) => {
      socket.addEventListener('open', () => resolve(true))
      socket.addEventListener('error', () => resolve(false))
    })
    socket.close()
    return opened
  }

  test('reads a few answers at a time, however fast and by whatever ids they are asked for', async () => {
    const socket = new WebSocket(
      `${url.replace('http', 'ws')}/agents/${slow}/${crypto.randomUUID()}?x-typesense-api-key=${KEY}`,
    )
    const refusals: string[] = []
    socket.addEventListener('message', ({ data }) => {
      const { error, body } = JSON.parse(String(data))
      if (error) refusals.push(body)
    })
    await new Promise((resolve) => socket.addEventListener('open', resolve))
    for (let asked = 0; asked < 12; asked++) {
      const messages = [{ id: `${asked}`, role: 'user', parts: [{ type: 'text', text: `series ${asked}` }] }]
      const init = { method: 'POST', body: JSON.stringify({ messages, trigger: 'submit-message' }) }
      socket.send(JSON.stringify({ type: 'cf_agent_use_chat_request', id: 'same', init }))
    }
    await expect
      .poll(() => refusals.filter((said) => said.includes('answers at a time')).length, SOON)
      .toBeGreaterThan(0)
    socket.close()
  })

  test('takes a crowd of messages one by one, and hangs up on a flood', async () => {
    const opening = async () => {
      const query = new URLSearchParams({ 'x-typesense-api-key': KEY })
      const address = `${url.replace('http', 'ws')}/agents/${assistant}/${crypto.randomUUID()}?${query}`
      const socket = new WebSocket(address)
      const replies: { type: string; id?: string }[] = []
      const closed = new Promise<CloseEvent>((resolve) => socket.addEventListener('close', resolve))
      await new Promise<void>((resolve) => {
        socket.addEventListener('message', ({ data }) => {
          replies.push(JSON.parse(String(data)))
          resolve()
        })
      })
      return { socket, replies, closed }
    }
    const crowd = await opening()
    const ids = Array.from({ length: 60 }, (_, id) => String(id))
    for (const id of ids) crowd.socket.send(JSON.stringify({ type: 'rpc', id }))
    await expect.poll(() => crowd.replies.flatMap(({ id }) => id ?? []), SOON).toEqual(ids)
    crowd.socket.close()
    // Nobody waits for the end of a socket that its client has closed.
    expect((await crowd.closed).wasClean).toBe(true)

    for (const message of [
      { type: 'cf_agent_stream_resume_request' },
      { type: 'cf_agent_chat_messages' },
      { type: 'cf_agent_chat_clear' },
      { type: 'cf_agent_use_chat_request', id: 'x', init: { body: '{}' } },
      { type: 'rpc', id: 'x' },
    ]) {
      const { socket, replies, closed } = await opening()
      for (let count = 0; count < 5_000; count++) socket.send(JSON.stringify(message))
      const { code, reason } = await closed
      expect([message.type, code, reason]).toEqual([
        message.type,
        1008,
        expect.stringContaining('At most 64'),
      ])
      expect(replies.length).toBeLessThan(200)
    }
  })

  test('opens with a key that may ask this assistant, and no other', async () => {
    expect(await connected(`/agents/${assistant}/a-chat?x-typesense-api-key=${KEY}`)).toBe(true)
    expect(await connected(`/agents/${assistant}/a-chat?x-typesense-api-key=wrong`)).toBe(false)
    expect(await connected(`/agents/no-such-assistant/a-chat?x-typesense-api-key=${KEY}`)).toBe(false)
    expect((await request('GET', `/agents/${assistant}/a-chat`)).status).toBe(400)
  })
})
