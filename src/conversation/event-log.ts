/** The events of turns in the object's SQLite: lines of JSON, and beside them the engines' replies. */

import { readEvent } from '../turn/event-line'
import {
  answerOf,
  type HistoryMessage,
  isForReaders,
  type LogEvent,
  type TurnEventBody,
} from '../turn/events'
import { splitText } from '../turn/wording'
import type { Source } from './reader'

// A row holds 2 MB of UTF-8, and a character of JSON takes at most three bytes.
const SEGMENT_CHARACTERS = 500_000

const encoder = new TextEncoder()

const lineOf = (event: LogEvent): string => `${JSON.stringify(event)}\n`

/** What a reader asks for besides the events of a log. */
export interface LogReading {
  results?: boolean | undefined
  /** by turn: its messages and all before it */
  histories?: ReadonlyMap<number, HistoryMessage[]> | undefined
}

export class EventLog {
  readonly #sql: SqlStorage

  constructor(sql: SqlStorage) {
    this.#sql = sql
  }

  /** Appends lines to a turn's log. Each ends with its line break. */
  append(turn: number, lines: string): void {
    const { next } = this.#sql
      .exec<{ next: number }>('SELECT coalesce(max(segment) + 1, 0) AS next FROM log WHERE turn = ?', turn)
      .one()
    // Do not split surrogate pairs: SQLite would replace the halves.
    splitText(lines, SEGMENT_CHARACTERS).forEach((segment, index) => {
      this.#sql.exec('INSERT INTO log (turn, segment, lines) VALUES (?, ?, ?)', turn, next + index, segment)
    })
  }

  /**
   * Stores an engine's reply. @param seq the event that it comes before @param line the reply as an event's
   * line
   */
  keepResults(turn: number, seq: number, line: string): void {
    splitText(line, SEGMENT_CHARACTERS).forEach((segment, index) => {
      this.#sql.exec(
        'INSERT OR REPLACE INTO results (turn, seq, segment, lines) VALUES (?, ?, ?, ?)',
        turn,
        seq,
        index,
        segment,
      )
    })
  }

  /** The engine's reply before an event, as a line with its line break; '' if none is stored. */
  #results(turn: number, seq: number): string {
    return this.#sql
      .exec<{ lines: string }>(
        'SELECT lines FROM results WHERE turn = ? AND seq = ? ORDER BY segment',
        turn,
        seq,
      )
      .toArray()
      .map(({ lines }) => lines)
      .join('')
  }

  /** The lines of a turn's log; none if it has no log. */
  #lines(turn: number): string[] {
    return this.#sql
      .exec<{ lines: string }>('SELECT lines FROM log WHERE turn = ? ORDER BY segment', turn)
      .toArray()
      .map(({ lines }) => lines)
      .join('')
      .split('\n')
      .slice(0, -1)
  }

  /** Returns the events of a turn, operator events included; undefined if it has no log. */
  events(turn: number): LogEvent[] | undefined {
    const lines = this.#lines(turn)
    return lines.length === 0 ? undefined : lines.map(readEvent)
  }

  /**
   * Rewrites a turn's log.
   * @param change returns the events that replace an event; the event alone if it does not change
   */
  protected rewrite(turn: number, change: (event: LogEvent) => LogEvent[]): void {
    const changed = this.#lines(turn).flatMap((line) => {
      const logged = readEvent(line)
      return change(logged).map((next) => (next === logged ? `${line}\n` : lineOf(next)))
    })
    this.#sql.exec('DELETE FROM log WHERE turn = ?', turn)
    if (changed.length > 0) this.append(turn, changed.join(''))
  }

  /**
   * Reads the lines of a turn's reader events after a number, segment by segment; undefined if the turn has no log. A
   * line's number does not follow from its position: the log of an interrupted turn may lack events that readers
   * already got.
   * @param asked additional data that the reader wants
   * @returns a source that throws if the log is deleted before its end
   */
  reading(turn: number, seq = -1, { results = false, histories }: LogReading = {}): Source | undefined {
    const { segments } = this.#sql
      .exec<{ segments: number }>('SELECT count(*) AS segments FROM log WHERE turn = ?', turn)
      .one()
    if (segments === 0) return undefined
    const history = histories?.get(turn)
    let segment = 0
    /** the beginning of a line that ends in a later segment */
    let begun = ''
    return () => {
      while (segment < segments) {
        const [row] = this.#sql
          .exec<{ lines: string }>('SELECT lines FROM log WHERE turn = ? AND segment = ?', turn, segment)
          .toArray()
        if (!row) throw new Error('The turn was deleted while it was read.')
        segment += 1
        const lines = (begun + row.lines).split('\n')
        begun = lines.pop()!
        const wanted = lines.map((line) => this.#shown(line, { after: seq, results, history })).join('')
        if (wanted !== '') return encoder.encode(wanted)
      }
      return null
    }
  }

  /** A line of the log as a reader gets it, with what comes before it; '' if it is not for readers. */
  #shown(
    line: string,
    { after, results, history }: { after: number; results: boolean; history: HistoryMessage[] | undefined },
  ): string {
    const event = readEvent(line)
    if (event.seq <= after || !isForReaders(event)) return ''
    const { conversation_id, turn, seq } = event
    const aside = (body: TurnEventBody) => lineOf({ ...body, conversation_id, turn, seq })
    let before = ''
    if (results && event.type === 'retrieval') before = this.#results(turn, seq)
    if (history && event.type === 'done') before = aside({ type: 'history', messages: history })
    return `${before}${line}\n`
  }

  /**
   * Where an event's number stands in a turn: nothing for readers comes after it (`last`), its turn goes on, or it is of an answer
   * that a reset of the object ended and another one has replaced (`lost`).
   */
  placeOf(turn: number, seq: number): 'last' | 'on' | 'lost' {
    const events = (this.events(turn) ?? []).filter(isForReaders)
    const next = events.find((event) => event.seq > seq)
    if (!next) return 'last'
    const isKept = events.some((event) => event.seq === seq)
    return isKept || answerOf(next.seq) === answerOf(seq) ? 'on' : 'lost'
  }
}
