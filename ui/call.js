/** Calls of the API from a static page. */
import { visitorSecret } from './visitor.js'

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
  throw new AskError(
    String(body.message ?? `The server answered with status ${response.status}.`),
    response.status,
  )
}
