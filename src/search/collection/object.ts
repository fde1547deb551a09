/**
 * The Collection object: one collection's documents, index and history outbox. Its methods are called over RPC (handle.ts).
 * life.ts opens and deletes the collection.
 *
 * An error that the caller caused is returned as an Outcome; a thrown error is a fault of Parley. Each call is
 * bounded: long work (import, alter, delete by filter, export) is divided into steps that the Worker drives, so no
 * call comes near the object's CPU limit, and searches run between steps.
 */

import type { AnalyticsRecord, AnalyticsStatus } from '../../analytics/ledger'
import { CountingObject } from '../../durable/counting-object'
import { Alarm, nameOf } from '../../durable/objects'
import { ApiError, attempt, forbidden, type Outcome } from '../../errors'
import * as turns from '../../history/turns'
import { isHistoryShaped } from '../../history/turns'
import type { Reconciliation } from '../../vectorize/reconcile'
import { exportPage, importLines, type Joining, removeAll, removeWhere, updateWhere } from '../documents/bulk'
import type { ReferenceAnswer } from '../documents/references'
import { project } from '../documents/store'
import type { Incoming } from '../documents/writer'
import { logging, type Origin } from '../fault-log'
import { search } from '../run/cached-search'
import { answerJoin, type JoiningFields, joining } from '../run/join-answer'
import { LongSearches } from '../run/pace'
import { embedAhead } from '../run/search'
import { sealFields } from '../schema/embedding-secrets'
import { publicSchema, type Referrer } from '../schema/layout'
import { parseSchema, summarize } from '../schema/schema'
import { takeStemWords } from '../schema/tables'
import { DEFAULT_LENGTH } from '../text/analyzer'
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
import { discoverDimensions } from '../vectors/embedders'
import { Altering } from './altering'
import { CollectionLife } from './life'
import { answerReference, cascade, checkReferences, settleCascade, type Told } from './links'
import { keepHistory, whole } from './open'
import type { Cascaded, CascadeSource, Peer } from './rpc'
import { rename, reseal, truncate } from './stored-changes'

/** A call returns 32 MiB at most, and a character of a text takes up to two bytes there. */
const LONGEST_TEXT = 15 << 20

/** How long after a search imports use small batches. A user who types searches again within this time. */
const BUSY_MS = 2_000

