/**
 * Finds a place for a request whose own conversation id is taken: another conversation with a random id. If the
 * answer to the same request is at hand, here or in the conversation where the last such request went, it is
 * copied there.
 */

import type { AskRequest } from '../turn/request'
import { sealedId } from './conversation-id'
import { conversationObject, type Elsewhere } from './conversation-object'
import type { ConversationState } from './conversation-state'
import { identityOf, type RequestIdentity } from './repeated-requests'

/** How long a redirected request may take to arrive, in milliseconds. */
export const UNDERWAY_MS = 1_000

/** What a succession needs from its object. */
export interface Predecessor {
  id: string
  state(): ConversationState | undefined
  /** whether this object has a turn of this request to copy */
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

  /** Runs one at a time. Otherwise, of two retries at once, neither would find the other's turn. */
  place(request: AskRequest): Promise<Elsewhere> {
    const placed = this.#searched.then(() => this.#place(identityOf(request)))
    this.#searched = placed.catch(() => {})
    return placed
  }

  async #place(identity: RequestIdentity): Promise<Elsewhere> {
    const copies = await this.#source(identity)
    const elsewhere = await sealedId(this.#env)
    // Do not copy from a copy: the time in which an answer may be copied counts from the end of the turn that a model
    // answered.
    if (copies === undefined) this.#answers(elsewhere)
    return { elsewhere, ...(copies !== undefined && { copies }) }
  }

  /** The next such request may copy the answer given in this conversation. */
  #answers(elsewhere: string): void {
    const state = this.#here.state()
    if (state && !state.closed) state.successor = elsewhere
    this.#latest = elsewhere
    this.#givenAt = Date.now()
  }

  /** The conversation whose answer may be copied, if there is one. */
  async #source(identity: RequestIdentity): Promise<string | undefined> {
    if (this.#here.isCopyable(identity)) return this.#here.id
    const latest = this.#latest ?? this.#here.state()?.successor
    if (latest === undefined) return undefined
    const state = await conversationObject(this.#env, latest).holds(identity)
    const underWay = state === 'nothing' && Date.now() - this.#givenAt < UNDERWAY_MS
    return state === 'turn' || underWay ? latest : undefined
  }
}
