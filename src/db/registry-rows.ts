/** Reads everything that a question needs of the registry in one batch: an assistant, its model, their collections. */
import { and, eq, getTableColumns, isNull, or, type SQL, sql } from 'drizzle-orm'
import type { AssistantRow } from './assistants'
import type { Database } from './client'
import type { CollectionRow } from './collections'
import type { ConversationModelRow } from './conversation-models'
import type { ResourceRow } from './resources'
import { aliases, assistants, collections, conversationModels, resources } from './schema'

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

/** SQL of a list: the ids of the named model and of the assistant's, or those that the pipeline names. */
export const modelIds = ({ assistant, model, pipeline }: Named): SQL =>
  pipeline
    ? sql`SELECT json_extract(listed.value, '$.retrieval_augmented_generation.model_id')
    FROM (SELECT ${pipeline.inline ?? null} AS body UNION ALL SELECT ${resources.body} FROM ${resources}
      WHERE ${isPipeline(pipeline)}) AS given, json_each(given.body, '$.response_processors') AS listed
    WHERE listed.type = 'object'`
    : sql`${model ?? null}, (SELECT json_extract(${assistants.config}, '$.model') FROM ${assistants}
    WHERE ${assistants.name} = ${assistant ?? null})`

const isPipeline = ({ id, inline }: NamedPipeline) =>
  and(
    eq(resources.kind, 'pipeline'),
    id === undefined && inline === undefined
      ? sql`${resources.id} IN (SELECT id FROM resources WHERE kind = 'pipeline' LIMIT ${MOST_PIPELINES})`
      : eq(resources.id, id ?? ''),
  )

/** The rows of the cluster's settings, of a pipeline, of the remote models that it names, and of their connectors. */
export function readPipelineRows(db: Database, pipeline: NamedPipeline): Promise<ResourceRow[]> {
  const { kind, id } = resources
  const ids = modelIds({ pipeline })
  const connectors = sql`SELECT json_extract(body, '$.connector') FROM resources WHERE kind = 'model' AND id IN (${ids})`
  return db
    .select()
    .from(resources)
    .where(
      or(
        and(eq(kind, 'settings'), eq(id, 'cluster')),
        isPipeline(pipeline),
        and(eq(kind, 'model'), sql`${id} IN (${ids})`),
        and(eq(kind, 'connector'), sql`${id} IN (${connectors})`),
      ),
    )
}

/** Reads the rows of what a request names. Unknown names are left out. */
export async function readRegistry(db: Database, named: Named): Promise<RegistryRows> {
  const { assistant = null } = named
  const isNamed = sql`${conversationModels.id} IN (${modelIds(named)})`
  const listed = (path: string) => sql`assistants, json_each(assistants.config, ${path}) AS listed
    WHERE assistants.name = ${assistant}`
  const asked = sql`(
    SELECT value AS name FROM json_each(${JSON.stringify(named.collections ?? [])})
    UNION SELECT listed.value FROM ${listed('$.collections')}
    UNION SELECT json_extract(listed.value, '$.collection') FROM ${listed('$.searches')}
    UNION SELECT json_extract(conversation_models.config, '$.history_collection') FROM conversation_models
      WHERE conversation_models.deleted_at IS NULL AND conversation_models.id IN (${modelIds(named)})
  ) AS asked`
  // A collection wins over an alias of its name. Such an alias can exist only if it was made before the collection.
  const leadsTo = sql`${collections.name} = CASE
    WHEN EXISTS (SELECT 1 FROM collections AS own WHERE own.name = asked.name) THEN asked.name
    ELSE (SELECT ${aliases.collectionName} FROM ${aliases} WHERE ${aliases.name} = asked.name) END`
  const [found, models, places] = await db.batch([
    db.select().from(assistants).where(sql`${assistants.name} = ${assistant}`),
    db
      .select()
      .from(conversationModels)
      .where(and(isNamed, isNull(conversationModels.deletedAt))),
    db
      // D1 returns a batch's rows as objects, so of two columns with the same name only one would remain.
      .select({ ...getTableColumns(collections), asked: sql<string>`asked.name`.as('asked') })
      .from(asked)
      .innerJoin(collections, leadsTo),
  ])
  return { assistant: found[0], models, collections: places }
}
