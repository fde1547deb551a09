/** Runs one turn in its Conversation object: provides its ports and stores its result. */
import type { ConversationEntry } from '../db/conversations'
import { ttlsOf } from '../db/registry'
import {
  type Cost,
  dayOf,
  type ModelUsage,
  type Reserved,
  recordCost,
  reserveTurn,
  type TurnRecord,
  takeBackTurn,
} from '../db/turns'
import { ApiError, coded, logFailure, type Outcome, storageFull, type Trail } from '../errors'
import { textOf, withoutFileTexts } from '../lib/parts'
import { historyStore } from '../registry/engines'
import type { RecentMessages } from '../search/types'
import { errorOf, interrupted, stopped, unknownConversation } from '../turn/errors'
import { type DoneEvent, isTerminal, type LogEventBody } from '../turn/events'
import { emptyTurn, foldBody, type Turn, traceOf } from '../turn/fold'
import type { AskRequest } from '../turn/request'
import { errorEvent, runTurn } from '../turn/run'
import { isNothing, type Spending, spendingOf, type TurnPorts } from '../turn/trace'
import { logTurn, TurnClock } from '../turn/turn-line'
import { conversationObject } from './conversation-object'
import { type ConversationState, expiryOf } from './conversation-state'
import { documentsOf, keptTurn, type LeftTurn, turnRow, withSecrets } from './stored'
import {
  copyTurn,
  identityOf,
  type QueuedTurn,
  rewriterOf,
  type SearchPorts,
  type Surroundings,
  searchAhead,
  searchPorts,
  withModels,
  withoutRepeats,
} from './turn-queue'
import { TurnStream } from './turn-stream'

/** A turn's spending is recorded at least this often, in milliseconds. Each record is a row that is billed. */
const NOTE_MS = 5_000

export class TurnRun {
  readonly #queued: QueuedTurn
  readonly #env: Cloudflare.Env
  readonly #around: Surroundings
  readonly #left: LeftTurn | undefined
  readonly #id: string
  /** whether D1 may have counted this turn's cost */
  #counted = false
  /** whether its answer is copied from another turn, which is charged for it */
  #copied = false
  /** the fold of its events so far */
  readonly #turn: Turn = emptyTurn()
  /** earlier turns that this one replaces */
  #replaced: number[] = []
  /** what the turn has spent so far, and how much of that its log records */
  #spent: () => Spending[] = () => []
  #noted = ''
  #over = false
  readonly #reservation: Reservation
  readonly #history: TurnHistory
  readonly #clock = new TurnClock()

  /** @param left present: the turn was running when this object was reset, and runs again. Its readers come back at once */
  constructor(queued: QueuedTurn, env: Cloudflare.Env, around: Surroundings, left?: LeftTurn) {
    this.#queued = queued
    this.#env = env
    this.#around = around
    this.#left = left
    this.#id = queued.request.conversationId
    this.#reservation = new Reservation(env, queued.request, this.#trail, left?.reserved)
    this.#history = new TurnHistory(env, queued.request, around)
    if (left) this.#open(around.remember(), left.turn, left.run)
  }

