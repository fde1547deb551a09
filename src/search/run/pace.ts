/**
 * Paces one search so that others are served meanwhile.
 *
 * A SQLite statement cannot be interrupted, and while one runs the object serves nothing else; nor do other objects
 * on the same thread. So a search reads its collection in slices (candidates.ts) and yields between them. A search that
 * needs only one slice never waits. Longer ones take turns, a slice each. Only a few run at a time, since each holds
 * its matches in memory.
 */
import { ApiError } from '../../errors'
import type { Range, SqlFragment } from '../fragment'
import { CUTOFF_MS } from '../limits'
import type { Steps } from '../steps'

/** The limits of a slice. */
export interface Slice {
  /** the target, in milliseconds */
  ms: number
  /**
   * Rows that SQLite may read. They count besides the time, because the clock of a deployed Worker stands still while
   * it computes.
   */
  rows: number
  /** sequence numbers that it spans at most, since later documents may cost more than earlier ones */
  width: number
}

const SLICE: Slice = { ms: 12, rows: 40_000, width: 65_536 }

/** A slice may end this much later than it should, as a part of it, rather than before a step that is nearly done. */
const MOST_OVER = 0.25

/** To read and parse a document takes about as long as to read this many rows. */
const ROWS_A_DOCUMENT = 50

/** Long searches that one object runs at a time. */
const AT_ONCE = 8
/** Long searches that may wait to begin. */
const MOST_WAITING = 120
/** Retry-After, in seconds. */
const RETRY_SECONDS = 5

/** Thrown to end the search of a caller who is gone. */
class Gone extends ApiError {
  constructor() {
    super(499, 'The caller has gone.')
  }
}

/** The searches of one object that take longer than a slice. */
export class LongSearches {
  #active = 0
  #begin: (() => void)[] = []
  #turns: (() => void)[] = []
  #firstTurns: (() => void)[] = []
  #ticking = false
  #callers = new Map<string, AbortController>()

  constructor(readonly slice: Slice = SLICE) {}

  /**
   * Runs a search under a ticket, by which it can be abandoned.
   * @param ticket undefined for a search that cannot be abandoned
   * @param search is given the signal that its caller has left
   */
  async during<Result>(
    ticket: string | undefined,
    search: (left: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const caller = new AbortController()
    if (ticket !== undefined) this.#callers.set(ticket, caller)
    try {
      return await search(caller.signal)
    } finally {
      if (ticket !== undefined) this.#callers.delete(ticket)
    }
  }

  /** Ends the search with this ticket at its next pause. */
  abandon(ticket: string): void {
    this.#callers.get(ticket)?.abort()
  }

  /**
   * Waits until another long search may begin.
   * @param patience milliseconds
   * @returns false when that took too long
   * @throws ApiError 503 when too many wait already
   */
  async enter(patience: number): Promise<boolean> {
    if (this.#active < AT_ONCE) {
      this.#active++
      return true
    }
    if (this.#begin.length >= MOST_WAITING) {
      throw new ApiError(
        503,
        'Too many long searches of this collection wait already. Ask again.',
        RETRY_SECONDS,
      )
    }
    return new Promise((resolve) => {
      const begin = () => {
        clearTimeout(timer)
        resolve(true)
      }
      const timer = setTimeout(() => {
        this.#begin.splice(this.#begin.indexOf(begin), 1)
        resolve(false)
      }, patience)
      this.#begin.push(begin)
    })
  }

  /** A long search has ended: the next one that waits starts. */
  leave(): void {
    const next = this.#begin.shift()
    if (next === undefined) this.#active--
    else next()
  }

  /**
   * Resolves when it is this search's turn. There is a timer between turns. workerd looks at its sockets only between
   * timers; with promises alone, turns would follow each other without a break.
   */
  turn(): Promise<void> {
    return this.#wait(this.#turns)
  }

  /**
   * Resolves when a search may begin: at once if no long one runs, else before their next turn. The search may turn
   * out to be long, and the first slices of several must not run in a row.
   */
  async firstTurn(): Promise<void> {
    if (this.#active > 0) await this.#wait(this.#firstTurns)
  }

  #wait(queue: (() => void)[]): Promise<void> {
    return new Promise((resolve) => {
      queue.push(resolve)
      this.#tick()
    })
  }

  #tick(): void {
    if (this.#ticking || this.#turns.length + this.#firstTurns.length === 0) return
    this.#ticking = true
    setTimeout(() => {
      this.#ticking = false
      const next = this.#firstTurns.shift() ?? this.#turns.shift()
      next?.()
      this.#tick()
    }, 1)
  }
}

/** Such as the key of a group of very long lists. */
const TOO_BIG =
  'The values that this search groups or orders by have more than 2 MB. Take a field with shorter values, or ask for fewer groups.'

export class Pace {
  /** whether the search ended before it had read everything */
  cutoff = false
  /** how often others had a turn */
  pauses = 0
  readonly #started = performance.now()
  #since = this.#started
  #rows = 0
  #isLong = false
  #ends: Range | undefined

