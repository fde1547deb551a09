/**
 * D1: the registry (small, read often) and the record of history (large, swept by the cron trigger).
 *
 * Documents are not here. They live in their collection's Durable Object (src/search), so that a search is one hop
 * and an import is one transaction.
 */
import { sql } from 'drizzle-orm'
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'

/** The name of a collection and its Durable Object. A new collection with an old name gets a new object. */
export const collections = sqliteTable('collections', {
  name: text('name').primaryKey(),
  objectId: text('object_id').notNull().unique(),
  /** the engine that stores its documents (registry/engines.ts) */
  engine: text('engine').notNull().default('object'),
  /** where its cluster is, as JSON (engines/config.ts); null for the engine `object` */
  engineConfig: text('engine_config'),
  /** the credentials of its cluster, sealed */
  sealedCredentials: text('sealed_credentials'),
  createdAt: integer('created_at').notNull(),
  /**
   * JSON: what a question needs to know of its fields (search/collection/outline.ts). Its object writes it when the
   * schema changes; null until then
   */
  outline: text('outline'),
})

export const aliases = sqliteTable('aliases', {
  name: text('name').primaryKey(),
  collectionName: text('collection_name').notNull(),
})

/**
 * Conversation models. `config` is the stored object as JSON without its secrets. They are encrypted in a column of
 * their own, with their masked form beside it, so that listing models decrypts nothing (registry/models.ts).
 * The column names date from when `api_key` was the only secret. A deleted model keeps its row (`deletedAt`) until
 * its last message has expired, because the messages need its ttl.
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
 * API keys. The value itself is not stored: a key is looked up by its `hash`. Only keys whose sole action is
 * documents:search have a `sealedValue`, because a scoped key is an HMAC under its parent's value.
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
 * History: one row for each message of every history collection. The documents API reads and writes the
 * collection's object. Each change there arrives here through that object's outbox.
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

/** One row for each conversation of any protocol, for listing and ownership. */
export const conversations = sqliteTable(
  'conversations',
  {
    id: text('id').primaryKey(),
    /** `collections.objectId` of its history collection */
    historyId: text('history_id').notNull(),
    modelId: text('model_id').notNull(),
    /** the key that began it: `admin`, or the id of an API key */
    owner: text('owner').notNull(),
    /** the user on whose behalf the key asked; '' if none was named */
    userId: text('user_id').notNull(),
    /** who provably began it (conversation/stored.ts); '': nobody, and the user is only a label */
    proof: text('proof').notNull().default(''),
    protocol: text('protocol').notNull(),
    /** the beginning of its first question */
    title: text('title').notNull(),
    /** a title that replaces it */
    name: text('name'),
    /** JSON: details of a memory (conversation/messages.ts); null if another protocol began it */
    details: text('details'),
    turns: integer('turns').notNull(),
    /** when a turn last failed or was interrupted; null: never. A stop is not a failure */
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

/** Marks that all conversations of a user were erased, for those that are not in D1 yet (conversations.ts). */
export const erasures = sqliteTable(
  'erasures',
  {
    /** a digest of the user and the key, because the name itself must be forgotten */
    id: text('id').primaryKey(),
    /** when, in unix milliseconds */
    at: integer('at').notNull(),
  },
  (table) => [index('erasures_at').on(table.at)],
)

/** One row for each finished turn, with what `messages` lacks. `trace` is for debugging an answer. */
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
    /** the assistant that was asked; null: none */
    assistant: text('assistant'),
    /**
     * the turn that took its place, and that of those after it, when it was asked or edited again; null: the conversation
     * has it. A turn that was replaced is a version, which only readers that ask for it see
     */
    replacedBy: integer('replaced_by'),
    /** JSON: how far its answer can be relied on (models/language-model.ts, `Verdict`); null: nothing is known */
    verdict: text('verdict'),
    /** JSON: the documents of its prompt, as readers need them (conversation/stored.ts) */
    passages: text('passages'),
  },
  (table) => [
    primaryKey({ columns: [table.conversationId, table.turn] }),
    index('turns_expiry').on(table.expiresAt),
    // A message that no model answered (conversation/conversation-object.ts) has no timings.
    index('turns_unanswered').on(table.conversationId).where(sql`citations = '[]' AND timings <> '{}'`),
  ],
)

/**
 * Feedback on answers: one row for each turn and giver. Triggers of migration 0010 delete it with its turn. They
 * also keep the full-text index `turns_text`, which drizzle cannot declare.
 */
export const feedback = sqliteTable(
  'feedback',
  {
    conversationId: text('conversation_id').notNull(),
    turn: integer('turn').notNull(),
    /** who gave it: a proof of a user or visitor (conversation/stored.ts), or the owner of the key if nobody is proven */
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
 * Assistants: the settings of a chat (collections, model, prompt, allowed overrides). `config` is JSON; the registry
 * knows its shape.
 */
export const assistants = sqliteTable('assistants', {
  name: text('name').primaryKey(),
  config: text('config').notNull(),
  /** unix milliseconds */
  createdAt: integer('created_at').notNull(),
  updatedAt: integer('updated_at').notNull(),
})

/**
 * Resources that only one API understands: connectors, models, search pipelines, settings. `body` is JSON without
 * secrets, which are encrypted in a column of their own.
 */
export const resources = sqliteTable(
  'resources',
  {
    /** `connector`, `model`, `pipeline`, ... */
    kind: text('kind').notNull(),
    id: text('id').notNull(),
    /** unique within its kind; null if names need not differ */
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
