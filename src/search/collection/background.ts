/**
 * Runs a collection's background work, in its alarm or right after the call that caused it.
 *
 * Works are independent. A work that throws is retried later. A work that hangs does not hold up the others: the
 * alarm stops waiting for it, and fires again.
 */
import type { Alarm } from '../../durable/objects'
import { logFailure } from '../../errors'
import { backoff, settlesWithin } from '../../lib/waiting'
import { reform } from '../changes'
import type { Store } from '../documents/store'
import type { Background } from '../work'

/** Steps of one work in a row, before the object may sleep or serve other alarms. */
const STEPS = 20
/** How long one alarm waits for works. Works that still run then continue beside the next alarm. */
const ALARM_MS = 20_000
/** The alarm set while a work runs, in case the object dies before its end. */
const STANDBY_MS = 30_000

export class BackgroundWorks {
  #patience: number
  #collection: () => string
  #running = new Map<Background, Promise<void>>()
  #failures = new Map<Background, number>()
  /** when each work may run again, in unix milliseconds */
  #restsUntil = new Map<Background, number>()

  /**
   * @param works the present works
   * @param closed whether the collection is gone: then nothing is started
   * @param given.patience milliseconds @param given.collection its name, for the log
   */
  constructor(
    private readonly works: () => readonly Background[],
    private readonly alarm: Alarm,
    private readonly closed: () => boolean,
    { patience = ALARM_MS, collection }: { patience?: number; collection: () => string },
  ) {
    this.#patience = patience
    this.#collection = collection
  }

