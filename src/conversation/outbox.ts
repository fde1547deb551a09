/**
 * Finished turns on their way to their history collection.
 *
 * A turn is written here first and leaves when its history has it, at the first try or at an alarm's. The
 * history takes a turn once, by its origin, so a try whose answer was lost may be repeated.
 */
import { backoff } from '../backoff'
import { type Failure, type Outcome, reasonOf } from '../errors'
import { historyStore } from '../registry/engines'
import { MESSAGES_A_TURN } from '../search/limits'
import type { StoredMessage } from '../search/types'
import { documentsShape, type HistoryDocument, readStored, stringsShape } from './stored'

type Row = { turn: number; history_id: string; documents: string; replaced: string }

const FIRST_RETRY_MS = 2_000

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

  /** @param origin tells this conversation's turns from those of any other, and from an earlier one of its id */
  constructor(sql: SqlStorage, env: Cloudflare.Env, origin: string) {
    this.#sql = sql
    this.#env = env
    this.#origin = origin
  }

  /** @param replaced turns whose questions and answers go when this one comes */
  put(turn: number, historyId: string, documents: HistoryDocument[], replaced: number[]): void {
    this.#sql.exec(
      'INSERT INTO outbox (turn, history_id, documents, replaced) VALUES (?, ?, ?, ?)',
      turn,
      historyId,
      JSON.stringify(documents),
      JSON.stringify(this.originsOf(replaced)),
    )
  }

  /** By what the history knows turns. */
  originsOf(turns: number[]): string[] {
    return turns.map((turn) => `${this.#origin}/${turn}`)
  }

  get empty(): boolean {
    return this.#sql.exec('SELECT 1 FROM outbox LIMIT 1').toArray().length === 0
  }

  /** The turns that are still waiting. */
  get turns(): Set<number> {
    return new Set(this.#rows().map(({ turn }) => turn))
  }

  /** How long to wait until the next try, in milliseconds. */
  get patience(): number {
    return backoff(this.#failures, FIRST_RETRY_MS)
  }

  /** Delivers a turn and what waits before it. @returns its refusal, if it was refused; waiting on is no failure */
  async settle(turn: number): Promise<Outcome<void>> {
    await this.deliver()
    const refusal = this.#refusals.get(turn)
    this.#refusals.delete(turn)
    return refusal ? { ok: false, error: refusal } : { ok: true, value: undefined }
  }

  /**
   * Delivers what is waiting, oldest first. A turn that its history refuses is dropped: it would be refused for
   * ever.
   */
  deliver(): Promise<void> {
    this.#delivering = this.#delivering.then(() => this.#deliver())
    return this.#delivering
  }

  /** Settles when nothing is under way any more. */
  settled(): Promise<void> {
    return this.#delivering
  }

  async #deliver(): Promise<void> {
    if (this.closed) return
    for (const { turn, history_id, documents, replaced } of this.#rows()) {
      try {
        const outcome = await historyStore(this.#env, history_id).appendTurn(
          this.originsOf([turn])[0]!,
          readStored(documentsShape, documents),
          readStored(stringsShape, replaced),
        )
        this.#failures = 0
        if (!outcome.ok) this.#refusals.set(turn, outcome.error)
      } catch (error) {
        // Out of reach, which passes: the turn stays, and with it all later ones, so that order is kept.
        this.#failures += 1
        console.error('history is out of reach; the turn will be delivered later', reasonOf(error))
        return
      }
      if (this.closed) return
      this.#sql.exec('DELETE FROM outbox WHERE turn = ?', turn)
    }
  }

  /** Origins of the turns whose place is taken by those that are waiting: their history does not know it yet. */
  get replaced(): string[] {
    return this.#rows().flatMap(({ replaced }) => readStored(stringsShape, replaced))
  }

  /**
   * What is still waiting, as its history would tell it.
   * @param without origins of turns whose question and answer do not count
   */
  pending(historyId: string, without: string[]): StoredMessage[] {
    return this.#rows()
      .filter((row) => row.history_id === historyId)
      .flatMap(({ turn, documents }) =>
        readStored(documentsShape, documents)
          .slice(0, without.includes(this.originsOf([turn])[0]!) ? -MESSAGES_A_TURN : undefined)
          .map((document) => ({
            documentId: '',
            role: document.role,
            message: document.message,
            timestamp: document.timestamp,
            modelId: document.model_id,
          })),
      )
  }

  #rows(): Row[] {
    return this.#sql
      .exec<Row>('SELECT turn, history_id, documents, replaced FROM outbox ORDER BY turn')
      .toArray()
  }
}
