/**
 * The documents of a collection in SQLite, written with all their index entries.
 *
 * An import spends most of its time here. Documents are buffered until a batch is complete, or until something must
 * read them. Then each table gets its rows, many in a statement, and the full-text indexes come last, with a
 * statement for each document. The texts of statements change only with the schema, so SQLite compiles them once.
 * Nothing here opens a transaction: the caller has one for a whole batch, and ends it with `finish`.
 */

import * as v from 'valibot'
import { ApiError } from '../../errors'
import { once } from '../../lib/once'
import { readExactObject } from '../../lib/stored-json'
import { CLUSTER_HINT, MAX_DOCUMENTS } from '../limits'
import { readMeta, writeMeta } from '../meta'
import { PackedColumns } from '../schema/column'
import { ColumnMemory } from '../schema/column-memory'
import { type FieldSlot, type StoredSchema, valuesTable } from '../schema/layout'
import { type FieldPlan, type Plan, planOf } from '../schema/plan'
import { completeFormer, discardFormer, type Former, readFormer, withFormer } from '../schema/schema'
import { readSchema, writeSchema } from '../schema/stored'
import { NEXT, readable } from '../schema/tables'
import { place } from '../schema/values'
import type { Document, Field } from '../types'
import { VectorFields } from '../vectors/embedders'
import { shortest } from '../vectors/packed-vectors'
import { embeddedIndexes, type VectorIndex, type VectorIndexes } from '../vectors/vector-index'
import type { Draft } from './document'
import { PendingEmbeddings } from './embedding-text'
import { noteRemoved } from './join-keys'
import { bodiesOf, DocumentRows, findRows, readBodies, restoreUnstored, type Values } from './rows'
import { isSameText, TextEntries, type Texts } from './text-entries'

const countersShape = once(() =>
  v.object({
    /** the next document's sequence number */
    nextSeq: v.number(),
    count: v.number(),
  }),
)

type Counters = v.InferOutput<ReturnType<typeof countersShape>>

/** New vectors of a document, by field name. Null removes a vector; fields that are not in the map keep theirs. */
export type Vectors = Map<string, Float32Array | null>

export class Store {
  #sql: SqlStorage
  #schema!: StoredSchema
  #former: Former | undefined
  #readable!: StoredSchema
  #plan!: Plan
  #rows!: DocumentRows
  /** the indexes that searches read, and those that are being filled to take their place */
  #texts!: [TextEntries, ...TextEntries[]]
  #counters: Counters
  /** whether some were removed in this transaction */
  #hasRemoved = false
  #countersChanged = false

  readonly pending: PendingEmbeddings
  readonly vectorFields: VectorFields
  readonly columns: ColumnMemory

  /** texts removed from the full-text indexes, or replaced there, since the object woke */
  removedTexts = 0

  /** More are refused. */
  mostDocuments = MAX_DOCUMENTS

  /** Set when the collection is gone. Code that still holds the store must not write. */
  closed = false

  /** Whether documents are being indexed again. During that, the indexes may lack values of documents. */
  isReindexing: () => boolean = () => false

  /** Called before a stored document is written, and when it is read with its vectors, while fields are being filled. */
  beforeWrite: (seq: number) => void = () => {}
  carried: (seq: number, document: Document) => void = () => {}

  /** Called inside the transaction, with the id of each document that is written or removed. */
  onChange: ((id: string) => void) | undefined

  /** Called inside the transaction that changes the full-text indexes. */
  onTexts: () => void = () => {}

  /** Called inside the transaction that changes the schema. */
  onSchema: () => void = () => {}

  constructor(
    sql: SqlStorage,
    schema: StoredSchema,
    readonly createdAt: number,
    vectorIndexes: VectorIndexes = embeddedIndexes(sql),
  ) {
    this.vectorFields = new VectorFields(vectorIndexes)
    this.#sql = sql
    this.columns = new ColumnMemory(undefined, undefined, new PackedColumns(sql))
    this.#adopt(schema)
    this.#counters = this.#readCounters()
    this.pending = new PendingEmbeddings(sql)
  }

