/** The tables of a Conversation object, its turns, and the log of their events. */
import { ApiError } from '../errors'
import { contentOf } from '../lib/parts'
import { readStored } from '../lib/stored-json'
import { errorOf, interrupted, interruptionOf, unknownTurn } from '../turn/errors'
import { readEvent } from '../turn/event-line'
import {
  answerOf,
  type HistoryMessage,
  INTERRUPTION_SEQ,
  isForReaders,
  type LogEvent,
  splitText,
  type TurnEventBody,
} from '../turn/events'
import { foldTurn, type TracedTurn, type Turn, type TurnStatus, tracedTurn } from '../turn/fold'
import type { Replacement } from '../turn/request'
import { type Meta, MOST_RUNS, metaShapes, RECOVERY_MS } from './stored'
import { onceOf, type Source } from './turn-stream'

// =============================================================================
// The tables of a Conversation object.
//
//     meta(key, value)                      the conversation's owner and its other facts
//     turns(turn, status, ...)              one row a turn; numbers are never used twice
//     log(turn, segment, lines)             its events, lines of JSON, cut into segments
//     results(turn, seq, segment, lines)    an engine's reply before the event of this number, for readers who ask
//                                           for it
//     outbox(turn, history_id, documents, replaced)
//                                           finished turns that their history lacks, and the turns that they replace
//     records(turn, record)                 finished turns that are not yet in D1
//
// A turn's `status` is running, done, failed, or interrupted. An interrupted turn may succeed if it is asked again.
// `idempotency_key` and `fingerprint` come from the request that began it. `abandoned`: its caller had left when it
// ended. `question`: its text. `said_at`: the timestamp of its messages, once they become history. `finish_reason`: why its answer ended.
//
// `version` is the format of its log (turn/events.ts).
//
// `spent` is its cost so far (JSON), until a record reports it.
//
// `request` is what a running turn needs to run again if its object is reset (stored.ts); null once it has ended. `runs` says how
// often it was begun.
//
// A conversation's first token waits for these tables, and an index row costs as much as a table row. So there are no
// indexes: reading hundreds of turns takes a fraction of a millisecond.
//
// A segment is a piece of the text of all lines. It may begin or end inside a line, because a line can be longer than
// a row may be.

/** Migrations and format of logs of storage format 1, the first that is kept readable. */
const FORMAT_1 = { migrations: 6, log: 3 }

/** The format in which logs are written. */
const LOG_VERSION = FORMAT_1.log

/** Changes since format 1. Append only: an object that has run one of these never runs it again. */
const MIGRATIONS: readonly string[] = [
  // The first line of a log has the question.
  `ALTER TABLE turns ADD COLUMN question TEXT;
  UPDATE turns SET question = (
    SELECT iif(json_valid(line), json_extract(line, '$.question[0].text'), NULL)
      FROM (SELECT substr(lines, 1, instr(lines, char(10)) - 1) AS line FROM log
             WHERE log.turn = turns.turn AND segment = 0));`,
  `ALTER TABLE turns ADD COLUMN request TEXT;
  ALTER TABLE turns ADD COLUMN runs INTEGER NOT NULL DEFAULT 1;`,
]

/** Whether this object has ever stored anything. An object that was only queried stays empty. */
export const isCreated = (sql: SqlStorage): boolean =>
  sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'migrations'").toArray().length > 0

