/** Sockets of `useAgent` whose objects sleep between two messages. */
import { evictDurableObject, listDurableObjectIds, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, expect, it, onTestFinished, vi } from 'vitest'
import { speaking } from '../../conversation/stage'
import { setRemoteStage } from '../stage'
import { call, send } from '../typesense/api'

interface Message {
  type: string
  id?: string
  body?: string
  done?: boolean
  error?: boolean
}

const PAGE_KEY = {
  description: 'a page',
  collections: ['*'],
  actions: ['assistants:ask'],
  limits: { assistant: 'guide' },
}

let key: string
beforeAll(async () => {
  await setRemoteStage()
  const [status, made] = await call('POST', '/keys', { body: PAGE_KEY })
  expect(status).toBe(201)
  key = made.value
})
afterEach(() => vi.restoreAllMocks())

const connect = (chat: string, { as = key, more = '' } = {}) =>
  send('GET', `/agents/guide/${chat}?x-typesense-api-key=${as}${more}`, {
    key: null,
    headers: { upgrade: 'websocket', 'user-agent': 'a browser' },
  })

/** Opens a socket, and reads what comes. */
async function open({ as = key, chat = crypto.randomUUID() as string } = {}) {
  const { status, webSocket } = await connect(chat, { as })
  expect(status).toBe(101)
  const socket = webSocket!
  const came: Message[] = []
  socket.addEventListener('message', ({ data }) => came.push(JSON.parse(String(data))))
  const closed = new Promise<number>((resolve) => {
    socket.addEventListener('close', ({ code }) => resolve(code))
  })
  socket.accept()
  onTestFinished(() => socket.close())
  const tell = (message: object) => socket.send(JSON.stringify(message))
  const textOf = (id: string) => came.map((each) => (each.id === id ? (each.body ?? '') : '')).join('')
  const endOf = async (id: string) => {
    await expect.poll(() => came.some((each) => each.id === id && each.done)).toBe(true)
    return { text: textOf(id), isRefused: came.some((each) => each.id === id && each.error === true) }
  }
  const ask = (text: string): string => {
    const id = crypto.randomUUID()
    const messages = [{ id: 'm', role: 'user', parts: [{ type: 'text', text }] }]
    const body = JSON.stringify({ messages, trigger: 'submit-message' })
    tell({ type: 'cf_agent_use_chat_request', id, init: { method: 'POST', body } })
    return id
  }
  return { chat, came, closed, tell, textOf, endOf, ask, say: (text: string) => endOf(ask(text)) }
}

/** Does something in each object that holds a socket. */
async function withSockets<Result>(work: (socket: WebSocket) => Result): Promise<Result[]> {
  const ids = await listDurableObjectIds(env.AGENT_SOCKET)
  const results = ids.map((id) =>
    runInDurableObject(env.AGENT_SOCKET.get(id), (_, state) => state.getWebSockets().map(work)),
  )
  return (await Promise.all(results)).flat()
}

/** Puts the objects to sleep, as the platform does. Their sockets stay open. */
async function sleep(): Promise<void> {
  for (const id of await listDurableObjectIds(env.AGENT_SOCKET)) {
    await evictDurableObject(env.AGENT_SOCKET.get(id)).catch(() => {})
  }
}

