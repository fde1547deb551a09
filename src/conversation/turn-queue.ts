/** The waiting and running turns of a conversation. They run one after another, in the order they came. */
import { type ApiError, coded } from '../errors'
import type { RecentMessages } from '../search/types'
import type { ErrorEvent, Reading, TurnEvent } from '../turn/events'
import type { AskRequest } from '../turn/request'
import type { Wording } from '../turn/wording'
import type { ConversationState } from './conversation-state'
import { isSameOwner } from './ownership'
import { Reader, type Reads } from './reader'
import type { RequestNames } from './turn-log'
import type { SearchPorts } from './turn-ports'
import type { Joining, TurnStream } from './turn-stream'

/** turns that may wait behind the running one */
export const QUEUE_LIMIT = 32

/** readers that may follow one turn at once */
const READER_LIMIT = 100

/** `retryAfter` if the queue is full, in seconds: about one turn. */
const RETRY_AFTER = 5

const encoder = new TextEncoder()

/** What a turn needs from its object. */
export interface Surroundings {
  /** what the object stores; undefined: nothing yet */
  state(): ConversationState | undefined
  /** the same, created if missing */
  remember(): ConversationState
  schedule(state: ConversationState): void
  /** Settles when everything that was stored so far is on disk. */
  written(): Promise<void>
  /** what was read ahead for this turn */
  prefetched(): Promise<RecentMessages | undefined>
  /** its searches, if they began before it */
  searching: SearchPorts | undefined
}

/** A turn, from the moment it is asked for. */
export class QueuedTurn {
  readonly abort = new AbortController()
  /** readers who asked: the one who began the turn, and whoever sent the same request again */
  readonly #callers: Reader[] = []
  /** readers who wait for the turn to begin */
  readonly #waiting: { reader: Reader; reading: Joining | undefined }[] = []
  /** readers of words who wait for that */
  readonly #writing: { reader: Reader; words: Wording }[] = []
  /** set when the turn has begun */
  #stream: TurnStream | undefined
  /** whether a caller who may have seen some of the answer has left */
  #seen = false
  #onAbandoned = (): void => {}
  /** called when a caller has left */
  onLeft = (): void => {}
  /** whether its answer is complete and being stored; from then on it cannot be stopped */
  committed = false
  /** how the turn ended, if it never began */
  #refusal: ErrorEvent | undefined

  constructor(
    readonly request: AskRequest,
    readonly names: RequestNames,
  ) {}

  /** Adds a reader who asked for this turn. @param reading what they ask for besides the usual events */
  addCaller(reading: Reading | undefined, without?: 'words'): Reader {
    const reader = new Reader(() => {
      this.#seen ||= this.speaking
      if (this.abandoned) this.#onAbandoned()
      this.onLeft()
    })
    this.addReader(reader, -1, { ...reading, ...(without && { without }) })
    this.#callers.push(reader)
    return reader
  }

