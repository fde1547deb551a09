/**
 * One WebSocket of `useAgent`. Messages are the JSON objects of the package `agents` (its chat/wire-types): the client asks,
 * resumes, stops and clears, and gets the parts of a UI message stream, each in a message of its own.
 *
 * Every message of the client is a request of its own to the routes of the UI message stream, with the headers that
 * the socket was opened with. So keys, origins, rates and budgets are checked for each, and a key that has been
 * deleted in the meantime is refused.
 *
 * An object of its own holds the socket, and sleeps while nothing is said (docs/decisions/0023-sockets-that-sleep.md). What the
 * socket was opened with is kept with it, sealed (opened-socket.ts). All else in here is of answers under way, and the object
 * stays awake for them.
 *
 * Messages are taken one at a time, with a pause after each, and few may wait: all that arrive together are one event after
 * another, in which workerd serves nobody else.
 */
import { Prefetch } from '../../conversation/prefetch'
import { CountingObject } from '../../durable/counting-object'
import { ApiError, badRequest, type Failure } from '../../errors'
import { tryJson } from '../../lib/json'
import { pause } from '../../lib/waiting'
import { isObject } from '../../search/schema/values'
import { enter, leave } from '../http/admit-turn'
import { parseQuery } from '../http/body'
import { openParties } from '../http/chat-names'
import { errorResponse, json } from '../http/deliver'
import { countRequest, logRequest, newRecord } from '../http/request-log'
import type { Answered, OpenCall } from '../http/router'
import { deleteChat, stopChat } from '../shared/assistant'
import { OPENED, type OpenedSocket, unsealSocket } from './opened-socket'
import { ask, messages, resume, stop } from './routes'

/** Questions and answers of one socket that are under way at a time. */
const MOST_READ = 4
/** Messages of one socket that may wait, and their characters in all. A page sends a few at a time. */
const MOST_WAITING = 64
const MOST_CHARACTERS = 8 * 1024 * 1024
/** The close code for a client that breaks the rules of the server. */
const POLICY = 1008
/** The close code for a client that may connect again at once. */
const RESTART = 1012

type Given = Record<string, unknown>
type Handler = (call: OpenCall) => Promise<Answered>

const asText = (value: unknown): string => (typeof value === 'string' ? value : '')

export class AgentSocket extends CountingObject {
  #opened: OpenedSocket | undefined
  /** answers that are being read */
  readonly #read = new Set<ReadableStreamDefaultReader<Uint8Array>>()
  /** questions and answers under way: a question counts before it has an answer to read */
  readonly #underWay = new Set<Promise<void>>()
  readonly #waiting: string[] = []
  #characters = 0
  #taking: Promise<void> | undefined
  #left = false
  /** running answers that were offered, by their ids. They are sent once the client says so */
  readonly #offered = new Map<string, Response>()
  /** conversations by the client's ids of its requests, for chats without a name */
  readonly #conversations = new Map<string, string>()

  /** Takes the socket. The Worker has checked the key (routes.ts). */
  override async fetch(request: Request): Promise<Response> {
    const { 0: client, 1: server } = new WebSocketPair()
    this.ctx.acceptWebSocket(server)
    server.serializeAttachment(request.headers.get(OPENED))
    const { agent, path } = await this.#open()
    this.#send({ type: 'cf_agent_identity', name: path.chat, agent })
    return new Response(null, { status: 101, webSocket: client })
  }

  /** Ends when nothing is under way any more: the object does not sleep before. */
  override async webSocketMessage(socket: WebSocket, data: unknown): Promise<void> {
    if (this.#left || typeof data !== 'string') return
    this.#characters += data.length
    if (this.#waiting.length >= MOST_WAITING || this.#characters > MOST_CHARACTERS) {
      this.#leave()
      socket.close(POLICY, `At most ${MOST_WAITING} messages may wait on one connection.`)
      return
    }
    this.#waiting.push(data)
    this.#taking ??= this.#take(socket)
    await this.#taking
    await Promise.all(this.#underWay)
  }

  override webSocketClose(socket: WebSocket): void {
    this.#leave()
    // Else the client waits for the end, and takes it for a failure.
    socket.close()
  }

  override webSocketError(): void {
    this.#leave()
  }

  get #socket(): WebSocket | undefined {
    return this.ctx.getWebSockets()[0]
  }

  /** @throws ApiError 400 if the deployment's secret has changed since */
  async #open(): Promise<OpenedSocket> {
    this.#opened ??= await unsealSocket(this.env, String(this.#socket?.deserializeAttachment()))
    return this.#opened
  }

