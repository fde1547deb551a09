/**
 * Rows of the registry: collections, aliases, assistants and conversation models.
 */
import { waitUntil } from 'cloudflare:workers'
import sql, { raw, type Sql } from 'sql-template-tag'
import {
  all,
  batch,
  columnsOf,
  type Database,
  first,
  insert,
  isIn,
  nearby,
  noteWrite,
  RowCache,
  returning,
  run,
  select,
  sets,
} from './client'
import type { ResourceRow } from './resources'
import { aliases, assistants, collections, conversationModels, type RowOf, resources } from './schema'

// =============================================================================
// Rows of the aliases registry.

type AliasRow = RowOf<typeof aliases>

export async function upsertAlias(db: Database, row: AliasRow): Promise<void> {
  await run(
    db,
    sql`${insert(aliases, row)} ON CONFLICT (name) DO UPDATE SET collection_name = excluded.collection_name`,
  )
}

export const findAlias = (db: Database, name: string): Promise<AliasRow | undefined> =>
  first(db, sql`${select(aliases)} WHERE name = ${name}`)

export const listAliasRows = (db: Database): Promise<AliasRow[]> =>
  all(db, sql`${select(aliases)} ORDER BY name`)

/** @returns the deleted row */
export const deleteAlias = (db: Database, name: string): Promise<AliasRow | undefined> =>
  first(db, sql`DELETE FROM aliases WHERE name = ${name} ${returning(aliases)}`)

// =============================================================================
// Rows of the collections registry: which object holds which collection.

export type CollectionRow = RowOf<typeof collections>

/** @returns false when the name is taken */
export const insertCollection = async (
  db: Database,
  row: Pick<CollectionRow, 'name' | 'objectId' | 'createdAt'> & Partial<CollectionRow>,
): Promise<boolean> => (await run(db, sql`${insert(collections, row)} ON CONFLICT DO NOTHING`)) === 1

/** The collection with this name or, if there is none, the one that an alias of this name points to. */
export async function findCollectionRow(db: Database, name: string): Promise<CollectionRow | undefined> {
  const rows = await all<CollectionRow>(
    db,
    sql`${select(collections)} WHERE name = ${name}
      OR name = (SELECT collection_name FROM aliases WHERE aliases.name = ${name})`,
  )
  return rows.find((row) => row.name === name) ?? rows[0]
}

/** Moves a collection to another engine, or changes its credentials. @returns false when it is gone */
export const changeEngine = async (
  db: Database,
  objectId: string,
  change: Pick<CollectionRow, 'engine' | 'engineConfig' | 'sealedCredentials'>,
): Promise<boolean> =>
  (await run(db, sql`UPDATE collections SET ${sets(change)} WHERE object_id = ${objectId}`)) === 1

/**
 * Swaps the collections that two names lead to, in one transaction. SQLite checks at each statement that names are
 * unique, not at the commit, so one row is named after its object's id in between.
 * @returns false if a name leads elsewhere by now; nothing is changed then
 */
export async function switchPlaces(
  db: Database,
  one: Pick<CollectionRow, 'name' | 'objectId'>,
  other: Pick<CollectionRow, 'name' | 'objectId'>,
): Promise<boolean> {
  const between = `\u0000${one.objectId}`
  const stands = (name: string, objectId: string) =>
    sql`EXISTS (SELECT 1 FROM collections AS stands WHERE stands.name = ${name} AND stands.object_id = ${objectId})`
  const call = (objectId: string, from: string, to: string, condition: Sql) =>
    sql`UPDATE collections SET name = ${to} WHERE object_id = ${objectId} AND name = ${from} AND ${condition}`
  const [, , last] = await batch(db, [
    call(one.objectId, one.name, between, stands(other.name, other.objectId)),
    call(other.objectId, other.name, one.name, stands(between, one.objectId)),
    call(one.objectId, between, other.name, stands(one.name, other.objectId)),
  ])
  return last!.meta.changes === 1
}

export const findCollectionByObject = (db: Database, objectId: string): Promise<CollectionRow | undefined> =>
  first(db, sql`${select(collections)} WHERE object_id = ${objectId}`)

/** Stores the outline of an object's collection. @returns false when no name leads to the object */
export const saveOutline = async (db: Database, objectId: string, outline: string): Promise<boolean> =>
  (await run(db, sql`UPDATE collections SET outline = ${outline} WHERE object_id = ${objectId}`)) === 1