  /** Runs every work when the alarm fires. Sets the alarm again if a work needs it. */
  async run(): Promise<void> {
    const all = Promise.all(this.works().map((work) => this.#start(work)))
    await settlesWithin(this.#patience, all)
    if (this.#running.size > 0 && !this.closed()) this.alarm.within(STANDBY_MS)
  }

  /**
   * Starts a work without waiting for it. A work that is waiting after a failure keeps waiting.
   * @param anew start it even then
   */
  kick(work: Background, anew = false): void {
    if (anew) this.#restsUntil.delete(work)
    this.alarm.within(STANDBY_MS)
    // The caller may be in a transaction, and works read what is committed.
    queueMicrotask(() => void this.#start(work))
  }

  #start(work: Background): Promise<void> {
    const rest = (this.#restsUntil.get(work) ?? 0) - Date.now()
    if (rest > 0) {
      this.alarm.within(rest)
      return Promise.resolve()
    }
    const running = this.#running.get(work)
    if (running !== undefined) return running
    const started = this.#drive(work).finally(() => this.#running.delete(work))
    this.#running.set(work, started)
    return started
  }

  async #drive(work: Background): Promise<void> {
    for (let count = 0; !this.closed(); count++) {
      const next = await this.#step(work)
      if (next === undefined || this.closed()) return
      if (next === 0 && count < STEPS) {
        // Gives waiting calls a turn.
        await scheduler.wait(0)
        continue
      }
      this.#restsUntil.set(work, Date.now() + next)
      this.alarm.within(next)
      return
    }
  }

  async #step(work: Background): Promise<number | undefined> {
    try {
      const next = await work.step()
      this.#failures.delete(work)
      return next
    } catch (error) {
      logFailure(`background work failed: ${work.name}`, error, { collection: this.#collection() })
      const failures = this.#failures.get(work) ?? 0
      this.#failures.set(work, failures + 1)
      return backoff(failures)
    }
  }
}

// =============================================================================
// Tidies up, a little at a time. It can start and stop at any time.
//
// It merges the segments that writing leaves in the full-text indexes: a search looks a word up in each segment. FTS5 does not merge
// them itself (schema/tables.ts). Once nobody writes, it also packs the values that searches read (schema/column.ts).

/** An import pauses for less than this between two batches. */
const QUIET_MS = 1_000

/** A step merges after this many transactions with texts. Each leaves a segment. */
const WRITES = 4
/** How soon to look for further writes. */
const WRITING_MS = 20

/** Pages of 4 KB that a step writes of an index, which takes a few milliseconds. */
const PAGES = 64

/** An index is merged into one segment when texts of this share of the documents were removed or replaced in it. */
const WORN = 0.1

/** Between two steps. */
const REST_MS = 5
/** The same while people search, so that searches get most of the object's time, and for so long after a search. */
const [BUSY_REST_MS, BUSY_MS] = [100, 1_000]
/** A step waits for searches that go on, but no longer than this: there may always be one. */
const PATIENCE_MS = 250

export class Tidying {
  #isRunning = false
  /** Before the object slept there may have been writes too few to begin with, again and again. */
  #hasLookedOnce = false
  #writes = 0
  /** those since the last step */
  #further = 0
  /** time of the last one, in unix milliseconds */
  #wroteAt = 0
  /** texts that had been removed when the indexes were last merged into one segment */
  #removed = 0
  /** searches that go on */
  #searches = 0
  /** time of the last one */
  #searchedAt = 0
  /** since when a step waits for searches */
  #waitingFrom: number | undefined

  constructor(
    private readonly storage: DurableObjectStorage,
    private readonly store: Store,
  ) {}

  /** Counts a transaction that wrote texts. Starts to tidy up later, if there may be something. */
  wrote(): void {
    this.#wroteAt = Date.now()
    this.#further++
    if (++this.#writes >= WRITES || !this.#hasLookedOnce) this.#start()
    this.#hasLookedOnce = true
  }

  #start(): void {
    if (this.#isRunning) return
    this.#isRunning = true
    this.#run()
      .catch((error) =>
        logFailure('a collection could not be tidied up', error, { collection: this.store.schema.name }),
      )
      .finally(() => {
        this.#isRunning = false
      })
  }

  /** Runs a search. Steps wait for it: they would take the object's time between its slices. */
  async during<T>(search: () => Promise<T>): Promise<T> {
    this.#searches++
    try {
      return await search()
    } finally {
      this.#searches--
      this.#searchedAt = Date.now()
      if (this.store.columns.hasUnpacked) this.#start()
    }
  }

  // This needs no alarm: if the object dies, later writes start it again.
  async #run(): Promise<void> {
    let wait: number | undefined = REST_MS
    while (wait !== undefined) {
      await scheduler.wait(wait)
      wait = this.step()
    }
  }

  /** Merges a few pages, or packs a block. @returns milliseconds until the next step, undefined when nothing is left */
  step(): number | undefined {
    if (this.store.closed) return undefined
    const now = Date.now()
    const isQuiet = now >= this.#wroteAt + QUIET_MS
    if (!isQuiet && this.#further < WRITES) return WRITING_MS
    this.#waitingFrom ??= now
    if (this.#searches > 0 && now - this.#waitingFrom < PATIENCE_MS) return REST_MS
    this.#waitingFrom = undefined
    this.#further = 0
    const rest = this.#searches > 0 || now - this.#searchedAt < BUSY_MS ? BUSY_REST_MS : REST_MS
    const { removedTexts: removed, count, textIndexes } = this.store
    const isWorn = isQuiet && removed - this.#removed > WORN * count
    const merged = textIndexes.filter((table) => this.#merge(table, isWorn))
    if (merged.length > 0 || !isQuiet) return rest
    if (isWorn) this.#removed = removed
    if (this.#writes >= WRITES) this.store.columns.leaveWritten()
    this.#writes = 0
    return this.#pack() ? rest : undefined
  }

  /** @returns whether there is more to pack */
  #pack(): boolean {
    const { columns, readable, count } = this.store
    let more = false
    reform(this.storage.sql, () => {
      more = columns.pack(this.storage.sql, readable, count)
    })
    return more
  }

  /**
   * Merges levels of four segments and more, or all of them into one. FTS5 merges a segment with many removed texts by itself, but
   * stops in the middle when another level has as many segments.
   * @returns whether there was anything to merge
   */
  #merge(table: string, isWhole: boolean): boolean {
    const { sql } = this.storage
    const rows = reform(sql, () => {
      sql.exec(`INSERT INTO ${table} (${table}, rank) VALUES ('merge', ${isWhole ? -PAGES : PAGES})`)
    })
    // The command itself counts as one row.
    return rows > 1
  }
}
