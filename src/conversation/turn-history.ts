/** What was said before a turn, as its Conversation object and the history collection have it. */
import { historyStore } from '../registry/engines'
import type { RecentMessages } from '../search/types'
import type { AskRequest } from '../turn/request'
import type { Surroundings } from './turn-queue'

export class TurnHistory {
  readonly #env: Cloudflare.Env
  readonly #request: AskRequest
  readonly #around: Surroundings

  constructor(env: Cloudflare.Env, request: AskRequest, around: Surroundings) {
    this.#env = env
    this.#request = request
    this.#around = around
  }

  /**
   * Reads the history ahead. For an unknown id nothing is begun or stored.
   * @param replaced earlier turns that this one replaces
   */
  async lookUp(replaced: number[]): Promise<RecentMessages | 'unknown' | undefined> {
    const request = this.#request
    if (!request.continues) return undefined
    // Only this object ever writes to a conversation of this name, so no history exists yet.
    if (request.named && !this.#around.state()) return { messages: [], complete: true }
    try {
      const prefetched = await this.#around.prefetched()
      // It has the turns that this one replaces.
      const usable = replaced.length > 0 ? undefined : prefetched
      const recent = usable ?? (await this.messages(replaced, request.model.max_bytes))
      const known =
        recent.messages.length > 0 ||
        request.named ||
        replaced.length > 0 ||
        this.#around.state()?.log.neverAnswered
      return known ? recent : 'unknown'
    } catch {
      // The turn reads again and ends in whatever error it meets.
      return undefined
    }
  }

  /** @param bytes of text after which older messages are left out; undefined: everything */
  async messages(replaced: number[], bytes: number | undefined): Promise<RecentMessages> {
    const { historyId, requestId, conversationId } = this.#request
    const state = this.#around.state()
    if (state && !state.outbox.empty) await state.outbox.deliver({ requestId })
    const history = historyStore(this.#env, historyId)
    const without = state ? [...state.outbox.originsOf(replaced), ...state.outbox.replaced] : []
    const stored: RecentMessages =
      bytes === undefined
        ? { messages: await history.messages(conversationId, without, { requestId }), complete: true }
        : await history.recentMessages(conversationId, bytes, without, { requestId })
    const pending = state && !state.closed ? state.outbox.pending(historyId, without) : []
    return { messages: [...stored.messages, ...pending], complete: stored.complete }
  }
}