/** Deletes a name, unless it belongs to another object by now. */
export async function deleteCollection(db: Database, name: string, objectId: string): Promise<void> {
  await run(db, sql`DELETE FROM collections WHERE name = ${name} AND object_id = ${objectId}`)
}

/** Whether a Collection object of Parley's own stores the collection. Clusters store the others. */
export const isOwn = ({ engine }: Pick<CollectionRow, 'engine'>): boolean => engine === 'object'

/** Newest first. @param limit 0: all of them */
export const listCollectionRows = (db: Database, limit: number, offset: number): Promise<CollectionRow[]> =>
  all(
    db,
    sql`${select(collections)} ORDER BY created_at DESC, name LIMIT ${limit > 0 ? limit : -1} OFFSET ${offset}`,
  )

/**
 * All names that lead to collections in objects of Parley's own, and the collection of each: its name, and its aliases. A
 * collection wins over an alias of its name.
 */
export const listNames = (db: Database): Promise<{ name: string; collection: string }[]> =>
  all(
    db,
    sql`SELECT name, name AS collection FROM collections WHERE engine = 'object'
      UNION ALL SELECT aliases.name, collection_name FROM aliases
      JOIN collections ON collections.name = collection_name AND engine = 'object'
      WHERE aliases.name NOT IN (SELECT name FROM collections)`,
  )

/** Whether a collection (not an alias) has this name. */
export const isCollectionName = async (db: Database, name: string): Promise<boolean> =>
  (await first(db, sql`${select(collections, 'name')} WHERE name = ${name}`)) !== undefined

// =============================================================================
// Rows of assistants. Turns read them through the isolate's cache (client.ts).

export type AssistantRow = RowOf<typeof assistants>

/**
 * How long another isolate may use an assistant that was changed or deleted, in milliseconds. An assistant decides
 * who may ask, so it is cached no longer than keys.
 */
const CACHE_MS = 5_000

const heldAssistants = new RowCache<AssistantRow>('an assistant', CACHE_MS)

export const findAssistantRow = (
  env: Pick<Cloudflare.Env, 'DB'>,
  name: string,
): Promise<AssistantRow | undefined> => heldAssistants.find(name, () => readAssistantRow(env.DB, name))

/** Whether `findAssistantRow` answers without a read. */
export const isAssistantFresh = (name: string): boolean => heldAssistants.isFresh(name)

/** See `RowCache.reading`. */
export const readingAssistants = () => heldAssistants.reading()

/** Reads an assistant past the cache, for its administrator. */
export const readAssistantRow = (db: Database, name: string): Promise<AssistantRow | undefined> =>
  first(db, sql`${select(assistants)} WHERE name = ${name}`)

export const listAssistantRows = (db: Database): Promise<AssistantRow[]> =>
  all(db, sql`${select(assistants)} ORDER BY name`)

/** Stores an assistant, and replaces one of the same name. @param now unix milliseconds */
export async function upsertAssistantRow(
  db: Database,
  { name, config }: Pick<AssistantRow, 'name' | 'config'>,
  now: number,
): Promise<AssistantRow> {
  const row = await first<AssistantRow>(
    db,
    sql`${insert(assistants, { name, config, createdAt: now, updatedAt: now })}
      ON CONFLICT (name) DO UPDATE SET config = excluded.config, updated_at = excluded.updated_at
      ${returning(assistants)}`,
  )
  heldAssistants.forget(name)
  return row!
}

/** @returns the deleted row */
export async function deleteAssistantRow(db: Database, name: string): Promise<AssistantRow | undefined> {
  const row = await first<AssistantRow>(
    db,
    sql`DELETE FROM assistants WHERE name = ${name} ${returning(assistants)}`,
  )
  heldAssistants.forget(name)
  return row
}

// =============================================================================
// Rows of conversation models. Turns read them through the isolate's cache (client.ts).

export type ConversationModelRow = RowOf<typeof conversationModels>

/** Once a row is this old, in milliseconds, it is read again in the background. Turns use the old row meanwhile. */
const MODEL_CACHE_MS = 5_000

const heldModels = new RowCache<ConversationModelRow>('a conversation model', MODEL_CACHE_MS)

/** Finds a model that is not deleted. Another isolate may use one that was changed or deleted for a minute more. */
export const findModel = (
  env: Pick<Cloudflare.Env, 'DB'>,
  id: string,
): Promise<ConversationModelRow | undefined> =>
  heldModels.held(id, () => readModel(nearby(env), id), waitUntil)

/** Whether `findModel` answers without a read. */
export const isModelHeld = (id: string): boolean => heldModels.isHeld(id)