/** The tables of a new object, all in one statement: they are made on the way to the first token of a conversation. */
const CREATE_TABLES = `
  CREATE TABLE migrations (version INTEGER PRIMARY KEY);
  CREATE TABLE turns (
    turn INTEGER PRIMARY KEY AUTOINCREMENT,
    status TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    question TEXT,
    expires_at INTEGER,
    idempotency_key TEXT,
    fingerprint TEXT,
    ended_at INTEGER,
    abandoned INTEGER NOT NULL DEFAULT 0,
    said_at INTEGER,
    finish_reason TEXT,
    spent TEXT,
    version INTEGER NOT NULL DEFAULT 1,
    request TEXT,
    runs INTEGER NOT NULL DEFAULT 1
  );
  CREATE TABLE log (
    turn INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    lines TEXT NOT NULL,
    PRIMARY KEY (turn, segment)
  ) WITHOUT ROWID;
  CREATE TABLE outbox (
    turn INTEGER PRIMARY KEY,
    history_id TEXT NOT NULL,
    documents TEXT NOT NULL,
    replaced TEXT NOT NULL DEFAULT '[]'
  );
  CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE records (turn INTEGER PRIMARY KEY, record TEXT NOT NULL);
  CREATE TABLE results (
    turn INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    lines TEXT NOT NULL,
    PRIMARY KEY (turn, seq, segment)
  ) WITHOUT ROWID;
  INSERT INTO migrations (version) VALUES ${Array.from({ length: FORMAT_1.migrations + MIGRATIONS.length }, (_, at) => `(${at + 1})`).join()};`

/**
 * Creates the tables of a new object, or brings those of an older one up to date.
 * @throws ApiError 500 for a conversation that was stored before format 1
 */
export function migrate(sql: SqlStorage): void {
  if (!isCreated(sql)) {
    sql.exec(CREATE_TABLES)
    return
  }
  const { version } = sql.exec<{ version: number }>('SELECT max(version) AS version FROM migrations').one()
  const isOlder =
    version < FORMAT_1.migrations ||
    sql
      // A turn that comes from a backup has no log.
      .exec(`SELECT 1 FROM turns WHERE version < ${FORMAT_1.log} AND turn IN (SELECT turn FROM log) LIMIT 1`)
      .toArray().length > 0
  if (isOlder) {
    throw new ApiError(
      500,
      'This conversation was stored by a version of Parley from before storage format 1, and this version cannot read it. The other version can back it up (`parley backup`).',
    )
  }
  for (const [index, migration] of MIGRATIONS.entries()) {
    const number = FORMAT_1.migrations + index + 1
    if (number <= version) continue
    sql.exec(migration)
    sql.exec('INSERT INTO migrations (version) VALUES (?)', number)
  }
}

/** @throws ValiError for a value that no version has written */
export function readMeta<Key extends keyof Meta>(sql: SqlStorage, key: Key): Meta[Key] | undefined {
  const [row] = sql.exec<{ value: string }>('SELECT value FROM meta WHERE key = ?', key).toArray()
  return row && readStored(metaShapes()[key], row.value)
}

export function writeMeta<Key extends keyof Meta>(sql: SqlStorage, key: Key, value: Meta[Key]): void {
  sql.exec('INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)', key, JSON.stringify(value))
}

// =============================================================================
// The events of turns in the object's SQLite: lines of JSON, and beside them the engines' replies.

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

class EventLog {
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

// =============================================================================
// The turns of a conversation and the log of their events, in the object's SQLite.

/** Turns whose log is kept at most. Answered ones are in D1, whatever happens to their log. */
const LOGGED_TURNS = 20

/**
 * How long the log of a turn is kept after its end, in milliseconds: for readers who resume, and of a turn without an answer for
 * its trace, which D1 lacks. A log has the prompts and the documents, some 100 KB a turn.
 */
const ANSWERED_LOG_MS = 3_600_000
const UNANSWERED_LOG_MS = 86_400_000

/** When the log of a turn that has ended is no longer kept, in milliseconds since 1970. */
const LOGGED_UNTIL = `ended_at + iif(status = 'done', ${ANSWERED_LOG_MS}, ${UNANSWERED_LOG_MS})`

/** How long a turn can be joined by its caller who had left, in milliseconds. */
export const ABANDONED_MS = 60_000

/**
 * How long it can take to notice that a caller has left, in milliseconds. Until then nobody knows whether the
 * end of an answer arrived (api/http/deliver.ts).
 */
const UNNOTICED_MS = 2_000

const LOG_TABLES = ['results', 'log']
/** What holds a turn. Its row in `turns` goes last. */
const TABLES = [...LOG_TABLES, 'turns']

/** The names of the request that began a turn, each including its asker. */
export interface RequestNames {
  idempotencyKey?: string
  fingerprint?: string
}

interface LoggedTurn {
  turn: number
  status: TurnStatus
  /** unix seconds: the timestamp of its messages, if it became history */
  saidAt: number | null
}

export class TurnLog extends EventLog {
  readonly #sql: SqlStorage
  readonly #id: string

