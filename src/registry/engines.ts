/**
 * The two ports to what a collection is kept in: a conversation finds documents through a `Retriever`, and keeps what was
 * said in a `HistoryStore`. The registry's row says which engine a collection has. `object`, the collection's own Durable
 * Object, is the only one so far; another one is one more entry of `RETRIEVERS`.
 */
import { ApiError, type Outcome } from '../errors'
import { collectionObject } from '../search/collection/handle'
import type {
  CollectionPlace,
  CollectionSchema,
  ImportOptions,
  RecentMessages,
  SearchParameters,
  SearchResult,
  SearchScope,
  Step,
  StoredMessage,
} from '../search/types'

/** What a turn finds documents with. */
export interface Retriever {
  /**
   * @param scope what the search's key may see; absent: no history collection
   * @param ticket names the search for `abandon`: unique, and the caller's secret
   */
  search(params: SearchParameters, scope?: SearchScope, ticket?: string): Promise<Outcome<SearchResult>>
  /** Nobody waits for the search of this ticket any more. */
  abandon(ticket: string): Promise<void>
  /** The fields of the collection: a turn shows a model no vectors. */
  schema(): Promise<Outcome<CollectionSchema>>
}

/**
 * What keeps the messages of conversations. Messages need no turn that made them: a caller may import some, or write them
 * through the documents API.
 */
export interface HistoryStore {
  schema(): Promise<Outcome<CollectionSchema>>
  /** From now on its messages are copied to D1. */
  keepHistory(): Promise<void>
  /** A conversation's messages, oldest first. @param without origins that do not count */
  messages(conversationId: string, without?: string[]): Promise<StoredMessage[]>
  /** Its last messages: those whose texts have this many bytes, and the one that goes past them. */
  recentMessages(conversationId: string, bytes: number, without?: string[]): Promise<RecentMessages>
  /** Which turns are whole: the timestamps (unix seconds) at which at least two messages are left. */
  wholeTurns(conversationId: string, timestamps: number[]): Promise<number[]>
  /**
   * Adds messages, all or none, once: a second call with the same `origin` changes nothing.
   * @param origin names what they came from for ever: `<conversation id>/...`
   * @param replaced origins whose last question and answer are removed in the same moment
   */
  appendTurn(
    origin: string,
    documents: Record<string, unknown>[],
    replaced?: string[],
  ): Promise<Outcome<void>>
  /** Adds or changes messages as documents, one line of JSON each. @returns a result line each, joined by LF */
  importLines(lines: string[], options: ImportOptions): Promise<Outcome<{ results: string; busy: boolean }>>
  /** One bounded step of removing a conversation. Call it until it is done. */
  removeConversation(conversationId: string): Promise<Step>
  /** Removes messages that D1 has let go. */
  expireMessages(documentIds: string[]): Promise<void>
}

const RETRIEVERS: Record<string, (env: Cloudflare.Env, objectId: string) => Retriever> = {
  object: (env, objectId) => collectionObject(env, objectId),
}

/** @throws ApiError 501 for an engine that this version does not know: a later version may have made the collection */
export function retrieverOf(env: Cloudflare.Env, { engine, objectId }: CollectionPlace): Retriever {
  const open = RETRIEVERS[engine]
  if (!open)
    throw new ApiError(501, `This version of Parley cannot search collections of the engine \`${engine}\`.`)
  return open(env, objectId)
}

/** Bytes that D1 holds. */
export async function databaseBytes(env: Pick<Cloudflare.Env, 'DB'>): Promise<number> {
  const { meta } = await env.DB.prepare('SELECT 1').run()
  return meta.size_after
}

/**
 * What was said is always kept by Parley itself, whatever engine has the documents.
 * @param historyId the id of a history collection's object
 */
export const historyStore = (env: Cloudflare.Env, historyId: string): HistoryStore =>
  collectionObject(env, historyId)
