/** The parts of a collection in memory: created from storage when the object wakes, lost with it. */

import * as v from 'valibot'
import { Ledger } from '../../analytics/ledger'
import { ApiError, collectionGone } from '../../errors'
import { HistoryMirror, indexConversations } from '../../history/turns'
import { createReranker } from '../../models/reranker'
import { passageReader } from '../../models/static-embedder'
import { Reconciler } from '../../vectorize/reconcile'
import { VectorMirror } from '../../vectorize/vector-mirror'
import { Store } from '../documents/store'
import { Writer } from '../documents/writer'
import { discarding, EmbeddingQueues, upgradeEmbeddings } from '../embedding/queue'
import { hasRows } from '../fragment'
import { hasMeta, readMeta, writeMeta } from '../meta'
import { KeptReplies, type SearchContext } from '../run/context'
import { EmbeddedAhead } from '../run/embedded-ahead'
import { isVector, type StoredSchema } from '../schema/layout'
import { readSchema } from '../schema/plan'
import { readFormer } from '../schema/schema'
import {
  configureFullText,
  createPackedTable,
  loadStemWords,
  NEXT,
  PRESENT,
  StillFilling,
} from '../schema/tables'
import { curationSets, synonymSets } from '../sets/curation'
import { stemmingDictionaries } from '../text/analyzer'
import { Embedders } from '../vectors/embedders'
import { embeddedIndex } from '../vectors/vector-index'
import type { Background, Surroundings } from '../work'
import { BackgroundWorks, Tidying } from './background'
import { cascading, joinPort } from './links'
import { isOutdated, outlining } from './outline'
import { Reindex } from './reindex'

export interface Open {
  store: Store
  embedders: Embedders
  writer: Writer
  reindex: Reindex
  /** runs its jobs */
  reindexing: Background
  embeddings: EmbeddingQueues
  /** drops discarded tables */
  dropping: Background
  context: SearchContext
  background: BackgroundWorks
  /** tells other collections of deleted documents */
  cascade: Background
  reconciler: Reconciler
  /** counts and logs of analytics rules */
  ledger: Ledger
  /** keeps the outline in the registry up to date */
  outline: Background
  tidying: Tidying
  /** only in a history collection */
  mirror: HistoryMirror | undefined
}

export function openCollection(around: Surroundings, schema: StoredSchema): Open {
  const { storage, env, alarm } = around
  const { sql } = storage
  loadStemWords(sql, [...schema.fields, ...(readFormer(sql)?.fields ?? [])])
  const vectors = new VectorMirror(around, () => store.closed)
  const store = new Store(sql, schema, readMeta(sql, 'created_at', v.number()) ?? 0, vectors)
  const reconciler = new Reconciler(around, vectors, store)
  const embedders = new Embedders(env)
  const writer = new Writer(storage, store, embedders, () => {
    reindex.start([])
    alarm.within(0)
  })
  const reindex = new Reindex(storage, store, embedders, writer)
  const context = searchContext(around, store, embedders, () => open)
  const dropping = discarding(storage)
  const embeddings = new EmbeddingQueues({ storage, store, embedders }, () => background.kick(dropping))
  const cascade = cascading(around, () => open)
  const outline = outlining(around, store)
  store.onSchema = () => {
    if (isOutdated(store)) background.kick(outline)
  }
  const tidying = new Tidying(storage, store)
  store.onTexts = () => tidying.wrote()
  const ledger: Ledger = new Ledger(storage, { store, writer, embedders }, () =>
    background.kick(ledger.work, true),
  )
  const reindexing: Background = {
    name: 'reindex',
    step: async () => {
      await embedders.ready(store.plan.embedded)
      return store.closed || reindex.step().done ? undefined : 0
    },
  }
  const works: Background[] = [
    cascade,
    { name: 'history', step: async () => open.mirror?.step() },
    reindexing,
    dropping,
    ...vectors.works,
    reconciler.work,
    ledger.work,
    outline,
  ]
  const background = new BackgroundWorks(
    () => [...works, ...embeddings.works()],
    alarm,
    () => store.closed,
    { collection: () => store.schema.name },
  )
  store.pending.onMark = (slot) => {
    const queue = embeddings.queueOf(slot)
    if (queue !== undefined) background.kick(queue)
  }
  const open: Open = {
    store,
    embedders,
    writer,
    reindex,
    reindexing,
    embeddings,
    dropping,
    context,
    background,
    reconciler,
    cascade,
    ledger,
    outline,
    tidying,
    mirror: undefined,
  }
  if (hasMeta(sql, 'history')) mirrorHistory(open, around)
  upgradeEmbeddings(storage, store, env)
  store.onSchema()
  // After a crash the alarm may be half a minute away. Pending embeddings start now.
  for (const work of embeddings.waiting()) background.kick(work)
  // Opens each index now, so that Vectorize gets the vectors that are older than its binding.
  for (const plan of [...store.plan.vectors, ...store.plan.replacing]) store.indexOf(plan)
  vectors.resume()
  return open
}

