/**
 * Cloudflare's API, for all that needs no knowledge of wrangler's: each start of wrangler takes two seconds, and a first
 * deployment has thirty steps. The wire: https://developers.cloudflare.com/api/
 */
import { runWrangler } from '../wrangler.mjs'

const API = 'https://api.cloudflare.com/client/v4'

/** What Cloudflare refused. */
export class Refused extends Error {
  /**
   * @param {string} what method and path
   * @param {{ code: number, message: string }[]} errors as Cloudflare gives them
   */
  constructor(what, errors) {
    const said = errors.map(({ code, message }) => `${message} [code: ${code}]`)
    super(`${what} failed: ${said.join('; ')}`)
    this.codes = errors.map(({ code }) => code)
  }
}

/**
 * Asks Cloudflare's API.
 * @param {string} path
 * @returns {Promise<any>} the result
 * @throws Refused with what Cloudflare answered
 * @throws Error when Cloudflare cannot be reached
 */
export const ask = (path) => call('GET', path)

/**
 * Asks for all of a list that comes in pages.
 * @param {string} path
 * @param {number} size of a page: the most that the API gives
 * @returns {Promise<any[]>}
 * @throws Refused and Error as `ask`
 */
export async function askAll(path, size) {
  const all = []
  for (let page = 1; ; page += 1) {
    const some = await ask(`${path}?page=${page}&per_page=${size}`)
    all.push(...some)
    if (some.length < size) return all
  }
}

/**
 * Has Cloudflare's API make or do something.
 * @param {string} path
 * @param {unknown} body
 * @returns {Promise<any>} the result
 * @throws Refused with what Cloudflare answered
 * @throws Error when Cloudflare cannot be reached
 */
export const post = (path, body) => call('POST', path, body)

/**
 * Has Cloudflare's API delete something.
 * @param {string} path
 * @throws Refused with what Cloudflare answered
 * @throws Error when Cloudflare cannot be reached
 */
export const remove = (path) => call('DELETE', path)

/** @param {string} method @param {string} path @param {unknown} [body] @returns {Promise<any>} */
async function call(method, path, body) {
  const base = process.env.CLOUDFLARE_API_BASE_URL || API
  const response = await fetch(base + path, {
    method,
    headers: { 'content-type': 'application/json', ...(await credentials()) },
    signal: AbortSignal.timeout(30_000),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const what = `${method} ${path.split('?')[0]}`
  const reply = await response.json().catch(() => {
    throw new Error(`${what} failed: Cloudflare answered ${response.status}, and no JSON.`)
  })
  if (reply.success) return reply.result
  throw new Refused(what, reply.errors)
}

/** @returns {Promise<Record<string, string>>} headers of what wrangler goes by: a login, or a key from the environment */
async function askWrangler() {
  const { token, key, email } = JSON.parse(await runWrangler(['auth', 'token', '--json']))
  if (token === undefined) return { 'x-auth-key': key, 'x-auth-email': email }
  return { authorization: `Bearer ${token}` }
}

/** @type {Promise<Record<string, string>> | undefined} */
let ofLogin

/** @returns {Promise<Record<string, string>>} headers */
async function credentials() {
  const { CLOUDFLARE_API_TOKEN: given } = process.env
  if (given) return { authorization: `Bearer ${given}` }
  ofLogin ??= askWrangler()
  return ofLogin
}
