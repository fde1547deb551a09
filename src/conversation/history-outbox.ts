/**
 * Finished turns on their way to their history collection.
 *
 * A turn is written here first and removed once its history has it, at the first attempt or at an alarm's. The
 * history accepts each origin once, so an attempt whose reply was lost can be repeated.
 */

import { type Failure, logFailure, type Outcome } from '../errors'
import { backoff } from '../lib/backoff'
import { fromStored } from '../lib/parts'
import { readStored } from '../lib/stored-json'
import { historyStore } from '../registry/engines'
import type { Origin } from '../search/fault-log'
import { MESSAGES_A_TURN } from '../search/limits'
import type { StoredMessage } from '../search/types'
import { documentsShape, type HistoryDocument, stringsShape } from './stored'

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
