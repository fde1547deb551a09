/**
 * What a Collection object offers over RPC. Callers use this type rather than the class, so that they see plain
 * promises of plain data.
 *
 * An error that the caller caused is returned as an Outcome; a thrown error is a fault of Parley. Each call is
 * bounded: long work (import, alter, delete by filter, export) is divided into steps that the Worker drives, so no
 * call comes near the object's CPU limit, and searches run between steps.
 */

import type { AnalyticsRecord, AnalyticsStatus } from '../../analytics/ledger'
import type { Repetitions } from '../../durable/objects'
import type { Outcome } from '../../errors'
import type { Reconciliation } from '../../vectorize/reconcile'
import type { ReferenceAnswer } from '../documents/references'
import type { Origin } from '../fault-log'
import type { Referrer } from '../schema/layout'
import type {
  CollectionSchema,
  CollectionSummary,
  DirtyValues,
  Document,
  ExportOptions,
  ImportOptions,
  JoinAnswer,
  JoinQuestion,
  RecentMessages,
  RemoveOptions,
  SchemaProgress,
  SearchParameters,
  SearchResult,
  SearchScope,
  Step,
  StoredMessage,
  WriteOptions,
} from '../types'

export interface CollectionRpc {
  /**
   * Creates the collection, and seals the credentials of its embedders before storing them.
   * @param body the parsed JSON of the request; `name` was checked for uniqueness, credentials are in clear
   */
  create(body: unknown, createdAt: number, origin?: Origin): Promise<Outcome<CollectionSummary>>
  summary(): Promise<Outcome<CollectionSummary>>
  /** The schema, with sealed credentials. A clone opens them (schema/embedding-secrets.ts). */
  schema(): Promise<Outcome<CollectionSchema>>
  /**
   * PATCH: checks and applies the change, and returns the echo of the request. Documents with values for new fields
   * are indexed by `reindex` steps, and so are embedding fields that get the built-in model. The caller drives the
   * steps; if the caller is gone, an alarm finishes them. Vectors of other models are made in the background.
   */
  alter(body: unknown, origin?: Origin): Promise<Outcome<Record<string, unknown>>>
  /** Seals embedders' credentials under the present key. @returns how many */
  reseal(): Promise<Outcome<number>>
  /** Changes the name that replies show. The registry decides which name leads here. */
  rename(name: string): Promise<Outcome<void>>
  reindex(origin?: Origin): Promise<Step>
  /**
   * The progress of the last schema change; undefined when it is done. Documents are validated as they are altered.
   */
  schemaProgress(): Promise<SchemaProgress | undefined>
  /**
   * Compares some of the vectors with what Vectorize shows, and sends again what differs.
   * @param after the last answer's `cursor`, '' at first; it is '' at the end
   */
  reconcileVectors(after: string): Promise<Outcome<Reconciliation & { cursor: string }>>
  /** Deletes everything that this object holds. */
  destroy(): Promise<void>

  /** @param json the raw body: the parser's message is part of the wire format */
  write(json: string, options: WriteOptions): Promise<Outcome<Document>>
  /** PATCH /documents/:id */
  patch(id: string, json: string, dirtyValues?: DirtyValues, origin?: Origin): Promise<Outcome<Document>>
  /** @param include and @param exclude comma-separated field lists, may be '' */
  get(id: string, include: string, exclude: string, scope?: SearchScope): Promise<Outcome<Document>>
  /** With ignoreNotFound an unknown id answers `{id}`. */
  remove(id: string, ignoreNotFound: boolean, origin?: Origin): Promise<Outcome<Document>>
  /** One step of PATCH /documents?filter_by=. `after` is the last step's `cursor`, 0 at first. */
  updateWhere(
    filterBy: string,
    json: string,
    after: number,
    scope?: SearchScope,
    dirtyValues?: DirtyValues,
  ): Promise<Outcome<Step & { cursor: number }>>
  /** One step of DELETE /documents?filter_by= */
  removeWhere(
    filterBy: string,
    options: RemoveOptions,
    scope?: SearchScope,
  ): Promise<Outcome<Step & { cursor: number }>>
  /** One step of DELETE /documents?truncate=true */
  truncate(origin?: Origin): Promise<Step>
  /**
   * Imports one bounded batch in one transaction.
   * @param lines non-blank JSONL lines, at most about 500 and 512 KB
   * @returns a result line for each, joined by LF. `busy`: there was a search recently, so smaller batches are better
   */
  importLines(lines: string[], options: ImportOptions): Promise<Outcome<{ results: string; busy: boolean }>>
  /** One page of an export, in order of insertion: JSONL without a trailing newline, '' at the end. */
  exportPage(
    options: ExportOptions,
    after: number,
    scope?: SearchScope,
  ): Promise<Outcome<{ lines: string; cursor: number; done: boolean }>>