  get sql(): SqlStorage {
    return this.#sql
  }

  get schema(): StoredSchema {
    return this.#schema
  }

  /** Fields as they were before a change of the schema that is being carried out. */
  get former(): Former | undefined {
    return this.#former
  }

  /**
   * The schema for whatever reads the indexes, with former fields in the place of their successors. Other fields that are being
   * filled throw (schema/tables.ts).
   */
  get readable(): StoredSchema {
    return this.#readable
  }

  get plan(): Plan {
    return this.#plan
  }

  get count(): number {
    return this.#counters.count
  }

  get nextSeq(): number {
    return this.#counters.nextSeq
  }

  /** Stores a changed schema, after its tables have been changed. */
  saveSchema(schema: StoredSchema): void {
    writeSchema(this.#sql, schema)
    this.#adopt(schema)
    this.vectorFields.describe(schema)
    this.onSchema()
  }

  #adopt(schema: StoredSchema): void {
    this.columns.clear()
    const former = readFormer(this.#sql)
    const searched = withFormer(schema, former)
    this.#schema = schema
    this.#former = former
    this.#readable = readable(searched)
    this.#plan = planOf(schema, former)
    this.#rows = new DocumentRows(this.#sql, schema, this.#plan, this.columns)
    const plan = former === undefined ? this.#plan : planOf(searched)
    this.#texts = [new TextEntries(this.#sql, searched, plan)]
    if (former?.texts) this.#texts.push(new TextEntries(this.#sql, schema, this.#plan, NEXT))
  }

  /** The indexes of all fields are whole: successors take the place of former fields. Belongs in a transaction. */
  completeFields(): void {
    const { filling, ...schema } = this.#schema
    if (filling === undefined) return
    if (this.#former !== undefined) completeFormer(this.#sql, schema, this.#former)
    this.saveSchema(schema)
  }

  /** Gives former fields up: searches for them wait until their successors are whole. Belongs in a transaction. */
  discardFormer(): void {
    discardFormer(this.#sql, this.#schema.fields)
  }

  /**
   * Writes the buffer and the counters. Call this at the end of every transaction that writes or removes documents.
   */
  finish(): void {
    this.flush()
    if (this.#hasRemoved) this.onTexts()
    this.#hasRemoved = false
    if (!this.#countersChanged) return
    writeMeta(this.#sql, 'counters', this.#counters)
    this.#countersChanged = false
  }

  /** Writes the buffer. Call this before every change of the schema. */
  flush(): void {
    this.#rows.flush()
    for (const entries of this.#texts) {
      const replaced = entries.flush()
      if (replaced === undefined) continue
      this.removedTexts += replaced
      this.onTexts()
    }
    this.vectorFields.flush()
  }

  /** The full-text indexes, with those that are being filled. */
  get textIndexes(): string[] {
    return this.#texts.flatMap(({ tables }) => Object.values(tables))
  }

  /** Reloads the state in memory, after a rollback. */
  reset(): void {
    this.#rows.discard()
    for (const entries of this.#texts) entries.discard()
    const schema = readSchema(this.#sql)
    if (schema !== undefined) this.#adopt(schema)
    this.#counters = this.#readCounters()
    this.#countersChanged = false
    this.vectorFields.reset()
  }

  #readCounters(): Counters {
    return readMeta(this.#sql, 'counters', countersShape()) ?? { nextSeq: 0, count: 0 }
  }

  vectors(field: Field, { slots } = this.#schema): VectorIndex {
    return this.vectorFields.index(field, slots[field.name] as FieldSlot)
  }

  /** The index of a vector field or of its replacement. */
  indexOf({ field, slot }: FieldPlan): VectorIndex {
    return this.vectorFields.index(field, slot as FieldSlot)
  }

  /**
   * Checks whether there is room for a document, and in memory for its vectors.
   * @param seq undefined for a new document
   * @throws ApiError 422
   */
  requireRoom(seq: number | undefined, vectors: Vectors): void {
    if (seq === undefined && this.count >= this.mostDocuments) {
      throw new ApiError(
        422,
        `A collection takes at most ${this.mostDocuments} documents. Delete some, or ${CLUSTER_HINT}.`,
      )
    }
    this.vectorFields.requireRoom(
      this.#plan,
      this.#plan.vectors.filter(({ name }) => vectors.get(name)),
      seq,
    )
  }

  /** Stores a vector that was made later than its document. @throws ApiError 422 when memory has no room */
  putVector(plan: FieldPlan, seq: number, vector: Float32Array): void {
    this.vectorFields.requireRoom(this.#plan, [plan], seq)
    this.indexOf(plan).put(seq, vector)
  }

  /** The document with this id, after its sequence number. @throws ApiError 404 */
  existing(id: string): [number, Document] {
    const seq = this.find([id]).get(id)
    const document = seq === undefined ? undefined : this.read([seq]).get(seq)
    if (seq === undefined || document === undefined) {
      throw new ApiError(404, `Could not find a document with id: ${id}`)
    }
    return [seq, document]
  }

  /** Sequence numbers of documents, by id. */
  find(ids: string[]): Map<string, number> {
    this.#rows.flush()
    return findRows(this.#sql, ids)
  }

  /** An id for a document without one: its future sequence number, unless that is taken. */
  freeId(): string {
    for (;;) {
      const id = String(this.#counters.nextSeq)
      const isTaken =
        this.#rows.isWaiting(id) ||
        this.#sql.exec('SELECT 1 FROM documents WHERE id = ?', id).toArray().length > 0
      if (!isTaken) return id
      this.#counters.nextSeq++
      this.#countersChanged = true
    }
  }

  /**
   * Adds a document, with its vectors apart from `draft`. It is buffered until something reads documents, or until
   * `finish`.
   * @returns its sequence number
   */
  insert(draft: Draft & { id: string }, vectors: Vectors): number {
    const seq = this.#counters.nextSeq
    // Index entries come first: `bodiesOf` removes the fields that are not stored.
    const values = this.#rows.values(seq, draft)
    const write = this.#texts.map((entries) => entries.prepare(seq, entries.texts(draft), true))
    this.#rows.insert(draft.id, { values, ...bodiesOf(draft, this.#plan) })
    for (const put of write) put()
    this.#counters.nextSeq++
    this.#counters.count++
    this.#countersChanged = true
    this.#putVectors(seq, vectors)
    this.onChange?.(draft.id)
    return seq
  }

  /**
   * Replaces a document. It keeps its sequence number. The text indexes are written only if a text changes.
   * @param fills it is the same document, for indexes that lack it: former fields have it already
   */
  update(seq: number, draft: Draft & { id: string }, vectors: Vectors, fills = false): void {
    this.#rows.flush()
    const values = this.#rows.values(seq, draft)
    const [present, ...next] = this.#texts
    const texts = present.texts(draft)
    const isIndexed = fills && this.#former !== undefined ? true : this.#isIndexed(seq, texts)
    const write = isIndexed ? [] : [present.prepare(seq, texts, false)]
    for (const entries of next) write.push(entries.prepare(seq, entries.texts(draft), false))
    const { body, unstored } = bodiesOf(draft, this.#plan)
    for (const put of write) put()
    this.#removeLists(seq)
    this.#sql.exec('UPDATE documents SET body = ? WHERE seq = ?', body, seq)
    if (unstored !== undefined) {
      this.#sql.exec('INSERT OR REPLACE INTO unstored (seq, body) VALUES (?, ?)', seq, unstored)
    } else if (this.#plan.unstored.length > 0) {
      this.#sql.exec('DELETE FROM unstored WHERE seq = ?', seq)
    }
    this.vectorFields.rewrite(seq, () => this.#rows.write([values]))
    this.#putVectors(seq, vectors)
    this.onChange?.(draft.id)
  }

  /** Whether the text indexes already have these texts of the document. */
  #isIndexed(seq: number, texts: Texts): boolean {
    if (this.isReindexing()) return false
    const old = this.read([seq], true, true).get(seq)
    return old !== undefined && isSameText(texts, this.#texts[0].texts(old))
  }

  remove(seq: number, id: string): void {
    this.flush()
    this.columns.forget([seq])
    for (const entries of this.#texts) entries.remove(seq)
    this.removedTexts++
    this.#hasRemoved = true
    this.#removeLists(seq)
    for (const { table } of this.#plan.columns) this.#sql.exec(`DELETE FROM ${table} WHERE seq = ?`, seq)
    for (const plan of [...this.#plan.vectors, ...this.#plan.replacing]) this.indexOf(plan).remove(seq)
    for (const { slot } of [...this.#plan.embedded, ...this.#plan.replacing]) {
      this.pending.settle(slot as FieldSlot, seq)
    }
    this.#sql.exec('DELETE FROM unstored WHERE seq = ?', seq)
    noteRemoved(this.#sql, this.#schema, seq)
    if (this.#plan.keyed.length > 0) this.#sql.exec('DELETE FROM join_keys WHERE seq = ?', seq)
    this.#sql.exec('DELETE FROM documents WHERE seq = ?', seq)
    this.#counters.count--
    this.#countersChanged = true
    // FTS5 never counts deleted documents off, and BM25 would weigh words by them for ever.
    if (this.#counters.count === 0) for (const entries of this.#texts) entries.clear()
    this.onChange?.(id)
  }

  /** Removes every document. Sequence numbers are not reset. @returns how many there were */
  truncate(): number {
    this.flush()
    const { count } = this.#counters
    for (const entries of this.#texts) entries.clear()
    for (const { table } of this.#plan.columns) this.#sql.exec(`DELETE FROM ${table}`)
    for (const { slot } of this.#plan.lists) this.#sql.exec(`DELETE FROM ${valuesTable(slot as FieldSlot)}`)
    for (const plan of [...this.#plan.vectors, ...this.#plan.replacing]) this.indexOf(plan).clear()
    this.pending.clear()
    this.columns.removeAll()
    noteRemoved(this.#sql, this.#schema)
    this.#sql.exec('DELETE FROM join_keys')
    this.#sql.exec('DELETE FROM unstored')
    this.#sql.exec('DELETE FROM documents')
    this.#counters.count = 0
    this.#countersChanged = true
    return count
  }

  /** Removes a document's lists from the index. The caller replaces or removes its `columns` rows. */
  #removeLists(seq: number): void {
    for (const { slot } of this.#plan.lists) {
      this.#sql.exec(`DELETE FROM ${valuesTable(slot as FieldSlot)} WHERE seq = ?`, seq)
    }
  }

  /** Replaces a document's join keys in some fields. */
  writeKeys(seq: number, keys: Values['keys']): void {
    this.#rows.writeKeys(seq, keys)
  }

  #putVectors(seq: number, vectors: Vectors): void {
    for (const { field, name } of this.#plan.vectors) {
      const vector = vectors.get(name)
      if (vector === null) this.vectors(field).remove(seq)
      else if (vector !== undefined) this.vectors(field).put(seq, vector)
    }
  }

  /** Documents by sequence number. Missing ones are left out. */
  read(seqs: number[], withoutVectors = false, withUnstored = false): Map<number, Document> {
    const documents = new Map<number, Document>()
    for (const [seq, body] of this.bodies(seqs)) {
      const document = readExactObject(body) as Document
      if (!withoutVectors) this.#restoreVectors(seq, document)
      documents.set(seq, document)
    }
    if (withUnstored) restoreUnstored(this.#sql, documents)
    return documents
  }

  /** Documents as they are stored, in order of insertion. */
  bodies(seqs: number[]): [number, string][] {
    this.#rows.flush()
    return readBodies(this.#sql, seqs)
  }

  #restoreVectors(seq: number, document: Document): void {
    for (const { field, name, path } of this.#plan.vectors) {
      if (!field.store) continue
      const vector = this.vectors(field).get(seq)
      if (vector !== undefined) place(document, name, path, Array.from(vector, shortest))
    }
    if (this.#schema.filling !== undefined) this.carried(seq, document)
  }
}
