/**
 * The stream of a conversation: server-sent events of `data:` lines, each one JSON value. Short ones carry a
 * piece of the answer; `[DONE]` closes the answer, and the whole reply comes after it.
 */

/**
 * The values of a stream's `data:` lines, parsed. Empty lines are heartbeats; `[DONE]` is left out.
 * @param {ReadableStream<Uint8Array>} body
 * @returns {AsyncGenerator<any, void>}
 */
export async function* events(body) {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  try {
    while (true) {
      const { done, value } = await reader.read()
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true })
      const lines = rest.split('\n')
      rest = done ? '' : (lines.pop() ?? '')
      for (const line of lines) {
        if (!line.startsWith('data:')) continue
        const data = line.slice('data:'.length).trim()
        if (data !== '' && data !== '[DONE]') yield JSON.parse(data)
      }
      if (done) return
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}

/** A reply without which an answer is not complete. @param {any} event */
export const isReply = (event) => 'results' in event || 'hits' in event || 'found' in event

/** What went wrong, in words for a reader. */
export class AskError extends Error {}

/**
 * @param {number} status
 * @param {string} message the server's own
 * @returns {string}
 */
function inWords(status, message) {
  if (status === 401) return 'The API key was refused. Check it under Settings.'
  if (status === 429) return 'Too many questions at once. Wait a moment and ask again.'
  if (/conversation_id` is invalid|Conversation not found/.test(message)) {
    return 'This conversation has expired. Start a new one to go on.'
  }
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
  const headers = { ...init.headers, 'x-typesense-api-key': key }
  const response = await fetch(path, { ...init, headers }).catch((error) => {
    if (error.name === 'AbortError') throw error
    throw new AskError('Parley cannot be reached. Is it running?')
  })
  if (response.ok) return response
  const body = await response.json().catch(() => ({}))
  throw new AskError(inWords(response.status, String(body.message ?? '')))
}

/**
 * Asks a question and reads the answer as it is written.
 * @param {{ question: string, key: string, collection: string, model: string, queryBy: string, exclude: string,
 *   conversationId?: string | undefined }} ask
 * @param {AbortSignal} signal
 * @param {(piece: string, conversationId: string) => void} onPiece
 * @returns {Promise<any>} the whole reply
 * @throws AskError
 */
export async function ask(
  { question, key, collection, model, queryBy, exclude, conversationId },
  signal,
  onPiece,
) {
  const parameters = new URLSearchParams({
    q: question,
    conversation: 'true',
    conversation_stream: 'true',
    conversation_model_id: model,
    ...(conversationId === undefined ? {} : { conversation_id: conversationId }),
  })
  const search = { collection, query_by: queryBy, exclude_fields: exclude }
  const response = await call(`/multi_search?${parameters}`, key, {
    method: 'POST',
    body: JSON.stringify({ searches: [search] }),
    signal,
  })
  if (response.body === null) throw new AskError('The server sent an empty answer.')
  let reply
  try {
    if (response.headers.get('content-type')?.startsWith('application/json')) reply = await response.json()
    else {
      for await (const event of events(response.body)) {
        if (isReply(event)) reply = event
        else if (event.message) onPiece(event.message, event.conversation_id)
      }
    }
  } catch (error) {
    if (/** @type {Error} */ (error).name === 'AbortError') throw error
  }
  const failure = reply?.error ?? reply?.results?.find((/** @type {any} */ result) => result.error)?.error
  if (failure !== undefined) throw new AskError(inWords(Number(reply.code ?? 400), String(failure)))
  if (reply?.conversation === undefined) {
    throw new AskError('The connection broke before the answer was complete. Ask again.')
  }
  return reply
}
