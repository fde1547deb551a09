/** The parts of a collection in memory: created from storage when the object wakes, lost with it. */

import * as v from 'valibot'
import { Ledger } from '../../analytics/ledger'
import { database } from '../../db/client'
import { collectionGone } from '../../errors'
import { HistoryMirror } from '../../history/mirror'
import { indexConversations } from '../../history/turns'
import { createReranker } from '../../models/reranker'
import { passageReader } from '../../models/static-embedder'
import { Reconciler } from '../../vectorize/reconcile'
import { VectorMirror } from '../../vectorize/vector-mirror'
import { Store } from '../documents/store'
import { Writer } from '../documents/writer'
import { EmbeddingQueues } from '../embedding/queues'
import { discarding } from '../embedding/replacement'
import { upgradeEmbeddings } from '../embedding/upgrade'
import { hasMeta, readMeta, writeMeta } from '../meta'
import type { SearchContext } from '../run/context'
import { EmbeddedAhead } from '../run/embedded-ahead'
import { KeptReplies } from '../run/kept-replies'
import { readFormer } from '../schema/former'
import type { StoredSchema } from '../schema/layout'
import { loadStemWords } from '../schema/stem-words'
import { curationSets, synonymSets } from '../sets/kept'
import { stemmingDictionaries } from '../text/dictionaries'
import { Embedders } from '../vectors/embedders'
import type { Background, Surroundings } from '../work'
import { BackgroundWorks } from './background'
import { cascading, joinPort } from './links'
import { isOutdated, outlining } from './outlining'
import { Reindex } from './reindex'
import { Tidying } from './tidying'

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
  vectors.describe(schema)
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
    synonymSet: (name) => synonymSets.find(database(env), name),
    curationSet: (name) => curationSets.find(database(env), name),
    stemmingDictionary: (name) => stemmingDictionaries.find(database(env), name),
    read: (seqs, withoutVectors) => store.read(seqs, withoutVectors),
    port: joinPort(around, opened),
  }
}

/** Records every change of a document for D1 from now on. */
export function mirrorHistory(open: Open, { env, objectId, alarm }: Surroundings): HistoryMirror {
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
