/**
 * D1: the registry (small, read often) and the record of history (large, swept by the cron trigger). Each table is listed with
 * its columns, as the properties of its rows. `migrations/` makes the tables, with their keys and indexes: SQL
 * by hand, with `--> statement-breakpoint` between two statements.
 *
 * Documents are not here. They live in their collection's Durable Object (src/search), so that a search is one hop
 * and an import is one transaction.
 */

/** What a column holds. With a question mark, it may be null. */
type Kind = 'text' | 'text?' | 'integer' | 'integer?'

export interface Table<Columns extends Record<string, Kind> = Record<string, Kind>> {
  name: string
  columns: Columns
}

interface Values {
  text: string
  'text?': string | null
  integer: number
  'integer?': number | null
}

/** A row of a table. */
export type RowOf<T extends Table> = {
  [Property in keyof T['columns']]: Values[T['columns'][Property]]
}

const table = <Columns extends Record<string, Kind>>(name: string, columns: Columns): Table<Columns> => ({
  name,
  columns,
})

/** The name of a collection and its Durable Object. A new collection with an old name gets a new object. */
export const collections = table('collections', {
  name: 'text',
  objectId: 'text',
  /** the engine that stores its documents (registry/engines.ts) */
  engine: 'text',
  /** where its cluster is, as JSON (engines/config.ts); null for the engine `object` */
  engineConfig: 'text?',
  /** the credentials of its cluster, sealed */
  sealedCredentials: 'text?',
  createdAt: 'integer',
  /**
   * JSON: what a question needs to know of its fields (search/collection/outline.ts). Its object writes it when the
   * schema changes; null until then
   */
  outline: 'text?',
})

export const aliases = table('aliases', {
  name: 'text',
  collectionName: 'text',
})

/**
 * Conversation models. `config` is the stored object as JSON without its secrets. They are encrypted in a column of
 * their own, with their masked form beside it, so that listing models decrypts nothing (registry/models.ts).
 * The names of their columns date from when `api_key` was the only secret (client.ts). A deleted model keeps its row (`deletedAt`) until
 * its last message has expired, because the messages need its ttl.
 */
export const conversationModels = table('conversation_models', {
  id: 'text',
  config: 'text',
  sealedSecrets: 'text?',
  maskedSecrets: 'text?',
  ttl: 'integer',
  deletedAt: 'integer?',
})

/**
 * API keys. The value itself is not stored: a key is looked up by its `hash`. Only keys whose sole action is
 * documents:search have a `sealedValue`, because a scoped key is an HMAC under its parent's value.
 */
export const apiKeys = table('api_keys', {
  id: 'integer',
  /** the first four characters of the value */
  prefix: 'text',
  /** SHA-256 of the value, hexadecimal */
  hash: 'text',
  sealedValue: 'text?',
  description: 'text',
  actions: 'text',
  collections: 'text',
  /** unix seconds */
  expiresAt: 'integer',
  /** 1: the key is deleted once it has expired; else 0 */
  autodelete: 'integer',
  /** JSON: what the key fixes (conversation_model_id, assistant, user_id) and its daily budget; null for an ordinary key */
  limits: 'text?',
})

/**
 * History: one row for each message of every history collection. The documents API reads and writes the
 * collection's object. Each change there arrives here through that object's outbox.
 */
export const messages = table('messages', {
  /** `collections.objectId` of the history collection */
  historyId: 'text',
  /** the document's id in the history collection */
  documentId: 'text',
  conversationId: 'text',
  modelId: 'text',
  role: 'text',
  message: 'text',
  /** unix seconds */
  timestamp: 'integer',
})

/** One row for each conversation of any protocol, for listing and ownership. */
export const conversations = table('conversations', {
  id: 'text',
  /** `collections.objectId` of its history collection */
  historyId: 'text',
  modelId: 'text',
  /** the key that began it: `admin`, or the id of an API key */
  owner: 'text',
  /** the user on whose behalf the key asked; '' if none was named */
  userId: 'text',
  /** who provably began it (conversation/stored.ts); '': nobody, and the user is only a label */
  proof: 'text',
  protocol: 'text',
  /** the beginning of its first question */
  title: 'text',
  /** a title that replaces it */
  name: 'text?',
  /** JSON: details of a memory (conversation/messages.ts); null if another protocol began it */
  details: 'text?',
  turns: 'integer',
  /** when a turn last failed or was interrupted; null: never. A stop is not a failure */
  failedAt: 'integer?',
  /** unix milliseconds, as everywhere but in `messages` */
  createdAt: 'integer',
  updatedAt: 'integer',
  expiresAt: 'integer',
})

