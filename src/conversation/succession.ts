/**
 * Where a request begins its conversation that was led to one which is taken: in another one, with a random id. Where the
 * answer to the same request is at hand, here or where the last such request went, it is copied there.
 */

import type { AskRequest } from '../turn/request'
import { conversationObject, type Elsewhere } from './conversation-object'
import { identityOf, type RequestIdentity } from './joins'
import type { Memory } from './memory'
import { sealedId } from './sealed-id'

/** How long a request may take from being sent elsewhere until it is there, in milliseconds. */
export const UNDERWAY_MS = 1_000

/** What of its object a succession asks. */
export interface Predecessor {
  id: string
  memory(): Memory | undefined
  /** whether there is a turn of this request here to copy */
  isCopyable(identity: RequestIdentity): boolean
}

export class Succession {
  readonly #env: Cloudflare.Env
  readonly #here: Predecessor
  /** settles when the last search has ended; never rejects */
  #searched: Promise<unknown> = Promise.resolve()
  #latest: string | undefined
  /** when `#latest` was given out, in milliseconds since 1970 */
  #givenAt = 0

  constructor(env: Cloudflare.Env, here: Predecessor) {
    this.#env = env
    this.#here = here
  }

  /** One at a time, or of two retries at once neither would find the other's turn. */
  place(request: AskRequest): Promise<Elsewhere> {
    const placed = this.#searched.then(() => this.#place(identityOf(request)))
    this.#searched = placed.catch(() => {})
    return placed
  }

  async #place(identity: RequestIdentity): Promise<Elsewhere> {
    const copies = await this.#source(identity)
    const elsewhere = await sealedId(this.#env)
    const memory = this.#here.memory()
    if (memory && !memory.closed) memory.successor = elsewhere
    this.#latest = elsewhere
    this.#givenAt = Date.now()
    return { elsewhere, ...(copies !== undefined && { copies }) }
  }

  /** The conversation whose answer may be copied, if there is one. */
  async #source(identity: RequestIdentity): Promise<string | undefined> {
    if (this.#here.isCopyable(identity)) return this.#here.id
    const latest = this.#latest ?? this.#here.memory()?.successor
    if (latest === undefined) return undefined
    const state = await conversationObject(this.#env, latest).holds(identity)
    const underWay = state === 'nothing' && Date.now() - this.#givenAt < UNDERWAY_MS
    return state === 'turn' || underWay ? latest : undefined
  }
}
