/**
 * What D1 still has to learn of a conversation: first that it has begun, then its finished turns. A turn's
 * record holds the conversation's row, the turn's row with its trace, and its cost.
 *
 * A record is written here in the transaction that makes the turn history. It is removed once D1 has it, at the
 * first attempt or at an alarm's. D1 counts a turn once, however often it is sent. Only the
 * alarm sends a beginning, for turns that take long: a turn that ends sooner reports it too. Failures and
 * interruptions are sent in the same way.
 */
import {
  type ConversationEntry,
  type FailedConversation,
  recordBeginning,
  recordFailure,
} from '../db/conversations'
import { requireOwnDatabase } from '../db/owner'
import { type Cost, recordCost, recordTurn, type TurnRecord } from '../db/turns'
import { type Failure, logFailure, type Outcome } from '../errors'
import { fromStored } from '../lib/parts'
import { readStored } from '../lib/stored-json'
import { backoff, settlesWithin } from '../lib/waiting'
import { historyStore } from '../registry/engines'
import type { Origin } from '../search/fault-log'
import { MESSAGES_A_TURN } from '../search/limits'
import type { StoredMessage } from '../search/types'
import { byteLength } from '../turn/prompt'
import { costShape, documentsShape, type HistoryDocument, type Note, noteShape, stringsShape } from './stored'

/** How long a turn waits for D1 before it ends, in milliseconds. After that the alarm delivers it. */
const PATIENCE_MS = 1_500
const FIRST_RETRY_MS = 2_000
/**
 * How long a beginning waits, in milliseconds. Most turns end sooner and report it themselves, which saves their
 * conversation's row being written twice. A request for the conversation in the meantime delivers it at once.
 */
const BEGINNING_PATIENCE_MS = 15_000
/** Records sent in one delivery. */
const SENT_AT_ONCE = 20
/** So often a reader waits for one more. */
const MOST_DELIVERIES = 10

/** The turn number of a conversation's beginning: before its turns, which count from 1. */
const BEGINNING = 0
/** The turn number of an interruption: after all turns, because one of them may create the row in D1 that it changes. */
const INTERRUPTION = Number.MAX_SAFE_INTEGER

export class Records {
  readonly #sql: SqlStorage
  readonly #env: Cloudflare.Env
  readonly #id: string
  #failures = 0
  #delivering: Promise<void> | undefined
  /** true while an answer still waits for D1, even if it has given up */
  #silent = false
  readonly #onErased: () => void
  closed = false

  /**
   * @param id of the conversation, for the log
   * @param onErased called if D1 says that the conversation must go because its user's were erased. The
   *   callback must record that for good before it returns
   */
  constructor(sql: SqlStorage, env: Cloudflare.Env, id: string, onErased: () => void) {
    this.#sql = sql
    this.#env = env
    this.#id = id
    this.#onErased = onErased
  }

  putBeginning(conversation: ConversationEntry): void {
    this.#write(BEGINNING, { conversation })
  }

  put(turn: number, record: TurnRecord): void {
    const { failedAt } = this.#waitingBeginning ?? {}
    this.drop(BEGINNING)
    const conversation = { ...record.conversation, ...(failedAt !== undefined && { failedAt }) }
    this.#write(turn, fitRecord({ ...record, conversation }))
  }

  /** Records that a turn was interrupted. */
  putInterruption(interrupted: FailedConversation): void {
    const beginning = this.#waitingBeginning
    if (beginning) this.putBeginning({ ...beginning, failedAt: interrupted.failedAt })
    else this.#write(INTERRUPTION, { interrupted })
  }

