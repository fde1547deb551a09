/**
 * Reads the end of a history while the Worker still waits for the registry. The conversation's object knows its history, so the
 * Worker asks it to look back as soon as the key is known. The question comes a call later, and finds the messages there. So the
 * first token waits for one call less.
 *
 * Each reading is for one question, which names it, and begins after that question has arrived at Parley. So it has every change
 * of the history that was acknowledged before. No later question may use it, so nobody has to take anything back.
 */
import { waitUntil } from 'cloudflare:workers'
import { reasonOf } from '../errors'
import { promptText } from '../parts'
import { historyStore } from '../registry/engines'
import type { RecentMessages } from '../search/types'
import type { AskRequest } from '../turn/request'
import { byteLength } from '../turn/serialise'
import { conversationObject } from './conversation-object'
import type { Memory } from './memory'
import { isSealed } from './sealed-id'

/** How much text is read: the model is not known yet. Most models take less (`max_bytes`). */
const MOST_BYTES = 65_536

/** A question that comes later than this reads for itself, in milliseconds. D1 may have taken long. */
const FRESH_MS = 2_000

/**
 * Call it for a request whose key may ask. It changes nothing and tells the caller nothing: the turn checks who asks.
 * @param record of the request; gets the reading's name
 * @param conversationId that the request names, if any
 */
export function lookBackAhead(
  env: Cloudflare.Env,
  record: { lookedBack?: string },
  conversationId: string | undefined,
): void {
  if (!conversationId) return
  const reading = crypto.randomUUID()
  record.lookedBack = reading
  waitUntil(
    lookBack(env, conversationId, reading).catch((error) => {
      // An object of the version before does not have the method.
      if (!(error instanceof TypeError)) console.error('a history was not read ahead', reasonOf(error))
    }),
  )
}

async function lookBack(env: Cloudflare.Env, conversationId: string, reading: string): Promise<void> {
  // To call an object creates it.
  if (await isSealed(env, conversationId)) await conversationObject(env, conversationId).lookBack(reading)
}

interface Begun {
  reading: string
  historyId: string
  memory: Memory
  /** the latest turn when it began */
  turn: number | undefined
  /** milliseconds since 1970 */
  at: number
  messages: Promise<RecentMessages | undefined>
}

/** The latest reading that began in a conversation's object. A question takes it once. */
export class LookedBack {
  readonly #env: Cloudflare.Env
  readonly #id: string
  #begun: Begun | undefined

  constructor(env: Cloudflare.Env, conversationId: string) {
    this.#env = env
    this.#id = conversationId
  }

  /** Settles when the history has been read. Never rejects. */
  async begin(memory: Memory, reading: string): Promise<void> {
    const historyId = memory.histories.at(-1)
    if (memory.closed || historyId === undefined || !memory.outbox.empty) return
    const messages = historyStore(this.#env, historyId)
      .recentMessages(this.#id, MOST_BYTES)
      .catch(() => undefined)
    this.#begun = { reading, historyId, memory, turn: memory.log.latest(), at: Date.now(), messages }
    await messages
  }

  /**
   * The messages for a turn that begins now.
   * @returns undefined if the turn has to read: nothing was read for it, or the conversation went on since
   */
  async take(
    memory: Memory | undefined,
    { lookedBack, historyId, replaces, model }: AskRequest,
  ): Promise<RecentMessages | undefined> {
    const begun = this.#begun
    if (!begun || begun.reading !== lookedBack) return undefined
    this.#begun = undefined
    const holds = () =>
      memory === begun.memory && !memory.closed && memory.outbox.empty && memory.log.latest() === begun.turn
    if (replaces || begun.historyId !== historyId || !holds() || Date.now() - begun.at > FRESH_MS)
      return undefined
    const messages = await begun.messages
    return messages && holds() ? lastOf(messages, model.max_bytes) : undefined
  }
}

/** What a reading of fewer bytes would have returned (search/history/turns.ts). @returns undefined if it lacks some */
export function lastOf({ messages, complete }: RecentMessages, bytes: number): RecentMessages | undefined {
  let total = 0
  for (const [index, { content }] of [...messages.entries()].reverse()) {
    if (total > bytes) return { messages: messages.slice(index + 1), complete: false }
    total += byteLength(promptText(content))
  }
  return complete || total > bytes ? { messages, complete } : undefined
}
