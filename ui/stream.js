/**
 * Conversations over Parley's own routes: a turn is a stream of server-sent events, each with an id, a type and data. A
 * turn goes on without its readers, so that a connection that breaks is made again after the last event that came.
 */

import { visitorSecret } from './visitor.js'

/** @typedef {{ id: string, type: string, data: any }} TurnEvent */

/**
 * The events of a stream, their data parsed. Comments are heartbeats.
 * @param {ReadableStream<Uint8Array>} body
 * @returns {AsyncGenerator<TurnEvent, void>}
 */
export async function* events(body) {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  /** @type {Record<string, string>} */
  let fields = {}
  try {
    while (true) {
      const { done, value } = await reader.read()
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true })
      const lines = rest.split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        const [, name, text] = /^(\w+): ?(.*)$/s.exec(line) ?? []
        if (name !== undefined && text !== undefined) fields[name] = text
        if (line !== '') continue
        const { id = '', event = '', data } = fields
        fields = {}
        if (data !== undefined) yield { id, type: event, data: JSON.parse(data) }
      }
      if (done) return
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}

/** What the event of a turn that somebody stopped says. */
export const STOPPED = 'The turn was stopped.'

/** What went wrong, in words for a reader. */
export class AskError extends Error {
  /**
   * @param {string} message
   * @param {number} [status] of the server's answer
   */
  constructor(message, status) {
    super(message)
    this.status = status
  }
}

/**
 * @param {number} status
 * @param {string} message the server's own
 * @returns {string}
 */
export function inWords(status, message) {
  if (status === 401) return 'The API key was refused. Check it under Settings.'
  if (status === 429) return 'Too many questions at once. Wait a moment and ask again.'
  if (/conversation_id` is invalid|^Conversation not found/.test(message)) {
    return 'This conversation has expired. Start a new one to go on.'
  }
  if (message === STOPPED) return 'Stopped. Nothing of this answer is kept.'
  if (/conversation_model_id` is invalid|^Model not found/.test(message)) {
    return 'There is no such conversation model. Choose another one under Settings.'
  }
  if (message === 'Collection not found')
    return 'There is no such collection. Choose another one under Settings.'
  return message || `The server answered with status ${status}.`
}

/**
 * Calls the API.
 * @param {string} path
 * @param {string} key
 * @param {RequestInit} [init]
 * @throws AskError
 */
export async function call(path, key, init = {}) {
  const visitor = visitorSecret()
  const headers = {
    ...init.headers,
    'x-typesense-api-key': key,
    ...(visitor && { 'x-parley-visitor': visitor }),
  }
  const response = await fetch(path, { ...init, headers }).catch((error) => {
    if (error.name === 'AbortError') throw error
    throw new AskError('Parley cannot be reached. Is it running?')
  })
  if (response.ok) return response
  const body = await response.json().catch(() => ({}))
  throw new AskError(inWords(response.status, String(body.message ?? '')), response.status)
}

/** @param {string} id */
const conversation = (id) => `/conversations/${encodeURIComponent(id)}`

/**
 * Asks a question.
 * @param {{ question: string, key: string, collection: string, model: string, fields: string,
 *   conversationId?: string | undefined, signal: AbortSignal }} ask `fields` are those to search, '' for all
 * @returns {Promise<{ id: string, answer: Response }>} the conversation's id, and its turn to be read by `readTurns`
 * @throws AskError
 */
export async function ask({ question, key, collection, model, fields, conversationId, signal }) {
  const answer = await call('/conversations', key, {
    method: 'POST',
    headers: { accept: 'text/event-stream' },
    signal,
    body: JSON.stringify({
      question,
      model,
      ...(fields === '' ? { collections: [collection] } : { searches: [{ collection, query_by: fields }] }),
      ...(conversationId !== undefined && { conversation_id: conversationId }),
    }),
  })
  return { id: answer.headers.get('x-parley-conversation-id') ?? '', answer }
}

/**
 * Ends the running turn for everybody who reads it.
 * @param {string} id
 * @param {string} key
 * @returns {Promise<boolean>} false where none was running
 * @throws AskError
 */
export async function stopTurn(id, key) {
  const response = await call(`${conversation(id)}/stop`, key, { method: 'POST' })
  return (await response.json()).stopped
}

/**
 * The finished turns of a conversation, oldest first.
 * @param {string} id
 * @param {string} key
 * @returns {Promise<any[]>}
 * @throws AskError
 */
export async function finishedTurns(id, key) {
  /** @type {any[]} */
  let turns = []
  /** @type {number | undefined} */
  let before
  do {
    const query = before === undefined ? '' : `?before=${before}`
    /** @type {{ turns: any[], earlier?: number }} */
    const page = await (await call(conversation(id) + query, key)).json()
    turns = [...page.turns, ...turns]
    before = page.earlier
  } while (before !== undefined)
  return turns
}

/**
 * The events after the last finished turn, or of the latest turn where none is finished.
 * @param {string} id
 * @param {string} key
 * @param {{ lastTurn?: number | undefined, signal?: AbortSignal }} [options]
 * @returns {Promise<Response>} status 204 where there are none
 * @throws AskError
 */
export const joinTurn = (id, key, { lastTurn, signal } = {}) =>
  call(
    `${conversation(id)}/events${lastTurn === undefined ? '' : `?after=${lastTurn}.${PAST_THE_END}`}`,
    key,
    {
      ...(signal && { signal }),
    },
  )

/** A number that no event has. */
const PAST_THE_END = 999_999_999
const MOST_TRIES = 5
const TRY_AGAIN_MS = 1_000

/**
 * The events of turns, to the end of the last one. A connection that breaks is made again.
 * @param {Response} response of `ask` or `joinTurn`
 * @param {{ id: string, key: string, signal: AbortSignal }} reading
 * @returns {AsyncGenerator<TurnEvent, void>}
 * @throws AskError
 */
export async function* readTurns(response, { id, key, signal }) {
  let last = { id: '', type: '' }
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    if (tries > 0) await new Promise((resolve) => setTimeout(resolve, TRY_AGAIN_MS))
    try {
      if (tries > 0) {
        const after = last.id === '' ? '' : `?after=${last.id}`
        response = await call(`${conversation(id)}/events${after}`, key, { signal })
      }
      if (response.body === null) return
      for await (const event of events(response.body)) {
        signal.throwIfAborted()
        tries = 0
        last = event
        yield event
      }
      if (last.type === 'done' || last.type === 'error') return
    } catch (error) {
      if (signal.aborted || /** @type {any} */ (error).status === 404) throw error
    }
  }
  throw new AskError('The connection broke before the answer was complete. Reload the page to read on.')
}
