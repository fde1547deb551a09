import * as v from 'valibot'
import { ApiError } from '../../errors'
import { readMeta, writeMeta } from '../meta'
import { isVector } from '../schema/layout'
import { readSchema } from '../schema/stored'
import { configureFullText, createPackedTable, NEXT, PRESENT } from '../schema/tables'
import { embeddedIndex } from '../vectors/vector-index'

/** What `version` in `meta` says of storage format 1, the first that is kept readable: it had twelve steps before it. */
const FORMAT_1 = 12

/** Values of a field in a block of documents (schema/packed-columns.ts). */
const PACKED_COLUMNS = `CREATE TABLE packed_columns (block INTEGER NOT NULL, slot INTEGER NOT NULL, packed BLOB NOT NULL,
    PRIMARY KEY (block, slot)) WITHOUT ROWID`

/** The tables that every collection has, whatever its schema. */
const TABLES: readonly string[] = [
  'CREATE TABLE documents (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, body TEXT NOT NULL)',
  // Values of fields with `store: false`, which indexing needs again when the document changes.
  'CREATE TABLE unstored (seq INTEGER PRIMARY KEY, body TEXT NOT NULL)',
  // Documents of a history collection whose latest state is not in D1 yet. `replaced`: by another document, not deleted.
  `CREATE TABLE outbox (document_id TEXT PRIMARY KEY, version INTEGER NOT NULL, replaced INTEGER NOT NULL DEFAULT 0)
    WITHOUT ROWID`,
  // Turns that have been added, so that none is added twice, and the ids of their documents, so that another can replace one.
  "CREATE TABLE origins (origin TEXT PRIMARY KEY, documents TEXT NOT NULL DEFAULT '[]') WITHOUT ROWID",
  `CREATE TABLE pending_embeddings (slot INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (slot, seq)) WITHOUT ROWID`,
  `CREATE TABLE refused_embeddings (slot INTEGER NOT NULL, seq INTEGER NOT NULL, error TEXT NOT NULL,
    PRIMARY KEY (slot, seq)) WITHOUT ROWID`,
  // Whether a field's vectors have labels (vectorize/labels.ts), and whether filters work (vectorize/proof.ts).
  `CREATE TABLE vectorize_fields (slot INTEGER PRIMARY KEY, dimensions INTEGER NOT NULL, retired INTEGER NOT NULL,
    labelled INTEGER NOT NULL DEFAULT 0, proven INTEGER NOT NULL DEFAULT 0, tried_at INTEGER)`,
  // Vectors whose present state Vectorize does not show, or with outdated labels (vectorize/outbox.ts).
  `CREATE TABLE vector_outbox (slot INTEGER NOT NULL, seq INTEGER NOT NULL, mutation INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0, relabelled INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (slot, seq)) WITHOUT ROWID`,
  'CREATE INDEX vector_outbox_by_mutation ON vector_outbox (mutation, slot, attempts)',
  `CREATE TABLE vector_mutations (number INTEGER PRIMARY KEY AUTOINCREMENT, slot INTEGER NOT NULL, mutation_id TEXT,
    sent_at INTEGER)`,
  // Counts of analytics rules that are not in documents yet, and the logs of rules (analytics/ledger.ts). `upto`: bytes of all
  // events up to this one.
  `CREATE TABLE analytics_queries (rule TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL, most INTEGER NOT NULL,
    count INTEGER NOT NULL, PRIMARY KEY (rule, id)) WITHOUT ROWID`,
  `CREATE TABLE analytics_counters (field TEXT NOT NULL, id TEXT NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (field, id)) WITHOUT ROWID`,
  `CREATE TABLE analytics_log (seq INTEGER PRIMARY KEY, rule TEXT NOT NULL, user TEXT NOT NULL, at INTEGER NOT NULL,
    event TEXT NOT NULL, upto INTEGER NOT NULL DEFAULT 0)`,
  'CREATE INDEX analytics_log_by_user ON analytics_log (rule, user, seq)',
  // Documents that analytics rules have made (analytics/kept.ts).
  'CREATE TABLE analytics_documents (seq INTEGER NOT NULL, rule TEXT NOT NULL, PRIMARY KEY (seq, rule)) WITHOUT ROWID',
  // Values by which documents of two collections belong together (documents/join-keys.ts).
  'CREATE TABLE join_keys (field TEXT NOT NULL, key NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (field, key, seq)) WITHOUT ROWID',
  'CREATE INDEX join_keys_by_seq ON join_keys (seq, field)',
  // Keys of deleted documents that other collections still refer to (documents/cascade.ts).
  'CREATE TABLE cascades (field TEXT NOT NULL, key NOT NULL, PRIMARY KEY (field, key)) WITHOUT ROWID',
  PACKED_COLUMNS,
  // The words that documents have (text/terms.ts).
  'CREATE TABLE terms (term TEXT PRIMARY KEY) WITHOUT ROWID',
]

/** Changes since format 1. Entries are only appended: when an object wakes, it runs those that it has not run yet. */
const MIGRATIONS: readonly ((sql: SqlStorage) => void)[] = [
  (sql) => sql.exec(PACKED_COLUMNS),
  packVectors,
  leaveMergesToTidying,
]

/** Packs the vectors that are there. It takes a second for 50,000, once. */
function packVectors(sql: SqlStorage): void {
  const schema = readSchema(sql)
  if (schema === undefined) return
  const fields = schema.fields.map((field) => ({ field, slot: schema.slots[field.name] }))
  for (const { field, slot } of [...fields, ...Object.values(schema.replacing ?? {})]) {
    if (slot === undefined || !isVector(field)) continue
    createPackedTable(sql, slot)
    embeddedIndex(sql, field, slot).repack()
  }
}

/** For the indexes of texts. Those of single fields, such as for `infix`, merge their small segments themselves. */
function leaveMergesToTidying(sql: SqlStorage): void {
  for (const table of [...Object.values(PRESENT), ...Object.values(NEXT)]) {
    const isThere = sql.exec('SELECT 1 FROM sqlite_master WHERE name = ?', table).toArray().length > 0
    if (isThere) configureFullText(sql, table)
  }
}

/** Whether this object has ever held a collection. */
export const isCreated = (sql: SqlStorage): boolean =>
  sql.exec(`SELECT 1 FROM sqlite_master WHERE name = 'meta'`).toArray().length > 0

/**
 * Brings the tables of an object up to date, or makes them.
 * @throws ApiError 500 for a collection that was stored before format 1
 */
export function migrate(sql: SqlStorage): void {
  // Also `IF NOT EXISTS` would count as a write where there is the table, and the first reply would wait for the disk.
  if (!isCreated(sql)) sql.exec('CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID')
  const version = readMeta(sql, 'version', v.number())
  if (version !== undefined && version < FORMAT_1) {
    throw new ApiError(
      500,
      'This collection was stored by a version of Parley from before storage format 1, and this version cannot read it. Restore a backup that the other version makes (`parley backup`), or delete the collection and import its documents again.',
    )
  }
  if (version === undefined) for (const table of TABLES) sql.exec(table)
  else for (const step of MIGRATIONS.slice(version - FORMAT_1)) step(sql)
  if (version !== FORMAT_1 + MIGRATIONS.length) writeMeta(sql, 'version', FORMAT_1 + MIGRATIONS.length)
}
