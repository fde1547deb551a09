/** Everything that a Conversation object stores, from its first turn until it is deleted. */
import type { ConversationEntry } from '../db/conversations'
import { latestTurns } from '../db/turns'
import { ApiError, logFailure } from '../errors'
import { readStored } from '../lib/stored-json'
import { outgoing, settlesWithin } from '../lib/waiting'
import { requireAllowed } from '../models/egress'
import type { Citation } from '../turn/events'
import { recordOf } from '../turn/fold'
import type { Asker, AskRequest } from '../turn/request'
import { logTurn } from '../turn/turn-line'
import { hmacOf } from './conversation-id'
import { clip, Outbox, Records } from './outbox'
import {
  ADMIN,
  costShape,
  type Handover,
  type HandoverRequest,
  keptShape,
  type LeftTurn,
  mayOpen,
  type Owner,
  ownerOf,
  restoreTurn,
  type Self,
} from './stored'
import { isCreated, migrate, readMeta, TurnLog, writeMeta } from './turn-log'

const LONGEST_TITLE = 200

/**
 * Turn logs have expired, but messages remain because the model's ttl was raised. Check again after this long, and twice as
 * long each time: an alarm is billed, and the ttl may have been raised by months.
 */
const LINGER_MS = 600_000
const LONGEST_LINGER_MS = 6 * 3_600_000

/** If the conversation began earlier, `begun` overrides the asker, the title and the time. */
type Introduction = Pick<AskRequest, 'asker' | 'protocol' | 'historyId' | 'foundUntil' | 'begun'> & {
  /** what it is named after: its first question */
  title: string
}

/** The owner of a conversation that nobody has begun here. Only the admin key reads it. */
const ADMIN_OWNER: Owner = { owner: ADMIN.owner, userId: '' }

/** Later than any ttl ends, and still a date that every part of the platform can hold. */
const LAST_MOMENT = 8e15

/** When something said now expires, in milliseconds since 1970. @param ttl in seconds */
export const expiryOf = (ttl: number, now: number): number => Math.min(now + ttl * 1000, LAST_MOMENT)

function leftTurn({ turn, run, request, spent }: ReturnType<TurnLog['takeLeft']>[number]): LeftTurn {
  const { usage, others = [] } = spent === null ? {} : readStored(costShape(), spent)
  return { ...readStored(keptShape, request), turn, run, spent: usage ? [usage, ...others] : [] }
}

export class ConversationState {
  readonly log: TurnLog
  readonly outbox: Outbox
  readonly records: Records
  readonly handovers: Handovers
  readonly #sql: SqlStorage
  readonly #id: string
  readonly #self: Self
  #closed = false
  /** turns that were running when this object was reset, and run again */
  left: LeftTurn[] = []

  /** Loads what the object stores when it wakes; undefined if it stores nothing. */
  static load(...given: ConstructorParameters<typeof ConversationState>): ConversationState | undefined {
    const [sql, env, conversationId] = given
    if (!isCreated(sql)) return undefined
    const state = new ConversationState(...given)
    const now = Date.now()
    if (!state.closed) state.left = state.log.takeLeft(now).map(leftTurn)
    const ended = state.log.interrupt(
      now,
      state.left.map(({ turn }) => turn),
    )
    for (const turn of ended) logTurn(env, turn)
    if (ended.some(({ status }) => status !== 'done') && !state.closed)
      state.records.putInterruption({
        id: conversationId,
        createdAt: state.#self.created_at,
        failedAt: now,
      })
    for (const { turn, spent } of state.log.unpaid()) {
      state.records.putCost(turn, readStored(costShape(), spent))
      state.log.spend(turn, null)
    }
    return state
  }