/** What searches read and keep. */
function searchContext(
  around: Surroundings,
  store: Store,
  embedders: Embedders,
  opened: () => Open,
): SearchContext {
  const { storage, env } = around
  return {
    sql: storage.sql,
    get schema() {
      return store.readable
    },
    requireOpen: () => {
      if (store.closed) throw collectionGone()
    },
    replies: new KeptReplies(),
    count: () => store.count,
    columns: store.columns,
    vectors: (field) => store.vectors(field, store.readable),
    embedder: (field) => embedders.model(field),
    reader: () => passageReader(env),
    ahead: new EmbeddedAhead(),
    reranker: (name) => createReranker(name, env),
    synonymSet: (name) => synonymSets.find(env.DB, name),
    curationSet: (name) => curationSets.find(env.DB, name),
    stemmingDictionary: (name) => stemmingDictionaries.find(env.DB, name),
    read: (seqs, withoutVectors) => store.read(seqs, withoutVectors),
    port: joinPort(around, opened),
  }
}

/** Records every change of a document for D1 from now on. */
function mirrorHistory(open: Open, { env, objectId, alarm }: Surroundings): HistoryMirror {
  const mirror = new HistoryMirror(open.store, env, objectId, alarm)
  open.store.onChange = (id) => mirror.record(id)
  open.store.mostDocuments = Number.POSITIVE_INFINITY
  open.mirror = mirror
  return mirror
}

/** Makes a collection a history collection, unless it is one. */
export async function keepHistory(open: Open, around: Surroundings): Promise<void> {
  if (open.mirror !== undefined) return
  const { storage } = around
  const mirror = storage.transactionSync(() => {
    writeMeta(storage.sql, 'history', true)
    indexConversations(storage.sql)
    const made = mirrorHistory(open, around)
    if (open.store.count > 0) made.backfill()
    return made
  })
  await mirror.settle()
}

// =============================================================================
// Calls that read fields which are being indexed again (schema/tables.ts): they wait for a while, and then are refused.

/**
 * Runs work that reads indexes. It changes nothing before it has found out that a field is incomplete, so it can begin again.
 * @throws ApiError 503 when the fields take too long
 */
export async function whole<T>(open: () => Open, work: () => T | Promise<T>): Promise<T> {
  for (let patient = true; ; patient = false) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof StillFilling)) throw error
      const { reindex, reindexing, background } = open()
      // Whoever began the job may be gone.
      background.kick(reindexing)
      if (!patient || !(await reindex.settled())) throw error.refusal
    }
  }
}

/** What `version` in `meta` says of storage format 1, the first that is kept readable: it had twelve steps before it. */
const FORMAT_1 = 12

/** Values of a field in a block of documents (schema/column.ts). */
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
  // Fields whose vectors are in Vectorize, and vectors whose present state it does not show (vectorize/outbox.ts).
  'CREATE TABLE vectorize_fields (slot INTEGER PRIMARY KEY, dimensions INTEGER NOT NULL, retired INTEGER NOT NULL)',
  `CREATE TABLE vector_outbox (slot INTEGER NOT NULL, seq INTEGER NOT NULL, mutation INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (slot, seq)) WITHOUT ROWID`,
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
  // Documents that analytics rules have made (analytics/ledger.ts).
  'CREATE TABLE analytics_documents (seq INTEGER NOT NULL, rule TEXT NOT NULL, PRIMARY KEY (seq, rule)) WITHOUT ROWID',
  // Values by which documents of two collections belong together (documents/join-keys.ts).
  'CREATE TABLE join_keys (field TEXT NOT NULL, key NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (field, key, seq)) WITHOUT ROWID',
  'CREATE INDEX join_keys_by_seq ON join_keys (seq, field)',
  // Keys of deleted documents that other collections still refer to (documents/references.ts).
  'CREATE TABLE cascades (field TEXT NOT NULL, key NOT NULL, PRIMARY KEY (field, key)) WITHOUT ROWID',
  PACKED_COLUMNS,
  // The words that documents have (api/opensearch/query.ts).
  'CREATE TABLE terms (term TEXT PRIMARY KEY) WITHOUT ROWID',
]

/** Changes since format 1. Entries are only appended: when an object wakes, it runs those that it has not run yet. */
const MIGRATIONS: readonly ((sql: SqlStorage) => void)[] = [
  (sql) => sql.exec(PACKED_COLUMNS),
  packVectors,
  leaveMergesToTidying,
  // Numbers had types of several widths. Searches pack them again.
  (sql) => sql.exec('DELETE FROM packed_columns'),
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
    const isThere = hasRows(sql, 'SELECT 1 FROM sqlite_master WHERE name = ?', table)
    if (isThere) configureFullText(sql, table)
  }
}

/** Whether this object has ever held a collection. */
export const isCreated = (sql: SqlStorage): boolean =>
  hasRows(sql, `SELECT 1 FROM sqlite_master WHERE name = 'meta'`)

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