/** A provider that begins its answer, and ends it when it is told to. */
function startedAnswer(first: string) {
  let rest: string | undefined
  const piece = (content: string) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`
  vi.spyOn(globalThis, 'fetch').mockImplementation(async () => {
    // What a stream waits for must be of the object that reads it: a timer is.
    const stream = new ReadableStream<Uint8Array>({
      async start(controller) {
        const say = (text: string) => controller.enqueue(new TextEncoder().encode(text))
        say(piece(first))
        while (rest === undefined) await new Promise((resolve) => setTimeout(resolve, 5))
        say(`${piece(rest)}data: [DONE]\n\n`)
        controller.close()
      },
    })
    return new Response(stream, { headers: { 'content-type': 'text/event-stream' } })
  })
  return {
    finish: (text: string) => {
      rest = text
    },
  }
}

it('answers in the same chat after its object has slept', async () => {
  vi.spyOn(globalThis, 'fetch').mockImplementation(speaking('Ridley Scott.'))
  const socket = await open()
  await socket.say('Who directed Alien?')
  await sleep()
  expect(await socket.say('And who else?')).toEqual({
    text: expect.stringContaining('Ridley'),
    isRefused: false,
  })
  await sleep()
  socket.tell({ type: 'cf_agent_chat_messages' })
  await expect.poll(() => JSON.stringify(socket.came.at(-1))).toContain('And who else?')
  expect(JSON.stringify(socket.came.at(-1))).toContain('Who directed Alien?')
})

it('refuses a key that was deleted while its object slept', async () => {
  vi.spyOn(globalThis, 'fetch').mockImplementation(speaking('Ridley Scott.'))
  const [, { id, value }] = await call('POST', '/keys', { body: PAGE_KEY })
  const socket = await open({ as: value })
  expect((await socket.say('Who directed Alien?')).isRefused).toBe(false)
  await sleep()
  expect((await call('DELETE', `/keys/${id}`))[0]).toBe(200)
  const { text, isRefused } = await socket.say('And who else?')
  expect(isRefused).toBe(true)
  expect(text).not.toContain('Ridley')
})

it('keeps no key and no question in clear while its object sleeps', async () => {
  vi.spyOn(globalThis, 'fetch').mockImplementation(speaking('Ridley Scott.'))
  const socket = await open()
  await socket.say('Who directed Alien?')
  await sleep()
  const kept = await withSockets((each) => String(each.deserializeAttachment()))
  expect(kept.length).toBeGreaterThan(0)
  for (const text of kept) {
    expect(text).toMatch(/^v1\.[A-Za-z0-9+/=]+$/)
    const clear = atob(text.slice('v1.'.length))
    for (const secret of [key, socket.chat, 'Alien', 'a browser']) expect(text + clear).not.toContain(secret)
  }
})

it('has its reader go on with a running answer after its object was reset in the middle of it', async () => {
  const chat: string = crypto.randomUUID()
  const provider = startedAnswer('Ridley ')
  const first = await open({ chat })
  const id = first.ask('Who directed Alien?')
  await expect.poll(() => first.textOf(id)).toContain('Ridley')
  for (const each of await listDurableObjectIds(env.AGENT_SOCKET)) {
    await runInDurableObject(env.AGENT_SOCKET.get(each), (_, state) => state.abort('a deployment')).catch(
      () => {},
    )
  }
  await first.closed
  const forgetful = await open({ chat })
  await sleep()
  // Its object no longer knows what it has offered.
  forgetful.tell({ type: 'cf_agent_stream_resume_ack', id: 'x' })
  const again = await open({ chat })
  again.tell({ type: 'cf_agent_stream_resume_request', probeId: 'p' })
  const offer = { type: 'cf_agent_stream_resuming', probeId: 'p', id: expect.any(String) }
  await expect.poll(() => again.came.at(-1)).toEqual(offer)
  const { id: offered = '' } = again.came.at(-1)!
  again.tell({ type: 'cf_agent_stream_resume_ack', id: offered })
  await expect.poll(() => again.textOf(offered)).toContain('Ridley')
  await expect.poll(() => forgetful.textOf('x')).toContain('Ridley')
  provider.finish('Scott.')
  const ended = { text: expect.stringContaining('Scott.'), isRefused: false }
  expect([await again.endOf(offered), await forgetful.endOf('x')]).toMatchObject([ended, ended])
})

it('is closed where what it was opened with can no longer be read, so that its client opens another', async () => {
  const socket = await open()
  await withSockets((each) => each.serializeAttachment('v1.sealedUnderAnotherSecret'))
  await sleep()
  socket.tell({ type: 'cf_agent_chat_messages' })
  expect(await socket.closed).toBe(1012)
})

it('is not opened where the address is too long to be kept', async () => {
  const long = await connect(crypto.randomUUID(), { more: `&x=${'y'.repeat(11_000)}` })
  expect(long.status).toBe(101)
  long.webSocket!.accept()
  long.webSocket!.close()
  const longer = await connect(crypto.randomUUID(), { more: `&x=${'y'.repeat(12_000)}` })
  expect(longer.status).toBe(413)
  expect(await longer.json()).toMatchObject({ message: expect.stringContaining('11,000 bytes') })
})
