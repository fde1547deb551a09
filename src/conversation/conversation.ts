/**
 * A conversation: the one place where its turns run, one after another.
 *
 * A turn belongs to this object, not to the request that asked for it. Readers come and go; the turn runs to its end.
 * The object stores the log of recent turns and whatever the history has not taken yet. The history itself is in the
 * history collection and in D1. An object that was only queried stores nothing.
 */

import { CountingObject } from '../durable/counting-object'
import { Alarm, nameOf } from '../durable/objects'
import { ApiError, attempt, type Outcome } from '../errors'
import { settlesWithin } from '../lib/waiting'
import type { Origin } from '../search/fault-log'
import { unknownConversation } from '../turn/errors'
import type { Position, Reading } from '../turn/events'
import type { TracedTurn } from '../turn/fold'
import type { Asker, AskRequest, Single } from '../turn/request'
import { answerOnce } from './ask'
import { mayHaveHistory } from './conversation-id'
import {
  type AskReply,
  type Command,
  type ConversationRpc,
  isChange,
  type Seen,
  Succession,
  tell,
  UNDERWAY_MS,
} from './conversation-object'
import { ConversationState } from './conversation-state'
import { Erasure, UsedMark } from './expiry'
import { walkTurns } from './gaps'
import { askedOf, deletedTurns, dropDeletedRecords, isRemembered, transcriptTo } from './messages'
import { PrefetchedHistory, seenBy } from './prefetch'
import { type LeftTurn, requireAsker } from './stored'
import type { RequestNames } from './turn-log'
import {
  Attempts,
  COPIED,
  follow,
  joinAgain,
  joinQueued,
  namesOf,
  QueuedTurn,
  type RequestIdentity,
  replay,
  replayInterrupted,
  requireSame,
  type SearchPorts,
  searchAhead,
  TurnQueue,
} from './turn-queue'
import { TurnRun } from './turn-run'
import { Reader, type Reads } from './turn-stream'

/**
 * While a turn runs, an alarm is set this many milliseconds ahead. If the object is reset before the turn ends, the alarm
 * wakes it and the turn runs again (stored.ts).
 */
const HEARTBEAT_MS = 30_000

/** Seconds after which a reader who waits for D1 should retry. */
const RETRY_READING = 5

