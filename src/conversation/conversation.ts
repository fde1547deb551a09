/**
 * A conversation: the one place where its turns run, one after another.
 *
 * A turn belongs to this object and not to the request that asked for it: readers come and go, it runs to its
 * end. What is kept here is the log of recent turns and what history has not yet taken; history itself is in
 * the history collection and in D1. An object that was only asked about holds nothing.
 */
import { DurableObject } from 'cloudflare:workers'
import { Alarm } from '../alarm'
import { database } from '../db/client'
import { deleteConversationRows, hideConversation } from '../db/conversations'
import { ApiError, attempt, type Outcome, reasonOf } from '../errors'
import { collectionObject } from '../search/collection/handle'
import { settlesWithin } from '../settles'
import { unknownConversation } from '../turn/errors'
import type { TracedTurn } from '../turn/fold'
import type { Asker, AskRequest } from '../turn/request'
import { transcriptTo } from './branch'
import type { Asked, ConversationRpc, Position } from './conversation-object'
import { joinQueued, namesOf, type RequestIdentity, replay, replayInterrupted, requireSame } from './joins'
import { Memory } from './memory'
import { requireAsker } from './ownership'
import { Reader } from './reader'
import { Succession, UNDERWAY_MS } from './succession'
import type { RequestNames } from './turn-log'
import { Attempts, QueuedTurn, TurnQueue } from './turn-queue'
import { TurnRun } from './turn-run'
import { UsedMark } from './used-mark'

/**
 * While a turn runs an alarm is set this far ahead, in milliseconds: should the object not live to see its end, it
 * wakes and says so.
 */
const HEARTBEAT_MS = 30_000
/** How long a deletion waits for writes that are under way, and until it is tried again. */
const ERASE_PATIENCE_MS = 5_000
const ERASE_RETRY_MS = 10_000
/** When to look again whether the messages are gone that outlived the turns here, their model's ttl having grown. */
const LINGER_MS = 600_000

/** What is told to a reader whom D1 keeps waiting, in seconds. */
const RETRY_READING = 5