  /** A beginning that D1 does not know yet. It may report a failed turn. */
  get #waitingBeginning(): ConversationEntry | undefined {
    const record = this.#record(BEGINNING)
    const note = record === undefined ? undefined : readStored(noteShape(), record)
    return note && 'conversation' in note ? note.conversation : undefined
  }

  /** Records the cost of a turn that has no answer. */
  putCost(turn: number, { usage, others, copied, turns }: Cost): void {
    this.#write(turn, {
      usage,
      ...(others && { others }),
      ...(copied && { copied }),
      ...(turns !== undefined && { turns }),
    })
  }

  #write(turn: number, record: Note): void {
    this.#sql.exec(
      'INSERT OR REPLACE INTO records (turn, record) VALUES (?, ?)',
      turn,
      JSON.stringify(record),
    )
  }

  /** Takes a record back because its turn did not become history. */
  drop(turn: number): void {
    this.#sql.exec('DELETE FROM records WHERE turn = ?', turn)
  }

  /** Reduces a record to its turn's cost. */
  reduce(turn: number): void {
    const record = this.#record(turn)
    if (record !== undefined) this.putCost(turn, readStored(costShape(), record))
  }

  #record(turn: number): string | undefined {
    return this.#sql.exec<{ record: string }>('SELECT record FROM records WHERE turn = ?', turn).toArray()[0]
      ?.record
  }

  /** Turns that are still waiting. */
  get turns(): number[] {
    return this.#sql
      .exec<{ turn: number }>(`SELECT turn FROM records WHERE turn > ${BEGINNING} AND turn < ${INTERRUPTION}`)
      .toArray()
      .map(({ turn }) => turn)
  }

  get empty(): boolean {
    return this.#sql.exec('SELECT 1 FROM records LIMIT 1').toArray().length === 0
  }

  /** How long to wait before the next attempt, in milliseconds. */
  get patience(): number {
    const isBeginning =
      this.#failures === 0 && this.turns.length === 0 && this.#waitingBeginning !== undefined
    return isBeginning ? BEGINNING_PATIENCE_MS : backoff(this.#failures, FIRST_RETRY_MS)
  }

  /**
   * Delivers, and waits as long as an answer may wait. While D1 is known to be unavailable it does not wait at
   * all.
   */
  async settle(): Promise<void> {
    if (this.#failures > 0 || this.#silent) return
    // A delivery that is already running does not include newer records.
    const delivered = (this.#delivering ?? Promise.resolve()).then(() => this.deliver())
    this.#silent = true
    delivered.finally(() => {
      this.#silent = false
    })
    await settlesWithin(PATIENCE_MS, delivered)
  }

  /** Sends what is waiting, oldest first. Never throws: what D1 does not accept stays. */
  deliver(): Promise<void> {
    this.#delivering ??= this.#deliver().finally(() => {
      this.#delivering = undefined
    })
    return this.#delivering
  }

  /** Goes on after a delivery, which leaves out newer records and sends only some. Stops where D1 fails. */
  async deliverRest(): Promise<void> {
    for (let tries = 0; tries < MOST_DELIVERIES && !this.empty && !this.closed; tries++) {
      if (this.#failures > 0) return
      await this.deliver()
    }
  }

  /** Settles when no delivery is running any more. */
  async settled(): Promise<void> {
    await this.#delivering
  }

  async #deliver(): Promise<void> {
    if (this.closed) return
    const rows = this.#sql
      .exec<{ turn: number; record: string }>(
        `SELECT turn, record FROM records ORDER BY turn LIMIT ${SENT_AT_ONCE}`,
      )
      .toArray()
    for (const { turn, record } of rows) {
      try {
        const erased = await this.#send(readStored(noteShape(), record))
        this.#failures = 0
        // No await until the record is dropped. Otherwise its cost could be counted twice.
        if (erased && !this.closed) this.#onErased()
      } catch (error) {
        this.#failures += 1
        logFailure('a turn could not be recorded in D1; it will be later', error, {
          conversation: this.#id,
          turn,
        })
        return
      }
      // What was written meanwhile is still to be sent.
      this.#sql.exec('DELETE FROM records WHERE turn = ? AND record = ?', turn, record)
      if (this.closed) return
    }
  }

  /** @returns whether the conversation must be deleted */
  async #send(note: Note): Promise<boolean> {
    await requireOwnDatabase(this.#env)
    const db = this.#env.DB
    if ('turn' in note) return recordTurn(db, note)
    if ('conversation' in note) return recordBeginning(db, note.conversation)
    if ('interrupted' in note) await recordFailure(db, note.interrupted)
    else await recordCost(db, note)
    return false
  }

  /**
   * Sends only the cost of the waiting turns. Their conversation is being deleted, but its cost must still be
   * charged.
   * @throws Error if D1 is unavailable
   */
  async deliverCosts(): Promise<void> {
    this.drop(BEGINNING)
    this.drop(INTERRUPTION)
    const rows = this.#sql
      .exec<{ turn: number; record: string }>('SELECT turn, record FROM records ORDER BY turn')
      .toArray()
    for (const { turn, record } of rows) {
      await recordCost(this.#env.DB, readStored(costShape(), record))
      this.drop(turn)
    }
  }
}

/** Bytes of a record. A row of D1 or SQLite holds 2 MB, and D1's row is this record without its names. */
const MOST_BYTES = 1_500_000
const LONGEST_TEXTS = [100_000, 20_000, 4_000, 500]

/** Cuts a record so that it fits into a row: first texts of the trace end early, then the answer. */
function fitRecord(record: TurnRecord): TurnRecord {
  const fits = (candidate: TurnRecord) => byteLength(JSON.stringify(candidate)) <= MOST_BYTES
  if (fits(record)) return record
  const { turn } = record
  for (const longest of LONGEST_TEXTS) {
    const trace = { ...(shorten(JSON.parse(turn.trace), longest) as object), shortened: true }
    const shorter = { ...record, turn: { ...turn, trace: JSON.stringify(trace) } }
    if (fits(shorter)) return shorter
    const least = {
      ...shorter,
      turn: {
        ...shorter.turn,
        question: clip(turn.question, longest),
        standalone: turn.standalone === null ? null : clip(turn.standalone, longest),
        answer: clip(turn.answer, 2 * longest),
        citations: longest < 20_000 ? '[]' : turn.citations,
        passages: '[]',
        // Places of sentences in an answer that is cut.
        verdict: null,
      },
    }
    if (fits(least)) return least
  }
  return {
    ...record,
    turn: {
      ...turn,
      question: '',
      standalone: null,
      answer: '',
      citations: '[]',
      trace: '{}',
      followups: '[]',
      passages: '[]',
      verdict: null,
    },
  }
}

function shorten(value: unknown, longest: number): unknown {
  if (typeof value === 'string') return clip(value, longest)
  if (Array.isArray(value)) return value.slice(0, longest).map((item) => shorten(item, longest))
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, shorten(item, longest)]))
}

