/**
 * The ports to the engine of a collection. A conversation finds documents through a `Retriever` and stores messages in a
 * `HistoryStore`; routes of documents use a `DocumentStore`. The registry's row names the engine: `object` is the collection's own
 * Durable Object, the others are clusters (clusters.ts).
 */
import { ApiError, type Outcome } from '../errors'
import { collectionObject } from '../search/collection/handle'
import type { CollectionRpc } from '../search/collection/rpc'
import type { NodeHealth } from '../search/engine/cluster'
import { objectDocuments } from '../search/engine/object'
import type { DocumentStore } from '../search/engine/port'
import type { Origin } from '../search/fault-log'
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
import { clusterStore, isCluster } from './clusters'

/** Finds documents for a turn. */
export interface Retriever {
  /**
   * @param scope what the search's key may see; absent: no history collection
   * @param ticket names the search for `abandon`: unique, and the caller's secret
   */
  search(params: SearchParameters, scope?: SearchScope, ticket?: string): Promise<Outcome<SearchResult>>
  /** The same, as JSON text where the engine can write it. */
  search(
    params: SearchParameters,
    scope: SearchScope | undefined,
    ticket: string | undefined,
    asText: boolean,
  ): Promise<Outcome<SearchResult | string>>
  /** Ends the search with this ticket, because nobody waits for it any more. */
  abandon(ticket: string): Promise<void>
  /** The fields of the collection. A turn needs them to keep vectors out of the prompt. */
  schema(): Promise<Outcome<CollectionSchema>>
}

/**
 * Stores the messages of conversations. A message need not come from a turn: callers can import messages, or write them through
 * the documents API.
 */
export interface HistoryStore {
  schema(): Promise<Outcome<CollectionSchema>>
  /** From now on its messages are copied to D1. */
  keepHistory(): Promise<void>
  /** A conversation's messages, oldest first. @param without origins that do not count */
  messages(conversationId: string, without?: string[], origin?: Origin): Promise<StoredMessage[]>
  /** Its last messages: those whose texts have this many bytes, and the one that goes past them. */
  recentMessages(
    conversationId: string,
    bytes: number,
    without?: string[],
    origin?: Origin,
  ): Promise<RecentMessages>
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
    from?: Origin,
  ): Promise<Outcome<void>>
  /** Adds or changes messages as documents, one line of JSON each. @returns a result line each, joined by LF */
  importLines(lines: string[], options: ImportOptions): Promise<Outcome<{ results: string; busy: boolean }>>
  /** One bounded step of removing a conversation. Call it until it is done. */
  removeConversation(conversationId: string): Promise<Step>
  /** Removes one message, and D1's record of its turn. With `ignoreNotFound` an unknown id is no error. */
  remove(documentId: string, ignoreNotFound: boolean): Promise<Outcome<unknown>>
  /** Removes messages that D1 has let go. */
  expireMessages(documentIds: string[]): Promise<void>
}

/** @throws ApiError 501 for an engine that this version does not know: a later version may have made the collection */
export function retrieverOf(env: Cloudflare.Env, { engine, objectId }: CollectionPlace): Retriever {
  if (engine === 'object') return collectionObject(env, objectId)
  if (isCluster(engine)) return clusterStore(env, engine, objectId)
  throw new ApiError(501, `This version of Parley cannot search collections of the engine \`${engine}\`.`)
}

/**
 * The documents of a collection, wherever they are.
 * @throws ApiError 501 as `retrieverOf`
 */
export function documentsOf(env: Cloudflare.Env, place: CollectionPlace): DocumentStore {
  const { engine, objectId } = place
  if (isCluster(engine)) return clusterStore(env, engine, objectId)
  return objectDocuments(ownObject(env, place))
}

/** The nodes of a collection's cluster, asked just now. A collection in Parley has none. */
export const nodesOf = async (
  env: Cloudflare.Env,
  { engine, objectId }: CollectionPlace,
): Promise<NodeHealth[]> => (isCluster(engine) ? clusterStore(env, engine, objectId).nodes() : [])

/**
 * The object of a collection, for what only Parley's own engine offers.
 * @throws ApiError 400 for a collection in a cluster, 501
 */
export function ownObject(env: Cloudflare.Env, { engine, objectId }: CollectionPlace): CollectionRpc {
  if (engine === 'object') return collectionObject(env, objectId)
  if (isCluster(engine)) {
    throw new ApiError(400, 'This is not available for a collection that lives in a cluster (`engine`).')
  }
  throw new ApiError(501, `This version of Parley does not know the engine \`${engine}\`.`)
}

/** Bytes that D1 holds. */
export async function databaseBytes(env: Pick<Cloudflare.Env, 'DB'>): Promise<number> {
  const { meta } = await env.DB.prepare('SELECT 1').run()
  return meta.size_after
}

/**
 * Parley always stores messages itself, whatever engine stores the documents.
 * @param historyId the id of a history collection's object
 */
export const historyStore = (env: Cloudflare.Env, historyId: string): HistoryStore =>
  collectionObject(env, historyId)
