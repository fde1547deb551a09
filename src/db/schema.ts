/**
 * D1: the registry (small, read often) and the record of history (large, swept by the cron trigger).
 *
 * Documents are not here: they live in their collection's Durable Object (src/search), because a search
 * then is one hop and an import one transaction.
 */
import { sql } from 'drizzle-orm'
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'

/** The name of a collection and the Durable Object that holds it. A new collection of an old name is a new object. */
export const collections = sqliteTable('collections', {
  name: text('name').primaryKey(),
  objectId: text('object_id').notNull().unique(),
  /** what its documents are kept in (registry/engines.ts) */
  engine: text('engine').notNull().default('object'),
  createdAt: integer('created_at').notNull(),
})

export const aliases = sqliteTable('aliases', {
  name: text('name').primaryKey(),
  collectionName: text('collection_name').notNull(),
})

/**
 * Conversation models. `config` is the stored object as JSON without its secrets; they are sealed beside it with
 * their masked form, so that listing models never opens one (registry/model-secrets.ts; the columns have their
 * names from when the `api_key` was the only secret). A deleted model keeps its row (`deletedAt`) until its last
 * message has expired: its ttl must go on.
 */
export const conversationModels = sqliteTable('conversation_models', {
  id: text('id').primaryKey(),
  config: text('config').notNull(),
  sealedSecrets: text('sealed_api_key'),
  maskedSecrets: text('masked_api_key'),
  ttl: integer('ttl').notNull(),
  deletedAt: integer('deleted_at'),
})

/**
 * API keys. The value itself is not stored: `hash` finds a key that is presented. `sealedValue` is kept
 * only for keys whose sole action is documents:search, since a scoped key is an HMAC under its parent's value.
 */
export const apiKeys = sqliteTable(
  'api_keys',
  {
    id: integer('id').primaryKey(),
    prefix: text('prefix').notNull(),
    hash: text('hash').notNull().unique(),
    sealedValue: text('sealed_value'),
    description: text('description').notNull(),
    actions: text('actions').notNull(),
    collections: text('collections').notNull(),
    expiresAt: integer('expires_at').notNull(),
    autodelete: integer('autodelete', { mode: 'boolean' }).notNull().default(false),
    /** JSON: what the key fixes (conversation_model_id, assistant, user_id) and its daily budget; null for an ordinary key */
    limits: text('limits'),
  },
  (table) => [index('api_keys_prefix').on(table.prefix)],
)

/**
 * History: a row a message, for every history collection. The collection's own object is the view that
 * the documents API reads and writes; each change there arrives here through that object's outbox.
 */
export const messages = sqliteTable(
  'messages',
  {
    /** `collections.objectId` of the history collection */
    historyId: text('history_id').notNull(),
    /** the document's id in the history collection */
    documentId: text('document_id').notNull(),
    conversationId: text('conversation_id').notNull(),
    modelId: text('model_id').notNull(),
    role: text('role').notNull(),
    message: text('message').notNull(),
    /** unix seconds */
    timestamp: integer('timestamp').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.historyId, table.documentId] }),
    index('messages_conversation').on(table.conversationId, table.timestamp),
    index('messages_expiry').on(table.modelId, table.timestamp),
  ],
)

/** A row a conversation, whatever protocol began it: what listing and ownership ask for. */
export const conversations = sqliteTable(
  'conversations',
  {
    id: text('id').primaryKey(),
    /** `collections.objectId` of its history collection */
    historyId: text('history_id').notNull(),
    modelId: text('model_id').notNull(),
    /** the key that began it: `admin`, or the id of an API key */
    owner: text('owner').notNull(),
    /** the user on whose behalf the key asked; '' where none was named */
    userId: text('user_id').notNull(),
    /** who is proven to have begun it (conversation/ownership.ts); '' where nobody is, and the user is only a label */
    proof: text('proof').notNull().default(''),
    protocol: text('protocol').notNull(),
    /** the beginning of its first question */
    title: text('title').notNull(),
    /** the title that somebody gave it instead */
    name: text('name'),
    /** JSON: what a memory says of itself (conversation/memories.ts); null for one that another protocol began */
    details: text('details'),
    turns: integer('turns').notNull(),
    /** when one of its turns failed last; null: none did. A stop is no failure */
    failedAt: integer('failed_at'),
    /** unix milliseconds, as everywhere but in `messages` */
    createdAt: integer('created_at').notNull(),
    updatedAt: integer('updated_at').notNull(),
    expiresAt: integer('expires_at').notNull(),
  },
  (table) => [
    index('conversations_owner').on(table.owner, table.updatedAt),
    index('conversations_proof').on(table.proof, table.owner, table.updatedAt).where(sql`proof <> ''`),
    index('conversations_proof_created')
      .on(table.proof, table.owner, table.createdAt)
      .where(sql`proof <> ''`),
    index('conversations_user').on(table.userId, table.updatedAt),
    index('conversations_user_created').on(table.userId, table.createdAt).where(sql`user_id <> ''`),
    index('conversations_owner_user')
      .on(table.owner, table.userId, table.updatedAt)
      .where(sql`user_id <> ''`),
    index('conversations_owner_user_created')
      .on(table.owner, table.userId, table.createdAt)
      .where(sql`user_id <> ''`),
    index('conversations_updated').on(table.updatedAt),
    index('conversations_created').on(table.createdAt),
    index('conversations_owner_created').on(table.owner, table.createdAt),
    index('conversations_expiry').on(table.expiresAt),
    index('conversations_failed').on(table.updatedAt).where(sql`failed_at IS NOT NULL`),
  ],
)

