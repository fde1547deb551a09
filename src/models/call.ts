/**
 * One call to a provider: its timeout, and its errors in the contract's words, without credentials. Each error has a
 * fault, which tells callers what they can do about it.
 */

import { createParser } from 'eventsource-parser'
import { ApiError, badRequest } from '../errors'
import { byteReader } from '../lib/byte-reader'
import { tryJson } from '../lib/json'
import { withoutSecrets } from '../lib/mask'
import { outgoing, rest, SLICE_BYTES, settlesWithin, worked } from '../lib/waiting'
import { type Egress, type Gateway, throughGateway } from './egress'
import {
  type Fault,
  faultOfCode,
  faultOfStatus,
  ProviderError,
  retryAfterOf,
  type Upstream,
} from './provider-error'
import { SilenceWatch } from './resilient'
import { secretsOf } from './secrets'

/** How a provider's failures are worded. */
export interface Wording {
  /** @param detail what the provider said */
  failure(detail: string): string
  /** for a failure that is not the provider's own error object */
  unreadable(detail: string): string
  /** what to do about an error. @param code the provider's own */
  advice?(code: unknown): string | undefined
  timeout: string
  malformed: string
}

export const wording = (label: string): Wording => ({
  failure: (detail) => `${label} API error: ${detail}`,
  unreadable: (detail) => `${label} API error: ${detail}`,
  timeout: `${label} API timeout.`,
  malformed: `Got malformed response from ${label} API.`,
})

export interface CallOptions {
  wording: Wording
  /** seconds without content after which the call fails */
  silence: number
  /** 400 at query time, since clients retry nothing below 500; absent: 408 */
  timeoutStatus?: number
  /** credentials that no error may contain (models/secrets.ts) */
  secrets?: string[]
  /** the model's own headers, sent with every request; the provider's override them */
  headers?: Record<string, string> | undefined
  /** whether its replies may begin inside the model's thoughts (reply.ts) */
  startsThinking?: boolean
  /** whether its replies may call tools; calls of tools that nobody offered are passed over */
  takesCalls?: boolean
  /** which hosts may be called, and through which gateway */
  env: Egress & Gateway
}

/** The options of a call that come from any model's properties. */
export const callOptions = (
  config: Record<string, unknown>,
  wording: Wording,
  env: Egress & Gateway,
): CallOptions => ({
  wording,
  silence: silenceOf(config),
  secrets: [...secretsOf(config), ...(env.AI_GATEWAY_TOKEN ? [env.AI_GATEWAY_TOKEN] : [])],
  headers: config.headers as Record<string, string> | undefined,
  startsThinking: startsThinking(config),
  env,
})

/** Models whose chat templates open the thoughts, so that replies contain the closing tag only. */
const THINKING = /deepseek-r1|qwq|-thinking\b/i

const startsThinking = ({ starts_thinking: said, model_name: name }: Record<string, unknown>): boolean =>
  typeof said === 'boolean' ? said : typeof name === 'string' && THINKING.test(name)

const DEFAULT_SILENCE = 60
export const LONGEST_SILENCE = 3_600

/** The `timeout` property of a model, in seconds of silence. */
export const silenceOf = (config: { [property: string]: unknown }): number =>
  typeof config.timeout === 'number' && config.timeout > 0
    ? Math.min(config.timeout, LONGEST_SILENCE)
    : DEFAULT_SILENCE

/** A call that writes a text. @param tools those that the model may call */
export const textCall = (
  options: CallOptions,
  signal: AbortSignal,
  { tools }: { tools?: readonly unknown[] } = {},
): ProviderCall =>
  new ProviderCall({ ...options, timeoutStatus: 400, takesCalls: tools !== undefined }, signal)

/** A request whose body is JSON. */
export const jsonRequest = (body: unknown, headers: Record<string, string> = {}) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
})

const LONGEST_DETAIL = 4000