  /**
   * Searches. A history collection answers 401 unless the scope opens it.
   * @param ticket a name for `abandon`: unique, and known to the caller alone
   */
  search(params: SearchParameters, scope?: SearchScope, ticket?: string): Promise<Outcome<SearchResult>>
  /** The same as JSON text, which the platform passes on in a fifth of the time. An object of an earlier version writes none. */
  search(
    params: SearchParameters,
    scope: SearchScope | undefined,
    ticket: string | undefined,
    asText: boolean,
  ): Promise<Outcome<SearchResult | string>>
  /**
   * Embeds the question of a search that follows, which then waits for the same call to the embedder. What fails here, the search
   * tries itself.
   */
  embedAhead(params: SearchParameters): Promise<Outcome<void>>
  /** Answers another collection's search about documents that are related to its own. */
  join(question: JoinQuestion): Promise<Outcome<JoinAnswer>>
  /**
   * Looks up values of another collection's reference field, and notes that it refers to this one.
   * @param as the name that it uses for this collection @param keys a JSON list
   */
  refer(referrer: Referrer, as: string, keys: string): Promise<Outcome<ReferenceAnswer>>
  /**
   * One step of what follows when documents that others refer to are deleted.
   * @param field the reference field here @param keys its values that are gone, a JSON list
   * @param from where they were deleted. Nothing follows if the field refers to something else by now.
   */
  cascade(field: string, keys: string, from: CascadeSource): Promise<Cascaded>
  /** Ends the search with this ticket at its next pause, because its caller is gone. */
  abandon(ticket: string): Promise<void>

  /** Makes this a history collection: from now on its documents are copied to D1. */
  keepHistory(): Promise<void>
  /** A conversation's messages, oldest first. @param without origins of turns that do not count */
  messages(conversationId: string, without?: string[], origin?: Origin): Promise<StoredMessage[]>
  /** A conversation's last messages: as many as have this many bytes, and the one that exceeds them. */
  recentMessages(
    conversationId: string,
    bytes: number,
    without?: string[],
    origin?: Origin,
  ): Promise<RecentMessages>
  /** Which turns of a conversation are complete: the timestamps with at least two messages. */
  wholeTurns(conversationId: string, timestamps: number[], origin?: Origin): Promise<number[]>
  /** One step of deleting a conversation. */
  removeConversation(conversationId: string, origin?: Origin): Promise<Step>
  /**
   * Adds a turn's documents, all or none, and only once: a second call with the same `origin` changes nothing.
   * @param origin the turn's permanent name: `<conversation id>/` and what distinguishes its turns
   * @param replaced origins of turns whose question and answer are removed in the same transaction
   */
  appendTurn(
    origin: string,
    documents: Record<string, unknown>[],
    replaced?: string[],
    from?: Origin,
  ): Promise<Outcome<void>>
  /** Removes expired messages that the sweep found in D1. The sweep deletes its rows afterwards. */
  expireMessages(documentIds: string[], origin?: Origin): Promise<void>

  /** Takes what analytics rules count or log. */
  recordEvents(records: AnalyticsRecord[]): Promise<Outcome<void>>
  /** A user's latest events in the log of a rule, newest first. */
  loggedEvents(rule: string, user: string, most: number): Promise<Outcome<Record<string, unknown>[]>>
  /** Erases the log of a rule, or what it has of one user. @returns how many events it had */
  forgetEvents(rule: string, user?: string): Promise<Outcome<number>>
  /** Puts all counts into documents now. */
  flushEvents(): Promise<Outcome<void>>
  eventStatus(): Promise<Outcome<AnalyticsStatus>>
}

/** A call returns 32 MiB at most, and a character of a text takes up to two bytes there. */
const LONGEST_TEXT = 15 << 20

/** A result as JSON text, unless that is too long for a call. */
export function written(result: SearchResult): SearchResult | string {
  const text = JSON.stringify(result)
  return text.length <= LONGEST_TEXT ? text : result
}

/** Where documents were deleted that others refer to. */
export interface CascadeSource {
  objectId: string
  /** the field there whose values are gone */
  target: string
}

/** Whether more documents refer to the deleted ones; `gone`: the field does not refer there, or does not cascade. */
export type Cascaded = 'more' | 'done' | 'gone'

/** Which calls may be repeated when their outcome is unknown (durable/objects.ts). */
export const COLLECTION_CALLS: Repetitions<CollectionRpc> = {
  // Reading.
  summary: 'repeat',
  schema: 'repeat',
  schemaProgress: 'repeat',
  get: 'repeat',
  exportPage: 'repeat',
  search: 'repeat',
  embedAhead: 'once',
  join: 'repeat',
  refer: 'repeat',
  cascade: 'repeat',
  abandon: 'repeat',
  messages: 'repeat',
  recentMessages: 'repeat',
  wholeTurns: 'repeat',
  // Writes with the same result, however often they are repeated.
  reseal: 'repeat',
  rename: 'repeat',
  reindex: 'repeat',
  reconcileVectors: 'repeat',
  destroy: 'repeat',
  patch: 'repeat',
  keepHistory: 'repeat',
  removeConversation: 'repeat',
  appendTurn: 'repeat',
  expireMessages: 'repeat',
  loggedEvents: 'repeat',
  forgetEvents: 'repeat',
  flushEvents: 'repeat',
  eventStatus: 'repeat',
  // A second call would meet the result of the first one, and return an error, another id or other counts.
  create: 'once',
  alter: 'once',
  write: 'once',
  remove: 'once',
  updateWhere: 'once',
  removeWhere: 'once',
  truncate: 'once',
  importLines: 'once',
  recordEvents: 'once',
}