/** Marks that all conversations of a user were erased, for those that are not in D1 yet (conversations.ts). */
export const erasures = table('erasures', {
  /** a digest of the user and the key, because the name itself must be forgotten */
  id: 'text',
  /** when, in unix milliseconds */
  at: 'integer',
})

/** One row for each finished turn, with what `messages` lacks. `trace` is for debugging an answer. */
export const turns = table('turns', {
  conversationId: 'text',
  turn: 'integer',
  question: 'text',
  standalone: 'text?',
  answer: 'text',
  finishReason: 'text',
  /** JSON, as in events.ts */
  citations: 'text',
  usage: 'text',
  timings: 'text',
  /** JSON: searches, prompts and durations (turn/fold.ts, `TurnTrace`) */
  trace: 'text',
  createdAt: 'integer',
  expiresAt: 'integer',
  /** JSON: the suggested next questions. Null in rows from before migration 0011, which have them in `trace` alone */
  followups: 'text?',
  /** the assistant that was asked; null: none */
  assistant: 'text?',
  /**
   * the turn that took its place, and that of those after it, when it was asked or edited again; null: the conversation
   * has it. A turn that was replaced is a version, which only readers that ask for it see
   */
  replacedBy: 'integer?',
  /** JSON: how far its answer can be relied on (models/language-model.ts, `Verdict`); null: nothing is known */
  verdict: 'text?',
  /** JSON: the documents of its prompt, as readers need them (conversation/stored.ts) */
  passages: 'text?',
  /** JSON: all parts of the answer, if it has others than text (lib/parts.ts) */
  parts: 'text?',
})

/**
 * Feedback on answers: one row for each turn and giver. Triggers of migration 0010 delete it with its turn. They
 * also keep the full-text index `turns_text`.
 */
export const feedback = table('feedback', {
  conversationId: 'text',
  turn: 'integer',
  /** who gave it: a proof of a user or visitor (conversation/stored.ts), or the owner of the key if nobody is proven */
  giver: 'text',
  /** `up` or `down`; null: only a score, a comment or reasons */
  rating: 'text?',
  /** 1 to 5 */
  score: 'integer?',
  comment: 'text',
  /** JSON: a list of strings */
  reasons: 'text',
  /** unix milliseconds */
  createdAt: 'integer',
  updatedAt: 'integer',
})

/** What was spent, by day (UTC, YYYY-MM-DD), key and model. */
export const usage = table('usage', {
  day: 'text',
  /** as `conversations.owner` */
  owner: 'text',
  modelId: 'text',
  turns: 'integer',
  inputTokens: 'integer',
  outputTokens: 'integer',
})

/**
 * Assistants: the settings of a chat (collections, model, prompt, allowed overrides). `config` is JSON; the registry
 * knows its shape.
 */
export const assistants = table('assistants', {
  name: 'text',
  config: 'text',
  /** unix milliseconds */
  createdAt: 'integer',
  updatedAt: 'integer',
})

/**
 * Resources that only one API understands: connectors, models, search pipelines, settings. `body` is JSON without
 * secrets, which are encrypted in a column of their own.
 */
export const resources = table('resources', {
  /** `connector`, `model`, `pipeline`, ... */
  kind: 'text',
  id: 'text',
  /** unique within its kind; null if names need not differ */
  uniqueName: 'text?',
  body: 'text',
  sealed: 'text?',
  version: 'integer',
  /** unix milliseconds */
  createdAt: 'integer',
  updatedAt: 'integer',
})

/** Messages to webhooks (deliveries.ts). Those of a conversation are deleted together with it, but outlive its expiry. */
export const deliveries = table('deliveries', {
  /** begins with its time */
  id: 'text',
  /** the name of a registered webhook, or `a/NAME` for that of an assistant's hand-over */
  webhook: 'text',
  event: 'text',
  conversationId: 'text?',
  turn: 'integer?',
  /** JSON: what cannot be read again when it is sent; '' once it is delivered */
  data: 'text',
  /** unix milliseconds, as all that follows */
  createdAt: 'integer',
  tries: 'integer',
  /** null: it is delivered or given up */
  nextAt: 'integer?',
  deliveredAt: 'integer?',
  /** what came of the last attempt, in words; null: there was none */
  outcome: 'text?',
})