/** The most bytes of a reply in one piece. A broken server may send without end. */
const LARGEST_REPLY = 8 * 1024 * 1024
/** The same for embeddings: 200 of 4,096 dimensions are 20 MB. */
export const LARGEST_EMBEDDINGS = 32 * 1024 * 1024
/** How long the cost of an answer may take to come after its end. */
const LAST_MS = 2_000
/** The most bytes of a stream, and of those between two pieces of content. */
const LARGEST_STREAM = 128 * 1024 * 1024
const MOST_WITHOUT_CONTENT = 8 * 1024 * 1024
const LARGEST_ERROR = 64 * 1024

/**
 * The message in an error body: `error.message` (OpenAI, Google), a plain `error` or `message`, `errors[0].message`
 * (Cloudflare; AI Gateway has `error[0].message`), `Message` (some of AWS), or the raw body.
 */
function errorDetail(body: string): { detail: string; readable: boolean; code?: unknown; type?: string } {
  const parsed = parseObject(body)
  const [first] = [parsed?.errors, parsed?.error].find(Array.isArray) ?? []
  const error = (first ?? parsed?.error ?? parsed ?? {}) as Record<string, unknown>
  const found =
    textOf(parsed?.error, 'message') ??
    text(parsed?.error) ??
    textOf(first, 'message') ??
    text(parsed?.message) ??
    text(parsed?.Message)
  return {
    detail: found ?? body,
    readable: found !== undefined,
    code: error.code ?? error.status,
    ...(typeof error.type === 'string' && { type: error.type }),
  }
}

const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined

const textOf = (value: unknown, key: string): string | undefined =>
  value !== null && typeof value === 'object' ? text((value as Record<string, unknown>)[key]) : undefined

/** Parses JSON that should be an object; undefined for anything else. */
export function parseObject(json: string): Record<string, unknown> | undefined {
  const value = tryJson(json)
  return value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : undefined
}

/** A provider's reply while it is read. */
export class ProviderCall {
  readonly #options: CallOptions
  readonly #watch: SilenceWatch
  readonly #signal: AbortSignal | undefined
  /** bytes of the stream so far, and those at the last content */
  #bytes = 0
  #bytesAtContent = 0
  /** when the reply said that it is complete */
  #finishedAt: number | undefined

  constructor(options: CallOptions, signal?: AbortSignal) {
    this.#options = options
    this.#watch = new SilenceWatch(options.silence)
    this.#signal = signal
  }

  get startsThinking(): boolean {
    return this.#options.startsThinking === true
  }

  get takesCalls(): boolean {
    return this.#options.takesCalls === true
  }

  /** Aborts when the caller stops the call, or when the provider is silent for too long. */
  get signal(): AbortSignal {
    return this.#signal ? AbortSignal.any([this.#signal, this.#watch.signal]) : this.#watch.signal
  }