  /**
   * @param onErased called if D1 says that the conversation must go because its user's conversations were
   *   erased
   */
  constructor(sql: SqlStorage, env: Cloudflare.Env, conversationId: string, onErased: () => void) {
    migrate(sql)
    this.#sql = sql
    this.#id = conversationId
    const self = readMeta(sql, 'self')
    this.#self = self ?? {
      incarnation: crypto.randomUUID(),
      title: '',
      protocol: '',
      created_at: 0,
      histories: [],
    }
    this.log = new TurnLog(sql, conversationId)
    this.outbox = new Outbox(sql, env, `${conversationId}/${this.#self.incarnation}`)
    this.records = new Records(sql, env, conversationId, onErased)
    this.handovers = new Handovers(sql, env, conversationId)
    if (readMeta(sql, 'erasing')) this.#close()
  }

  /** Whether it is being deleted or has been. Then nothing may be read or written any more. */
  get closed(): boolean {
    return this.#closed
  }

  /** Records for good that everything must be deleted. */
  erase(): void {
    writeMeta(this.#sql, 'erasing', true)
    this.#close()
  }

  /** Clears a turn's noted cost: whoever ran the turn reports it. The tables may be gone by now. */
  forgetSpent(turn: number): void {
    try {
      this.log.spend(turn, null)
    } catch {
      // Everything was deleted, this included.
    }
  }

  #close(): void {
    this.#closed = true
    this.outbox.closed = true
    this.records.closed = true
    this.handovers.closed = true
  }

  #save(): void {
    writeMeta(this.#sql, 'self', this.#self)
  }

  /** The conversation's owner. Undefined before its first turn here, and if it is older than owners. */
  get owner(): Owner | undefined {
    return this.#self.owner
  }

  /** Whether an asker may continue it. An unowned conversation goes to whoever continues it. */
  mayContinue(asker: Asker): boolean {
    const { owner } = this
    return owner === undefined || mayOpen(asker, owner)
  }

  /** Whether an asker may read it. Only the admin key reads an unowned one. */
  mayRead(asker: Asker): boolean {
    return !this.#closed && mayOpen(asker, this.owner ?? ADMIN_OWNER)
  }

  /**
   * Records what is known of a conversation when one of its turns begins.
   * @returns whether it is the first turn
   */
  introduce({ asker, protocol, title, historyId, foundUntil, begun }: Introduction, now: number): boolean {
    const self = this.#self
    const first = self.owner === undefined
    const named = begun?.title || title
    // A conversation that was opened without a title is named after its first question.
    const untitled = !first && self.title === '' && named !== ''
    if (!first && !untitled && self.histories.includes(historyId)) return false
    if (first) {
      Object.assign(self, {
        owner: begun?.owner ?? ownerOf(asker),
        protocol,
        title: clip(named, LONGEST_TITLE),
        created_at: begun?.createdAt ?? now,
        ...(foundUntil !== undefined && { found_until: foundUntil }),
      })
    }
    if (untitled) self.title = clip(named, LONGEST_TITLE)
    if (!self.histories.includes(historyId)) self.histories.push(historyId)
    this.#save()
    return first
  }

  /** Its row in D1, if something is said in it now. @param ttl in seconds @param details JSON that is stored with it */
  entry(
    {
      historyId,
      modelId,
      ttl,
      details,
    }: { historyId: string; modelId: string; ttl: number; details?: string | undefined },
    now: number,
  ): ConversationEntry {
    const { owner, protocol, title, created_at: createdAt } = this.#self
    if (!owner) throw new Error('A conversation that nobody has begun has no row.')
    return {
      id: this.#id,
      historyId,
      modelId,
      ...owner,
      proof: owner.proof ?? '',
      protocol,
      title,
      createdAt,
      updatedAt: now,
      expiresAt: expiryOf(ttl, now),
      ...(details !== undefined && { details }),
    }
  }

  set title(title: string) {
    this.#self.title = clip(title, LONGEST_TITLE)
    this.#save()
  }

  /** Until when a request for another conversation may be led to this id; undefined: the id is random. */
  get foundUntil(): number | undefined {
    return this.#self.found_until
  }

  /** When to deliver something or to forget a turn next, in milliseconds since 1970; infinite: never. */
  nextWork(now: number): number {
    const { outbox, records, handovers, log } = this
    const never = Number.POSITIVE_INFINITY
    const deliveries = [outbox, records].map(({ empty, patience }) => (empty ? never : now + patience))
    return Math.min(...deliveries, handovers.next, log.nextExpiry() ?? never)
  }

  /** How long to wait until the next check whether messages remain, in milliseconds. It counts the checks. */
  linger(): number {
    const checks = readMeta(this.#sql, 'lingering') ?? 0
    writeMeta(this.#sql, 'lingering', checks + 1)
    return Math.min(LINGER_MS * 2 ** checks, LONGEST_LINGER_MS)
  }

  /** Objects of the history collections that hold its messages. */
  get histories(): readonly string[] {
    return this.#self.histories
  }

  addHistory(historyId: string): void {
    if (this.#self.histories.includes(historyId)) return
    this.#self.histories.push(historyId)
    this.#save()
  }

  /** The conversation that began when this one's first question was asked again. */
  get successor(): string | undefined {
    return readMeta(this.#sql, 'successor')
  }

  set successor(id: string) {
    writeMeta(this.#sql, 'successor', id)
  }
}

// =============================================================================
// Hands a conversation over to people: a message by webhook, with what was said and how to reach whoever asked.
//
// The message is stored in the conversation's object before it is sent, and sent again until its receiver takes it. It is signed
// as Standard Webhooks say (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md), under a
// secret of the assistant that is made of the deployment's own, so there is none to store.

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

class Handovers {
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