/** That all conversations of a user were erased, for those that are not in D1 yet (erasures.ts). */
export const erasures = sqliteTable(
  'erasures',
  {
    /** a digest of the user and the key: the name itself was to be forgotten */
    id: text('id').primaryKey(),
    /** when, in unix milliseconds */
    at: integer('at').notNull(),
  },
  (table) => [index('erasures_at').on(table.at)],
)

/** A row a finished turn: what `messages` has no room for. `trace` is for whoever debugs an answer. */
export const turns = sqliteTable(
  'turns',
  {
    conversationId: text('conversation_id').notNull(),
    turn: integer('turn').notNull(),
    question: text('question').notNull(),
    standalone: text('standalone'),
    answer: text('answer').notNull(),
    finishReason: text('finish_reason').notNull(),
    /** JSON, as in events.ts */
    citations: text('citations').notNull(),
    usage: text('usage').notNull(),
    timings: text('timings').notNull(),
    /** JSON: searches, prompts and durations (turn/fold.ts, `TurnTrace`) */
    trace: text('trace').notNull(),
    createdAt: integer('created_at').notNull(),
    expiresAt: integer('expires_at').notNull(),
    /** JSON: the suggested next questions. Null in rows from before migration 0011, which have them in `trace` alone */
    followups: text('followups'),
  },
  (table) => [
    primaryKey({ columns: [table.conversationId, table.turn] }),
    index('turns_expiry').on(table.expiresAt),
    // A message that nobody asked a model for (conversation/tell.ts) has no timings.
    index('turns_unanswered').on(table.conversationId).where(sql`citations = '[]' AND timings <> '{}'`),
  ],
)

/**
 * What people said of an answer: a row for each turn and giver. Triggers of migration 0010 delete it with its turn. They
 * also keep the full-text index `turns_text`, which drizzle cannot declare.
 */
export const feedback = sqliteTable(
  'feedback',
  {
    conversationId: text('conversation_id').notNull(),
    turn: integer('turn').notNull(),
    /** who gave it: a proof of a user or visitor (conversation/ownership.ts), or the owner of a key that proves nobody */
    giver: text('giver').notNull(),
    rating: text('rating', { enum: ['up', 'down'] }),
    /** 1 to 5 */
    score: integer('score'),
    comment: text('comment').notNull(),
    /** JSON: a list of strings */
    reasons: text('reasons').notNull(),
    /** unix milliseconds */
    createdAt: integer('created_at').notNull(),
    updatedAt: integer('updated_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.conversationId, table.turn, table.giver] }),
    index('feedback_rating').on(table.rating, table.conversationId),
  ],
)

/** What was spent, by day (UTC, YYYY-MM-DD), key and model. */
export const usage = sqliteTable(
  'usage',
  {
    day: text('day').notNull(),
    /** as `conversations.owner` */
    owner: text('owner').notNull(),
    modelId: text('model_id').notNull(),
    turns: integer('turns').notNull(),
    inputTokens: integer('input_tokens').notNull(),
    outputTokens: integer('output_tokens').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.day, table.owner, table.modelId] }),
    index('usage_model').on(table.modelId, table.day),
  ],
)

/**
 * Assistants: what a chat on somebody's site is made of (collections, model, prompt, allowed overrides).
 * `config` is JSON; the conversation layer knows its shape.
 */
export const assistants = sqliteTable('assistants', {
  name: text('name').primaryKey(),
  config: text('config').notNull(),
  /** unix milliseconds */
  createdAt: integer('created_at').notNull(),
  updatedAt: integer('updated_at').notNull(),
})

/**
 * What an API registers and alone understands: connectors, models, search pipelines, settings. `body` is JSON without
 * secrets; they are sealed beside it.
 */
export const resources = sqliteTable(
  'resources',
  {
    /** `connector`, `model`, `pipeline`, ... */
    kind: text('kind').notNull(),
    id: text('id').notNull(),
    /** one of its kind has it; null where names need not differ */
    uniqueName: text('unique_name'),
    body: text('body').notNull(),
    sealed: text('sealed'),
    version: integer('version').notNull(),
    /** unix milliseconds */
    createdAt: integer('created_at').notNull(),
    updatedAt: integer('updated_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.kind, table.id] }),
    uniqueIndex('resources_name').on(table.kind, table.uniqueName),
  ],
)
