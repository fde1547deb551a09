/**
 * The tables of a Conversation object.
 *
 *     meta(key, value)                      the conversation's owner and its other facts
 *     turns(turn, status, ...)              one row a turn; numbers are never used twice
 *     log(turn, segment, lines)             its events, lines of JSON, cut into segments
 *     results(turn, seq, segment, lines)    an engine's reply before the event of this number, for readers who ask
 *                                           for it
 *     outbox(turn, history_id, documents, replaced)
 *                                           finished turns that their history lacks, and the turns that they replace
 *     records(turn, record)                 finished turns that are not yet in D1
 *
 * A turn's `status` is running, done, failed, or interrupted. An interrupted turn may succeed if it is asked again.
 * `idempotency_key` and `fingerprint` come from the request that began it. `abandoned`: its caller had left when it
 * ended. `question`: its text. `said_at`: the timestamp of its messages, once they become history. `finish_reason`: why its answer ended.
 *
 * `version` is the format of its log (turn/events.ts).
 *
 * `spent` is its cost so far (JSON), until a record reports it.
 *
 * `request` is what a running turn needs to run again if its object is reset (kept-turn.ts); null once it has ended. `runs` says how
 * often it was begun.
 *
 * A conversation's first token waits for these tables, and an index row costs as much as a table row. So there are no
 * indexes: reading hundreds of turns takes a fraction of a millisecond.
 *
 * A segment is a piece of the text of all lines. It may begin or end inside a line, because a line can be longer than
 * a row may be.
 */

import { ApiError } from '../errors'
import { readStored } from '../lib/stored-json'
import { type Meta, metaShapes } from './stored'

/** Migrations and format of logs of storage format 1, the first that is kept readable. */
const FORMAT_1 = { migrations: 6, log: 3 }

/** The format in which logs are written. */
export const LOG_VERSION = FORMAT_1.log

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
const TABLES = `
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
    sql.exec(TABLES)
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
