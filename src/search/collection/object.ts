/**
 * The Collection object: one collection's documents, index and history outbox. It implements the RPC of rpc.ts.
 * life.ts opens and deletes the collection.
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
import { type Cascaded, type CascadeSource, type CollectionRpc, written } from './rpc'
import { rename, reseal, truncate } from './stored-changes'

/** How long after a search imports use small batches. A user who types searches again within this time. */
const BUSY_MS = 2_000

export class Collection extends CountingObject implements CollectionRpc {
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

  async schema(): Promise<Outcome<CollectionSchema>> {
    return attempt(() => publicSchema(this.#life.existing().store.readable))
  }

  alter(body: unknown, origin?: Origin): Promise<Outcome<Record<string, unknown>>> {
    return this.#answer('alter', origin, () =>
      this.#altering.run(this.#life.existing(), this.#life.around, body),
    )
  }

  reconcileVectors(after: string): Promise<Outcome<Reconciliation & { cursor: string }>> {
    return attempt(() => this.#life.existing().reconciler.run(after))
  }

  reseal(): Promise<Outcome<number>> {
    return attempt(() => reseal(this.#life.existing().store, this.env))
  }

  rename(name: string): Promise<Outcome<void>> {
    return attempt(() => rename(this.#life.existing(), name))
  }

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

  async schemaProgress(): Promise<SchemaProgress | undefined> {
    const done = this.#life.open()?.reindex.done
    return done === undefined ? undefined : { validated_docs: done, altered_docs: done }
  }

  write(json: string, options: WriteOptions): Promise<Outcome<Document>> {
    return this.#answer('write', options, () => this.#write({ document: json, ...options }, options))
  }

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

  removeWhere(
    filterBy: string,
    options: Parameters<CollectionRpc['removeWhere']>[1],
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

  truncate(origin?: Origin): Promise<Step> {
    return this.#throwing('truncate', origin, () => truncate(this.ctx.storage, this.#life.open()))
  }

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
      return asText ? (reply.text ?? written(reply.result)) : reply.result
    })
  }

  embedAhead(params: SearchParameters): Promise<Outcome<void>> {
    const work = () => embedAhead(this.#life.existing().context, params, this.#longSearches)
    return attempt(() => whole(() => this.#life.existing(), work))
  }

  async abandon(ticket: string): Promise<void> {
    this.#longSearches.abandon(ticket)
  }

  async keepHistory(): Promise<void> {
    const open = this.#life.open()
    if (open !== undefined) await keepHistory(open, this.#life.around)
  }

  messages(conversationId: string, without: string[] = [], origin?: Origin): Promise<StoredMessage[]> {
    return this.#life.ifOpen('messages', origin, [], ({ store }) =>
      turns.conversationMessages(store, conversationId, without),
    )
  }

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

  wholeTurns(conversationId: string, timestamps: number[], origin?: Origin): Promise<number[]> {
    return this.#life.ifOpen('wholeTurns', origin, [], ({ store }) =>
      turns.wholeTurns(store, conversationId, timestamps),
    )
  }

  removeConversation(conversationId: string, origin?: Origin): Promise<Step> {
    return this.#life.ifOpen('removeConversation', origin, { count: 0, done: true }, async (open) => {
      const step = turns.removeConversation(this.ctx.storage, open.store, conversationId)
      await open.mirror?.settle()
      return step
    })
  }

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

  expireMessages(documentIds: string[], origin?: Origin): Promise<void> {
    return this.#life.ifOpen('expireMessages', origin, undefined, ({ store }) =>
      turns.expireMessages(this.ctx.storage, store, documentIds),
    )
  }

  recordEvents(records: AnalyticsRecord[]): Promise<Outcome<void>> {
    return attempt(() => this.#life.existing().ledger.record(records))
  }

  loggedEvents(rule: string, user: string, most: number): Promise<Outcome<Record<string, unknown>[]>> {
    return attempt(() => this.#life.existing().ledger.events(rule, user, most))
  }

  forgetEvents(rule: string, user?: string): Promise<Outcome<number>> {
    return attempt(() => this.#life.existing().ledger.forget(rule, user))
  }

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
