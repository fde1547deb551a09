/**
 * What a Collection object offers over RPC. Callers hold this type rather than the class, so that they see
 * plain promises of plain data.
 *
 * Errors that a caller caused come back as an Outcome; a thrown error is a fault of ours. Each call is
 * bounded: long work (import, alter, delete by filter, export) is cut into steps that the Worker drives,
 * so that no call nears the object's CPU limit and searches go on between the steps.
 */
import type { Outcome } from '../../errors'
import type { Repetitions } from '../../object-calls'
import type {
  CollectionSchema,
  CollectionSummary,
  DirtyValues,
  Document,
  ExportOptions,
  ImportOptions,
  RecentMessages,
  SearchParameters,
  SearchResult,
  SearchScope,
  Step,
  StoredMessage,
  WriteOptions,
} from '../types'
import type { Reconciliation } from '../vectors/vectorize/reconcile'

export interface CollectionRpc {
  /**
   * Makes the collection, and seals the credentials of its embedders before it stores them.
   * @param body the request's JSON, already parsed; `name` has been checked for uniqueness, credentials are in clear
   */
  create(body: unknown, createdAt: number): Promise<Outcome<CollectionSummary>>
  summary(): Promise<Outcome<CollectionSummary>>
  /** The schema, its embedders' credentials as they are stored: sealed. A clone opens them (schema/embedding-secrets.ts). */
  schema(): Promise<Outcome<CollectionSchema>>
  /**
   * PATCH: checks and applies, then answers the echo of the request. Documents that already hold values for
   * new fields are indexed by `reindex` steps, which the caller drives until done; an alarm finishes them if
   * the caller is gone. So are embedding fields that get the built-in model. Another model's vectors are made
   * in the background.
   */
  alter(body: unknown): Promise<Outcome<Record<string, unknown>>>
  /** Seals credentials of embedders under the present key. @returns how many it was */
  reseal(): Promise<Outcome<number>>
  reindex(): Promise<Step>
  /**
   * Compares some of the vectors with what Vectorize shows, and has sent again what differs.
   * @param after the last answer's `cursor`, '' at first; it is '' at the end
   */
  reconcileVectors(after: string): Promise<Outcome<Reconciliation & { cursor: string }>>
  /** Deletes everything this object holds. */
  destroy(): Promise<void>

  /** @param json the raw body: its parser's message is part of the wire */
  write(json: string, options: WriteOptions): Promise<Outcome<Document>>
  /** PATCH /documents/:id */
  patch(id: string, json: string, dirtyValues?: DirtyValues): Promise<Outcome<Document>>
  /** @param include and @param exclude comma-separated field lists, may be '' */
  get(id: string, include: string, exclude: string): Promise<Outcome<Document>>
  /** With ignoreNotFound an unknown id answers `{id}`. */
  remove(id: string, ignoreNotFound: boolean): Promise<Outcome<Document>>
  /** One step of PATCH /documents?filter_by=. `after` is the last step's `cursor`, 0 at first. */
  updateWhere(filterBy: string, json: string, after: number): Promise<Outcome<Step & { cursor: number }>>
  /** One step of DELETE /documents?filter_by= */
  removeWhere(
    filterBy: string,
    options: { batchSize: number; returnDocuments: boolean; returnIds: boolean },
  ): Promise<Outcome<Step>>
  /** One step of DELETE /documents?truncate=true */
  truncate(): Promise<Step>
  /**
   * One bounded batch of an import, as one transaction.
   * @param lines non-blank JSONL lines, at most about 500 and 512 KB
   * @returns a result line each, joined by LF, and whether somebody has searched of late, so that the
   *   caller can choose smaller batches while somebody is waiting
   */
  importLines(lines: string[], options: ImportOptions): Promise<Outcome<{ results: string; busy: boolean }>>
  /**
   * One page of an export, in order of insertion: JSONL without a trailing newline, '' at the end.
   */
  exportPage(
    options: ExportOptions,
    after: number,
  ): Promise<Outcome<{ lines: string; cursor: number; done: boolean }>>

  /**
   * Searches. A history collection is closed to a search whose scope does not open it: 401.
   * @param ticket names the search for `abandon`: unique, and the caller's secret
   */
  search(params: SearchParameters, scope?: SearchScope, ticket?: string): Promise<Outcome<SearchResult>>
  /** Nobody waits for the search of this ticket any more: it ends at its next rest. */
  abandon(ticket: string): Promise<void>

  /** Marks the collection as a history collection: from now on its documents are mirrored to D1. */
  keepHistory(): Promise<void>
  /** A conversation's messages, oldest first. @param without origins of turns that do not count */
  messages(conversationId: string, without?: string[]): Promise<StoredMessage[]>
  /** A conversation's last messages: those whose texts have this many bytes, and the one that goes past them. */
  recentMessages(conversationId: string, bytes: number, without?: string[]): Promise<RecentMessages>
  /** Which of a conversation's turns are whole: the timestamps at which at least two messages are left. */
  wholeTurns(conversationId: string, timestamps: number[]): Promise<number[]>
  /** One step of deleting all that there is of a conversation. */
  removeConversation(conversationId: string): Promise<Step>
  /**
   * Adds a turn's documents, once: a second call with the same `origin` changes nothing. All are there or
   * none is.
   * @param origin names the turn for ever: `<conversation id>/` and what tells its turns apart
   * @param replaced origins of turns whose question and answer are removed in the same moment
   */
  appendTurn(
    origin: string,
    documents: Record<string, unknown>[],
    replaced?: string[],
  ): Promise<Outcome<void>>
  /** Removes expired messages that the sweep has found in D1; it deletes its rows itself, afterwards. */
  expireMessages(documentIds: string[]): Promise<void>
}

/** Which calls may be made again when it is not known whether they were carried out (object-calls.ts). */
export const COLLECTION_CALLS: Repetitions<CollectionRpc> = {
  // Reading.
  summary: 'repeat',
  schema: 'repeat',
  get: 'repeat',
  exportPage: 'repeat',
  search: 'repeat',
  abandon: 'repeat',
  messages: 'repeat',
  recentMessages: 'repeat',
  wholeTurns: 'repeat',
  // Writing what is then there, or gone, however often it is written.
  reseal: 'repeat',
  reindex: 'repeat',
  reconcileVectors: 'repeat',
  destroy: 'repeat',
  patch: 'repeat',
  keepHistory: 'repeat',
  removeConversation: 'repeat',
  appendTurn: 'repeat',
  expireMessages: 'repeat',
  // The second time they find what the first one made or removed: an error, another id, or other counts.
  create: 'once',
  alter: 'once',
  write: 'once',
  remove: 'once',
  updateWhere: 'once',
  removeWhere: 'once',
  truncate: 'once',
  importLines: 'once',
}