  /** What a caller reads who asked for this turn. */
  readsOf({ read, words }: AskRequest): Reads {
    if (words === undefined || this.#stream?.isRepeated) return { events: this.addCaller(read).stream }
    const caller = this.addCaller(read, 'words')
    // While words are written, nothing is written to the caller's own stream, so only the words' stream notices that
    // the caller has left.
    const written = new Reader(() => caller.leave())
    if (this.#stream) this.#stream.joinWords(written, words)
    else if (this.#refusal) written.end()
    else this.#writing.push({ reader: written, words })
    return { events: caller.stream, words: written.stream }
  }

  /**
   * Lets a reader have the events after `seq`, including those to come. @throws ApiError 429 if there are too
   * many readers
   */
  addReader(reader: Reader, seq = -1, reading?: Joining): void {
    if ((this.#stream?.readers ?? this.#waiting.length) >= READER_LIMIT) {
      throw tooMany(`Too many readers follow this conversation (${READER_LIMIT}).`)
    }
    if (this.#stream) this.#stream.join(reader, seq, reading)
    else this.#waiting.push({ reader, reading })
    if (this.#refusal) this.refuse(this.#refusal)
  }

  get stream(): TurnStream | undefined {
    return this.#stream
  }

  /** Whether any of the answer can be read yet. */
  get speaking(): boolean {
    return this.#stream?.speaking === true
  }

  /**
   * Whether all callers have left, so that their request gets this answer if it comes again. A caller who asked
   * to regenerate an answer, saw some of it and left wants another one when they ask again.
   */
  get abandoned(): boolean {
    if (this.request.replaces && this.#seen) return false
    return this.#callers.every((reader) => reader.gone)
  }

  /** Whether nobody reads it: all callers have left, and nobody else follows it. */
  get unread(): boolean {
    const others = this.#stream?.readers ?? this.#waiting.filter(({ reader }) => reader.open).length
    return others === 0 && this.#callers.every((reader) => reader.gone)
  }

  /** @param onAbandoned called when the last caller has left */
  begin(stream: TurnStream, onAbandoned: () => void): void {
    this.#stream = stream
    this.#onAbandoned = onAbandoned
    for (const { reader, reading } of this.#waiting.splice(0)) stream.join(reader, -1, reading)
    for (const { reader, words } of this.#writing.splice(0)) stream.joinWords(reader, words)
  }

  /** Ends a turn that has not begun, and of which no trace is kept: its number is 0. */
  refuse(error: ErrorEvent): void {
    this.#refusal = error
    const event: TurnEvent = { ...error, conversation_id: this.request.conversationId, turn: 0, seq: 0 }
    for (const { reader } of this.#writing.splice(0)) reader.end()
    for (const { reader } of this.#waiting.splice(0)) {
      reader.write(encoder.encode(`${JSON.stringify(event)}\n`))
      reader.end()
    }
  }
}

const tooMany = (what: string): ApiError =>
  coded('too_many_waiting', 429, `${what} Try again later.`, RETRY_AFTER)

export class TurnQueue {
  readonly #turns: QueuedTurn[] = []
  /** messages that are waiting or being stored */
  #messages = 0
  /** called when the next turn arrives */
  #awaiting: (() => void)[] = []
  /** settles when the last turn in the queue has ended; never rejects */
  #end: Promise<void> = Promise.resolve()

  /** The turn that is running or about to run. */
  get current(): QueuedTurn | undefined {
    return this.#turns.find((turn) => !turn.stream?.ended)
  }

  get idle(): boolean {
    return this.#turns.length + this.#messages === 0
  }

  /**
   * The turn that this request joins, if it is in the queue already. A request to regenerate an answer that can
   * already be read in part wants a new turn; it does not wait until the first one's readers are seen to leave.
   */
  find({ idempotencyKey, fingerprint }: RequestNames): QueuedTurn | undefined {
    if (idempotencyKey !== undefined) {
      return this.#turns.find(({ names }) => names.idempotencyKey === idempotencyKey)
    }
    if (fingerprint === undefined) return undefined
    return this.#turns.find(
      ({ names, request, speaking }) => names.fingerprint === fingerprint && !(request.replaces && speaking),
    )
  }

  /**
   * @param run runs the turn when its time comes; it must handle its own errors
   * @returns when the turn and all before it have ended
   * @throws ApiError 429 if too many are waiting
   */
  add(turn: QueuedTurn, run: () => Promise<void>): Promise<void> {
    this.#requireRoom()
    this.#turns.push(turn)
    turn.onLeft = () => this.#stopLeft()
    this.#stopLeft()
    for (const tell of this.#awaiting.splice(0)) tell()
    this.#end = this.#end.then(run).finally(() => {
      this.#turns.shift()
    })
    return this.#end
  }

  /**
   * Stores a message in its place among the turns: after those before it, so that its number is higher than theirs.
   * @throws ApiError 429 if too many are waiting; whatever `store` throws
   */
  addMessage<T>(store: () => Promise<T>): Promise<T> {
    this.#requireRoom()
    this.#messages += 1
    const stored = this.#end.then(store)
    this.#end = stored
      .then(
        () => {},
        () => {},
      )
      .finally(() => {
        this.#messages -= 1
      })
    return stored
  }

  /**
   * Stops each turn whose asker has left and sent a later question: nobody reads the turn, and the question would
   * wait for it. Without a later question it goes on, because its reader may come back. Runtimes report a hang-up
   * late, so this is checked when a turn comes and when a caller leaves.
   */
  #stopLeft(): void {
    for (const [index, turn] of this.#turns.entries()) {
      if (turn.committed || !turn.unread) continue
      const later = this.#turns.slice(index + 1)
      if (later.some(({ request }) => isSameOwner(request.asker, turn.request.asker))) turn.abort.abort()
    }
  }

  #requireRoom(): void {
    if (this.#turns.length + this.#messages <= QUEUE_LIMIT) return
    throw tooMany(`Too many turns are waiting in this conversation (${QUEUE_LIMIT}).`)
  }

  /** Whether another turn is running or waiting. */
  hasOther(number: number): boolean {
    return this.#turns.some(({ stream }) => stream?.turn !== number)
  }

  /** Settles when a turn comes. */
  arrival(): Promise<void> {
    return new Promise((resolve) => this.#awaiting.push(resolve))
  }

  /** Stops the running turn and all that wait. */
  stopAll(): void {
    for (const turn of this.#turns) turn.abort.abort()
  }
}

/** How long after a lost reply an `ask` call may be repeated, in milliseconds. */
const ATTEMPT_MS = 10_000

/**
 * Turns begun recently, by the `ask` call that began them. A call whose reply was lost is repeated, and must
 * not ask twice.
 */
export class Attempts {
  readonly #turns = new Map<string, { turn: QueuedTurn; until: number }>()

  find({ attempt }: AskRequest): QueuedTurn | undefined {
    return attempt === undefined ? undefined : this.#turns.get(attempt)?.turn
  }

  add(turn: QueuedTurn): void {
    const { attempt } = turn.request
    const now = Date.now()
    // Oldest first.
    for (const [old, { until }] of this.#turns) {
      if (until > now) break
      this.#turns.delete(old)
    }
    if (attempt !== undefined) this.#turns.set(attempt, { turn, until: now + ATTEMPT_MS })
  }
}
