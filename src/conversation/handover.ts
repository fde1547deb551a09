/**
 * Hands a conversation over to people: a message by webhook, with what was said and how to reach whoever asked.
 *
 * The message is stored in the conversation's object before it is sent, and sent again until its receiver takes it. It is signed
 * as Standard Webhooks say (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md), under a
 * secret of the assistant that is made of the deployment's own, so there is none to store.
 */
import { latestTurns } from '../db/turns'
import { ApiError, logFailure } from '../errors'
import { outgoing } from '../lib/outgoing'
import { settlesWithin } from '../lib/waiting'
import { requireAllowed } from '../models/egress'
import type { Citation } from '../turn/events'
import { recordOf } from '../turn/fold'
import { hmacOf } from './conversation-id'
import { clip } from './outbox'
import { type Handover, type HandoverRequest, restoreTurn } from './stored'
import { readMeta, writeMeta } from './turn-log'

/** Messages of one conversation in a day. */
const MOST_A_DAY = 3
const DAY_MS = 86_400_000
/** How long a receiver may take to reply, and how long whoever asked waits, in milliseconds. */
const REPLY_MS = 10_000
const PATIENCE_MS = 5_000
/** After the first failure, and at most, in milliseconds. */
const FIRST_RETRY_MS = 5_000
const LONGEST_RETRY_MS = 6 * 3_600_000
/** How long a message is sent again, in milliseconds. */
const GIVEN_UP_MS = 3 * DAY_MS
/** Turns that a message holds, and UTF-16 units of a question or an answer. */
const MOST_TURNS = 50
const LONGEST_TEXT = 10_000

export class Handovers {
  readonly #sql: SqlStorage
  readonly #env: Cloudflare.Env
  readonly #id: string
  #known: Handover[] | undefined
  #delivering: Promise<void> | undefined
  closed = false

  /** @param id of the conversation */
  constructor(sql: SqlStorage, env: Cloudflare.Env, id: string) {
    this.#sql = sql
    this.#env = env
    this.#id = id
  }

  /** Read once: each turn asks when to send next. */
  get #all(): Handover[] {
    this.#known ??= readMeta(this.#sql, 'handovers') ?? []
    return this.#known
  }

  get empty(): boolean {
    return !this.#all.some(({ waiting }) => waiting)
  }

  /** When to send next, in milliseconds since 1970; infinite: never. */
  get next(): number {
    return Math.min(
      ...this.#all.map(({ waiting }) => waiting?.next ?? Number.POSITIVE_INFINITY),
      Number.POSITIVE_INFINITY,
    )
  }

  /**
   * Stores a message, and sends it at once.
   * @returns whether its receiver has it; otherwise it is sent again
   * @throws ApiError 429 for one too many
   */
  async request(request: HandoverRequest, now: number): Promise<boolean> {
    const all = this.#all.filter(({ at, waiting }) => waiting || at > now - DAY_MS)
    if (all.length >= MOST_A_DAY) {
      const again = Math.max(1, Math.ceil((all[0]!.at + DAY_MS - now) / 1000))
      throw new ApiError(429, `A conversation is handed over ${MOST_A_DAY} times a day at most.`, again)
    }
    const id = crypto.randomUUID()
    this.#write([...all, { id, at: now, waiting: { ...request, tries: 0, next: now } }])
    await settlesWithin(PATIENCE_MS, this.deliver())
    return !this.#all.some((each) => each.id === id && each.waiting)
  }

  /** Sends what is due. Never throws. */
  deliver(): Promise<void> {
    this.#delivering ??= this.#deliver().finally(() => {
      this.#delivering = undefined
    })
    return this.#delivering
  }

  async #deliver(): Promise<void> {
    for (const { id, at, waiting } of this.closed ? [] : this.#all) {
      const now = Date.now()
      if (!waiting || waiting.next > now) continue
      // Written before it is sent, so that an object that is reset meanwhile does not send it at once again.
      const wait = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** waiting.tries)
      this.#change(id, { ...waiting, tries: waiting.tries + 1, next: now + wait })
      try {
        await this.#send(id, at, waiting)
        this.#change(id)
      } catch (error) {
        const isOver = now - at > GIVEN_UP_MS
        const event = isOver ? 'a hand-over was given up' : 'a hand-over failed; it will be sent again'
        logFailure(event, error, { conversation: this.#id })
        if (isOver) this.#change(id)
      }
      if (this.closed) return
    }
  }

  /** @throws Error if the receiver does not take it */
  async #send(
    id: string,
    at: number,
    { assistant, webhook, contact, message }: HandoverRequest,
  ): Promise<void> {
    requireAllowed(webhook, this.#env, 'The `webhook` of the assistant')
    const rows = await latestTurns(this.#env.DB, this.#id, { limit: MOST_TURNS, now: Date.now() })
    const turns = rows.reverse().map((row) => {
      const told = restoreTurn(row)
      const { turn, question, answer, declined, created_at } = recordOf(told, row.createdAt)
      return {
        turn,
        question: clip(question, LONGEST_TEXT),
        answer: clip(answer, LONGEST_TEXT),
        ...(declined && { declined }),
        citations: told.passages
          .filter(({ collection, id }) => told.citations.some(cites(collection, id)))
          .map(({ collection, id: document_id, title, url }) => ({ collection, document_id, title, url })),
        created_at,
      }
    })
    const data = { id, assistant, conversation_id: this.#id, contact, message, turns }
    const body = JSON.stringify({ type: 'handover.requested', timestamp: new Date(at).toISOString(), data })
    const seconds = Math.floor(Date.now() / 1000)
    const signed = await hmacOf(await secretOf(this.#env, assistant), `${id}.${seconds}.${body}`)
    const headers = {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': String(seconds),
      'webhook-signature': `v1,${base64(signed)}`,
    }
    const signal = AbortSignal.timeout(REPLY_MS)
    // A redirect could lead inside the network, so it counts as a failure.
    const send = () => fetch(webhook, { method: 'POST', headers, body, redirect: 'manual', signal })
    const reply = await outgoing(this.#env, send, signal)
    await reply.body?.cancel()
    if (!reply.ok) throw new Error(`The webhook replied with status ${reply.status}.`)
  }

  /** @param waiting absent: it is done, and what was said is forgotten here */
  #change(id: string, waiting?: Handover['waiting']): void {
    if (this.closed) return
    this.#write(
      this.#all.map((each) => (each.id === id ? { id, at: each.at, ...(waiting && { waiting }) } : each)),
    )
  }

  #write(all: Handover[]): void {
    writeMeta(this.#sql, 'handovers', all)
    this.#known = all
  }
}

const cites = (collection: string, id: string) => (citation: Citation) =>
  citation.collection === collection && citation.document_id === id

const secretOf = (env: Cloudflare.Env, assistant: string): Promise<Uint8Array> =>
  hmacOf(`handovers ${env.ENCRYPTION_KEY ?? env.ADMIN_API_KEY ?? ''}`, assistant)

/** The secret that an assistant's messages are signed with, as receivers take it. It changes with ENCRYPTION_KEY. */
export const handoverSecret = async (env: Cloudflare.Env, assistant: string): Promise<string> =>
  `whsec_${base64(await secretOf(env, assistant))}`

const base64 = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes))
