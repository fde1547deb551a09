/**
 * One WebSocket of `useAgent`. Messages are the JSON objects of the package `agents` (its chat/wire-types): the client asks,
 * resumes, stops and clears, and gets the parts of a UI message stream, each in a message of its own.
 *
 * Every message of the client is a request of its own to the routes of the UI message stream, with the headers that
 * the socket was opened with. So keys, origins, rates and budgets are checked for each, and a key that has been
 * deleted in the meantime is refused.
 *
 * Messages are taken one at a time, with a pause after each, and few may wait: all that arrive together are one event after
 * another, in which workerd serves nobody else.
 */
import { Prefetch } from '../../conversation/prefetch'
import { ApiError, type Failure } from '../../errors'
import { pause } from '../../lib/pause'
import { enter, leave } from '../http/admit-turn'
import { openParties } from '../http/chat-names'
import { countRequest, logRequest, newRecord } from '../http/request-log'
import { errorResponse } from '../http/response'
import type { OpenCall } from '../http/route'
import { deleteChat, stopChat } from '../shared/chats'
import { ask, resume, stop } from './routes'

/** Questions and answers of one socket that are under way at a time. */
const MOST_READ = 4
/** Messages of one socket that may wait, and their characters in all. A page sends a few at a time. */
const MOST_WAITING = 64
const MOST_CHARACTERS = 8 * 1024 * 1024
/** The close code for a client that breaks the rules of the server. */
const POLICY = 1008

type Given = Record<string, unknown>
type Handler = (call: OpenCall) => Promise<Response>

const asText = (value: unknown): string => (typeof value === 'string' ? value : '')

export class AgentSocket {
  readonly #call: OpenCall
  readonly #socket: WebSocket
  readonly #messages: Handler
  /** answers that are being read */
  readonly #read = new Set<ReadableStreamDefaultReader<Uint8Array>>()
  /** how many questions and answers are under way: a question counts before it has an answer to read */
  #underWay = 0
  readonly #waiting: string[] = []
  #characters = 0
  #isTaking = false
  #left = false
  /** running answers that were offered, by their ids. They are sent once the client says so */
  readonly #offered = new Map<string, Response>()
  /** conversations by the client's ids of its requests, for chats without a name */
  readonly #conversations = new Map<string, string>()

  /** @param messages lists what was said */
  constructor(call: OpenCall, socket: WebSocket, messages: Handler) {
    this.#call = call
    this.#socket = socket
    this.#messages = messages
  }

  /** @param agent the assistant's name */
  open(agent: string): void {
    this.#socket.addEventListener('message', ({ data }) => this.#queue(data))
    this.#socket.addEventListener('close', () => this.#leave())
    this.#socket.addEventListener('error', () => this.#leave())
    this.#send({ type: 'cf_agent_identity', name: this.#call.path.chat, agent })
  }

  #queue(data: unknown): void {
    if (this.#left || typeof data !== 'string') return
    this.#characters += data.length
    if (this.#waiting.length >= MOST_WAITING || this.#characters > MOST_CHARACTERS) {
      this.#leave()
      this.#socket.close(POLICY, `At most ${MOST_WAITING} messages may wait on one connection.`)
      return
    }
    this.#waiting.push(data)
    if (!this.#isTaking) void this.#take()
  }

  async #take(): Promise<void> {
    this.#isTaking = true
    for (let data = this.#waiting.shift(); data !== undefined; data = this.#waiting.shift()) {
      this.#characters -= data.length
      await this.#receive(data)
      await pause()
    }
    this.#isTaking = false
  }