  async #take(socket: WebSocket): Promise<void> {
    try {
      await this.#open()
    } catch {
      // A new socket is sealed with the new secret.
      this.#leave()
      socket.close(RESTART, 'Connect again.')
    }
    for (let data = this.#waiting.shift(); data !== undefined; data = this.#waiting.shift()) {
      this.#characters -= data.length
      await this.#receive(data)
      await pause()
    }
    this.#taking = undefined
  }

  async #receive(data: string): Promise<void> {
    const given = readMessage(data)
    if (given === undefined) return
    const id = asText(given.id)
    const { type } = given
    // What streams an answer keeps no other message waiting: the next one may stop it.
    if (type === 'cf_agent_use_chat_request') this.#beside(id, () => this.#ask(id, given.init))
    else if (type === 'cf_agent_stream_resume_ack') this.#beside(id, () => this.#resume(id))
    else await this.#answer(given, id)
  }

  #beside(id: string, work: () => Promise<void>): void {
    const isFull = this.#underWay.size >= MOST_READ
    const run = async () => {
      try {
        if (isFull) throw new ApiError(429, `One connection reads ${MOST_READ} answers at a time.`, 1)
        await work()
      } catch (error) {
        this.#fail(id, await refusalIn(errorResponse(error)))
      }
    }
    const running = run().finally(() => this.#underWay.delete(running))
    this.#underWay.add(running)
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

  async #ask(id: string, init: unknown): Promise<void> {
    const given = readMessage((init as Given | undefined)?.body)
    if (given === undefined) throw badRequest('`init.body` must be a JSON object.')
    // The chat is the one in the address. A client cannot name another one in a message.
    const { threadId: _, conversation_id: __, ...body } = given
    const { path } = await this.#open()
    const response = await this.#request('POST', ask, { ...body, id: path.chat })
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
    // The object may have slept since the offer, and the answer may have come to its end.
    const response = this.#offered.get(id) ?? (await this.#request('GET', resume))
    this.#offered.delete(id)
    if (response.status !== 204) return this.#pump(id, response)
    this.#end(id)
    await this.#show()
  }

  async #stop(id: string): Promise<void> {
    const conversation = this.#conversations.get(id)
    await this.#request(
      'POST',
      (call) => stop({ ...call, path: { ...call.path, ...(conversation && { chat: conversation }) } }),
      {},
    )
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
    const response = await this.#request('GET', messages)
    if (response.status === 200) {
      this.#send({ type: 'cf_agent_chat_messages', messages: await response.json() })
    } else await response.body?.cancel()
  }

  /** One message of the client as a request of its own. */
  async #request(method: 'GET' | 'POST', handle: Handler, body?: unknown): Promise<Response> {
    const { env } = this
    const { url, headers, path, route } = await this.#open()
    const request = new Request(url, {
      method,
      headers: [...headers, ['content-type', 'application/json']],
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const record = { ...newRecord(request), route }
    const query = parseQuery(new URL(url).search)
    let response: Response
    try {
      if (handle === ask) await enter(request)
      const call = { env, path, query, request, record, prefetch: new Prefetch(env, record) }
      const answer = await handle(call)
      response = answer instanceof Response ? answer : json(answer)
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
      this.#end(id)
    } finally {
      this.#read.delete(reader)
    }
  }

  #end(id: string): void {
    this.#send({ type: 'cf_agent_use_chat_response', id, done: true, body: '' })
  }

  #fail(id: string, body: string): void {
    this.#send({ type: 'cf_agent_use_chat_response', id, body, done: true, error: true })
  }

  #send(message: object): void {
    this.#sendText(JSON.stringify(message))
  }

  /** A closed socket throws, and nothing would catch that. */
  #sendText(text: string): void {
    const socket = this.#socket
    if (!this.#left && socket?.readyState === WebSocket.OPEN) socket.send(text)
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
  const given = typeof data === 'string' ? tryJson(data) : undefined
  return isObject(given) ? (given as Given) : undefined
}

/** The message of a refused request. */
const refusalIn = async (response: Response): Promise<string> =>
  ((await response.json().catch(() => ({}))) as Partial<Failure>).message ?? 'The request failed.'
