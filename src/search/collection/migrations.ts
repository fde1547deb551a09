import * as v from 'valibot'
import { readMeta, writeMeta } from '../meta'
import { liftSealed } from '../schema/embedding-secrets'
import { discardFormer, readFormer } from '../schema/former'
import { readSchema, writeSchema } from '../schema/stored'
import { createWordIndex, prepareForImports } from '../schema/tables'
import { STEMS, WORDS } from '../text/analyzer'
import { beginNormFilling } from './norm-filling'
import { isFormerNoted, takeOver } from './outlining'
import { beginTermFilling } from './term-filling'
import { beginWordIndexing } from './word-indexing'

/** A change that SQL cannot make. */
type Change = (sql: SqlStorage) => void

/**
 * The tables that every collection has, whatever its schema. Entries are only appended: when an object wakes, it runs
 * those that it has not run yet.
 */
const MIGRATIONS: readonly (readonly (string | Change)[])[] = [
  [
    'CREATE TABLE documents (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, body TEXT NOT NULL)',
    // Values of fields with `store: false`, which indexing needs again when the document changes.
    'CREATE TABLE unstored (seq INTEGER PRIMARY KEY, body TEXT NOT NULL)',
    // Documents of a history collection whose latest state is not in D1 yet.
    'CREATE TABLE outbox (document_id TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID',
    // Turns that have been added, so that none is added twice.
    'CREATE TABLE origins (origin TEXT PRIMARY KEY) WITHOUT ROWID',
  ],
  [
    // The ids of a turn's documents, as JSON, so that another turn can replace it.
    "ALTER TABLE origins ADD COLUMN documents TEXT NOT NULL DEFAULT '[]'",
    // The document was replaced rather than deleted.
    'ALTER TABLE outbox ADD COLUMN replaced INTEGER NOT NULL DEFAULT 0',
  ],
  [
    `CREATE TABLE pending_embeddings (slot INTEGER NOT NULL, seq INTEGER NOT NULL,
      PRIMARY KEY (slot, seq)) WITHOUT ROWID`,
    `CREATE TABLE refused_embeddings (slot INTEGER NOT NULL, seq INTEGER NOT NULL, error TEXT NOT NULL,
      PRIMARY KEY (slot, seq)) WITHOUT ROWID`,
  ],
  [
    // Vectors whose present state Vectorize does not show (vectors/vectorize/outbox.ts).
    'CREATE TABLE vectorize_fields (slot INTEGER PRIMARY KEY, dimensions INTEGER NOT NULL, retired INTEGER NOT NULL)',
    `CREATE TABLE vector_outbox (slot INTEGER NOT NULL, seq INTEGER NOT NULL, mutation INTEGER NOT NULL DEFAULT 0,
      attempts INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (slot, seq)) WITHOUT ROWID`,
    'CREATE INDEX vector_outbox_by_mutation ON vector_outbox (mutation, slot, attempts)',
    `CREATE TABLE vector_mutations (number INTEGER PRIMARY KEY AUTOINCREMENT, slot INTEGER NOT NULL, mutation_id TEXT,
      sent_at INTEGER)`,
  ],
  [
    (sql) => {
      const schema = readSchema(sql)
      if (schema !== undefined) writeSchema(sql, liftSealed(schema))
    },
  ],
  [
    // Whether a field's vectors have labels (vectors/vectorize/labels.ts), and whether filters work
    // (vectors/vectorize/proof.ts).
    'ALTER TABLE vectorize_fields ADD COLUMN labelled INTEGER NOT NULL DEFAULT 0',
    'ALTER TABLE vectorize_fields ADD COLUMN proven INTEGER NOT NULL DEFAULT 0',
    'ALTER TABLE vectorize_fields ADD COLUMN tried_at INTEGER',
    // Vectorize shows the present vector with outdated labels.
    'ALTER TABLE vector_outbox ADD COLUMN relabelled INTEGER NOT NULL DEFAULT 0',
  ],
  [
    (sql) => {
      const schema = readSchema(sql)
      if (schema === undefined) return
      createWordIndex(sql, schema.textColumns)
      beginWordIndexing(sql)
    },
  ],
  [
    // Counts of analytics rules that are not in documents yet, and the logs of rules (analytics/ledger.ts).
    `CREATE TABLE analytics_queries (rule TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL, most INTEGER NOT NULL,
      count INTEGER NOT NULL, PRIMARY KEY (rule, id)) WITHOUT ROWID`,
    `CREATE TABLE analytics_counters (field TEXT NOT NULL, id TEXT NOT NULL, count INTEGER NOT NULL,
      PRIMARY KEY (field, id)) WITHOUT ROWID`,
    `CREATE TABLE analytics_log (seq INTEGER PRIMARY KEY, rule TEXT NOT NULL, user TEXT NOT NULL, at INTEGER NOT NULL,
      event TEXT NOT NULL)`,
    'CREATE INDEX analytics_log_by_user ON analytics_log (rule, user, seq)',
  ],
  [
    // Values by which documents of two collections belong together (documents/join-keys.ts).
    'CREATE TABLE join_keys (field TEXT NOT NULL, key NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (field, key, seq)) WITHOUT ROWID',
    'CREATE INDEX join_keys_by_seq ON join_keys (seq, field)',
    // Keys of deleted documents that other collections still refer to (documents/cascade.ts).
    'CREATE TABLE cascades (field TEXT NOT NULL, key NOT NULL, PRIMARY KEY (field, key)) WITHOUT ROWID',
  ],
  [
    // Bytes of all events up to this one.
    'ALTER TABLE analytics_log ADD COLUMN upto INTEGER NOT NULL DEFAULT 0',
    `UPDATE analytics_log SET upto = total FROM
      (SELECT seq AS of, sum(octet_length(event)) OVER (ORDER BY seq) AS total FROM analytics_log) WHERE seq = of`,
    // Documents that analytics rules have made (analytics/kept.ts).
    'CREATE TABLE analytics_documents (seq INTEGER NOT NULL, rule TEXT NOT NULL, PRIMARY KEY (seq, rule)) WITHOUT ROWID',
  ],
  [
    // The words that documents have (text/terms.ts).
    'CREATE TABLE terms (term TEXT PRIMARY KEY) WITHOUT ROWID',
    (sql) => {
      if (readSchema(sql) !== undefined) beginTermFilling(sql)
    },
  ],
  [
    (sql) => {
      if (readSchema(sql) === undefined) return
      for (const { table } of [STEMS, WORDS]) prepareForImports(sql, table)
    },
  ],
]

/** Whether this object has ever held a collection. */
export const isCreated = (sql: SqlStorage): boolean =>
  sql.exec(`SELECT 1 FROM sqlite_master WHERE name = 'meta'`).toArray().length > 0

export function migrate(sql: SqlStorage): void {
  sql.exec('CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID')
  const version = readMeta(sql, 'version', v.number()) ?? 0
  for (const step of MIGRATIONS.slice(version).flat()) {
    if (typeof step === 'string') sql.exec(step)
    else step(sql)
  }
  if (version < MIGRATIONS.length) writeMeta(sql, 'version', MIGRATIONS.length)
  // Not a migration: a version that we went back to may have written forms since.
  if (takeOver(sql)) beginNormFilling(sql)
  if (readFormer(sql) !== undefined && !isFormerNoted(sql)) discardFormer(sql, readSchema(sql)?.fields ?? [])
}