  async #receive(data: string): Promise<void> {
    const given = readMessage(data)
    if (given === undefined) return
    const id = asText(given.id)
    const { type } = given
    // What streams an answer keeps no other message waiting: the next one may stop it.
    if (type === 'cf_agent_use_chat_request') void this.#beside(id, () => this.#ask(id, given.init))
    else if (type === 'cf_agent_stream_resume_ack') void this.#beside(id, () => this.#resume(id))
    else await this.#answer(given, id)
  }

  async #beside(id: string, work: () => Promise<void>): Promise<void> {
    try {
      await this.#within(work)
    } catch (error) {
      this.#fail(id, await refusalIn(errorResponse(error)))
    }
  }

  async #answer(given: Given, id: string): Promise<void> {
    try {
      switch (given.type) {
        case 'cf_agent_chat_request_cancel':
          return await this.#stop(id)
        case 'cf_agent_stream_resume_request':
          return await this.#offer(given.probeId)
        case 'cf_agent_chat_clear':
          return await this.#clear()
        case 'cf_agent_chat_messages':
          // Parley stores the messages itself, so it ignores the client's copy and sends back the stored ones.
          return await this.#show()
        case 'cf_agent_state':
          return this.#send({
            type: 'cf_agent_state_error',
            error: 'An assistant keeps no state for its clients.',
          })
        case 'rpc':
          return this.#send({
            type: 'rpc',
            id,
            success: false,
            error: 'An assistant has no methods to call.',
          })
      }
    } catch (error) {
      this.#fail(id, await refusalIn(errorResponse(error)))
    }
  }

  /** @throws ApiError 429 */
  async #within(work: () => Promise<void>): Promise<void> {
    if (this.#underWay >= MOST_READ) {
      throw new ApiError(429, `One connection reads ${MOST_READ} answers at a time.`, 1)
    }
    this.#underWay += 1
    try {
      await work()
    } finally {
      this.#underWay -= 1
    }
  }

  async #ask(id: string, init: unknown): Promise<void> {
    const given = readMessage((init as Given | undefined)?.body)
    if (given === undefined) throw new ApiError(400, '`init.body` must be a JSON object.')
    // The chat is the one in the address. A client cannot name another one in a message.
    const { threadId: _, conversation_id: __, ...body } = given
    const response = await this.#request('POST', ask, { ...body, id: this.#call.path.chat })
    const conversation = response.headers.get('x-parley-conversation-id')
    if (conversation) this.#conversations.set(id, conversation)
    try {
      await this.#pump(id, response)
    } finally {
      this.#conversations.delete(id)
    }
  }

  async #offer(probeId: unknown): Promise<void> {
    const response = await this.#request('GET', resume)
    const probe = typeof probeId === 'string' ? { probeId } : {}
    if (response.status !== 200) {
      this.#send({ type: 'cf_agent_stream_resume_none', reason: 'idle', ...probe })
      return
    }
    const id = crypto.randomUUID()
    for (const [old, { body }] of this.#offered) {
      this.#offered.delete(old)
      await body?.cancel()
    }
    if (this.#left) return void (await response.body?.cancel())
    this.#offered.set(id, response)
    this.#send({ type: 'cf_agent_stream_resuming', id, ...probe })
  }

  async #resume(id: string): Promise<void> {
    const response = this.#offered.get(id)
    this.#offered.delete(id)
    if (response) await this.#pump(id, response)
  }

  async #stop(id: string): Promise<void> {
    const chat = this.#conversations.get(id) ?? this.#call.path.chat ?? ''
    await this.#request('POST', (call) => stop({ ...call, path: { ...call.path, chat } }), {})
  }

  async #clear(): Promise<void> {
    const response = await this.#request('POST', async (call) => {
      const parties = await openParties(call)
      await stopChat(parties, call.path.chat ?? '')
      await deleteChat(parties, call.path.chat ?? '')
      return new Response(null, { status: 204 })
    })
    if (response.status !== 204) await this.#show()
  }

  async #show(): Promise<void> {
    const response = await this.#request('GET', this.#messages)
    if (response.status === 200) {
      this.#send({ type: 'cf_agent_chat_messages', messages: await response.json() })
    } else await response.body?.cancel()
  }

  /** One message of the client as a request of its own. */
  async #request(method: 'GET' | 'POST', handle: Handler, body?: unknown): Promise<Response> {
    const { env, path, query, request: opened, record: first } = this.#call
    const headers = new Headers(opened.headers)
    for (const name of [...headers.keys()]) {
      if (/^(upgrade|connection|content-length|sec-websocket-.*)$/.test(name)) headers.delete(name)
    }
    headers.set('content-type', 'application/json')
    const request = new Request(opened.url, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const record = { ...newRecord(request), route: first.route! }
    let response: Response
    try {
      if (handle === ask) await enter(request)
      response = await handle({ env, path, query, request, record, prefetch: new Prefetch(env, record) })
    } catch (error) {
      response = errorResponse(error, record)
    } finally {
      leave(request)
    }
    countRequest(record, response.status)
    logRequest(env, record, response.status)
    return response
  }

  /** Sends the parts of a UI message stream, then its end. */
  async #pump(id: string, response: Response): Promise<void> {
    if (response.status !== 200 || response.body === null) {
      this.#fail(id, await refusalIn(response))
      return
    }
    const head = `{"type":"cf_agent_use_chat_response","id":${JSON.stringify(id)},"done":`
    const reader = response.body.getReader()
    this.#read.add(reader)
    // The client left before there was an answer to read.
    if (this.#left) this.#leave()
    const decoder = new TextDecoder()
    let rest = ''
    try {
      for (;;) {
        const { value } = await reader.read()
        if (value === undefined) break
        const frames = (rest + decoder.decode(value, { stream: true })).split('\n\n')
        rest = frames.pop() ?? ''
        for (const frame of frames) {
          // Any other frame is a heartbeat or the end.
          if (frame.startsWith('data: {')) {
            this.#sendText(`${head}false,"body":${JSON.stringify(frame.slice('data: '.length))}}`)
          }
        }
      }
      this.#sendText(`${head}true,"body":""}`)
    } finally {
      this.#read.delete(reader)
    }
  }

  #fail(id: string, body: string): void {
    this.#send({ type: 'cf_agent_use_chat_response', id, body, done: true, error: true })
  }

  #send(message: object): void {
    this.#sendText(JSON.stringify(message))
  }

  /** A closed socket throws, and nothing would catch that. */
  #sendText(text: string): void {
    if (!this.#left && this.#socket.readyState === WebSocket.OPEN) this.#socket.send(text)
  }

  /** Stops reading, because the client has left. The turns continue. */
  #leave(): void {
    this.#left = true
    this.#waiting.length = 0
    for (const reader of this.#read) reader.cancel().catch(() => {})
    for (const { body } of this.#offered.values()) body?.cancel().catch(() => {})
    this.#read.clear()
    this.#offered.clear()
  }
}

/** @returns undefined for anything but a JSON object */
function readMessage(data: unknown): Given | undefined {
  if (typeof data !== 'string') return undefined
  try {
    const given: unknown = JSON.parse(data)
    return typeof given === 'object' && given !== null && !Array.isArray(given) ? (given as Given) : undefined
  } catch {
    return undefined
  }
}

/** The message of a refused request. */
const refusalIn = async (response: Response): Promise<string> =>
  ((await response.json().catch(() => ({}))) as Partial<Failure>).message ?? 'The request failed.'