  /** @param conversationId whose turns they are */
  constructor(sql: SqlStorage, conversationId: string) {
    super(sql)
    this.#sql = sql
    this.#id = conversationId
  }

  /**
   * Begins a turn.
   * @param question its text
   * @param now milliseconds since 1970
   * @param expiresAt when its messages expire, in milliseconds since 1970
   * @param request what it needs to run again (stored.ts); null: it does not
   * @returns its number
   */
  begin(
    question: string,
    now: number,
    expiresAt = now,
    names: RequestNames = {},
    request: string | null = null,
  ): number {
    const { turn } = this.#sql
      .exec<{ turn: number }>(
        `INSERT INTO turns (status, started_at, question, expires_at, idempotency_key, fingerprint, request, version)
          VALUES ('running', ?, ?, ?, ?, ?, ?, ${LOG_VERSION}) RETURNING turn`,
        now,
        question,
        expiresAt,
        names.idempotencyKey ?? null,
        names.fingerprint ?? null,
        request,
      )
      .one()
    if (turn > LOGGED_TURNS) {
      this.#sql.exec('DELETE FROM log WHERE turn <= ?', turn - LOGGED_TURNS)
      this.#sql.exec('DELETE FROM results WHERE turn <= ?', turn - LOGGED_TURNS)
    }
    return turn
  }

  /**
   * Continues the numbers of a conversation from elsewhere: its last turn stands for all, without a log. Times are in
   * milliseconds since 1970.
   */
  continueAfter(turn: number, now: number, expiresAt: number): void {
    this.#sql.exec(
      `INSERT INTO turns (turn, status, started_at, ended_at, expires_at) VALUES (?, 'done', ?, ?, ?)`,
      turn,
      now,
      now,
      expiresAt,
    )
  }

