/** Everything that a Conversation object stores, from its first turn until it is deleted. */
import type { ConversationEntry } from '../db/conversations'
import { readStored } from '../lib/stored-json'
import type { Asker, AskRequest } from '../turn/request'
import { logTurn } from '../turn/turn-line'
import { clip, Outbox, Records } from './outbox'
import { ADMIN, costShape, keptShape, type LeftTurn, mayOpen, type Owner, ownerOf, type Self } from './stored'
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
    const { outbox, records, log } = this
    const never = Number.POSITIVE_INFINITY
    const deliveries = [outbox, records].map(({ empty, patience }) => (empty ? never : now + patience))
    return Math.min(...deliveries, log.nextExpiry() ?? never)
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