export class Conversation extends CountingObject implements ConversationRpc {
  readonly #id = nameOf(this.ctx.id)
  readonly #alarm = new Alarm(this.ctx.storage, { conversation: this.#id })
  readonly #mark = new UsedMark(this.ctx.storage, this.#alarm)
  #state = ConversationState.load(...this.#held())
  #queue = new TurnQueue()
  #attempts = new Attempts()
  readonly #erasure = new Erasure(this.env, this.#id, this.#alarm, () => this.#clear())
  readonly #prefetched = new PrefetchedHistory(this.env, this.#id)
  readonly #succession = new Succession(this.env, {
    id: this.#id,
    state: () => this.#state,
    isCopyable: (identity) => this.#isCopyable(identity),
  })

  /** Turns that an earlier instance of this object was running run again. */
  constructor(context: DurableObjectState, env: Cloudflare.Env) {
    super(context, env)
    const left = this.#state?.left.splice(0) ?? []
    for (const turn of left) this.#add(new QueuedTurn(turn.request, namesOf(turn.request)), { left: turn })
    if (this.#state && left.length > 0) this.#schedule(this.#state)
  }

  /** @param searching what an object that calls itself has begun to search */
  ask(request: AskRequest, searching?: SearchPorts): Promise<Outcome<AskReply>> {
    return attempt(async () => {
      const { asker, continues, after } = request
      requireAsker(asker)
      if (request.seen) {
        // It was opened, and this is the first question.
        if (this.#state?.log.unused) request.named = true
        else if (await this.#prefetched.foundNothing(request.prefetched)) throw unknownConversation()
      }
      const made = this.#attempts.find(request)
      if (made) return made.readsOf(request)
      const state = this.#state
      if (state?.closed || state?.mayContinue(asker) === false) {
        if (continues) throw unknownConversation()
        return this.#succession.place(request)
      }
      const names = namesOf(request)
      const again = request.again && joinAgain(this.#queue, state, names, request.read)
      if (again) return { events: again }
      if (!continues && names.idempotencyKey === undefined) {
        // Somebody else may have asked the same. Without names the id is random, so no one else can have reached it.
        return this.#isUsed(request) ? this.#succession.place(request) : this.#enqueue(request, names)
      }
      const joined =
        (await this.#joinFinished(names, request.read)) ?? joinQueued(this.#queue, names, request.read)
      if (joined) return { events: joined }
      if (!continues && this.#taken) return this.#succession.place(request)
      if (after !== undefined) {
        if (state) await this.#forgetDeleted(state, after, request)
        const transcript = await transcriptTo(this.env, state, request, this.#queue.hasOther(after))
        if (transcript) return { ...(await this.#succession.place(request)), transcript }
      }
      return this.#enqueue(request, names, searching)
    })
  }

  async askNamed(request: AskRequest, name: string): Promise<Outcome<AskReply>> {
    const { asker, historyId } = request
    const hasBegun = seenBy(asker, this.#state).historyId === historyId
    if (hasBegun || !this.#queue.idle) return this.ask(request)
    // The judgement takes as long as a search. So they begin together, and nothing else begins before it.
    const searching = searchAhead(this.env, request, { messages: [], complete: true })
    const taken = await attempt(() => mayHaveHistory(this.env, name, historyId))
    if (!taken.ok) return taken
    return taken.value
      ? { ok: true, value: { elsewhere: name, continues: true } }
      : this.ask(request, searching)
  }

  once(single: Single, conversationId?: string): Promise<Outcome<Reads>> {
    return attempt(() => answerOnce(this.env, single, conversationId))
  }

  async lookBack(reading: string, asker?: Asker, after?: number, origin?: Origin): Promise<Seen> {
    const state = this.#state
    if (state && this.#queue.idle) this.#prefetched.begin(state, { reading, after, origin })
    return state || !this.#queue.idle ? seenBy(asker, state) : { isNew: true }
  }

  async isOpenTo(asker: Asker): Promise<boolean> {
    const state = this.#state
    return state === undefined || (!state.closed && state.mayContinue(asker))
  }

  async holds(identity: RequestIdentity): Promise<'turn' | 'nothing' | 'other'> {
    if (this.#isCopyable(identity)) return 'turn'
    return this.#state === undefined && this.#queue.idle ? 'nothing' : 'other'
  }

  copy(identity: RequestIdentity): Promise<Outcome<ReadableStream<Uint8Array> | null>> {
    return attempt(async () => {
      if (this.#state === undefined && this.#queue.idle)
        await settlesWithin(UNDERWAY_MS, this.#queue.arrival())
      if (!this.#isCopyable(identity)) return null
      const names = namesOf(identity)
      return (await this.#joinFinished(names, COPIED, true)) ?? joinQueued(this.#queue, names, COPIED) ?? null
    })
  }

  events(
    asker: Asker,
    after?: Position,
    reading?: Reading,
  ): Promise<Outcome<ReadableStream<Uint8Array> | null>> {
    return attempt(async () => {
      const known = this.#readable(asker)
      const first = after?.turn ?? known.log.latest() ?? 0
      await this.#forgetDeleted(known, first)
      const asked = await askedOf(this.env, known, this.#id, first, reading)
      // No await from here on: otherwise an event could fall between the log and the running turn.
      return follow(this.#readable(asker).log, this.#queue.current, after, reading, asked)
    })
  }

  running(asker: Asker): Promise<Outcome<ReadableStream<Uint8Array> | null>> {
    return attempt(() => {
      const { log } = this.#readable(asker)
      const { current } = this.#queue
      if (!current) return replayInterrupted(log, Date.now())
      const reader = new Reader()
      current.addReader(reader)
      return reader.stream
    })
  }

  stop(asker: Asker): Promise<Outcome<boolean>> {
    return attempt(() => {
      this.#readable(asker)
      const { current } = this.#queue
      if (!current || current.committed) return false
      current.abort.abort()
      if (current.stream) this.#state?.log.keepRequest(current.stream.turn, null)
      return true
    })
  }

  async lost(turn: number): Promise<void> {
    if (this.#state?.closed === false) this.#state.log.abandon(turn, true)
  }

  tell(command: Command): Promise<Outcome<number>> {
    if (!this.#state && isChange(command)) return attempt(() => 0)
    const state = this.#remember()
    const telling = () => tell(state, this.env, command).finally(() => state.closed || this.#schedule(state))
    return attempt(() => (command.what === 'message' ? this.#queue.addMessage(telling) : telling()))
  }

  recorded(asker: Asker): Promise<Outcome<true | undefined>> {
    return attempt(async () => {
      const state = this.#state
      if (!state) return undefined
      const isBehind = state.mayRead(asker) && !state.records.empty
      if (isBehind) {
        await this.#deliver(state)
        await state.records.deliverRest()
      }
      if (!state.mayRead(asker)) throw unknownConversation()
      if (state.records.empty) return isBehind || undefined
      throw new ApiError(503, 'The conversation cannot be read now. Try again later.', RETRY_READING)
    })
  }

  unanswered(asker: Asker, turn?: number): Promise<Outcome<TracedTurn[]>> {
    return attempt(() => {
      const state = this.#state
      if (!state) return []
      if (!state.mayRead(asker)) throw unknownConversation()
      return state.log.unanswered(turn)
    })
  }

  gaps(...[from, whose]: Parameters<ConversationRpc['gaps']>): ReturnType<ConversationRpc['gaps']> {
    return attempt(() => walkTurns(this.env, from, whose))
  }

  remove(asker: Asker, origin?: Origin): Promise<Outcome<boolean>> {
    return attempt(async () => {
      const state = this.#state
      if (!state) return false
      if (!state.mayRead(asker)) throw unknownConversation()
      await this.erase(undefined, origin)
      return true
    })
  }

  erase(historyId?: string, origin?: Origin): Promise<boolean> {
    const state = this.#remember()
    if (historyId !== undefined) state.addHistory(historyId)
    state.erase()
    this.#queue.stopAll()
    this.#queue = new TurnQueue()
    this.#attempts = new Attempts()
    return this.#erasure.run(state, origin)
  }

  /** Delivers what D1 and the history have not taken yet, and forgets expired turns. */
  override async alarm(): Promise<void> {
    this.#alarm.rang()
    const state = this.#state
    if (!state) return this.#clear()
    if (state.closed) return void (await this.#erasure.run(state))
    await this.#deliver(state)
    if (state.closed) return void (await this.#erasure.running)
    state.log.expire(Date.now())
    if (state.log.empty && this.#atRest(state)) await this.#forget(state)
    else this.#schedule(state)
  }

  #remember(): ConversationState {
    this.#state ??= new ConversationState(...this.#held())
    return this.#state
  }

  /** The arguments to construct a ConversationState. */
  #held(): ConstructorParameters<typeof ConversationState> {
    return [this.ctx.storage.sql, this.env, this.#id, () => this.ctx.waitUntil(this.erase())]
  }

  /** @throws ApiError 404 */
  #readable(asker: Asker): ConversationState {
    const state = this.#state
    if (!state?.mayRead(asker) || (state.log.empty && this.#queue.idle)) throw unknownConversation()
    return state
  }

  /** Whether a conversation exists here already, so that no new one can begin. */
  get #taken(): boolean {
    return !this.#queue.idle || this.#state?.log.answered === true
  }

  /** Whether somebody else may already know this id, because it is derived from the request's fingerprint. */
  #isUsed({ foundUntil }: AskRequest): boolean {
    return foundUntil !== undefined && (this.#state !== undefined || !this.#queue.idle || this.#mark.isSet)
  }

  #isCopyable(identity: RequestIdentity): boolean {
    const state = this.#state
    if (state?.closed || state?.mayContinue(identity.asker) === false) return false
    const names = namesOf(identity)
    return this.#queue.find(names) !== undefined || state?.log.copyable(names, Date.now()) !== undefined
  }

  #enqueue(request: AskRequest, names: RequestNames, searching?: SearchPorts): AskReply {
    const turn = new QueuedTurn(request, names)
    const reads = turn.readsOf(request)
    this.#add(turn, { searching })
    return reads
  }

  /** @param left the turn's earlier run, if this object was reset in the middle of that */
  #add(
    turn: QueuedTurn,
    { searching, left }: { searching?: SearchPorts | undefined; left?: LeftTurn },
  ): void {
    this.#attempts.add(turn)
    const around = {
      state: () => this.#state,
      remember: () => this.#remember(),
      schedule: (state: ConversationState) => this.#schedule(state),
      written: () => this.ctx.storage.sync(),
      prefetched: () => this.#prefetched.take(this.#state, turn.request),
      searching,
    }
    const run = new TurnRun(turn, this.env, around, left)
    const ended = this.#queue
      .add(turn, () => run.run())
      .then(() => {
        const state = this.#state
        if (state && !state.closed) this.#schedule(state)
      })
    this.ctx.waitUntil(ended)
  }

  /** @throws ApiError 422; 409 for an idempotency key used long ago */
  async #joinFinished(
    names: RequestNames,
    reading: Reading | undefined,
    copies = false,
  ): Promise<ReadableStream<Uint8Array> | undefined> {
    const state = this.#state
    const finished = state?.log[copies ? 'copyable' : 'joinable'](names, Date.now())
    if (!state || !finished || this.#queue.find(names)) return undefined
    const { turn } = finished
    requireSame(names, finished.fingerprint ?? undefined)
    await this.#forgetDeleted(state, turn)
    const asked = await askedOf(this.env, state, this.#id, turn, reading)
    if (state.closed || !state.log.ended(turn).some((ended) => ended.turn === turn)) return undefined
    return replay(state, turn, names, asked)
  }

  /**
   * Forgets turns, from this one on, whose messages somebody deleted from the history collection. If nothing is left,
   * the conversation is deleted.
   * @throws ApiError 404 if nothing is left
   */
  async #forgetDeleted(state: ConversationState, from: number, asked?: AskRequest): Promise<void> {
    // A turn may be undelivered from before this object last restarted. Readers learn its end only once the history
    // has it.
    if (!state.outbox.empty) await state.outbox.deliver()
    // Usually one query about a few turns is enough. If one is gone, others may be too.
    const ahead = asked && (await this.#prefetched.deletedFrom(state, from, asked))
    const origin = { requestId: asked?.requestId }
    const some = ahead ?? (await deletedTurns(this.env, state, this.#id, from, origin))
    const deleted = some.length === 0 ? [] : await deletedTurns(this.env, state, this.#id, 0, origin)
    if (state.closed || deleted.length === 0) return
    for (const turn of deleted) state.log.forget(turn)
    if (state.log.answered || (await isRemembered(this.env, state, this.#id)) || !this.#atRest(state)) return
    this.ctx.waitUntil(this.erase())
    throw unknownConversation()
  }

  /** Delivers what the history and D1 have not taken yet. */
  async #deliver(state: ConversationState): Promise<void> {
    await state.outbox.deliver()
    await dropDeletedRecords(this.env, state, this.#id)
    await state.records.deliver()
  }

  #atRest(state: ConversationState): boolean {
    const { outbox, records } = state
    return this.#queue.idle && outbox.empty && records.empty
  }

  /**
   * Deletes the rest of a conversation whose turns have all expired. While its history still holds messages, somebody
   * may continue it, so its owner must be kept.
   */
  async #forget(state: ConversationState): Promise<void> {
    const remembered = await isRemembered(this.env, state, this.#id).catch(() => true)
    if (state.closed || !state.log.empty || !this.#atRest(state)) return
    if (remembered) this.#alarm.set(Date.now() + state.linger())
    else await this.#clear()
  }

  /** Deletes everything except the mark that the id has been used, if one is needed. */
  async #clear(): Promise<void> {
    const until = this.#state?.foundUntil
    this.#state = undefined
    await this.#mark.clear(until)
  }

  /** Sets the alarm for whatever comes first: the heartbeat, the next delivery attempt, or the next turn to forget. */
  #schedule(state: ConversationState): void {
    const { idle } = this.#queue
    const now = Date.now()
    const next = Math.min(state.nextWork(now), idle ? Number.POSITIVE_INFINITY : now + HEARTBEAT_MS)
    // While a turn runs the alarm may fire early: that costs less than moving it.
    if (Number.isFinite(next)) this.#alarm.set(next, { orSooner: !idle })
  }
}