/** See `RowCache.reading`. */
export const readingModels = () => heldModels.reading()

/** Call this after a model was written. */
function forgetModel(id: string): void {
  noteWrite()
  heldModels.forget(id)
}

/** Reads a model that is not deleted past the cache, before changing it. */
export const readModel = (db: Database, id: string): Promise<ConversationModelRow | undefined> =>
  first(db, sql`${select(conversationModels)} WHERE id = ${id} AND deleted_at IS NULL`)

export const listModelRows = (db: Database): Promise<ConversationModelRow[]> =>
  all(db, sql`${select(conversationModels)} WHERE deleted_at IS NULL ORDER BY id`)

/** A row takes the place of a deleted model's of the same id. */
const IN_PLACE_OF_DELETED = raw(`ON CONFLICT (id) DO UPDATE SET config = excluded.config,
  sealed_api_key = excluded.sealed_api_key, masked_api_key = excluded.masked_api_key, ttl = excluded.ttl,
  deleted_at = excluded.deleted_at WHERE conversation_models.deleted_at IS NOT NULL`)

/**
 * Stores a new model. It replaces a deleted model of the same id, whose row was kept for its messages' ttl.
 * @returns false when the id is taken
 */
export async function insertModel(db: Database, row: ConversationModelRow): Promise<boolean> {
  const written = await run(db, sql`${insert(conversationModels, row)} ${IN_PLACE_OF_DELETED}`)
  forgetModel(row.id)
  return written === 1
}

/** 'taken': another model has the new id. 'missing': the old one is gone. 'changed': somebody else changed it. */
type Replaced = 'done' | 'taken' | 'missing' | 'changed'

/**
 * Replaces a model if it is still as it was read. If `row.id` is another id, the old one remains as a deleted model,
 * so that its messages still expire. One transaction.
 * @param read the model that `row` was made from @param now unix seconds
 */
export async function replaceModel(
  db: Database,
  read: ConversationModelRow,
  row: ConversationModelRow,
  now: number,
): Promise<Replaced> {
  try {
    return await writeReplacement(db, read, row, now)
  } finally {
    forgetModel(read.id)
    forgetModel(row.id)
  }
}

async function writeReplacement(
  db: Database,
  read: ConversationModelRow,
  row: ConversationModelRow,
  now: number,
): Promise<Replaced> {
  const { id, config, sealedSecrets } = read
  const unchanged = sql`id = ${id} AND deleted_at IS NULL AND config = ${config} AND sealed_api_key IS ${sealedSecrets}`
  if (row.id === id) {
    const updated = await run(
      db,
      sql`UPDATE conversation_models SET ${sets<typeof conversationModels>(row)} WHERE ${unchanged}`,
    )
    if (updated === 1) return 'done'
    return (await readModel(db, id)) ? 'changed' : 'missing'
  }
  // The second statement depends on the first: either the model is moved, or nothing changes.
  const [moved] = await batch(db, [
    sql`INSERT INTO conversation_models (id, config, sealed_api_key, masked_api_key, ttl)
      SELECT ${row.id}, ${row.config}, ${row.sealedSecrets}, ${row.maskedSecrets}, ${row.ttl}
      FROM conversation_models WHERE ${unchanged} ${IN_PLACE_OF_DELETED}`,
    sql`UPDATE conversation_models SET deleted_at = ${now}, sealed_api_key = NULL WHERE ${unchanged} AND changes() = 1`,
  ])
  if (moved!.meta.changes === 1) return 'done'
  const present = await readModel(db, id)
  if (!present) return 'missing'
  return present.config === config && present.sealedSecrets === sealedSecrets ? 'taken' : 'changed'
}

/** Marks a model as deleted. @returns false when there is none */
export async function markDeleted(db: Database, id: string, now: number): Promise<boolean> {
  const deleted = await run(
    db,
    sql`UPDATE conversation_models SET deleted_at = ${now}, sealed_api_key = NULL WHERE id = ${id} AND deleted_at IS NULL`,
  )
  forgetModel(id)
  return deleted === 1
}

/** The ttl of each known model, in seconds. Deleted models are included. */
export async function ttlsOf(db: Database, ids: string[]): Promise<Map<string, number>> {
  const rows = await all<Pick<ConversationModelRow, 'id' | 'ttl'>>(
    db,
    sql`${select(conversationModels, 'id', 'ttl')} WHERE ${isIn('id', ids)}`,
  )
  return new Map(rows.map((row) => [row.id, row.ttl]))
}

