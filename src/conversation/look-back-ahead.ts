/**
 * Reads the end of a history while the Worker still waits for the registry. The conversation's object knows its history, so the
 * Worker asks it to look back as soon as the key is known. The question comes a call later, and finds the messages there. So the
 * first token waits for one call less.
 *
 * Each reading is for one question, which names it, and begins after that question has arrived at Parley. So it has every change
 * of the history that was acknowledged before. No later question may use it, so nobody has to take anything back.
 */
import { waitUntil } from 'cloudflare:workers'
import { logFailure } from '../errors'
import { promptText } from '../lib/parts'
import { historyStore } from '../registry/engines'
import type { Origin } from '../search/fault-log'
import type { RecentMessages } from '../search/types'
import type { Asker, AskRequest } from '../turn/request'
import { byteLength } from '../turn/serialise'
import { conversationObject, type Seen } from './conversation-object'
import { deletedTurns } from './kept-messages'
import type { Memory } from './memory'
import { isSealed } from './sealed-id'

/** How much text is read: the model is not known yet. Most models take less (`max_bytes`). */
export const MOST_BYTES = 65_536

/** A question that comes later than this reads for itself, in milliseconds. D1 may have taken long. */
const FRESH_MS = 2_000

/** A conversation that a request names, if any. */
export interface Looking {
  conversationId: string | undefined
  /** absent: the caller is told nothing */
  asker?: Asker
  /** the turn that the question continues from, if it names one */
  after?: number | undefined
  /** true for an id that this server made from a name or gave out with a seal */
  isOurs?: boolean
}

/**
 * Call it for a request whose key may ask. It changes nothing: the turn checks who asks.
 * @param record of the request; gets the reading's name
 * @returns never rejects; undefined if nothing could be learnt
 */
export function lookBackAhead(
  env: Cloudflare.Env,
  record: { lookedBack?: string; requestId: string },
  looking: Looking,
): Promise<Seen | undefined> {
  if (!looking.conversationId) return Promise.resolve(undefined)
  const reading = crypto.randomUUID()
  record.lookedBack = reading
  const { conversationId } = looking
  const { requestId } = record
  const seen = lookBack(env, conversationId, looking, { reading, requestId }).catch((error) => {
    // An object of the version before does not have the method.
    if (!(error instanceof TypeError))
      logFailure('a history was not read ahead', error, { requestId, conversation: conversationId })
    return undefined
  })
  waitUntil(seen)
  return seen
}

async function lookBack(
  env: Cloudflare.Env,
  conversationId: string,
  { asker, isOurs, after }: Looking,
  { reading, requestId }: { reading: string; requestId: string },
): Promise<Seen | undefined> {
  // To call an object creates it, as a file on disk where Parley runs locally. One that was only called stores nothing.
  if (!isOurs && !(await isSealed(env, conversationId))) return undefined
  // An object of the version before returns nothing.
  return (
    (await conversationObject(env, conversationId).lookBack(reading, asker, after, { requestId })) ??
    undefined
  )
}

/** What an asker may know of a conversation that has begun. */
export function seenBy(asker: Asker | undefined, memory: Memory | undefined): Seen {
  const historyId = memory?.histories.at(-1)
  const isOpen = asker && memory && !memory.closed && memory.owner !== undefined && memory.mayContinue(asker)
  if (!isOpen || historyId === undefined) return {}
  return { historyId, ...(memory.log.unused && { isNew: true }) }
}

interface Begun {
  reading: string
  historyId: string
  memory: Memory
  /** the latest turn when it began */
  turn: number | undefined
  /** the turn that the question continues from */
  after: number | undefined
  /** milliseconds since 1970 */
  at: number
  messages: Promise<RecentMessages | undefined>
  /** turns whose messages were deleted, from the one that the question continues from; undefined: not known */
  deleted: Promise<number[] | undefined> | undefined
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

  /** Begins to read. @param given.after the turn that the question continues from */
  begin(
    memory: Memory,
    { reading, after, origin }: { reading: string; after?: number | undefined; origin?: Origin | undefined },
  ): void {
    const historyId = memory.histories.at(-1)
    if (memory.closed || historyId === undefined || !memory.outbox.empty) return
    const messages = historyStore(this.#env, historyId)
      .recentMessages(this.#id, MOST_BYTES, undefined, origin)
      .catch(() => undefined)
    const deleted =
      after === undefined
        ? undefined
        : deletedTurns(this.#env, memory, this.#id, after, origin).catch(() => undefined)
    const turn = memory.log.latest()
    this.#begun = { reading, historyId, memory, turn, after, at: Date.now(), messages, deleted }
  }

  /** Turns from this one on whose messages were deleted, if that was looked up for the question and still holds. */
  async deletedFrom(
    memory: Memory,
    after: number,
    { lookedBack }: AskRequest,
  ): Promise<number[] | undefined> {
    const begun = this.#begun
    if (!begun || begun.reading !== lookedBack || begun.after !== after) return undefined
    if (!isFresh(begun) || !holds(begun, memory)) return undefined
    const deleted = await begun.deleted
    return holds(begun, memory) ? deleted : undefined
  }

  /**
   * Whether what was read for a question shows that no message was left then. The Worker asks the history once more, so it may
   * be out of date. Never rejects.
   */
  async foundNothing(reading: string | undefined): Promise<boolean> {
    const begun = this.#begun
    if (!begun || begun.reading !== reading) return false
    return (await begun.messages)?.messages.length === 0
  }

  /**
   * The messages for a turn that begins now.
   * @returns undefined if the turn has to read: nothing was read for it, or the conversation went on since
   */
  async take(
    memory: Memory | undefined,
    { lookedBack, historyId, model }: AskRequest,
  ): Promise<RecentMessages | undefined> {
    const begun = this.#begun
    if (!begun || begun.reading !== lookedBack) return undefined
    this.#begun = undefined
    if (begun.historyId !== historyId || !isFresh(begun) || !holds(begun, memory)) return undefined
    const messages = await begun.messages
    return messages && holds(begun, memory) ? lastOf(messages, model.max_bytes) : undefined
  }
}

const isFresh = ({ at }: Begun): boolean => Date.now() - at <= FRESH_MS

/** Whether the conversation is as it was when a reading began. */
const holds = ({ memory, turn }: Begun, now: Memory | undefined): boolean =>
  now === memory && !memory.closed && memory.outbox.empty && memory.log.latest() === turn

/** What a reading of fewer bytes would have returned (history/turns.ts). @returns undefined if it lacks some */
export function lastOf({ messages, complete }: RecentMessages, bytes: number): RecentMessages | undefined {
  let total = 0
  for (const [index, { content }] of [...messages.entries()].reverse()) {
    if (total > bytes) return { messages: messages.slice(index + 1), complete: false }
    total += byteLength(promptText(content))
  }
  return complete || total > bytes ? { messages, complete } : undefined
}
