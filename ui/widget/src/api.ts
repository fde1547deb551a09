/** Parley's own routes, as a page with a key calls them. */
import { NetworkError } from './events'
import type { Asking, ConversationSummary, Feedback, Found, Front, StoredTurn } from './wire'

/** What the server said no to. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** seconds after which to ask again, where the server says */
    readonly retryAfter?: number,
    /** what went wrong, as the server calls it */
    readonly code?: string,
  ) {
    super(message)
  }
}

export interface Place {
  server: string
  assistant: string
  key: string
  visitor: string
}

export class Api {
  readonly #place: Place
  /** when people were asked for in the conversation that was read last; undefined: nobody replies to it */
  handedOver: number | undefined

  constructor(place: Place) {
    this.#place = place
  }

  get #assistant(): string {
    return `/a/${encodeURIComponent(this.#place.assistant)}`
  }

  async front(): Promise<Front> {
    return (await this.call(this.#assistant)).json()
  }

  /**
   * Asks a question. The answer is to be read by `readEvents`.
   * @param name the request's own: the same one again joins the turn that it began
   */
  ask(asking: Asking, name: string, signal: AbortSignal): Promise<Response> {
    return this.call(`${this.#assistant}/conversations`, {
      method: 'POST',
      headers: {
        accept: 'text/event-stream',
        'content-type': 'application/json',
        'idempotency-key': name,
      },
      body: JSON.stringify(asking),
      signal,
    })
  }

  /** The events after a place, or of the latest turn, to the end of the running one. @returns a response of status 204 where there are none */
  follow(id: string, after: string | undefined, signal: AbortSignal): Promise<Response> {
    return this.call(`${conversation(id)}/events`, {
      headers: { accept: 'text/event-stream', ...(after !== undefined && { 'last-event-id': after }) },
      signal,
    })
  }

  /** The finished turns, oldest first. @param version a turn: those of the conversation as it was when that one was in it */
  async turns(id: string, version?: number): Promise<StoredTurn[]> {
    const turns: StoredTurn[] = []
    const query = new URLSearchParams(version === undefined ? {} : { version: String(version) })
    for (;;) {
      const page = await (await this.call(`${conversation(id)}?${query}`)).json()
      turns.unshift(...page.turns)
      this.handedOver = page.handed_over_at
      if (page.earlier === undefined) return turns
      query.set('before', page.earlier)
    }
  }

  async stop(id: string): Promise<void> {
    await this.call(`${conversation(id)}/stop`, { method: 'POST' })
  }

  /** @param feedback undefined: deletes what the visitor said */
  async rate(id: string, turn: number, feedback: Feedback | undefined): Promise<void> {
    await this.call(`${conversation(id)}/turns/${turn}/feedback`, {
      method: feedback ? 'PUT' : 'DELETE',
      ...(feedback && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(feedback) }),
    })
  }

  /** Pages that match what is being typed. */
  async find(query: string, signal: AbortSignal): Promise<Found[]> {
    const asked = new URLSearchParams({ q: query, limit: '5' })
    return (await (await this.call(`${this.#assistant}/search?${asked}`, { signal })).json()).hits
  }

  /** Hands a conversation over to people. @param contact how to reach the visitor */
  async handOver(id: string, contact: string, message: string): Promise<void> {
    await this.call(`${this.#assistant}${conversation(id)}/handover`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ contact, message }),
    })
  }

  /** The visitor's own conversations, the latest first. */
  async list(): Promise<ConversationSummary[]> {
    return (await (await this.call('/conversations?limit=50')).json()).conversations
  }

  async remove(id: string): Promise<void> {
    await this.call(conversation(id), { method: 'DELETE' })
  }

  /** @throws ApiError, NetworkError */
  protected async call(path: string, init: RequestInit = {}): Promise<Response> {
    const { server, key, visitor } = this.#place
    const headers = { ...init.headers, 'x-typesense-api-key': key, 'x-parley-visitor': visitor }
    let response: Response
    try {
      response = await fetch(server + path, { ...init, headers, credentials: 'omit' })
    } catch (error) {
      init.signal?.throwIfAborted()
      throw new NetworkError(String(error))
    }
    if (response.ok) return response
    const body = await response.json().catch(() => ({}))
    const message = typeof body.message === 'string' ? body.message : ''
    const after = Number(response.headers.get('retry-after')) || undefined
    const code = typeof body.code === 'string' ? body.code : undefined
    throw new ApiError(response.status, message, after, code)
  }
}

const conversation = (id: string): string => `/conversations/${encodeURIComponent(id)}`