  /** Runs the turn to its end, and logs it. Never throws. */
  async run(): Promise<void> {
    this.#clock.run()
    try {
      if (!this.#left || (await this.#makeReady(this.#left))) await this.#run()
    } catch (error) {
      logFailure('turn could not run', error, this.#trail)
      const fault = coded('internal', 500, 'The turn could not be run through a fault of the server.')
      this.#refuse(storageFull(error) ?? fault)
    }
    const { request, stream } = this.#queued
    const state = this.#around.state()
    // It was refused when it was to run again: what it spent before is still owed.
    if (this.#left && !this.#over && state) {
      await this.#charge(state, this.#left.turn, []).catch((error) =>
        logFailure('what a refused turn had spent could not be counted', error, this.#trail),
      )
    }
    await this.#reservation.end()
    logTurn(this.#env, { ...this.#turn, turn: stream?.turn ?? 0 }, request, this.#clock)
  }

  /**
   * Readies a turn that runs again.
   * @returns false if it cannot: it ends as interrupted, with what it has said
   */
  async #makeReady({ turn, run }: LeftTurn): Promise<boolean> {
    const { request } = this.#queued
    logFailure(`a turn was ended by a reset of its object, and begins run ${run}`, undefined, {
      ...this.#trail,
      turn,
    })
    // The run must be counted for good before it can end this object once more.
    await this.#around.written()
    const model = await withSecrets(this.#env, request.model).catch((error) =>
      logFailure('the model of a turn that was to run again could not be read', error, this.#trail),
    )
    const state = this.#around.state()
    if (!state || state.closed) return false
    if (!model) {
      this.#refuse(interrupted())
      return false
    }
    request.model = model
    state.log.restart(turn)
    return true
  }

  async #run(): Promise<void> {
    const { request, abort } = this.#queued
    const { asker, replaces } = request
    if (replaces)
      this.#replaced = this.#around.state()?.log.givingWay(replaces, textOf(request.question)) ?? []
    // What a visitor decides counts once, for the last turn: the calls of another one were decided, or are no longer asked for.
    const { turn } = request.resumes ?? {}
    if (turn !== undefined && (this.#replaced.length !== 1 || this.#replaced[0] !== turn)) {
      return this.#refuse(coded('conflict', 409, 'This was decided already, or the conversation went on.'))
    }
    if (request.resumes && this.#left) request.resumes.again = true
    // The model that rewrites a follow-up is read beside the history.
    if (request.continues) rewriterOf(request.model, this.#env, this.#trail).catch(() => {})
    const reserving = request.copies === undefined ? this.#reservation.take() : undefined
    const known = await this.#history.lookUp(this.#replaced)
    const isFirst = known !== 'unknown' && (known ? known.messages.length === 0 : !request.continues)
    const searches = (): SearchPorts =>
      searchAhead(this.#env, request, known === 'unknown' ? undefined : known)
    let searching = this.#around.searching
    // A first question is searched while its turn is counted.
    if (reserving && isFirst) searching ??= searches()
    const spentBudget = await reserving
    // No await from here until the turn begins: the conversation's owner must not change in between.
    if (abort.signal.aborted) return this.#refuse(stopped())
    const held = this.#around.state()
    if (known === 'unknown' || held?.closed || held?.mayContinue(asker) === false) {
      return this.#refuse(unknownConversation())
    }
    if (spentBudget) return this.#refuse(spentBudget)
    // The searches are sent right now, before anything is written, because a call waits for the writes before it.
    if (request.copies === undefined) searching ??= searches()
    const { state, stream } = this.#begin()
    const emit = (event: LogEventBody) => this.#emit(state, stream, event)
    const { question, requestId, assistant } = request
    emit({
      type: 'begin',
      question: withoutFileTexts(question),
      ...(requestId && { request_id: requestId }),
      ...(assistant && { assistant }),
    })
    // Nothing was said before: the turn begins the conversation, as under a new name.
    const begins = known?.messages.length === 0
    const asked = begins ? { ...request, named: true } : request
    const ports = this.#ports(known, searching, {
      emit: request.copies === undefined ? emit : withoutRepeats(emit),
      store: (done, now) => this.#store(state, stream, done, now),
    })
    const work =
      request.copies === undefined
        ? runTurn(asked, ports, abort.signal)
        : this.#copyOrRun(request.copies, ports, abort.signal)
    const noting = setInterval(() => this.#note(state, stream.turn), NOTE_MS)
    const spent = await work.finally(() => clearInterval(noting))
    await this.#charge(state, stream.turn, spent)
  }

  #emit(state: ConversationState, stream: TurnStream, event: LogEventBody): void {
    if (stream.ended) return
    foldBody(this.#turn, event)
    stream.emit(event)
    this.#clock.see(event)
    if (!isTerminal(event) || state.closed) return
    const ended = Date.now()
    state.log.finish(stream.turn, this.#turn.status, ended, this.#expiry(ended), this.#queued.abandoned)
  }

  /** Charges a turn that was not stored for what it spent. The record of one that was stored has its cost. */
  async #charge(state: ConversationState, turn: number, spent: Spending[]): Promise<void> {
    this.#over = true
    const isCounted = this.#turn.status === 'done' || this.#counted
    this.#reservation.used = isCounted || !isNothing(spent) || this.#spentBefore.length > 0
    if (isCounted) return
    const cost = this.#reservation.used ? this.#cost(Date.now(), spent) : undefined
    // The conversation was deleted while the turn ran. Nothing is stored here any more, but the cost is owed.
    if (state.closed) {
      state.forgetSpent(turn)
      if (cost) await this.#owe(cost)
      return
    }
    state.log.spend(turn, null)
    // A stop is not a failure: somebody asked for it.
    const failed = (this.#turn.error?.code ?? 'stopped') !== 'stopped'
    const now = Date.now()
    if (failed) state.records.putBeginning({ ...this.#entry(state, now), failedAt: now })
    if (cost) state.records.putCost(turn, cost)
    if (failed || cost) await state.records.settle()
  }

  /** What lines of the log share. */
  get #trail(): Trail {
    return { requestId: this.#queued.request.requestId, conversation: this.#id }
  }

  /** Copies the answer of another conversation. If that has none to give, runs the turn. */
  async #copyOrRun(source: string, ports: TurnPorts, signal: AbortSignal): Promise<Spending[]> {
    const { request } = this.#queued
    const events = await conversationObject(this.#env, source)
      .copy(identityOf(request))
      .catch(() => undefined)
    if (events?.ok && events.value) {
      this.#copied = true
      if ((await copyTurn(request, events.value, ports, signal)) === 'ended') return []
      this.#copied = false
    }
    const reserving = this.#reservation.take()
    const spentBudget = await reserving
    if (spentBudget) ports.emit(errorEvent(spentBudget, signal, request))
    const { stream } = this.#queued
    if (reserving && stream) this.#around.state()?.log.keepRequest(stream.turn, this.#kept)
    return spentBudget ? [] : runTurn(request, ports, signal)
  }

  /** Records what the turn has spent so far, so that it is charged even if this object dies before the end. */
  #note(state: ConversationState, turn: number): void {
    if (this.#over || state.closed) return
    const spent = this.#spent()
    if (isNothing(spent)) return
    const cost = JSON.stringify(this.#cost(Date.now(), spent))
    if (cost === this.#noted) return
    this.#noted = cost
    state.log.spend(turn, cost)
  }

  /** Counts a cost that is stored nowhere here. */
  #owe(cost: Cost): Promise<void> {
    return recordCost(this.#env.DB, cost).catch((error) =>
      logFailure('what a deleted turn cost could not be counted', error, this.#trail),
    )
  }

  /** What it needs to run again. */
  get #kept(): string | null {
    const { reserved } = this.#reservation
    return keptTurn({ request: this.#queued.request, ...(reserved && { reserved }) })
  }

  /** What earlier runs of it have spent. */
  get #spentBefore(): ModelUsage[] {
    return this.#left?.spent ?? []
  }

  /** Records that the turn runs. */
  #begin(): { state: ConversationState; stream: TurnStream } {
    const { request, names, stream } = this.#queued
    const state = this.#around.remember()
    if (stream) return { state, stream }
    const now = Date.now()
    if (state.introduce({ ...request, title: textOf(request.question) }, now))
      state.records.putBeginning(this.#entry(state, now))
    const question = textOf(request.question)
    const turn = state.log.begin(question, now, this.#expiry(now), names, this.#kept)
    this.#around.schedule(state)
    return { state, stream: this.#open(state, turn) }
  }

  /** Has a turn's readers follow it. @param run 2 if it runs for the second time */
  #open(state: ConversationState, turn: number, run?: number): TurnStream {
    const log = (lines: string, results: { seq: number; line: string }[]): void => {
      if (state.closed) return
      state.log.append(turn, lines)
      for (const { seq, line } of results) state.log.keepResults(turn, seq, line)
      // Only the first time. Later a timer records it, because computing the cost reads all text received so far.
      if (this.#noted === '') this.#note(state, turn)
    }
    const stream = new TurnStream(this.#id, turn, log, run)
    this.#queued.begin(stream, () => {
      if (!state.closed) state.log.abandon(turn, true)
    })
    return stream
  }

  #refuse(error: ApiError): void {
    const event = errorOf(error)
    const { stream } = this.#queued
    const state = this.#around.state()
    if (this.#left && stream && state) {
      this.#emit(state, stream, event)
      return
    }
    // Ignore events after the end.
    if (this.#turn.status === 'running') foldBody(this.#turn, event)
    this.#queued.refuse(event)
  }

  #ports(
    known: RecentMessages | undefined,
    searching: SearchPorts | undefined,
    result: Pick<TurnPorts, 'emit' | 'store'>,
  ): TurnPorts {
    const { request } = this.#queued
    return withModels(this.#env, request, this.#trail, {
      ...result,
      ...(searching ?? searchPorts(this.#env, request)),
      spends: (spent) => {
        this.#spent = spent
      },
      known,
      messages: async (bytes) =>
        bytes === request.model.max_bytes && known
          ? known
          : await this.#history.messages(this.#replaced, bytes),
      ttls: (ids) =>
        ttlsOf(this.#env.DB, ids).catch((error) => {
          // The sweep also leaves a message whose ttl it cannot know.
          logFailure('the ttls of other models could not be read', error, this.#trail)
          return new Map<string, number>()
        }),
    })
  }

  /**
   * Makes the turn history. One transaction writes it down here, so it is history as a whole or not at all,
   * whatever happens to this object. Then it goes to the history collection and to D1.
   */
  async #store(
    state: ConversationState,
    stream: TurnStream,
    done: DoneEvent,
    now: number,
  ): Promise<Outcome<void>> {
    if (state.closed) throw stopped()
    const { historyId, model } = this.#queued.request
    const { turn } = stream
    this.#queued.committed = true
    stream.flush()
    const whole = foldBody({ ...this.#turn, turn }, done)
    // All share one timestamp, so that a ttl never removes a question without its answer.
    const timestamp = Math.floor(now / 1000)
    state.outbox.put(
      turn,
      historyId,
      documentsOf(whole, { id: this.#id, modelId: model.id }, timestamp),
      this.#replaced,
    )
    state.records.put(turn, this.#record(state, whole, now))
    // From here on the record reports the cost.
    this.#over = true
    state.log.markSaid(turn, timestamp, done.finish_reason)
    const [outcome] = await Promise.all([
      state.outbox.settle(turn, { requestId: this.#queued.request.requestId }),
      state.records.settle(),
    ])
    // If the conversation was deleted, the deletion counts the cost in this record.
    this.#counted = state.closed
    if (outcome.ok || state.closed) {
      // Their rows stay in D1, as versions.
      if (outcome.ok && !state.closed) for (const replaced of this.#replaced) state.log.forget(replaced)
      return outcome
    }
    state.log.markUnsaid(turn)
    if (state.records.turns.includes(turn)) {
      state.records.drop(turn)
      // Its record would have told D1 about a conversation that D1 may not know yet.
      state.records.putBeginning(this.#entry(state, Date.now()))
    } else this.#counted = true
    await takeBackTurn(this.#env.DB, this.#id, turn).catch((error) =>
      logFailure('the record of a refused turn stays until it expires', error, this.#trail),
    )
    return outcome
  }

  /** The conversation's own row at this moment. */
  #entry(state: ConversationState, now: number): ConversationEntry {
    const { historyId, model } = this.#queued.request
    return state.entry({ historyId, modelId: model.id, ttl: model.ttl }, now)
  }

  #record(state: ConversationState, turn: Turn, now: number): TurnRecord {
    const { model } = this.#queued.request
    const trace = traceOf(turn)
    const conversation = this.#entry(state, now)
    return {
      conversation,
      turn: turnRow(turn, trace, now, conversation, model.model_name),
      ...this.#cost(now, spendingOf(trace.calls, model.id)),
      ...(this.#replaced.length > 0 && { replaced: this.#replaced }),
    }
  }

  #cost(now: number, spent: Spending[]): Cost {
    const { owner } = this.#queued.request.asker
    const day = dayOf(now)
    const own = spent.map((spending): ModelUsage => ({ day, owner, ...spending }))
    const [usage, ...others] = [...own, ...this.#spentBefore]
    return {
      usage: usage!,
      ...(others.length > 0 && { others }),
      ...(this.#copied && { copied: true }),
      ...this.#reservation.counted,
    }
  }

  /** When something said now expires, in milliseconds since 1970. */
  #expiry(now: number): number {
    return expiryOf(this.#queued.request.model.ttl, now)
  }
}

// =============================================================================
// What was said before a turn, as its Conversation object and the history collection have it.

class TurnHistory {
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

// =============================================================================
// A turn's place in the budgets of turns of its key and its model: taken before it runs, given back if it cost nothing.

export class Reservation {
  readonly #env: Cloudflare.Env
  readonly #request: AskRequest
  readonly #trail: Trail
  #reserved: Reserved | undefined
  /** set once the turn has cost something */
  used = false

  /** @param reserved what was taken for the turn in an earlier run */
  constructor(env: Cloudflare.Env, request: AskRequest, trail: Trail, reserved?: Reserved) {
    this.#env = env
    this.#request = request
    this.#trail = trail
    this.#reserved = reserved
  }

  /** What was taken, to be kept with the turn. */
  get reserved(): Reserved | undefined {
    return this.#reserved
  }

  /** @returns why the turn may not run; without budgets undefined at once, so that nothing waits */
  take(): Promise<ApiError | undefined> | undefined {
    const { asker, model, turnsPerDay } = this.#request
    if (this.#reserved) return undefined
    if (turnsPerDay === undefined && typeof model.turns_per_day !== 'number') return undefined
    return reserveTurn(this.#env, { owner: asker.owner, model, turnsPerDay }).then(
      (reserved) => {
        this.#reserved = reserved
        return undefined
      },
      (error) => {
        if (error instanceof ApiError) return error
        logFailure('a turn could not be counted', error, this.#trail)
        return coded('unavailable', 503, 'The budget of this key cannot be read now. Try again.')
      },
    )
  }

  /** What the cost of the turn adds to the count. */
  get counted(): Pick<Cost, 'turns'> {
    return this.#reserved ? { turns: 0 } : {}
  }

  /** Call this when the turn has ended, however it did. Never throws. */
  async end(): Promise<void> {
    if (!this.#reserved || this.used) return
    const usage = { ...this.#reserved, inputTokens: 0, outputTokens: 0 }
    await recordCost(this.#env.DB, { usage, turns: -1 }).catch((error) =>
      logFailure('a turn that cost nothing stays counted', error, this.#trail),
    )
  }
}
