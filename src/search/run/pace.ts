/**
 * The pace of one search, so that it keeps nobody waiting.
 *
 * A statement of SQLite cannot be interrupted, and while one runs nothing else does: no other request of the object,
 * and where objects share a thread nobody's. So a search reads its collection in slices (scan.ts) and lets others in
 * between them. One that needs no more than a slice never waits. The others take turns, a slice each, and a few of
 * them at a time, because each holds what it has found so far in memory.
 */
import { ApiError } from '../../errors'
import type { SqlFragment } from '../fragment'
import { CUTOFF_MS } from '../limits'

/** What a slice may take. */
export interface Slice {
  /** milliseconds that it is to take */
  ms: number
  /**
   * Rows that SQLite reads in it. They are counted besides the time because the clock of a deployed Worker stands
   * still while it computes.
   */
  rows: number
  /** documents' numbers that it spans at most: what lies ahead may cost more than what was seen */
  width: number
}

const SLICE: Slice = { ms: 12, rows: 40_000, width: 65_536 }

/** Characters of conditions that hardly matter. Twice as many make a document twice as dear, about. */
const CONDITIONS_A_SLICE = 250

/** Searches of one object that may be longer than a slice at the same time. */
const AT_ONCE = 8
/** Others of that kind that may wait for their turn to begin. */
const MOST_WAITING = 120
/** When to ask again, in seconds. */
const RETRY_SECONDS = 5

/** What is given to a caller who is not there any more. */
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
  #tickets = new Map<string, Pace>()

  constructor(readonly slice: Slice = SLICE) {}

  /**
   * Gives a search a name to be abandoned by.
   * @param ticket undefined for a search that cannot be abandoned
   */
  begin(ticket: string | undefined, pace: Pace): void {
    if (ticket !== undefined) this.#tickets.set(ticket, pace)
  }

  end(ticket: string | undefined): void {
    if (ticket !== undefined) this.#tickets.delete(ticket)
  }

  /** Nobody waits for the search of this ticket any more. */
  abandon(ticket: string): void {
    this.#tickets.get(ticket)?.abandon()
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

  /** A long search has ended: the next one that waits takes its place. */
  leave(): void {
    const next = this.#begin.shift()
    if (next === undefined) this.#active--
    else next()
  }

  /**
   * Settles when it is this search's turn again. A timer lies between any two turns: only then does workerd look at
   * its sockets, and promises that are settled already would run one after the other without it.
   */
  turn(): Promise<void> {
    return this.#wait(this.#turns)
  }

  /**
   * Settles when a search may begin: at once where no long one is under way, else before the next turn of those. It
   * may be a long one itself, and several that come together must not have their first slices in a row.
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

export class Pace {
  /** whether the search was ended before it had seen everything */
  cutoff = false
  readonly #others: LongSearches
  readonly #limit: number
  readonly #check: () => void
  readonly #started = performance.now()
  #since = this.#started
  #rows = 0
  #isLong = false
  #gone = false
  /** how much dearer a document is than in a search without conditions */
  readonly weight: number

  /**
   * @param others the long searches of the same object
   * @param limit milliseconds after which the search is cut off
   * @param conditions characters of what is asked of each document
   * @param check called when others have been let in: throws when the search cannot go on
   */
  constructor(others: LongSearches, limit: number = CUTOFF_MS, conditions = 0, check: () => void = () => {}) {
    this.#others = others
    this.weight = Math.max(1, conditions / CONDITIONS_A_SLICE)
    this.#limit = limit
    this.#check = check
  }

  /** The rows of a query, which are counted. */
  query<Row extends object>(sql: SqlStorage, { sql: text, bindings }: SqlFragment): Row[] {
    const cursor = sql.exec<Row & Record<string, SqlStorageValue>>(text, ...bindings)
    const rows = cursor.toArray()
    this.#rows += cursor.rowsRead
    return rows
  }

  get slice(): Slice {
    return this.#others.slice
  }

  /** How much of the present slice is used up: 1 is all of it. */
  get used(): number {
    const { ms, rows } = this.slice
    return Math.max((performance.now() - this.#since) / ms, this.#rows / rows)
  }

  /** Nobody waits for the result any more. */
  abandon(): void {
    this.#gone = true
  }

  /**
   * Lets others in where the slice is used up.
   * @returns whether to go on: false when the search is cut off
   * @throws ApiError what `check` throws, and 503 when the object has too many long searches
   */
  async rest(): Promise<boolean> {
    if (this.used < 1) return !this.cutoff
    if (!this.#isLong && !this.cutoff) {
      this.#isLong = await this.#others.enter(this.#left)
      this.cutoff = !this.#isLong
    }
    await this.#others.turn()
    if (this.#gone) throw new Gone()
    this.#check()
    this.#since = performance.now()
    this.#rows = 0
    this.cutoff ||= this.#left <= 0
    return !this.cutoff
  }

  /** To be called at the end, whatever it is. */
  end(): void {
    if (this.#isLong) this.#others.leave()
    this.#isLong = false
  }

  get #left(): number {
    return this.#limit - (performance.now() - this.#started)
  }
}
