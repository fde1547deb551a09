/** Sends what a command of the documentation says, and tells how it went. */
import { idsIn } from './command.js'

/** A reply is shown up to this length, in characters. */
const MOST = 200_000

/** What a reader can do about a refusal, by its status. */
const ADVICE = /** @type {Record<number, string>} */ ({
  400: 'The reply says what is wrong. Edit the command and run it again.',
  401: 'The server does not take this key for this. Enter another one, such as the admin key.',
  403: 'This key is not for this page. Enter another one, such as the admin key.',
  404: 'What it names is not on this server. Run the commands above it first.',
  409: 'That is on this server already. Go on with the next command, or edit the name.',
  429: 'The server has had too many requests. Wait a minute and run it again.',
})

/** @param {number} status */
const adviceFor = (status) =>
  ADVICE[status] ??
  (status >= 500
    ? 'The server failed. Try again; its log says more.'
    : 'The reply says why. Edit the command and run it again.')

/**
 * @typedef {import('./command.js').Request} Request
 * @typedef {{ line: string, status: string, isRefused: boolean, isLast: boolean, text: string, asksKey: boolean,
 *   ids: [string, string][] }} Reply
 *   `status` is a sentence or two for the reader, `isLast` says that nothing should be sent after it, and `asksKey` whether another key
 *   would help
 */

/** @param {Request} request @returns {Reply} of which nothing has come */
export const pending = ({ method, path }) => ({
  line: `${method} ${path}`,
  status: 'Sending …',
  isRefused: false,
  isLast: false,
  text: '',
  asksKey: false,
  ids: [],
})

/**
 * Sends a request to this server. It ends with the reply, at the length that is shown, or by the signal.
 * @param {Request} request
 * @param {Reply} reply takes what came, as it comes
 * @param {AbortSignal} signal
 */
export async function send(request, reply, signal) {
  const { method, path, headers, body } = request
  const began = performance.now()
  /** @type {Response | undefined} */
  let response
  const took = () => `${response?.status} after ${Math.round(performance.now() - began)} ms.`
  try {
    response = await fetch(path, { method, headers, signal, ...(body !== undefined && { body }) })
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    for (let read = await reader?.read(); read && !read.done; read = await reader?.read()) {
      reply.text += read.value
      reply.status = `${response.status}, and more is coming.`
      if (reply.text.length <= MOST) continue
      await reader?.cancel()
      reply.text = reply.text.slice(0, MOST)
      break
    }
    reply.isRefused = !response.ok
    reply.asksKey = response.status === 401 || response.status === 403
    reply.isLast = reply.asksKey
    reply.ids = response.ok
      ? idsIn(request, reply.text, response.headers.get('x-parley-conversation-id'))
      : []
    const cut =
      reply.text.length === MOST ? ` Only its first ${MOST.toLocaleString('en')} characters are shown.` : ''
    const empty = reply.text === '' ? ' The reply is empty.' : ''
    reply.status = `${took()}${cut}${empty}${response.ok ? '' : ` ${adviceFor(response.status)}`}`
  } catch {
    reply.isRefused = true
    reply.isLast = true
    if (signal.aborted) reply.status = 'Stopped.'
    else if (response) reply.status = `${took()} The connection broke before the end. Run it again.`
    else
      reply.status =
        'This server cannot be reached. See that it runs and that you are online, and run it again.'
  }
}
