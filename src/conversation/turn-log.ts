/** The turns of a conversation and the log of their events, in the object's SQLite. */
import type { TurnEvent } from './events'

/** turns whose log is kept; of older ones only what history holds */
const LOGGED_TURNS = 20

// A row holds 2 MB of UTF-8, and a character of JSON takes three bytes at most.
const SEGMENT_CHARACTERS = 500_000

export type TurnStatus = 'running' | 'done' | 'failed' | 'interrupted'

export class TurnLog {
  readonly #sql: SqlStorage

  constructor(sql: SqlStorage) {
    this.#sql = sql
  }

  /** Begins a turn. @returns its number */
  begin(now: number): number {
    const { turn } = this.#sql
      .exec<{ turn: number }>(
        "INSERT INTO turns (status, started_at) VALUES ('running', ?) RETURNING turn",
        now,
      )
      .one()
    this.#sql.exec('DELETE FROM log WHERE turn <= ?', turn - LOGGED_TURNS)
    return turn
  }

  /** Adds lines, each with its line break, to a turn's log. */
  append(turn: number, lines: string): void {
    const { next } = this.#sql
      .exec<{ next: number }>('SELECT coalesce(max(segment) + 1, 0) AS next FROM log WHERE turn = ?', turn)
      .one()
    segmentsOf(lines).forEach((segment, index) => {
      this.#sql.exec('INSERT INTO log (turn, segment, lines) VALUES (?, ?, ?)', turn, next + index, segment)
    })
  }

  /** @param expiresAt when what was said in it is to be forgotten, in milliseconds since 1970 */
  finish(turn: number, status: TurnStatus, expiresAt: number): void {
    this.#sql.exec('UPDATE turns SET status = ?, expires_at = ? WHERE turn = ?', status, expiresAt, turn)
  }

  /** The lines of a turn; undefined when there is no log of it. */
  lines(turn: number): string[] | undefined {
    const segments = this.#sql
      .exec<{ lines: string }>('SELECT lines FROM log WHERE turn = ? ORDER BY segment', turn)
      .toArray()
    if (segments.length === 0) return undefined
    return segments
      .map(({ lines }) => lines)
      .join('')
      .split('\n')
      .slice(0, -1)
  }

  latest(): number | undefined {
    const { turn } = this.#sql.exec<{ turn: number | null }>('SELECT max(turn) AS turn FROM turns').one()
    return turn ?? undefined
  }

  /**
   * Ends the turns that an earlier life of this object left running: nobody writes them any more. Their logs
   * get the error that their readers wait for.
   */
  interrupt(conversationId: string, now: number): void {
    const left = this.#sql.exec<{ turn: number }>("SELECT turn FROM turns WHERE status = 'running'").toArray()
    for (const { turn } of left) {
      const event: TurnEvent = {
        type: 'error',
        status: 503,
        message: 'The turn was interrupted. Ask again.',
        retryable: true,
        conversation_id: conversationId,
        turn,
        seq: this.lines(turn)?.length ?? 0,
      }
      this.append(turn, `${JSON.stringify(event)}\n`)
      this.finish(turn, 'interrupted', now)
    }
  }

  /** Forgets what was said in turns past their time. */
  expire(now: number): void {
    this.#sql.exec('DELETE FROM log WHERE turn IN (SELECT turn FROM turns WHERE expires_at <= ?)', now)
    this.#sql.exec('DELETE FROM turns WHERE expires_at <= ?', now)
  }

  /** When the next turn expires, in milliseconds since 1970. */
  nextExpiry(): number | undefined {
    const { next } = this.#sql
      .exec<{ next: number | null }>('SELECT min(expires_at) AS next FROM turns')
      .one()
    return next ?? undefined
  }
}

function segmentsOf(text: string): string[] {
  const segments: string[] = []
  for (let start = 0; start < text.length; ) {
    let end = Math.min(text.length, start + SEGMENT_CHARACTERS)
    // SQLite would replace the halves of a character that is cut in two.
    if (end < text.length && /[\ud800-\udbff]/.test(text[end - 1]!)) end -= 1
    segments.push(text.slice(start, end))
    start = end
  }
  return segments
}
