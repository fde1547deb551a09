/** The forms of the API reference that send a request. */
import { pageKey } from './key.js'

/** @param {string} text @returns {string} JSON with line breaks, anything else as it is */
function readable(text) {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2)
  } catch {
    return text
  }
}

/** @param {HTMLFormElement} form */
async function send(form) {
  const { method = 'GET', header = '' } = form.dataset
  const path = /** @type {HTMLInputElement} */ (form.elements.namedItem('path')).value
  const body = form.elements.namedItem('body')
  const status = form.querySelector('[data-try-status]')
  const reply = /** @type {HTMLElement | null} */ (form.querySelector('[data-try-reply]'))
  if (!status || !reply) return
  const key = pageKey()
  /** @type {Record<string, string>} */
  const headers =
    header === 'Authorization' ? { authorization: `Bearer ${key}` } : { 'x-typesense-api-key': key }
  if (body instanceof HTMLTextAreaElement) headers['content-type'] = body.dataset.type ?? 'application/json'
  reply.hidden = true
  if (!/^\/(?!\/)/.test(path)) {
    status.textContent = 'A path begins with one /.'
    return
  }
  status.textContent = 'Sending …'
  try {
    const began = performance.now()
    const response = await fetch(path, {
      method,
      headers,
      ...(body instanceof HTMLTextAreaElement && { body: body.value }),
    })
    reply.hidden = false
    reply.textContent = ''
    // Streams are shown as they come.
    const decoder = new TextDecoder()
    let text = ''
    for await (const chunk of /** @type {any} */ (response.body ?? [])) {
      text += decoder.decode(chunk, { stream: true })
      reply.textContent = text
    }
    reply.textContent = readable(text)
    reply.hidden = text === ''
    status.textContent = `${response.status} after ${Math.round(performance.now() - began)} ms`
    if (key === '' && response.status === 401) status.textContent += '. Enter a key in the console first.'
  } catch {
    status.textContent = 'Parley cannot be reached. Is it running?'
  }
}

export function mountTry() {
  for (const form of document.querySelectorAll('[data-try]')) {
    if (!(form instanceof HTMLFormElement)) continue
    form.addEventListener('submit', (event) => {
      event.preventDefault()
      send(form)
    })
  }
}