  /**
   * Sends a request. @returns its 200 response
   * @param init the request, or a function that makes it
   * @throws ApiError for any other status, with the provider's message, and for a host that may not be called
   */
  async fetch(url: string, init: RequestInit | (() => Promise<RequestInit>)): Promise<Response> {
    try {
      const routed = throughGateway(url, this.#options.env)
      const request = typeof init === 'function' ? await init() : init
      const headers = new Headers({ ...this.#options.headers })
      for (const [name, value] of new Headers(request.headers)) headers.set(name, value)
      for (const [name, value] of Object.entries(routed.headers)) headers.set(name, value)
      // A redirect could carry the key to another host, so it counts as a failure.
      const { signal } = this
      const send = (): Promise<Response> => {
        this.#watch.touch()
        return fetch(routed.url, { ...request, headers, redirect: 'manual', signal })
      }
      const response = await outgoing(this.#options.env, send, signal)
      this.#watch.touch()
      if (response.status === 200) return response
      const { text } = await readWholeBody(response.body, LARGEST_ERROR)
      throw this.reported(text || `HTTP status ${response.status}`, {
        upstream: response.status,
        retryAfterMs: retryAfterOf(response.headers),
      })
    } catch (error) {
      this.#watch.stop()
      throw this.explain(error, 'the provider could not be reached')
    }
  }

  /**
   * Reads a whole body.
   * @param most bytes of it @throws ApiError if it breaks off, or is larger than any reply
   */
  async text(response: Response, most = LARGEST_REPLY): Promise<string> {
    try {
      const { text, complete } = await readWholeBody(response.body, most, (bytes) => {
        if (bytes.some((byte) => byte > BLANK)) this.#watch.touch()
      })
      if (complete) return text
      throw this.malformed()
    } catch (error) {
      throw this.explain(error, CUT, { upstream: 200, fault: 'cut' })
    } finally {
      this.#watch.stop()
    }
  }

  /** The data of each server-sent event. */
  events(body: ReadableStream<Uint8Array> | null): AsyncGenerator<string, void> {
    return this.read(body, readEvents)
  }

  /** Reads a body with `reader`, which gets a callback for the bytes of each read, and the signal that ends it. */
  async *read<T>(
    body: ReadableStream<Uint8Array> | null,
    reader: (
      body: ReadableStream<Uint8Array>,
      onRead: (bytes: Uint8Array) => void,
      signal: AbortSignal,
    ) => AsyncGenerator<T, void>,
  ): AsyncGenerator<T, void> {
    const { signal } = this
    const ended = new AbortController()
    try {
      if (body) {
        const all = AbortSignal.any([signal, ended.signal])
        yield* this.#untilFinished(
          reader(body, (bytes) => this.#count(bytes), all),
          ended,
        )
      }
      signal.throwIfAborted()
    } catch (error) {
      throw this.explain(error, CUT, { upstream: 200, fault: 'cut' })
    } finally {
      this.#watch.stop()
    }
  }

  /** What a reader reads. Some servers leave the connection open after the answer: what they add then has a moment to come. */
  async *#untilFinished<T>(read: AsyncGenerator<T, void>, ended: AbortController): AsyncGenerator<T, void> {
    try {
      for (;;) {
        const next = read.next()
        next.catch(() => {})
        const left = this.#finishedAt && this.#finishedAt + LAST_MS - Date.now()
        if (left !== undefined && !(await settlesWithin(Math.max(0, left), next))) return
        const { done, value } = await next
        if (done) return
        yield value
      }
    } finally {
      ended.abort()
      await read.return()
    }
  }

  /** Call this when the reply says that it is complete. */
  finished(): void {
    this.#finishedAt ??= Date.now()
    this.#watch.stop()
  }

  /**
   * Call this for content only. A server can send blank lines, comments and empty pieces for ever, and they must not
   * keep a call alive.
   */
  alive(): void {
    this.#bytesAtContent = this.#bytes
    this.#watch.touch()
  }

  /** @throws ProviderError for a stream that does not end, or that has no content */
  #count({ length }: Uint8Array): void {
    this.#bytes += length
    if (this.#bytes - this.#bytesAtContent <= MOST_WITHOUT_CONTENT && this.#bytes <= LARGEST_STREAM) return
    throw new ProviderError(400, this.#options.wording.failure(ENDLESS), { upstream: 200, fault: 'cut' })
  }

  /** Ends the watch over a call whose body is not read. */
  close(): void {
    this.#watch.stop()
  }

  /**
   * The error that the provider reported.
   * @param body an error body, or an error object in a stream
   * @param upstream what is known of the reply, unless its status is 200
   */
  reported(body: string, upstream: Upstream = {}): ProviderError {
    const { wording, secrets = [] } = this.#options
    const { detail, readable, code, type } = errorDetail(body)
    // Servers often quote the key that they refuse. Remove secrets before cutting the text: the cut could leave part
    // of one that no longer matches.
    const said = withoutSecrets(detail, secrets).slice(0, LONGEST_DETAIL)
    const { upstream: status } = upstream
    const fault =
      status === undefined
        ? faultOfCode(code, type)
        : faultOfStatus(status, code === undefined ? type : String(code))
    const sentence = readable ? wording.failure(said) : wording.unreadable(said)
    const advice = wording.advice?.(code)
    return new ProviderError(400, advice === undefined ? sentence : `${sentence} (${advice})`, {
      fault,
      ...upstream,
    })
  }

  /** The error for a provider that is too slow. */
  timedOut(): ProviderError {
    const { timeoutStatus = 408, wording } = this.#options
    return new ProviderError(timeoutStatus, wording.timeout, { fault: 'silent' })
  }

  /** The error for a complete reply that is not an answer. @param why for the caller to read */
  failed(why: string, fault: Fault = 'refused'): ProviderError {
    return new ProviderError(400, this.#options.wording.failure(why), { upstream: 200, fault })
  }

  /** The error for a stream that broke off. */
  cut(): ProviderError {
    return new ProviderError(400, this.#options.wording.failure(CUT), { upstream: 200, fault: 'cut' })
  }

  /** The error for a reply that breaks the provider's format, or has no text. */
  malformed(fault: Fault = 'refused'): ProviderError {
    return new ProviderError(400, this.#options.wording.malformed, { upstream: 200, fault })
  }

  /**
   * The error to throw for an exception. An abort by the caller is returned unchanged.
   * @param upstream what is known of the reply, unless it was aborted or timed out
   */
  explain(error: unknown, otherwise: string, upstream?: Upstream): unknown {
    if (error instanceof ApiError) return error
    if (this.#watch.expired) return this.timedOut()
    if (this.#signal?.aborted) return this.#signal.reason
    return new ProviderError(400, this.#options.wording.unreadable(otherwise), upstream)
  }
}

const CUT = 'the stream ended before the answer was complete'
const ENDLESS = 'the stream has too many bytes for what it says'
/** Blanks and control characters are not above this in ASCII. */
const BLANK = 0x20

// =============================================================================
// A model's own headers, sent with every request to its provider. Their values are treated as secrets.

const MOST = 20
const LONGEST = 4_096

/** Headers of the connection or the message, or set by a provider's own properties. */
const RESERVED = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'host',
  'accept-encoding',
  'content-encoding',
  'content-length',
  'content-type',
  'cookie',
  'authorization',
  'api-key',
  'x-api-key',
  'x-goog-api-key',
  'cf-aig-authorization',
])

/** A signature has new headers for each request. */
const isReserved = (name: string): boolean => RESERVED.has(name) || name.startsWith('x-amz-')

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/
// Latin-1 without control characters: what a header can carry (RFC 9110, 5.5).
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/**
 * @param own reserved names that may be set nevertheless
 * @throws ApiError 400 saying what is wrong with the property `headers`
 */
export function checkHeaders(headers: unknown, own: readonly string[] = []): void {
  if (headers === undefined) return
  if (headers === null || typeof headers !== 'object' || Array.isArray(headers)) {
    throw badRequest('Property `headers` is not an object of strings.')
  }
  const entries = Object.entries(headers)
  if (entries.length > MOST) throw badRequest(`Property \`headers\` has more than ${MOST} headers.`)
  for (const [name, value] of entries) {
    if (!NAME.test(name)) throw badRequest('Property `headers` has a name that no header can have.')
    if (isReserved(name.toLowerCase()) && !own.includes(name.toLowerCase())) {
      throw badRequest(`Property \`headers\` may not set \`${name}\`: leave it out.`)
    }
    if (typeof value !== 'string' || value.length > LONGEST || !VALUE.test(value)) {
      throw badRequest(
        `Property \`headers.${name}\` is not a string of up to ${LONGEST} characters that a header can carry.`,
      )
    }
  }
}

// =============================================================================
// Reads server-sent events from a byte stream, however the network has split it.

/** The most bytes of an event or a frame. Without a limit, a broken server could fill the memory. */
export const LARGEST_EVENT = 4 * 1024 * 1024

/**
 * Cancels a reader when a signal aborts. Passing the signal to the stream is not enough: a stream from a binding may
 * ignore it, but a cancelled reader ends at once.
 * @returns the listener, which the caller must remove
 */
export function endingWith(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  signal?: AbortSignal,
): () => void {
  const stop = () => void reader.cancel().catch(() => {})
  if (signal?.aborted) stop()
  else signal?.addEventListener('abort', stop, { once: true })
  return stop
}

/** An `event: error` as the error object that adapters look for, whatever its data is. */
function errorData(data: string): string {
  const said = tryJson(data)
  if (said === null || typeof said !== 'object') return JSON.stringify({ error: { message: data } })
  return 'error' in said && said.error ? data : JSON.stringify({ error: said })
}

/**
 * The `data` of each event, in order. Events and characters may be split at any byte. A last event without its blank
 * line still counts: the caller decides by its own end marker whether the stream was complete.
 *
 * A plain reader loop, because web-stream pipelines cost half as much again in workerd.
 * @param onRead called with the bytes of each read
 * @param signal ends the reading, even if the body's source ignores it
 */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  onRead: (bytes: Uint8Array) => void = () => {},
  signal?: AbortSignal,
): AsyncGenerator<string, void> {
  const reader = body.getReader()
  const stop = endingWith(reader, signal)
  const decoder = new TextDecoder()
  let pending: string[] = []
  const parser = createParser({
    maxBufferSize: LARGEST_EVENT,
    onEvent: (event) => {
      pending.push(event.event === 'error' ? errorData(event.data) : event.data)
    },
    onError: (error) => {
      if (error.type === 'max-buffer-size-exceeded') throw error
    },
  })
  try {
    while (true) {
      const { done, value } = await reader.read()
      if (signal?.aborted) return
      if (done) {
        parser.feed(`${decoder.decode()}\n\n`)
        yield* pending
        return
      }
      onRead(value)
      for (let at = 0; at < value.length; at += SLICE_BYTES) {
        const slice = value.subarray(at, at + SLICE_BYTES)
        parser.feed(decoder.decode(slice, { stream: true }))
        if (pending.length > 0) {
          const events = pending
          pending = []
          yield* events
        }
        if (worked(slice.length)) await rest()
      }
    }
  } finally {
    signal?.removeEventListener('abort', stop)
    // Also runs when the consumer stops early: then the provider stops too.
    await reader.cancel().catch(() => {})
  }
}

// =============================================================================
// Reads a body in one piece, up to a limit.

/** Bytes of the first read: most replies have fewer. */
const FIRST_READ = 16 * 1024
/**
 * Bytes. A body up to this size is read without pausing for other work. A pause is a timer of the event loop, and takes longer than
 * the rest of the work on such a body. Others had their turn anyway while the first bytes were on their way.
 */
const SHORT = 64 * 1024

/**
 * @param onRead called with the bytes of each read
 * @param most bytes to read; the rest is not requested
 * @returns the text, and whether it is complete
 */
export async function readWholeBody(
  body: ReadableStream<Uint8Array> | null,
  most: number,
  onRead: (bytes: Uint8Array) => void = () => {},
): Promise<{ text: string; complete: boolean }> {
  if (!body) return { text: '', complete: true }
  const reader = byteReader(body, FIRST_READ)
  const decoder = new TextDecoder()
  const pieces: string[] = []
  let size = 0
  try {
    while (true) {
      const { done, value } = await reader.read()
      if (done) return { text: pieces.join('') + decoder.decode(), complete: true }
      onRead(value)
      const room = most - size
      size += value.length
      pieces.push(decoder.decode(value.subarray(0, Math.max(0, room)), { stream: true }))
      if (size > most) return { text: pieces.join(''), complete: false }
      if (worked(value.length) && size > SHORT) await rest()
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}
