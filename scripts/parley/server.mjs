/**
 * The Parley that the command line talks to: its address, its key, how a request is tried again, batches of documents, and how a
 * command fails: in a sentence that says what to do, and with an exit code that a script can tell apart.
 */

/** Exit codes. 130 is the shell's own for Ctrl-C. */
export const EXIT = {
  /** a fault of the command line itself */
  fault: 1,
  /** a wrong option or argument */
  usage: 2,
  /** nobody answers at the address */
  unreachable: 3,
  /** the server refuses the key */
  refused: 4,
  /** the server refuses the request */
  rejected: 5,
  /** some documents were not imported, or some checks failed; the rest is done */
  partial: 6,
}

/** A failure that the user can act on. */
export class Failure extends Error {
  /**
   * @param {number} code one of EXIT
   * @param {string} message
   */
  constructor(code, message) {
    super(message)
    this.code = code
  }
}

const DEFAULT_URL = 'http://localhost:8108'
const DEFAULT_KEY = 'xyz'

/** Attempts at a request that may succeed later; fewer until the server has been met. */
const ATTEMPTS = 6
const FIRST_ATTEMPTS = 2
/** The first pause between two attempts, in milliseconds. */
const FIRST_PAUSE_MS = 500

/** @param {number} status */
const passes = (status) => status === 429 || status === 502 || status === 503 || status === 504

/** @param {string} text */
const messageIn = (text) => {
  try {
    const { message, detail, error } = JSON.parse(text)
    return [message ?? error?.message ?? text, detail].filter(Boolean).join(' ')
  } catch {
    return text
  }
}

export class Server {
  #key
  /** whether it has ever answered: an address at which nobody does is given up soon */
  #met = false

  /**
   * @param {{ url?: string, key?: string }} options as given on the command line
   * @param {Record<string, string | undefined>} [env]
   * @throws Failure for an address that is none
   */
  constructor({ url, key }, env = process.env) {
    const address = url ?? env.PARLEY_URL ?? DEFAULT_URL
    const parsed = URL.parse(address)
    if (!parsed)
      throw new Failure(EXIT.usage, `--url takes an address such as ${DEFAULT_URL}, not "${address}".`)
    this.url = parsed.href.replace(/\/+$/, '')
    this.#key = key ?? env.PARLEY_API_KEY ?? DEFAULT_KEY
  }

  /**
   * Sends a request. Connections that fail, and answers that say "later", are tried again with growing pauses.
   * @param {string} method
   * @param {string} path
   * @param {{ body?: string | object, headers?: Record<string, string> }} [options]
   * @returns {Promise<Response>} whatever its status
   * @throws Failure when nobody answers
   */
  async send(method, path, { body, headers = {} } = {}) {
    for (let attempt = 1; ; attempt++) {
      const last = attempt >= (this.#met ? ATTEMPTS : FIRST_ATTEMPTS)
      try {
        const response = await fetch(this.url + path, {
          method,
          headers: { 'x-typesense-api-key': this.#key, ...headers },
          ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
        })
        this.#met = true
        if (last || !passes(response.status)) return response
        const after = Number(response.headers.get('retry-after'))
        await response.body?.cancel()
        await sleep(after > 0 ? Math.min(after, 60) * 1000 : pause(attempt))
      } catch (error) {
        if (last) {
          throw new Failure(
            EXIT.unreachable,
            `Nobody answers at ${this.url} (${reasonOf(error)}). Start Parley with \`npm start\`, or name the server with --url.`,
          )
        }
        await sleep(pause(attempt))
      }
    }
  }

  /**
   * Sends a request that has to succeed.
   * @param {string} method
   * @param {string} path
   * @param {{ body?: string | object, headers?: Record<string, string> }} [options]
   * @returns {Promise<any>} the answer's JSON
   * @throws Failure with the server's own message
   */
  async call(method, path, options) {
    const response = await this.send(method, path, options)
    if (!response.ok) throw await refusal(response, `${method} ${path}`)
    return response.json()
  }

  /**
   * @param {string} path
   * @returns {Promise<any>} undefined where there is nothing
   * @throws Failure
   */
  async find(path) {
    const response = await this.send('GET', path)
    if (response.status === 404) {
      await response.body?.cancel()
      return undefined
    }
    if (!response.ok) throw await refusal(response, `GET ${path}`)
    return response.json()
  }
}

/**
 * @param {Response} response
 * @param {string} what
 */
export async function refusal(response, what) {
  const message = messageIn(await response.text())
  if (response.status === 401 || response.status === 403) {
    return new Failure(
      EXIT.refused,
      `The key may not ${what}: ${message} Name another one with --key or PARLEY_API_KEY.`,
    )
  }
  return new Failure(EXIT.rejected, `${what} was refused with ${response.status}: ${message}`)
}

/** @param {number} ms */
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** @param {number} attempt */
const pause = (attempt) => FIRST_PAUSE_MS * 2 ** (attempt - 1) * (0.5 + Math.random() / 2)

/** Why a request failed: a code such as ECONNREFUSED where there is one. @param {unknown} error */
export const reasonOf = (error) => {
  const { cause, message } = /** @type {Error & { cause?: { code?: string } }} */ (error)
  return cause?.code ?? message
}

/** Of one request. */
export const BATCH = { lines: 500, characters: 1 << 20 }

/** @typedef {{ id: string, line: string }} Written a document, and its JSON */
/** @typedef {{ id: string, error: string }} Rejected */

/**
 * @template Item
 * @param {AsyncIterable<Item> | Iterable<Item>} items
 * @param {{ lines: number, characters: number }} most of a batch; a longer line is a batch of its own
 * @param {(item: Item) => string} lineOf
 * @returns {AsyncGenerator<Item[]>}
 */
export async function* batchesOf(items, most, lineOf) {
  /** @type {Item[]} */
  let batch = []
  let characters = 0
  for await (const item of items) {
    const { length } = lineOf(item)
    if (batch.length > 0 && (batch.length >= most.lines || characters + length > most.characters)) {
      yield batch
      batch = []
      characters = 0
    }
    batch.push(item)
    characters += length
  }
  if (batch.length > 0) yield batch
}

/**
 * @param {Server} server
 * @param {string} collection
 * @param {string[]} lines
 * @param {'create' | 'upsert' | 'update'} action
 * @returns {Promise<{ success: boolean, code?: number, error?: string }[]>} what the server says of each
 * @throws Failure when it refuses all of them at once, or does not answer
 */
export async function sendLines(server, collection, lines, action) {
  const path = `/collections/${encodeURIComponent(collection)}/documents/import?action=${action}`
  const response = await server.send('POST', path, { body: lines.join('\n') })
  if (!response.ok) throw await refusal(response, `POST ${path}`)
  return (await response.text()).split('\n').map((line) => JSON.parse(line))
}

/**
 * @param {Server} server
 * @param {string} collection
 * @param {Written[]} batch
 * @param {'upsert' | 'update'} action
 * @returns {Promise<Rejected[]>} those that the server refused, with its reasons
 * @throws Failure as `sendLines`
 */
export async function sendBatch(server, collection, batch, action) {
  const lines = batch.map(({ line }) => line)
  const outcomes = await sendLines(server, collection, lines, action)
  return batch.flatMap(({ id }, at) => {
    const { success, error = 'The server said nothing of it.' } = outcomes[at] ?? {}
    return success ? [] : [{ id, error }]
  })
}
