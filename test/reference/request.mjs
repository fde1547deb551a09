/** Sends a case to a server. */
import { request } from 'node:http'
import { gzipSync } from 'node:zlib'

const AUTHORIZATION = `Basic ${btoa('admin:xyz')}`

/** @param {unknown} body an object becomes JSON, a list ndjson; a text stays */
function textOf(body) {
  if (body === undefined || typeof body === 'string') return body
  return Array.isArray(body) ? body.map((line) => `${JSON.stringify(line)}\n`).join('') : JSON.stringify(body)
}

/**
 * By node:http, since fetch sends no GET with a body.
 * @param {string} url
 * @param {import('./compare.mjs').Case} given
 * @returns {Promise<{ status: number, body: any }>} the body parsed where it is JSON
 */
export function ask(url, { method, path, body, headers, gzip }) {
  const text = textOf(body)
  const sent = text === undefined ? undefined : gzip ? gzipSync(text) : Buffer.from(text)
  const all = /** @type {Record<string, string | number>} */ ({
    authorization: AUTHORIZATION,
    accept: 'application/json',
    ...(sent && { 'content-type': 'application/json', 'content-length': sent.length }),
    ...(gzip && { 'content-encoding': 'gzip' }),
    ...headers,
  })
  if (all['content-type'] === '') delete all['content-type']
  return new Promise((resolve, reject) => {
    const out = request(url + path, { method, headers: all }, async (response) => {
      let answer = ''
      for await (const part of response) answer += part
      resolve({ status: response.statusCode ?? 0, body: parsed(answer) })
    })
    out.once('error', reject)
    out.end(sent)
  })
}

/** @param {string} text */
function parsed(text) {
  try {
    return text === '' ? undefined : JSON.parse(text)
  } catch {
    return text
  }
}