  /**
   * Records that a turn's messages become history. From then on its record reports what it has cost.
   * @param timestamp theirs, in unix seconds @param finishReason why the answer ended
   */
  markSaid(turn: number, timestamp: number, finishReason: string): void {
    this.#sql.exec(
      'UPDATE turns SET said_at = ?, finish_reason = ?, spent = NULL WHERE turn = ?',
      timestamp,
      finishReason,
      turn,
    )
  }

  /** Records that a turn's messages do not become history after all. */
  markUnsaid(turn: number): void {
    this.#sql.exec('UPDATE turns SET said_at = NULL WHERE turn = ?', turn)
  }

  /**
   * Records what a turn has cost so far. @param cost JSON; null if a record reports it, or if nobody is charged
   */
  spend(turn: number, cost: string | null): void {
    this.#sql.exec('UPDATE turns SET spent = ? WHERE turn = ?', cost, turn)
  }

  /** Turns whose cost no record reports because this object died before they ended. One that runs again reports it. */
  unpaid(): { turn: number; spent: string }[] {
    return this.#sql
      .exec<{ turn: number; spent: string }>(
        "SELECT turn, spent FROM turns WHERE spent IS NOT NULL AND status <> 'running'",
      )
      .toArray()
  }

  /** @param abandoned whether its caller had left */
  finish(turn: number, status: TurnStatus, now: number, expiresAt: number, abandoned: boolean): void {
    this.#sql.exec(
      'UPDATE turns SET status = ?, ended_at = ?, expires_at = ?, abandoned = ?, request = NULL WHERE turn = ?',
      status,
      now,
      expiresAt,
      Number(abandoned),
      turn,
    )
  }

  /** Records that a turn's caller has left, or is back. */
  abandon(turn: number, abandoned: boolean): void {
    this.#sql.exec('UPDATE turns SET abandoned = ? WHERE turn = ?', Number(abandoned), turn)
  }

  /**
   * Finds the finished turn that a request joins. With an idempotency key: the turn of that key, unless it
   * failed through no fault of the request. Without one: a turn of its fingerprint that was answered within the
   * last minute after its caller had left.
   * @returns the turn and the fingerprint it began with
   */
  joinable(names: RequestNames, now: number): { turn: number; fingerprint: string | null } | undefined {
    const columns = 'SELECT turn, fingerprint FROM turns'
    const rows =
      names.idempotencyKey !== undefined
        ? this.#sql.exec<{ turn: number; fingerprint: string | null }>(
            `${columns} WHERE idempotency_key = ? AND status IN ('done', 'failed') ORDER BY turn DESC LIMIT 1`,
            names.idempotencyKey,
          )
        : this.#sql.exec<{ turn: number; fingerprint: string | null }>(
            `${columns} WHERE fingerprint = ? AND status = 'done' AND abandoned AND ended_at >= ?
              ORDER BY turn DESC LIMIT 1`,
            names.fingerprint ?? null,
            now - ABANDONED_MS,
          )
    return rows.toArray()[0]
  }

  /**
   * Finds the finished turn whose answer is copied for the same request: one that the request would join, or
   * one that ended a moment ago, whether or not its caller is known to have left.
   */
  copyable(names: RequestNames, now: number): { turn: number; fingerprint: string | null } | undefined {
    return (
      this.joinable(names, now) ??
      this.#sql
        .exec<{ turn: number; fingerprint: string | null }>(
          `SELECT turn, fingerprint FROM turns WHERE fingerprint = ? AND status = 'done' AND ended_at >= ?
            ORDER BY turn DESC LIMIT 1`,
          names.fingerprint ?? null,
          now - UNNOTICED_MS,
        )
        .toArray()[0]
    )
  }

  /** Whether a turn was answered or is running, and whether others follow it. */
  standing(turn: number): 'unknown' | 'running' | 'last' | 'earlier' {
    const [first, ...later] = this.#sql
      .exec<{ turn: number; status: TurnStatus }>(
        `SELECT turn, status FROM turns WHERE turn >= ? AND (said_at IS NOT NULL OR status = 'running')
          ORDER BY turn LIMIT 2`,
        turn,
      )
      .toArray()
    if (first?.turn !== turn) return 'unknown'
    if (first.status === 'running') return 'running'
    return later.length === 0 ? 'last' : 'earlier'
  }

  /**
   * Reads the finished turns after a position: one source for each turn that has any events there.
   * @param from the position's turn @param seq its event there @param running the turn that is running
   * @throws ApiError 404 if some of them are no longer kept
   */
  readingAfter(from: number, seq: number, running: number | undefined, asked: LogReading = {}): Source[] {
    const ended = this.ended(from)
    if (from <= (this.latest() ?? 0) && from !== running && ended[0]?.turn !== from) throw unknownTurn()
    return ended.flatMap(({ turn }) => {
      const after = turn === from ? seq : -1
      if (after >= INTERRUPTION_SEQ) return []
      const source = this.reading(turn, after, asked)
      if (!source) throw unknownTurn()
      if (after < 0) return [source]
      const place = this.placeOf(turn, after)
      return place === 'last' ? [] : [place === 'lost' ? onceOf(interruptionOf(this.#id, turn)) : source]
    })
  }

  /** Whether the events of the latest turn are kept. */
  get hasLatest(): boolean {
    return (
      this.#sql.exec('SELECT 1 FROM log WHERE turn = (SELECT max(turn) FROM turns) LIMIT 1').toArray()
        .length > 0
    )
  }

  latest(): number | undefined {
    const { turn } = this.#sql.exec<{ turn: number | null }>('SELECT max(turn) AS turn FROM turns').one()
    return turn ?? undefined
  }

  /** The latest turn, if it was interrupted at this moment or later. @param fingerprint only if its request had this one */
  interruptedSince(moment: number, fingerprint?: string): number | undefined {
    const [last] = this.#sql
      .exec<{ turn: number; status: TurnStatus; ended_at: number | null; fingerprint: string | null }>(
        'SELECT turn, status, ended_at, fingerprint FROM turns ORDER BY turn DESC LIMIT 1',
      )
      .toArray()
    if (last?.status !== 'interrupted' || (last.ended_at ?? 0) < moment) return undefined
    return fingerprint === undefined || last.fingerprint === fingerprint ? last.turn : undefined
  }

  /** Finished turns from this one on, in order. */
  ended(from: number): LoggedTurn[] {
    return this.#sql
      .exec<{ turn: number; status: TurnStatus; saidAt: number | null }>(
        `SELECT turn, status, said_at AS saidAt FROM turns WHERE turn >= ? AND status <> 'running' ORDER BY turn`,
        from,
      )
      .toArray()
  }

  /** Finds the turns in the history that a new turn replaces by asking this question again. */
  givingWay({ after, last: onlyLast }: Replacement, question: string): number[] {
    const said = this.ended(0).flatMap(({ turn, saidAt }) => (saidAt === null ? [] : [turn]))
    const latest = said.at(-1)
    if (onlyLast !== undefined) {
      const may = latest !== undefined && (onlyLast === 'any' || said.length === 1)
      return may && this.#questionOf(latest) === question ? [latest] : []
    }
    const last =
      after === undefined ? said.findLast((turn) => this.#questionOf(turn) === question) : after + 1
    return last === undefined ? [] : said.filter((turn) => turn >= last)
  }

  #questionOf(turn: number): string | undefined {
    const [row] = this.#sql
      .exec<{ question: string | null }>('SELECT question FROM turns WHERE turn = ?', turn)
      .toArray()
    return row?.question ?? undefined
  }

  /** A turn as far as its log has it; undefined if there is no log of it. */
  turn(turn: number): Turn | undefined {
    const events = this.events(turn)
    return events && foldTurn(events)
  }

  /** Turns that ended without an answer and whose log is kept, oldest first. @param only one of them */
  unanswered(only?: number): TracedTurn[] {
    return this.#sql
      .exec<{ turn: number; started_at: number }>(
        `SELECT turn, started_at FROM turns
          WHERE status IN ('failed', 'interrupted') AND (?1 IS NULL OR turn = ?1) ORDER BY turn`,
        only ?? null,
      )
      .toArray()
      .flatMap(({ turn: number, started_at }) => {
        const turn = this.turn(number)
        return turn ? [tracedTurn(turn, started_at)] : []
      })
  }

  /** Whether anything was ever answered here. */
  get answered(): boolean {
    return this.#sql.exec("SELECT 1 FROM turns WHERE status = 'done' LIMIT 1").toArray().length > 0
  }

  /** Whether all turns were stopped or failed. That leaves no messages, but whoever asked may ask on. */
  get neverAnswered(): boolean {
    return !this.empty && !this.answered
  }

  /** Whether no turn ever began here, and nothing was told: the conversation was only opened. */
  get unused(): boolean {
    return this.#sql.exec("SELECT 1 FROM sqlite_sequence WHERE name = 'turns'").toArray().length === 0
  }

  get empty(): boolean {
    return this.latest() === undefined
  }

  /**
   * Turns that were running when this object was reset and may run again. Counts the run, so that a turn that ends its object
   * itself comes to an end. @param now milliseconds since 1970
   */
  takeLeft(now: number): { turn: number; run: number; request: string; spent: string | null }[] {
    return this.#sql
      .exec<{ turn: number; run: number; request: string; spent: string | null }>(
        `UPDATE turns SET runs = runs + 1
          WHERE status = 'running' AND said_at IS NULL AND request IS NOT NULL AND runs < ? AND started_at > ?
          RETURNING turn, runs AS run, request, spent`,
        MOST_RUNS,
        now - RECOVERY_MS,
      )
      .toArray()
  }

  /** Has a turn not run again if its object is reset. @param request the same request with more; null: it does not */
  keepRequest(turn: number, request: string | null): void {
    this.#sql.exec('UPDATE turns SET request = ? WHERE turn = ?', request, turn)
  }

  /** Forgets what a turn has said so far, because it runs again. */
  restart(turn: number): void {
    for (const table of LOG_TABLES) this.#sql.exec(`DELETE FROM ${table} WHERE turn = ?`, turn)
  }

  /**
   * Ends the turns that were running when this object died and do not run again. A turn that had become
   * history is done, and gets the `done` that its answer still needs. Any other gets the error that its readers wait
   * for.
   * @param again turns that run again
   * @returns those turns
   */
  interrupt(now: number, again: readonly number[]): Turn[] {
    type Left = {
      turn: number
      expires_at: number | null
      said_at: number | null
      finish_reason: string | null
    }
    const left = this.#sql
      .exec<Left>("SELECT turn, expires_at, said_at, finish_reason FROM turns WHERE status = 'running'")
      .toArray()
      .filter(({ turn }) => !again.includes(turn))
    for (const { turn, expires_at, said_at, finish_reason } of left) {
      const events = this.events(turn) ?? []
      const done = said_at !== null
      // The log was brought up to date before the turn became history, so it holds the whole answer.
      const end: TurnEventBody = done
        ? { type: 'done', finish_reason: finish_reason ?? 'stop', answer: foldTurn(events).answer }
        : errorOf(interrupted())
      const seq = done ? (events.findLast(isForReaders)?.seq ?? -1) + 1 : INTERRUPTION_SEQ
      const event: LogEvent = { ...end, conversation_id: this.#id, turn, seq }
      this.append(turn, `${JSON.stringify(event)}\n`)
      // Its readers lost the stream and may ask again.
      this.finish(turn, done ? 'done' : 'interrupted', now, expires_at ?? now + DAY_MS, true)
    }
    return left.flatMap(({ turn }) => this.turn(turn) ?? [])
  }

  forget(turn: number): void {
    for (const table of TABLES) this.#sql.exec(`DELETE FROM ${table} WHERE turn = ?`, turn)
  }

  /** Forgets expired turns, and the logs that are no longer kept. */
  expire(now: number): void {
    const expired = "SELECT turn FROM turns WHERE expires_at <= ? AND status <> 'running'"
    for (const table of TABLES) this.#sql.exec(`DELETE FROM ${table} WHERE turn IN (${expired})`, now)
    const logged = `SELECT turn FROM turns WHERE ${LOGGED_UNTIL} <= ?`
    for (const table of LOG_TABLES) this.#sql.exec(`DELETE FROM ${table} WHERE turn IN (${logged})`, now)
  }

  /**
   * Replaces the answer of a turn that has ended. Citations are removed, because they point to places in the old
   * text.
   */
  replaceAnswer(turn: number, answer: string): void {
    let isSaid = answer === ''
    this.rewrite(turn, (event) => {
      const { conversation_id, seq } = event
      if (event.type === 'citation' || event.type === 'part') return []
      if (event.type === 'delta') {
        if (isSaid) return []
        isSaid = true
        return [{ ...event, text: answer }]
      }
      if (event.type !== 'done') return [event]
      if (isSaid) return [{ ...event, answer: contentOf(answer) }]
      const delta: LogEvent = { type: 'delta', text: answer, conversation_id, turn, seq }
      return [delta, { ...event, answer: contentOf(answer), seq: seq + 1 }]
    })
  }

  /** When the next turn expires, or the next log is no longer kept, in milliseconds since 1970. */
  nextExpiry(): number | undefined {
    const { next } = this.#sql
      .exec<{ next: number | null }>(
        `SELECT min(at) AS next FROM (
          SELECT expires_at AS at FROM turns WHERE status <> 'running'
          UNION ALL SELECT ${LOGGED_UNTIL} FROM turns WHERE turn IN (SELECT turn FROM log))`,
      )
      .one()
    return next ?? undefined
  }
}

const DAY_MS = 86_400_000
