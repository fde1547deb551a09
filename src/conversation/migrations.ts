/**
 * The tables of a Conversation object.
 *
 *     meta(key, value)                      who owns the conversation, and what else it knows of itself
 *     turns(turn, status, ...)              one row a turn; numbers are never used twice
 *     log(turn, segment, lines)             its events, lines of JSON, cut into segments
 *     results(turn, seq, segment, lines)    an engine's reply, before the event of this number: for readers who ask
 *                                           for it
 *     outbox(turn, history_id, documents, replaced)
 *                                           finished turns that are not yet in their history, and the turns they
 *                                           replace
 *     records(turn, record)                 finished turns that are not yet in D1
 *
 * Columns of `turns`: `status` is running, done, failed, or interrupted, which means that the same request may
 * well succeed. `idempotency_key` and `fingerprint` are those of the request that began it. `abandoned` says
 * that its caller had left when it ended. `said_at` is the timestamp of its messages, once they are to become
 * history. `finish_reason` says why its answer ended. `version` is the format of its log (turn/events.ts);
 * older formats are upgraded (turn/upgrade.ts). `spent` is what it has cost so far (JSON), until a record
 * reports it.
 *
 * There are no indexes. The tables are created on the way to a conversation's first token, and a row of an
 * index costs as much as one of a table. Without an index, hundreds of turns are read in a fraction of a
 * millisecond.
 *
 * A segment is a piece of the text of all lines. Its borders mean nothing, because one line can be longer than
 * a row may be.
 */

import type { Owner } from './ownership'

/** Append only: an object runs each of these once. */
const MIGRATIONS = [
  `CREATE TABLE turns (
     turn INTEGER PRIMARY KEY AUTOINCREMENT,
     status TEXT NOT NULL,
     started_at INTEGER NOT NULL,
     expires_at INTEGER
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
     documents TEXT NOT NULL
   );`,
  `CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
   ALTER TABLE turns ADD COLUMN idempotency_key TEXT;
   ALTER TABLE turns ADD COLUMN fingerprint TEXT;
   ALTER TABLE turns ADD COLUMN ended_at INTEGER;
   ALTER TABLE turns ADD COLUMN abandoned INTEGER NOT NULL DEFAULT 0;
   ALTER TABLE turns ADD COLUMN said_at INTEGER;
   CREATE TABLE records (turn INTEGER PRIMARY KEY, record TEXT NOT NULL);`,
  `ALTER TABLE outbox ADD COLUMN replaced TEXT NOT NULL DEFAULT '[]';`,
  'ALTER TABLE turns ADD COLUMN finish_reason TEXT;',
  'ALTER TABLE turns ADD COLUMN spent TEXT;',
  `ALTER TABLE turns ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
   CREATE TABLE results (
     turn INTEGER NOT NULL,
     seq INTEGER NOT NULL,
     segment INTEGER NOT NULL,
     lines TEXT NOT NULL,
     PRIMARY KEY (turn, seq, segment)
   ) WITHOUT ROWID;`,
]

/** Whether this object has ever stored anything. An object that was only queried stays empty. */
export const isCreated = (sql: SqlStorage): boolean =>
  sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'migrations'").toArray().length > 0

/** Brings the tables up to date and creates missing ones. */
export function migrate(sql: SqlStorage): void {
  sql.exec('CREATE TABLE IF NOT EXISTS migrations (version INTEGER PRIMARY KEY)')
  const { version } = sql.exec<{ version: number }>('SELECT count(*) AS version FROM migrations').one()
  for (const [index, migration] of MIGRATIONS.entries()) {
    if (index < version) continue
    sql.exec(migration)
    sql.exec('INSERT INTO migrations (version) VALUES (?)', index + 1)
  }
}

/** What a conversation knows of itself from its beginning. */
export interface Self {
  /** tells this conversation from an earlier, deleted one with the same id */
  incarnation: string
  /**
   * who asked first. Absent before the first turn, and if the conversation is older than owners. Conversations
   * older than proofs have no proof: the user may only have been claimed
   */
  owner?: Owner
  /** the beginning of the first question */
  title: string
  protocol: string
  /** milliseconds since 1970 */
  created_at: number
  /** until when the same request leads to its id, in milliseconds since 1970; absent: its id is random */
  found_until?: number
  /** objects of the history collections it was written to */
  histories: string[]
}

export interface Meta {
  self: Self
  /** the last id given out to this conversation's request when it was asked again */
  successor: string
  /** set while it is being deleted: nothing may be read any more */
  erasing: boolean
}

export function readMeta<Key extends keyof Meta>(sql: SqlStorage, key: Key): Meta[Key] | undefined {
  const [row] = sql.exec<{ value: string }>('SELECT value FROM meta WHERE key = ?', key).toArray()
  return row && (JSON.parse(row.value) as Meta[Key])
}

export function writeMeta<Key extends keyof Meta>(sql: SqlStorage, key: Key, value: Meta[Key]): void {
  sql.exec('INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)', key, JSON.stringify(value))
}
