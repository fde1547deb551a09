/** Reads everything that a question needs of the registry in one batch: an assistant, its model, their collections. */
import type { AssistantRow } from './assistants'
import { columnsOf, type Reads } from './client'
import type { CollectionRow } from './collections'
import type { ConversationModelRow } from './conversation-models'
import type { ResourceRow } from './resources'
import { assistants, collections, conversationModels, resources } from './schema'

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

export interface NamedPipeline {
  /** absent: the collection's schema names it, or none does */
  id?: string | undefined
  /** one that the request brought itself, as JSON */
  inline?: string | undefined
}

/** Where a request names no pipeline, as many are read ahead, whichever they are. */
const MOST_PIPELINES = 10

export interface RegistryRows {
  assistant: AssistantRow | undefined
  /** the named model and the assistant's */
  models: ConversationModelRow[]
  /** the named collections, the assistant's, and those of the models' history, each with the name that led to it */
  collections: (CollectionRow & { asked: string })[]
}

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
export async function readPipelineRows(db: Reads, pipeline: NamedPipeline): Promise<ResourceRow[]> {
  const named = { pipeline }
  const ids = modelIds(named)
  const query = `SELECT ${columnsOf(resources)} FROM resources WHERE (kind = 'settings' AND id = 'cluster')
    OR (${isPipeline(pipeline)}) OR (kind = 'model' AND id IN (${ids}))
    OR (kind = 'connector' AND id IN (SELECT json_extract(body, '$.connector') FROM resources
      WHERE kind = 'model' AND id IN (${ids})))`
  return (await db.prepare(query).bind(JSON.stringify(named)).all<ResourceRow>()).results
}

/** Reads the rows of what a request names. Unknown names are left out. */
export async function readRegistry(db: Reads, named: Named): Promise<RegistryRows> {
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
    models: models as ConversationModelRow[],
    collections: places as RegistryRows['collections'],
  }
}