export class Conversation extends DurableObject implements ConversationRpc {
  readonly #id = this.ctx.id.name ?? this.ctx.id.toString()
  readonly #alarm = new Alarm(this.ctx.storage)
  readonly #mark = new UsedMark(this.ctx.storage, this.#alarm)
  #memory = Memory.load(...this.#held())
  #queue = new TurnQueue()
  #attempts = new Attempts()
  #erasing: Promise<boolean> | undefined
  readonly #succession = new Succession(this.env, {
    id: this.#id,
    memory: () => this.#memory,
    isCopyable: (identity) => this.#isCopyable(identity),
  })

  ask(request: AskRequest): Promise<Outcome<Asked>> {
    return attempt(async () => {
      const { asker, continues, after } = request
      requireAsker(asker)
      const made = this.#attempts.find(request)
      if (made) return { events: made.addCaller().stream }
      const memory = this.#memory
      if (memory?.closed || memory?.mayContinue(asker) === false) {
        if (continues) throw unknownConversation()
        return this.#succession.place(request)
      }
      const names = namesOf(request)
      if (!continues && names.idempotencyKey === undefined) {
        // Somebody else may have asked the same. The id of a request without names is random: it met nobody here.
        return this.#isUsed(request) ? this.#succession.place(request) : this.#enqueued(request, names)
      }
      const joined = (await this.#joinFinished(names)) ?? joinQueued(this.#queue, names)
      if (joined) return { events: joined }
      if (!continues && this.#taken) return this.#succession.place(request)
      if (after !== undefined) {
        if (memory) await this.#forgetDeleted(memory, after)
        const transcript = await transcriptTo(this.env, memory, request, this.#queue.hasOther(after))
        if (transcript) return { ...(await this.#succession.place(request)), transcript }
      }
      return this.#enqueued(request, names)
    })
  }

  async isOpenTo(asker: Asker): Promise<boolean> {
    const memory = this.#memory
    return memory === undefined || (!memory.closed && memory.mayContinue(asker))
  }

  async holds(identity: RequestIdentity): Promise<'turn' | 'nothing' | 'other'> {
    if (this.#isCopyable(identity)) return 'turn'
    return this.#memory === undefined && this.#queue.idle ? 'nothing' : 'other'
  }

  copy(identity: RequestIdentity): Promise<Outcome<ReadableStream<Uint8Array> | null>> {
    return attempt(async () => {
      if (this.#memory === undefined && this.#queue.idle)
        await settlesWithin(UNDERWAY_MS, this.#queue.arrival())
      if (!this.#isCopyable(identity)) return null
      const names = namesOf(identity)
      return (await this.#joinFinished(names, true)) ?? joinQueued(this.#queue, names) ?? null
    })
  }

  events(asker: Asker, after?: Position): Promise<Outcome<ReadableStream<Uint8Array> | null>> {
    return attempt(async () => {
      const known = this.#readable(asker)
      await this.#forgetDeleted(known, after?.turn ?? known.log.latest() ?? 0)
      // From here on without a pause, so that no event falls between the log and the running turn.
      const memory = this.#readable(asker)
      const { current } = this.#queue
      const from = after?.turn ?? (current ? Number.POSITIVE_INFINITY : (memory.log.latest() ?? 0))
      const missed = memory.log.readingAfter(from, after?.seq ?? -1, current?.stream?.turn)
      if (missed.length === 0 && !current) return null
      const reader = new Reader()
      for (const source of missed) reader.follow(source)
      if (current) current.addReader(reader, current.stream?.turn === after?.turn ? after?.seq : -1)
      else reader.end()
      return reader.stream
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
      return true
    })
  }

  async lost(turn: number): Promise<void> {
    const memory = this.#memory
    if (memory && !memory.closed) memory.log.abandon(turn, true)
  }

  recorded(asker: Asker): Promise<Outcome<void>> {
    return attempt(async () => {
      const memory = this.#memory
      if (!memory) return
      if (memory.mayRead(asker) && !memory.records.empty) await this.#deliver(memory)
      if (!memory.mayRead(asker)) throw unknownConversation()
      if (memory.records.empty) return
      throw new ApiError(503, 'The conversation cannot be read now. Try again later.', RETRY_READING)
    })
  }

  unanswered(asker: Asker, turn?: number): Promise<Outcome<TracedTurn[]>> {
    return attempt(() => {
      const memory = this.#memory
      if (!memory) return []
      if (!memory.mayRead(asker)) throw unknownConversation()
      return memory.log.unanswered(turn)
    })
  }

  remove(asker: Asker): Promise<Outcome<boolean>> {
    return attempt(async () => {
      const memory = this.#memory
      if (!memory) return false
      if (!memory.mayRead(asker)) throw unknownConversation()
      await this.erase()
      return true
    })
  }

  erase(historyId?: string): Promise<boolean> {
    this.#memory ??= this.#create()
    const memory = this.#memory
    if (historyId !== undefined) memory.addHistory(historyId)
    memory.erase()
    this.#queue.stopAll()
    this.#queue = new TurnQueue()
    this.#attempts = new Attempts()
    return this.#erase(memory)
  }

  /** Delivers what D1 and history have not taken yet, and forgets turns past their time. */
  override async alarm(): Promise<void> {
    this.#alarm.rang()
    const memory = this.#memory
    if (!memory) return this.#clear()
    if (memory.closed) {
      await this.#erase(memory)
      return
    }
    await this.#deliver(memory)
    if (memory.closed) return void (await this.#erasing)
    memory.log.expire(Date.now())
    if (memory.log.empty && this.#atRest(memory)) await this.#forget(memory)
    else this.#schedule(memory)
  }

  #create(): Memory {
    return new Memory(...this.#held())
  }

  /** What a memory is made of. */
  #held(): ConstructorParameters<typeof Memory> {
    return [this.ctx.storage.sql, this.env, this.#id, () => this.ctx.waitUntil(this.erase())]
  }

  /** @throws ApiError 404 */
  #readable(asker: Asker): Memory {
    const memory = this.#memory
    if (!memory?.mayRead(asker) || (memory.log.empty && this.#queue.idle)) throw unknownConversation()
    return memory
  }

  /** Whether a new conversation cannot begin here: there is one. */
  get #taken(): boolean {
    return !this.#queue.idle || this.#memory?.log.answered === true
  }

  /** Whether somebody may know this id already whose request was led to it by what it says. */
  #isUsed({ foundUntil }: AskRequest): boolean {
    return foundUntil !== undefined && (this.#memory !== undefined || !this.#queue.idle || this.#mark.isSet)
  }

  #isCopyable(identity: RequestIdentity): boolean {
    const memory = this.#memory
    if (memory?.closed || memory?.mayContinue(identity.asker) === false) return false
    const names = namesOf(identity)
    return this.#queue.find(names) !== undefined || memory?.log.copyable(names, Date.now()) !== undefined
  }

  #enqueued(request: AskRequest, names: RequestNames): Asked {
    return { events: this.#enqueue(request, names) }
  }

  #enqueue(request: AskRequest, names: RequestNames): ReadableStream<Uint8Array> {
    const turn = new QueuedTurn(request, names)
    this.#attempts.add(turn)
    const reader = turn.addCaller()
    const run = new TurnRun(turn, this.env, {
      memory: () => this.#memory,
      remember: () => {
        this.#memory ??= this.#create()
        return this.#memory
      },
      schedule: (memory) => this.#schedule(memory),
    })
    const ended = this.#queue
      .add(turn, () => run.run())
      .then(() => {
        const memory = this.#memory
        if (memory && !memory.closed) this.#schedule(memory)
      })
    this.ctx.waitUntil(ended)
    return reader.stream
  }

  /** @throws ApiError 422; 409 for an idempotency key of long ago */
  async #joinFinished(names: RequestNames, copies = false): Promise<ReadableStream<Uint8Array> | undefined> {
    const memory = this.#memory
    const finished = memory?.log[copies ? 'copyable' : 'joinable'](names, Date.now())
    if (!memory || !finished || this.#queue.find(names)) return undefined
    const { turn } = finished
    requireSame(names, finished.fingerprint ?? undefined)
    await this.#forgetDeleted(memory, turn)
    if (memory.closed || !memory.log.ended(turn).some((ended) => ended.turn === turn)) return undefined
    return replay(memory, turn, names)
  }

  /**
   * Forgets the turns from this one on whose messages somebody has deleted from the history collection. Where
   * nothing is left the conversation is deleted.
   * @throws ApiError 404 where nothing is left
   */
  async #forgetDeleted(memory: Memory, from: number): Promise<void> {
    // A turn that an earlier life of this object could not hand over: nobody is told its end before history has it.
    if (!memory.outbox.empty) await memory.outbox.deliver()
    // Where one is gone others may be: one question about a few turns is enough for the usual case.
    const some = await this.#deletedTurns(memory, from)
    const deleted = some.length === 0 ? [] : await this.#deletedTurns(memory, 0)
    if (memory.closed || deleted.length === 0) return
    for (const turn of deleted) memory.log.forget(turn)
    if (memory.log.answered || (await this.#remembered(memory)) || !this.#atRest(memory)) return
    this.ctx.waitUntil(this.erase())
    throw unknownConversation()
  }

  async #deletedTurns(memory: Memory, from: number): Promise<number[]> {
    const waiting = memory.outbox.turns
    const said = memory.log.ended(from).filter(({ turn, saidAt }) => saidAt !== null && !waiting.has(turn))
    if (said.length === 0) return []
    const whole = await Promise.all(
      memory.histories.map((history) =>
        collectionObject(this.env, history).wholeTurns(
          this.#id,
          said.map(({ saidAt }) => saidAt!),
        ),
      ),
    )
    const left = new Set(whole.flat())
    return said.filter(({ saidAt }) => !left.has(saidAt!)).map(({ turn }) => turn)
  }

  /** Hands over what history and D1 have not taken yet. */
  async #deliver(memory: Memory): Promise<void> {
    await memory.outbox.deliver()
    await this.#dropDeletedRecords(memory)
    await memory.records.deliver()
  }

  /** Takes records back whose turns were deleted while D1 did not answer: only what they cost is still told. */
  async #dropDeletedRecords(memory: Memory): Promise<void> {
    const waiting = memory.records.turns
    if (waiting.length === 0) return
    const deleted = await this.#deletedTurns(memory, Math.min(...waiting)).catch(() => [])
    if (memory.closed) return
    for (const turn of deleted) memory.records.reduce(turn)
  }

  #atRest(memory: Memory): boolean {
    return this.#queue.idle && memory.outbox.empty && memory.records.empty
  }

  /**
   * Deletes what is left of a conversation whose turns have all expired. While its history holds messages,
   * somebody may go on with it, and it must be known whose it is.
   */
  async #forget(memory: Memory): Promise<void> {
    const remembered = await this.#remembered(memory).catch(() => true)
    if (memory.closed || !memory.log.empty || !this.#atRest(memory)) return
    if (remembered) {
      this.#alarm.set(Date.now() + LINGER_MS)
    } else {
      await this.#clear()
    }
  }

  /** Lets go of everything but the mark that its id has been used, where it needs one. */
  async #clear(): Promise<void> {
    const until = this.#memory?.foundUntil
    this.#memory = undefined
    await this.#mark.clear(until)
  }

  /** Whether its history holds any message of it. */
  async #remembered(memory: Memory): Promise<boolean> {
    const left = await Promise.all(
      memory.histories.map((history) => collectionObject(this.env, history).recentMessages(this.#id, 0)),
    )
    return left.some(({ messages }) => messages.length > 0)
  }

  #erase(memory: Memory): Promise<boolean> {
    this.#erasing ??= this.#eraseAll(memory).finally(() => {
      this.#erasing = undefined
    })
    return this.#erasing
  }

  async #eraseAll(memory: Memory): Promise<boolean> {
    // Should this object not live to see the end of it, the alarm goes on.
    this.#alarm.set(Date.now() + ERASE_RETRY_MS)
    try {
      const written = Promise.all([memory.outbox.settled(), memory.records.settled()])
      if (!(await settlesWithin(ERASE_PATIENCE_MS, written))) throw new Error('a write is still under way')
      await memory.records.deliverCosts()
      for (const history of memory.histories) {
        const collection = collectionObject(this.env, history)
        while (!(await collection.removeConversation(this.#id)).done);
      }
      await deleteConversationRows(database(this.env), this.#id)
      await this.#clear()
      return true
    } catch (error) {
      console.error('a conversation could not be deleted yet', reasonOf(error))
      this.#alarm.set(Date.now() + ERASE_RETRY_MS)
      // Where it is D1 that does not answer nobody reads it there either.
      await hideConversation(database(this.env), this.#id).catch(() => {})
      return false
    }
  }

  /** Sets the alarm for whatever comes next: a sign of life, another try to deliver, the next turn to forget. */
  #schedule({ outbox, records, log }: Memory): void {
    const now = Date.now()
    const times = [
      this.#queue.idle ? undefined : now + HEARTBEAT_MS,
      outbox.empty ? undefined : now + outbox.patience,
      records.empty ? undefined : now + records.patience,
      log.nextExpiry(),
    ].filter((time) => time !== undefined)
    // While a turn runs the alarm may well ring early: moving it costs more than that.
    if (times.length > 0) this.#alarm.set(Math.min(...times), { orSooner: !this.#queue.idle })
  }
}