export class Collection extends CountingObject implements Peer {
  #sql = this.ctx.storage.sql
  #life = new CollectionLife({
    storage: this.ctx.storage,
    env: this.env,
    objectId: nameOf(this.ctx.id),
    alarm: new Alarm(this.ctx.storage, { collection: nameOf(this.ctx.id) }),
  })
  #altering = new Altering()
  /** time of the last search, in unix milliseconds */
  #searchedAt = 0
  #longSearches = new LongSearches()
  #told: Told = new Set()

  /** Runs a call that throws, and logs faults. */
  #throwing<T>(event: string, origin: Origin | undefined, work: () => T | Promise<T>): Promise<T> {
    return logging(() => this.#life.name, event, origin, work)
  }

  /** The same for a call that returns its error. */
  #answer<T>(event: string, origin: Origin | undefined, work: () => T | Promise<T>): Promise<Outcome<T>> {
    return attempt(() => this.#throwing(event, origin, () => whole(() => this.#life.existing(), work)))
  }

  /**
   * Creates the collection, and seals the credentials of its embedders before storing them.
   * @param body the parsed JSON of the request; `name` was checked for uniqueness, credentials are in clear
   */
  create(body: unknown, createdAt: number, origin?: Origin): Promise<Outcome<CollectionSummary>> {
    return this.#answer('create', origin, async () => {
      const schema = parseSchema(body)
      await discoverDimensions(schema.fields, this.env)
      schema.fields = await takeStemWords(await sealFields(schema.fields, this.env), this.env)
      if (this.#life.open() !== undefined) {
        throw new ApiError(409, `A collection with name \`${schema.name}\` already exists.`)
      }
      this.#life.begin(schema, createdAt)
      return this.#summary()
    })
  }

  async summary(): Promise<Outcome<CollectionSummary>> {
    return attempt(() => this.#summary())
  }

  #summary(): CollectionSummary {
    const { store, embeddings } = this.#life.existing()
    return {
      ...summarize(store.readable, store.count, store.createdAt, DEFAULT_LENGTH),
      ...embeddings.summary(),
    }
  }

  /** The schema, with sealed credentials. A clone opens them (schema/embedding-secrets.ts). */
  async schema(): Promise<Outcome<CollectionSchema>> {
    return attempt(() => publicSchema(this.#life.existing().store.readable))
  }

  /**
   * PATCH: checks and applies the change, and returns the echo of the request. Documents with values for new fields
   * are indexed by `reindex` steps, and so are embedding fields that get the built-in model. The caller drives the
   * steps; if the caller is gone, an alarm finishes them. Vectors of other models are made in the background.
   */
  alter(body: unknown, origin?: Origin): Promise<Outcome<Record<string, unknown>>> {
    return this.#answer('alter', origin, () =>
      this.#altering.run(this.#life.existing(), this.#life.around, body),
    )
  }

  /**
   * Compares some of the vectors with what Vectorize shows, and sends again what differs.
   * @param after the last answer's `cursor`, '' at first; it is '' at the end
   */
  reconcileVectors(after: string): Promise<Outcome<Reconciliation & { cursor: string }>> {
    return attempt(() => this.#life.existing().reconciler.run(after))
  }

  /** Seals embedders' credentials under the present key. @returns how many */
  reseal(): Promise<Outcome<number>> {
    return attempt(() => reseal(this.#life.existing().store, this.env))
  }

  /** Changes the name that replies show. The registry decides which name leads here. */
  rename(name: string): Promise<Outcome<void>> {
    return attempt(() => rename(this.#life.existing(), name))
  }

  /** Deletes everything that this object holds. */
  destroy(): Promise<void> {
    return this.#life.destroy()
  }

  reindex(origin?: Origin): Promise<Step> {
    return this.#life.ifOpen('reindex', origin, { count: 0, done: true }, async (open) => {
      await open.embedders.ready(open.store.plan.embedded)
      if (open.store.closed) return { count: 0, done: true }
      const step = open.reindex.step()
      return step.done ? { ...step, done: await open.embeddings.replaceAtOnce() } : step
    })
  }

  /**
   * The progress of the last schema change; undefined when it is done. Documents are validated as they are altered.
   */
  async schemaProgress(): Promise<SchemaProgress | undefined> {
    const done = this.#life.open()?.reindex.done
    return done === undefined ? undefined : { validated_docs: done, altered_docs: done }
  }

  /** @param json the raw body: the parser's message is part of the wire format */
  write(json: string, options: WriteOptions): Promise<Outcome<Document>> {
    return this.#answer('write', options, () => this.#write({ document: json, ...options }, options))
  }

  /** PATCH /documents/:id */
  patch(
    id: string,
    json: string,
    dirtyValues?: DirtyValues,
    origin: Origin = {},
  ): Promise<Outcome<Document>> {
    const incoming: Incoming = { document: json, action: 'update', id, dirtyValues }
    return this.#answer('patch', origin, () => this.#write(incoming, origin))
  }

  async #write(incoming: Incoming, origin: Origin): Promise<Document> {
    const [fault] = await this.#faults([incoming])
    const { writer, store, mirror } = await this.#life.writable()
    const [result] = writer.write([{ ...incoming, fault }], origin)
    if (result === undefined || result instanceof ApiError) throw result
    const document = store.read([result.seq]).get(result.seq) as Document
    await mirror?.settle()
    return document
  }

  #faults(items: Incoming[]): Promise<(ApiError | undefined)[]> {
    return checkReferences(this.#life.around, this.#life.existing(), this.#told, items)
  }

  /** @param include and @param exclude comma-separated field lists, may be '' */
  get(id: string, include: string, exclude: string, scope: SearchScope = {}): Promise<Outcome<Document>> {
    return this.#answer('get', scope, async () => {
      const { store } = this.#life.existing()
      const [seq, whole] = store.existing(id)
      const shown = new Map([[seq, project(whole, include, exclude)]])
      const { attach } = await this.#joining({ include, exclude }, scope)
      await attach?.(shown)
      return shown.get(seq)!
    })
  }

  #joining(fields: JoiningFields, scope?: SearchScope): Promise<Joining> {
    return joining(this.#life.existing().context, fields, scope, this.#longSearches)
  }

  join(question: JoinQuestion): Promise<Outcome<JoinAnswer>> {
    this.#searchedAt = Date.now()
    return this.#answer('join', question.scope, () => {
      const { context, store, mirror } = this.#life.existing()
      if (!question.history && (mirror !== undefined || isHistoryShaped(store.schema))) throw forbidden()
      return answerJoin(context, question, this.#longSearches)
    })
  }

  refer(referrer: Referrer, as: string, keys: string): Promise<Outcome<ReferenceAnswer>> {
    return attempt(() => answerReference(this.#life.existing(), referrer, as, keys))
  }

  async cascade(field: string, keys: string, from: CascadeSource): Promise<Cascaded> {
    const open = this.#life.open()
    if (open === undefined) return 'gone'
    const answer = await cascade(this.#life.around, open, this.#told, { field, keys, from })
    if (answer !== 'gone') await open.mirror?.settle()
    return answer
  }

  /** With ignoreNotFound an unknown id answers `{id}`. */
  remove(id: string, ignoreNotFound: boolean, origin: Origin = {}): Promise<Outcome<Document>> {
    return this.#answer('remove', origin, async () => {
      const open = this.#life.existing()
      const { store, mirror } = open
      if (ignoreNotFound && !store.find([id]).has(id)) return { id }
      const [seq, document] = store.existing(id)
      removeAll(this.ctx.storage, store, [[seq, id]])
      await mirror?.settle()
      await settleCascade(open)
      return document
    })
  }

  /** One step of PATCH /documents?filter_by=. `after` is the last step's `cursor`, 0 at first. */
  updateWhere(
    filterBy: string,
    json: string,
    after: number,
    scope: SearchScope = {},
    dirtyValues?: DirtyValues,
  ): Promise<Outcome<Step & { cursor: number }>> {
    return this.#answer('updateWhere', scope, async () => {
      const { joins } = await this.#joining({ filterBy }, scope)
      const [fault] = await this.#faults([{ document: json, action: 'update' }])
      if (fault !== undefined) throw fault
      const { store, writer, mirror } = await this.#life.writable()
      const step = await updateWhere(store, writer, filterBy, { ...scope, json, dirtyValues }, after, joins)
      await mirror?.settle()
      return step
    })
  }

  /** One step of DELETE /documents?filter_by= */
  removeWhere(
    filterBy: string,
    options: RemoveOptions,
    scope: SearchScope = {},
  ): Promise<Outcome<Step & { cursor: number }>> {
    return this.#answer('removeWhere', scope, async () => {
      const { joins } = await this.#joining({ filterBy }, scope)
      const open = this.#life.existing()
      const { store, mirror } = open
      const step = await removeWhere(this.ctx.storage, store, filterBy, options, joins)
      await mirror?.settle()
      await settleCascade(open)
      return step
    })
  }

  /** One step of DELETE /documents?truncate=true */
  truncate(origin?: Origin): Promise<Step> {
    return this.#throwing('truncate', origin, () => truncate(this.ctx.storage, this.#life.open()))
  }

  /**
   * Imports one bounded batch in one transaction.
   * @param lines non-blank JSONL lines, at most about 500 and 512 KB
   * @returns a result line for each, joined by LF. `busy`: there was a search recently, so smaller batches are better
   */
  importLines(lines: string[], options: ImportOptions): Promise<Outcome<{ results: string; busy: boolean }>> {
    return this.#answer('importLines', options, async () => {
      const { references } = this.#life.existing().store.plan
      const faults =
        references.length > 0
          ? await this.#faults(lines.map((document) => ({ document, action: options.action })))
          : []
      const { store, writer, mirror } = await this.#life.writable()
      const results = importLines(store, writer, lines, options, faults)
      await mirror?.settle()
      const busy = Date.now() - this.#searchedAt < BUSY_MS
      return { results, busy }
    })
  }

  /** One page of an export, in order of insertion: JSONL without a trailing newline, '' at the end. */
  async exportPage(
    options: ExportOptions,
    after: number,
    scope: SearchScope = {},
  ): Promise<Outcome<{ lines: string; cursor: number; done: boolean }>> {
    return this.#answer('exportPage', scope, async () => {
      const joining = await this.#joining(options, scope)
      return exportPage(this.#life.existing().store, options, after, joining)
    })
  }

  /**
   * Searches. A history collection answers 401 unless the scope opens it.
   * @param ticket a name for `abandon`: unique, and known to the caller alone
   * @param asText as JSON text, which the platform passes on in a fifth of the time. An object of an earlier version writes none
   */
  search(
    params: SearchParameters,
    scope: SearchScope | undefined,
    ticket: string | undefined,
    asText: boolean,
  ): Promise<Outcome<SearchResult | string>>
  search(params: SearchParameters, scope?: SearchScope, ticket?: string): Promise<Outcome<SearchResult>>
  search(
    params: SearchParameters,
    scope: SearchScope = {},
    ticket?: string,
    asText = false,
  ): Promise<Outcome<SearchResult | string>> {
    this.#searchedAt = Date.now()
    return this.#answer('search', scope, async () => {
      const { context, store, tidying, mirror } = this.#life.existing()
      if (!scope.history && (mirror !== undefined || isHistoryShaped(store.schema))) throw forbidden()
      const sharing = { others: this.#longSearches, ticket }
      const reply = await tidying.during(() => search(context, params, scope, sharing))
      if (!asText) return reply.result
      const text = reply.text ?? JSON.stringify(reply.result)
      return text.length <= LONGEST_TEXT ? text : reply.result
    })
  }

  /**
   * Embeds the question of a search that follows, which then waits for the same call to the embedder. What fails here, the search
   * tries itself.
   */
  embedAhead(params: SearchParameters): Promise<Outcome<void>> {
    const work = () => embedAhead(this.#life.existing().context, params, this.#longSearches)
    return attempt(() => whole(() => this.#life.existing(), work))
  }

  async abandon(ticket: string): Promise<void> {
    this.#longSearches.abandon(ticket)
  }

  /** Makes this a history collection: from now on its documents are copied to D1. */
  async keepHistory(): Promise<void> {
    const open = this.#life.open()
    if (open !== undefined) await keepHistory(open, this.#life.around)
  }

  /** A conversation's messages, oldest first. @param without origins of turns that do not count */
  messages(conversationId: string, without: string[] = [], origin?: Origin): Promise<StoredMessage[]> {
    return this.#life.ifOpen('messages', origin, [], ({ store }) =>
      turns.conversationMessages(store, conversationId, without),
    )
  }

  /** A conversation's last messages: as many as have this many bytes, and the one that exceeds them. */
  recentMessages(
    conversationId: string,
    bytes: number,
    without: string[] = [],
    origin: Origin = {},
  ): Promise<RecentMessages> {
    return this.#life.ifOpen('recentMessages', origin, { messages: [], complete: true }, ({ store }) =>
      turns.recentMessages(store, conversationId, bytes, without),
    )
  }

  /** Which turns of a conversation are complete: the timestamps with at least two messages. */
  wholeTurns(conversationId: string, timestamps: number[], origin?: Origin): Promise<number[]> {
    return this.#life.ifOpen('wholeTurns', origin, [], ({ store }) =>
      turns.wholeTurns(store, conversationId, timestamps),
    )
  }

  /** One step of deleting a conversation. */
  removeConversation(conversationId: string, origin?: Origin): Promise<Step> {
    return this.#life.ifOpen('removeConversation', origin, { count: 0, done: true }, async (open) => {
      const step = turns.removeConversation(this.ctx.storage, open.store, conversationId)
      await open.mirror?.settle()
      return step
    })
  }

  /**
   * Adds a turn's documents, all or none, and only once: a second call with the same `origin` changes nothing.
   * @param origin the turn's permanent name: `<conversation id>/` and what distinguishes its turns
   * @param replaced origins of turns whose question and answer are removed in the same transaction
   */
  appendTurn(
    origin: string,
    documents: Record<string, unknown>[],
    replaced: string[] = [],
    from?: Origin,
  ): Promise<Outcome<void>> {
    return this.#answer('appendTurn', from, async () => {
      const { writer, store, mirror } = await this.#life.writable()
      writer.writeTogether(
        documents.map((document) => ({ document, action: 'emplace' })),
        () => {
          if (turns.isKnownOrigin(this.#sql, origin)) return false
          turns.removeReplaced(store, replaced, (id) => mirror?.record(id, true))
          return true
        },
        (ids) => turns.noteOrigin(this.#sql, origin, ids),
      )
      await mirror?.settle()
    })
  }

  /** Removes expired messages that the sweep found in D1. The sweep deletes its rows afterwards. */
  expireMessages(documentIds: string[], origin?: Origin): Promise<void> {
    return this.#life.ifOpen('expireMessages', origin, undefined, ({ store }) =>
      turns.expireMessages(this.ctx.storage, store, documentIds),
    )
  }

  /** Takes what analytics rules count or log. */
  recordEvents(records: AnalyticsRecord[]): Promise<Outcome<void>> {
    return attempt(() => this.#life.existing().ledger.record(records))
  }

  /** A user's latest events in the log of a rule, newest first. */
  loggedEvents(rule: string, user: string, most: number): Promise<Outcome<Record<string, unknown>[]>> {
    return attempt(() => this.#life.existing().ledger.events(rule, user, most))
  }

  /** Erases the log of a rule, or what it has of one user. @returns how many events it had */
  forgetEvents(rule: string, user?: string): Promise<Outcome<number>> {
    return attempt(() => this.#life.existing().ledger.forget(rule, user))
  }

  /** Puts all counts into documents now. */
  flushEvents(): Promise<Outcome<void>> {
    return attempt(() => this.#life.existing().ledger.flush())
  }

  eventStatus(): Promise<Outcome<AnalyticsStatus>> {
    return attempt(() => this.#life.existing().ledger.status())
  }

  override alarm(): Promise<void> {
    return this.#life.alarm()
  }
}
