/**
 * The tables of a Conversation object.
 *
 *     turns(turn, status, started_at, expires_at)   one row a turn; numbers are never used twice
 *     log(turn, segment, lines)                     its events, lines of JSON, cut into segments
 *     outbox(turn, history_id, documents)           finished turns that are not yet in their history
 *
 * `status` is running, done, failed or interrupted. A segment is a piece of the text of all lines: its borders
 * mean nothing, because a single line can be longer than a row may be.
 */

/** Append only: an object that has run one of these never runs it again. */
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
]

/** Brings the tables up to date. Runs in the constructor, before anything else can. */
export function migrate(sql: SqlStorage): void {
  sql.exec('CREATE TABLE IF NOT EXISTS migrations (version INTEGER PRIMARY KEY)')
  const { version } = sql.exec<{ version: number }>('SELECT count(*) AS version FROM migrations').one()
  for (const [index, migration] of MIGRATIONS.entries()) {
    if (index < version) continue
    sql.exec(migration)
    sql.exec('INSERT INTO migrations (version) VALUES (?)', index + 1)
  }
}
