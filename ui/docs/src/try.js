/** Sends the requests of the API reference. */
import { pageKey } from './key.js'

/** @param {string} text @returns {string} JSON with line breaks, anything else as it is */
function readable(text) {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2)
  } catch {
    return text
  }
}

/**
 * @param {{ method: string, header: string, path: string, body?: string, type?: string }} request `type` is that of the body, where
 *   there is one
 * @param {{ value: string }} status takes how it went, as a sentence
 * @param {{ value: string }} reply takes what came, as it comes
 */
export async function send({ method, header, path, body, type }, status, reply) {
  const key = pageKey()
  /** @type {Record<string, string>} */
  const headers =
    header === 'Authorization' ? { authorization: `Bearer ${key}` } : { 'x-typesense-api-key': key }
  if (type) headers['content-type'] = type
  reply.value = ''
  if (!/^\/(?!\/)/.test(path)) {
    status.value = 'A path begins with one /.'
    return
  }
  status.value = 'Sending …'
  try {
    const began = performance.now()
    const response = await fetch(path, { method, headers, ...(type && { body }) })
    // Streams are shown as they come.
    const decoder = new TextDecoder()
    let text = ''
    for await (const chunk of /** @type {any} */ (response.body ?? [])) {
      text += decoder.decode(chunk, { stream: true })
      reply.value = text
    }
    reply.value = readable(text)
    status.value = `${response.status} after ${Math.round(performance.now() - began)} ms`
    if (key === '' && response.status === 401) status.value += '. Enter a key in the console first.'
  } catch {
    status.value = 'Parley cannot be reached. Is it running?'
  }
}
