/**
 * The turns of a conversation that are waiting and the one that is running, one after another in the order in
 * which they came.
 */
import { coded } from '../errors'
import type { ErrorEvent, Reading, TurnEvent } from '../turn/events'
import type { AskRequest } from '../turn/request'
import { Reader } from './reader'
import type { RequestNames } from './turn-log'
import type { TurnStream } from './turn-stream'

/** turns that may wait behind the running one */
export const QUEUE_LIMIT = 32

/** those who may read along with a turn at once */
export const READER_LIMIT = 100

/** What is told to a caller who comes when the queue is full, in seconds: about one turn. */
const RETRY_AFTER = 5

const encoder = new TextEncoder()

/** A turn from the moment that it is asked for. */
export class QueuedTurn {
  readonly abort = new AbortController()
  /** those who asked: the one who began the turn, and whoever asked the same again */
  readonly #callers: Reader[] = []
  /** those who wait for the turn to begin */
  readonly #waiting: { reader: Reader; reading: Reading | undefined }[] = []
  /** set when the turn has begun */
  #stream: TurnStream | undefined
  /** whether somebody who asked may have seen some of the answer, and has left */
  #seen = false
  #onAbandoned = (): void => {}
  /** whether its answer is complete and becomes history: from then on it is not stopped */
  committed = false
  /** what the turn ended in, where it never began */
  #refusal: ErrorEvent | undefined

  constructor(
    readonly request: AskRequest,
    readonly names: RequestNames,
  ) {}

  /** Lets somebody read along who asked for this turn. @param reading what they ask for besides the usual events */
  addCaller(reading: Reading | undefined): Reader {
    const reader = new Reader(() => {
      this.#seen ||= this.speaking
      if (this.abandoned) this.#onAbandoned()
    })
    this.addReader(reader, -1, reading)
    this.#callers.push(reader)
    return reader
  }

  /** Lets a reader have the events after `seq`, those to come included. @throws ApiError 429 when there are too many */
  addReader(reader: Reader, seq = -1, reading?: Reading): void {
    if ((this.#stream?.readers ?? this.#waiting.length) >= READER_LIMIT) {
      throw coded(
        'too_many_waiting',
        429,
        `Too many readers follow this conversation (${READER_LIMIT}). Try again later.`,
        RETRY_AFTER,
      )
    }
    if (this.#stream) this.#stream.join(reader, seq, reading)
    else this.#waiting.push({ reader, reading })
    if (this.#refusal) this.refuse(this.#refusal)
  }

  get stream(): TurnStream | undefined {
    return this.#stream
  }

  /** Whether there has been anything of the answer to read. */
  get speaking(): boolean {
    return this.#stream?.speaking === true
  }

  /**
   * Whether all who asked have gone, and their request is to be told this answer when it comes again. Who has seen some
   * of an answer that was written anew, and asks for it anew, wants another one.
   */
  get abandoned(): boolean {
    if (this.request.replaces && this.#seen) return false
    return this.#callers.every((reader) => reader.gone)
  }

  /** @param onAbandoned called when the last who asked has gone */
  begin(stream: TurnStream, onAbandoned: () => void): void {
    this.#stream = stream
    this.#onAbandoned = onAbandoned
    for (const { reader, reading } of this.#waiting.splice(0)) stream.join(reader, -1, reading)
  }

  /** Ends a turn that has not begun, and of which no trace is kept: its number is 0. */
  refuse(error: ErrorEvent): void {
    this.#refusal = error
    const event: TurnEvent = { ...error, conversation_id: this.request.conversationId, turn: 0, seq: 0 }
    for (const { reader } of this.#waiting.splice(0)) {
      reader.write(encoder.encode(`${JSON.stringify(event)}\n`))
      reader.end()
    }
  }
}

export class TurnQueue {
  readonly #turns: QueuedTurn[] = []
  /** told of the next turn that comes */
  #awaiting: (() => void)[] = []
  /** settles when the last turn in the queue has ended; never rejects */
  #end: Promise<void> = Promise.resolve()

  /** The turn that is running, or about to. */
  get current(): QueuedTurn | undefined {
    return this.#turns.find((turn) => !turn.stream?.ended)
  }

  get idle(): boolean {
    return this.#turns.length === 0
  }

  /**
   * The turn that this request joins, if it is in the queue already. To ask for an answer anew that can be read in part
   * is to ask for another one, which does not wait for the first one's readers to be seen leaving.
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
   * @param run runs the turn when its time has come; it must see to its own errors
   * @returns when it and all before it have ended
   * @throws ApiError 429 when too many are waiting
   */
  add(turn: QueuedTurn, run: () => Promise<void>): Promise<void> {
    if (this.#turns.length > QUEUE_LIMIT) {
      throw coded(
        'too_many_waiting',
        429,
        `Too many turns are waiting in this conversation (${QUEUE_LIMIT}). Try again later.`,
        RETRY_AFTER,
      )
    }
    this.#turns.push(turn)
    for (const tell of this.#awaiting.splice(0)) tell()
    this.#end = this.#end.then(run).finally(() => {
      this.#turns.shift()
    })
    return this.#end
  }

  /** Whether a turn other than this one is running or waiting. */
  hasOther(number: number): boolean {
    return this.#turns.some(({ stream }) => stream?.turn !== number)
  }

  /** Settles when a turn comes. */
  arrival(): Promise<void> {
    return new Promise((resolve) => this.#awaiting.push(resolve))
  }

  /** Ends the turn that is running, and all that are waiting. */
  stopAll(): void {
    for (const turn of this.#turns) turn.abort.abort()
  }
}

/** How long a call of `ask` whose answer was lost may take to come again, in milliseconds. */
const ATTEMPT_MS = 10_000

/**
 * The turns that were begun of late, by the call that began them: one whose answer got lost on its way is made again,
 * and must not ask twice.
 */
export class Attempts {
  readonly #turns = new Map<string, { turn: QueuedTurn; until: number }>()

  find({ attempt }: AskRequest): QueuedTurn | undefined {
    return attempt === undefined ? undefined : this.#turns.get(attempt)?.turn
  }

  add(turn: QueuedTurn): void {
    const { attempt } = turn.request
    const now = Date.now()
    // In the order in which they came.
    for (const [old, { until }] of this.#turns) {
      if (until > now) break
      this.#turns.delete(old)
    }
    if (attempt !== undefined) this.#turns.set(attempt, { turn, until: now + ATTEMPT_MS })
  }
}