/** The beginning of a text, without half a character at its end. */
export const clip = (text: string, characters: number): string =>
  text.length <= characters ? text : text.slice(0, characters).replace(/[\ud800-\udbff]$/, '')

// =============================================================================
// Finished turns on their way to their history collection.
//
// A turn is written here first and removed once its history has it, at the first attempt or at an alarm's. The
// history accepts each origin once, so an attempt whose reply was lost can be repeated.

type Row = { turn: number; history_id: string; documents: string; replaced: string }

export class Outbox {
  readonly #sql: SqlStorage
  readonly #env: Cloudflare.Env
  readonly #origin: string
  #failures = 0
  /** settles when the deliveries so far have ended; never rejects */
  #delivering: Promise<void> = Promise.resolve()
  /** why a turn was refused, until its writer has asked */
  readonly #refusals = new Map<number, Failure>()
  closed = false

  /**
   * @param origin distinguishes this conversation's turns from those of any other, including an earlier one with the
   *   same id
   */
  constructor(sql: SqlStorage, env: Cloudflare.Env, origin: string) {
    this.#sql = sql
    this.#env = env
    this.#origin = origin
  }

  /** @param replaced turns whose questions and answers are removed when this one is added */
  put(turn: number, historyId: string, documents: HistoryDocument[], replaced: number[]): void {
    this.#sql.exec(
      'INSERT INTO outbox (turn, history_id, documents, replaced) VALUES (?, ?, ?, ?)',
      turn,
      historyId,
      JSON.stringify(documents),
      JSON.stringify(this.originsOf(replaced)),
    )
  }

  /** The origins by which the history knows turns. */
  originsOf(turns: number[]): string[] {
    return turns.map((turn) => `${this.#origin}/${turn}`)
  }

  get empty(): boolean {
    return this.#sql.exec('SELECT 1 FROM outbox LIMIT 1').toArray().length === 0
  }

  /** Turns that are still waiting. */
  get turns(): Set<number> {
    return new Set(this.#rows().map(({ turn }) => turn))
  }

  /** How long to wait before the next attempt, in milliseconds. */
  get patience(): number {
    return backoff(this.#failures, FIRST_RETRY_MS)
  }

  /**
   * Delivers a turn and all that wait before it. @returns its refusal, if it was refused; still waiting is no
   * failure
   */
  async settle(turn: number, origin?: Origin): Promise<Outcome<void>> {
    await this.deliver(origin)
    const refusal = this.#refusals.get(turn)
    this.#refusals.delete(turn)
    return refusal ? { ok: false, error: refusal } : { ok: true, value: undefined }
  }

  /**
   * Delivers what is waiting, oldest first. A turn that its history refuses is dropped, because it would be
   * refused for ever.
   */
  deliver(origin?: Origin): Promise<void> {
    this.#delivering = this.#delivering.then(() => this.#deliver(origin))
    return this.#delivering
  }

  /** Settles when no delivery is running any more. */
  settled(): Promise<void> {
    return this.#delivering
  }

  async #deliver(origin: Origin | undefined): Promise<void> {
    if (this.closed) return
    for (const { turn, history_id, documents, replaced } of this.#rows()) {
      try {
        const outcome = await historyStore(this.#env, history_id).appendTurn(
          this.originsOf([turn])[0]!,
          readStored(documentsShape(), documents).map((document) => ({ ...document })),
          readStored(stringsShape(), replaced),
          origin,
        )
        this.#failures = 0
        if (!outcome.ok) this.#refusals.set(turn, outcome.error)
      } catch (error) {
        // The history is unavailable for now. Keep this turn and all later ones, so that their order is kept.
        this.#failures += 1
        logFailure('history is out of reach; the turn will be delivered later', error, {
          ...origin,
          conversation: this.#origin.split('/')[0]!,
          turn,
        })
        return
      }
      if (this.closed) return
      this.#sql.exec('DELETE FROM outbox WHERE turn = ?', turn)
    }
  }

  /** Origins of the turns that the waiting ones replace. Their history does not know of that yet. */
  get replaced(): string[] {
    return this.#rows().flatMap(({ replaced }) => readStored(stringsShape(), replaced))
  }

  /**
   * What is still waiting, as its history would return it.
   * @param without origins of turns whose question and answer are left out
   */
  pending(historyId: string, without: string[]): StoredMessage[] {
    return this.#rows()
      .filter((row) => row.history_id === historyId)
      .flatMap(({ turn, documents }) => {
        const messages = readStored(documentsShape(), documents).map((document, at, all) => ({
          documentId: '',
          role: document.role,
          content: fromStored(document.message, document.parts),
          timestamp: document.timestamp,
          modelId: document.model_id,
          ...(at >= all.length - MESSAGES_A_TURN && { turn }),
        }))
        return without.includes(this.originsOf([turn])[0]!) ? messages.slice(0, -MESSAGES_A_TURN) : messages
      })
  }

  #rows(): Row[] {
    return this.#sql
      .exec<Row>('SELECT turn, history_id, documents, replaced FROM outbox ORDER BY turn')
      .toArray()
  }
}