  /**
   * @param others the long searches of the same object
   * @param limit milliseconds after which the search is cut off
   * @param check called after other searches had a turn; throws if the search cannot continue
   * @param caller aborts when it has left: the search then ends at its next pause
   */
  constructor(
    private readonly others: LongSearches,
    private readonly limit: number = CUTOFF_MS,
    private readonly check: () => void = () => {},
    private readonly caller?: AbortSignal,
  ) {}

  /** Runs a query and counts the rows it reads. @throws ApiError 422 for a value that SQLite does not take */
  readonly query = <Row extends object>(sql: SqlStorage, { sql: text, bindings }: SqlFragment): Row[] => {
    try {
      const cursor = sql.exec<Row & Record<string, SqlStorageValue>>(text, ...bindings)
      const rows = cursor.toArray()
      this.#rows += cursor.rowsRead
      return rows
    } catch (error) {
      // biome-ignore lint/plugin: the platform gives no code
      if (/SQLITE_TOOBIG/.test(String(error))) throw new ApiError(422, TOO_BIG)
      throw error
    }
  }

  /** Counts what was read outside of `query`, as the number of rows that take as long. */
  countRows(number: number): void {
    this.#rows += number
  }

  /** The sequence numbers of the oldest and the newest document, as of the last pause. */
  ends(sql: SqlStorage): Range {
    if (this.#ends === undefined) {
      const [row] = this.query<{ low: number | null; high: number | null }>(sql, {
        sql: 'SELECT (SELECT min(seq) FROM documents) AS low, (SELECT max(seq) FROM documents) AS high',
        bindings: [],
      })
      this.#ends = { low: row!.low ?? 1, high: row!.high ?? 0 }
    }
    return this.#ends
  }

  /** Counts documents that were read and parsed outside of `query`. */
  readonly countDocuments = (number: number): void => {
    this.#rows += number * ROWS_A_DOCUMENT
  }

  get slice(): Slice {
    return this.others.slice
  }

  /** The part of the present slice that is used up; 1 is all of it. */
  get used(): number {
    const { ms, rows } = this.slice
    return Math.max((performance.now() - this.#since) / ms, this.#rows / rows)
  }

  /**
   * Gives other searches a turn if the slice is used up, or does not suffice for the next step.
   * @param next what the next step probably takes, as a part of a slice
   * @returns whether to go on: false when the search is cut off
   * @throws ApiError what `check` throws, and 503 when the object has too many long searches
   */
  async rest(next = 0): Promise<boolean> {
    const { used } = this
    if (used < 1 && (next === 0 || used + Math.min(1, next) < 1 + MOST_OVER)) return !this.cutoff
    if (!this.#isLong && !this.cutoff) {
      this.#isLong = await this.others.enter(this.#left)
      this.cutoff = !this.#isLong
    }
    await this.others.turn()
    this.#goOn()
    this.cutoff ||= this.#left <= 0
    return !this.cutoff
  }

  /** Does work in steps, between which others have turns. When the search is cut off, it still does all of it. */
  async through<Result>(steps: Steps<Result>): Promise<Result> {
    let step = steps.next()
    for (; !step.done; step = steps.next()) {
      this.countRows(step.value)
      await this.rest()
    }
    return step.value
  }

  /**
   * Waits for another object. Meanwhile this search gives up its place among the long ones. Otherwise two collections
   * that ask each other could deadlock, each waiting for the other's turn.
   */
  async away<Result>(work: Promise<Result>): Promise<Result> {
    this.end()
    const result = await work
    this.#goOn()
    return result
  }

  /** Begins a new slice, unless nobody waits for the search any more. */
  #goOn(): void {
    this.#ends = undefined
    this.pauses++
    if (this.caller?.aborted) throw new Gone()
    this.check()
    this.#since = performance.now()
    this.#rows = 0
  }

  /** Always call this at the end. */
  end(): void {
    if (this.#isLong) this.others.leave()
    this.#isLong = false
  }

  get #left(): number {
    return this.limit - (performance.now() - this.#started)
  }
}