// =============================================================================
// Reads everything that a question needs of the registry in one batch: an assistant, its model, their collections.

/** What a request names. */
export interface Named {
  assistant?: string | undefined
  /** a conversation model's id */
  model?: string | undefined
  /** names or aliases of collections */
  collections?: readonly string[] | undefined
  /** OpenSearch's search pipeline. The request then names neither an assistant nor a model */
  pipeline?: NamedPipeline
}

interface NamedPipeline {
  /** absent: the collection's schema names it, or none does */
  id?: string | undefined
  /** one that the request brought itself, as JSON */
  inline?: string | undefined
}

/** Where a request names no pipeline, as many are read ahead, whichever they are. */
const MOST_PIPELINES = 10

/**
 * SQL of a list: the ids of the named model and of the assistant's, or those that the pipeline names. Like all statements here, it
 * takes one value: `Named` as JSON.
 */
export const modelIds = ({ pipeline }: Named): string =>
  pipeline
    ? `SELECT json_extract(listed.value, '$.retrieval_augmented_generation.model_id')
    FROM (SELECT ?1 ->> '$.pipeline.inline' AS body UNION ALL SELECT body FROM resources
      WHERE ${isPipeline(pipeline)}) AS given, json_each(given.body, '$.response_processors') AS listed
    WHERE listed.type = 'object'`
    : `?1 ->> '$.model', (SELECT json_extract(config, '$.model') FROM assistants WHERE name = ?1 ->> '$.assistant')`

const isPipeline = ({ id, inline }: NamedPipeline): string =>
  `kind = 'pipeline' AND id ${
    id === undefined && inline === undefined
      ? `IN (SELECT id FROM resources WHERE kind = 'pipeline' LIMIT ${MOST_PIPELINES})`
      : `= coalesce(?1 ->> '$.pipeline.id', '')`
  }`

/** The rows of the cluster's settings, of a pipeline, of the remote models that it names, and of their connectors. */
export async function readPipelineRows(db: Database, pipeline: NamedPipeline): Promise<ResourceRow[]> {
  const named = { pipeline }
  const ids = modelIds(named)
  const query = `SELECT ${columnsOf(resources)} FROM resources WHERE (kind = 'settings' AND id = 'cluster')
    OR (${isPipeline(pipeline)}) OR (kind = 'model' AND id IN (${ids}))
    OR (kind = 'connector' AND id IN (SELECT json_extract(body, '$.connector') FROM resources
      WHERE kind = 'model' AND id IN (${ids})))`
  return (await db.prepare(query).bind(JSON.stringify(named)).all<ResourceRow>()).results
}

/** Reads the rows of what a request names. Unknown names are left out. */
export async function readRegistry(db: Database, named: Named) {
  const listed = (path: string) =>
    `assistants, json_each(assistants.config, '${path}') AS listed WHERE assistants.name = ?1 ->> '$.assistant'`
  const isNamed = `conversation_models.id IN (${modelIds(named)}) AND conversation_models.deleted_at IS NULL`
  // A collection wins over an alias of its name. Such an alias can exist only if it was made before the collection.
  const statements = [
    `SELECT ${columnsOf(assistants)} FROM assistants WHERE name = ?1 ->> '$.assistant'`,
    `SELECT ${columnsOf(conversationModels)} FROM conversation_models WHERE ${isNamed}`,
    `SELECT ${columnsOf(collections)}, asked.name AS asked FROM (
      SELECT value AS name FROM json_each(?1, '$.collections')
      UNION SELECT listed.value FROM ${listed('$.collections')}
      UNION SELECT json_extract(listed.value, '$.collection') FROM ${listed('$.searches')}
      UNION SELECT json_extract(conversation_models.config, '$.history_collection') FROM conversation_models WHERE ${isNamed}
    ) AS asked JOIN collections ON collections.name = CASE
      WHEN EXISTS (SELECT 1 FROM collections AS own WHERE own.name = asked.name) THEN asked.name
      ELSE (SELECT collection_name FROM aliases WHERE aliases.name = asked.name) END`,
  ]
  const value = JSON.stringify(named)
  const read = await db.batch(statements.map((query) => db.prepare(query).bind(value)))
  const [found, models, places] = read.map(({ results }) => results)
  return {
    assistant: found?.[0] as AssistantRow | undefined,
    /** the named model and the assistant's */
    models: models as ConversationModelRow[],
    /** the named collections, the assistant's, and those of the models' history, each with the name that led to it */
    collections: places as (CollectionRow & { asked: string })[],
  }
}
