/**
 * Finished turns on their way to their history collection.
 *
 * A turn is written here first and leaves when its history has it, at the first try or at an alarm's. The
 * history takes a turn once, by its origin, so a try whose answer was lost may be repeated.
 */
import type { Outcome } from '../errors'
import { collectionObject } from '../search/catalog'
import type { StoredMessage } from '../search/rpc'

export interface HistoryDocument {
  conversation_id: string
  role: 'user' | 'assistant'
  message: string
  /** unix seconds */
  timestamp: number
  model_id: string
}

type Row = { turn: number; history_id: string; documents: string }

const FIRST_RETRY_MS = 2_000
const LAST_RETRY_MS = 300_000

export class Outbox {
  readonly #sql: SqlStorage
  readonly #env: Cloudflare.Env
  readonly #conversationId: string
  #failures = 0

  constructor(sql: SqlStorage, env: Cloudflare.Env, conversationId: string) {
    this.#sql = sql
    this.#env = env
    this.#conversationId = conversationId
  }

  put(turn: number, historyId: string, documents: HistoryDocument[]): void {
    this.#sql.exec(
      'INSERT INTO outbox (turn, history_id, documents) VALUES (?, ?, ?)',
      turn,
      historyId,
      JSON.stringify(documents),
    )
  }

  get empty(): boolean {
    return this.#rows().length === 0
  }

  /** How long to wait until the next try, in milliseconds. */
  get patience(): number {
    return Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** this.#failures)
  }

  /**
   * Delivers what is waiting, oldest first. A turn that its history refuses is dropped: it would be refused
   * for ever.
   * @returns the refusal of the last turn delivered, if it was one
   */
  async deliver(): Promise<Outcome<void>> {
    let last: Outcome<void> = { ok: true, value: undefined }
    for (const { turn, history_id, documents } of this.#rows()) {
      try {
        last = await collectionObject(this.#env, history_id).appendTurn(
          `${this.#conversationId}/${turn}`,
          JSON.parse(documents),
        )
        this.#failures = 0
        this.#sql.exec('DELETE FROM outbox WHERE turn = ?', turn)
      } catch (error) {
        // Out of reach, which passes: the turn stays, and with it all later ones, so that order is kept.
        this.#failures += 1
        console.error('history is out of reach; the turn will be delivered later', error)
        return { ok: true, value: undefined }
      }
    }
    return last
  }

  /** What is still waiting, as its history would tell it. */
  pending(historyId: string): StoredMessage[] {
    return this.#rows()
      .filter((row) => row.history_id === historyId)
      .flatMap((row) =>
        (JSON.parse(row.documents) as HistoryDocument[]).map((document) => ({
          documentId: '',
          role: document.role,
          message: document.message,
          timestamp: document.timestamp,
          modelId: document.model_id,
        })),
      )
  }

  #rows(): Row[] {
    return this.#sql.exec<Row>('SELECT turn, history_id, documents FROM outbox ORDER BY turn').toArray()
  }
}
