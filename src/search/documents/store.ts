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
import { hasRows, splitOutside } from '../fragment'
import { CLUSTER_HINT, MAX_DOCUMENTS } from '../limits'
import { readMeta, writeMeta } from '../meta'
import { PackedColumns } from '../schema/column'
import { ColumnMemory } from '../schema/column-memory'
import { type FieldSlot, type StoredSchema, valuesTable } from '../schema/layout'
import { type FieldPlan, type Plan, planOf, readSchema, writeSchema } from '../schema/plan'
import { completeFormer, discardFormer, type Former, readFormer, withFormer } from '../schema/schema'
import {
  addInfixWords,
  clearInfixIndex,
  isShared,
  NEXT,
  PRESENT,
  readable,
  sharedText,
  type TextTables,
  textCode,
  textColumn,
} from '../schema/tables'
import { place } from '../schema/values'
import { analyzerOf, STEMS, type TextIndex, WORDS } from '../text/analyzer'
import { rulesOf } from '../text/query'
import { TERMS, Terms } from '../text/terms'
import type { Document, Field } from '../types'
import { VectorFields } from '../vectors/embedders'
import { shortest } from '../vectors/packed-vectors'
import { embeddedIndexes, type VectorIndex, type VectorIndexes } from '../vectors/vector-index'
import type { Draft } from './document'
import { noteRemoved, PendingEmbeddings } from './join-keys'
import {
  bodiesOf,
  DocumentRows,
  findRows,
  readBodies,
  restoreUnstored,
  stored,
  textOf,
  type Values,
} from './rows'

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
    readonly sql: SqlStorage,
    schema: StoredSchema,
    readonly createdAt: number,
    vectorIndexes: VectorIndexes = embeddedIndexes(sql),
  ) {
    this.vectorFields = new VectorFields(vectorIndexes)
    this.columns = new ColumnMemory(undefined, new PackedColumns(sql))
    this.#adopt(schema)
    this.#counters = this.#readCounters()
    this.pending = new PendingEmbeddings(sql)
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
    writeSchema(this.sql, schema)
    this.#adopt(schema)
    this.onSchema()
  }

  #adopt(schema: StoredSchema): void {
    this.columns.clear()
    const former = readFormer(this.sql)
    const searched = withFormer(schema, former)
    this.#schema = schema
    this.#former = former
    this.#readable = readable(searched)
    this.#plan = planOf(schema, former)
    this.#rows = new DocumentRows(this.sql, this.#plan)
    const plan = former === undefined ? this.#plan : planOf(searched)
    this.#texts = [new TextEntries(this.sql, searched, plan)]
    if (former?.texts) this.#texts.push(new TextEntries(this.sql, schema, this.#plan, NEXT))
  }

  /** The indexes of all fields are whole: successors take the place of former fields. Belongs in a transaction. */
  completeFields(): void {
    const { filling, ...schema } = this.#schema
    if (filling === undefined) return
    if (this.#former !== undefined) completeFormer(this.sql, schema, this.#former)
    this.saveSchema(schema)
  }

  /** Gives former fields up: searches for them wait until their successors are whole. Belongs in a transaction. */
  discardFormer(): void {
    discardFormer(this.sql, this.#schema.fields)
  }

  /**
   * Writes the buffer and the counters. Call this at the end of every transaction that writes or removes documents.
   */
  finish(): void {
    this.flush()
    if (this.#hasRemoved) this.onTexts()
    this.#hasRemoved = false
    if (!this.#countersChanged) return
    writeMeta(this.sql, 'counters', this.#counters)
    this.#countersChanged = false
  }

  /** Writes the buffer. Call this before every change of the schema. */
  flush(): void {
    this.#flushRows()
    for (const entries of this.#texts) {
      const replaced = entries.flush()
      if (replaced === undefined) continue
      this.removedTexts += replaced
      this.onTexts()
    }
    this.vectorFields.flush()
  }

  /** Writes new documents' rows, and forgets their values in memory. */
  #flushRows(): void {
    this.columns.forget(this.#rows.flush())
  }

  /** The full-text indexes, with those that are being filled. */
  get textIndexes(): string[] {
    return this.#texts.flatMap(({ tables }) => Object.values(tables))
  }

  /** Runs work in a transaction. @throws what it throws; what is in memory is then read again */
  transact<Result>(storage: DurableObjectStorage, work: () => Result): Result {
    try {
      return storage.transactionSync(work)
    } catch (error) {
      this.reset()
      throw error
    }
  }

  /** Reloads the state in memory, after a rollback. */
  reset(): void {
    const schema = readSchema(this.sql)
    if (schema !== undefined) this.#adopt(schema)
    this.#counters = this.#readCounters()
    this.#countersChanged = false
    this.vectorFields.reset()
  }

  #readCounters(): Counters {
    return readMeta(this.sql, 'counters', countersShape()) ?? { nextSeq: 0, count: 0 }
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
    this.#flushRows()
    return findRows(this.sql, ids)
  }

  /** An id for a document without one: its future sequence number, unless that is taken. */
  freeId(): string {
    for (;;) {
      const id = String(this.#counters.nextSeq)
      const isTaken =
        this.#rows.isWaiting(id) || hasRows(this.sql, 'SELECT 1 FROM documents WHERE id = ?', id)
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
    this.#flushRows()
    const values = this.#rows.values(seq, draft)
    const [present, ...next] = this.#texts
    const texts = present.texts(draft)
    const isIndexed = fills && this.#former !== undefined ? true : this.#isIndexed(seq, texts)
    const write = isIndexed ? [] : [present.prepare(seq, texts, false)]
    for (const entries of next) write.push(entries.prepare(seq, entries.texts(draft), false))
    const { body, unstored } = bodiesOf(draft, this.#plan)
    for (const put of write) put()
    this.#removeLists(seq)
    this.sql.exec('UPDATE documents SET body = ? WHERE seq = ?', body, seq)
    if (unstored !== undefined) {
      this.sql.exec('INSERT OR REPLACE INTO unstored (seq, body) VALUES (?, ?)', seq, unstored)
    } else if (this.#plan.unstored.length > 0) {
      this.sql.exec('DELETE FROM unstored WHERE seq = ?', seq)
    }
    this.columns.forget([seq])
    this.#rows.write([values])
    this.#putVectors(seq, vectors)
    this.onChange?.(draft.id)
  }

  /** Whether the text indexes already have these texts of the document. */
  #isIndexed(seq: number, texts: Texts): boolean {
    if (this.isReindexing()) return false
    const old = this.read([seq], true, true).get(seq)
    if (old === undefined) return false
    const others = this.#texts[0].texts(old)
    return texts.every((text, number) => text === others[number])
  }

  remove(seq: number, id: string): void {
    this.flush()
    this.columns.forget([seq])
    for (const entries of this.#texts) entries.remove(seq)
    this.removedTexts++
    this.#hasRemoved = true
    this.#removeLists(seq)
    for (const { table } of this.#plan.columns) this.sql.exec(`DELETE FROM ${table} WHERE seq = ?`, seq)
    for (const plan of [...this.#plan.vectors, ...this.#plan.replacing]) this.indexOf(plan).remove(seq)
    for (const { slot } of [...this.#plan.embedded, ...this.#plan.replacing]) {
      this.pending.settle(slot as FieldSlot, seq)
    }
    this.sql.exec('DELETE FROM unstored WHERE seq = ?', seq)
    noteRemoved(this.sql, this.#schema, seq)
    if (this.#plan.keyed.length > 0) this.sql.exec('DELETE FROM join_keys WHERE seq = ?', seq)
    this.sql.exec('DELETE FROM documents WHERE seq = ?', seq)
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
    for (const { table } of this.#plan.columns) this.sql.exec(`DELETE FROM ${table}`)
    for (const { slot } of this.#plan.lists) this.sql.exec(`DELETE FROM ${valuesTable(slot as FieldSlot)}`)
    for (const plan of [...this.#plan.vectors, ...this.#plan.replacing]) this.indexOf(plan).clear()
    this.pending.clear()
    this.columns.removeAll()
    noteRemoved(this.sql, this.#schema)
    this.sql.exec('DELETE FROM join_keys')
    this.sql.exec('DELETE FROM unstored')
    this.sql.exec('DELETE FROM documents')
    this.#counters.count = 0
    this.#countersChanged = true
    return count
  }

  /** Removes a document's lists from the index. The caller replaces or removes its `columns` rows. */
  #removeLists(seq: number): void {
    for (const { slot } of this.#plan.lists) {
      this.sql.exec(`DELETE FROM ${valuesTable(slot as FieldSlot)} WHERE seq = ?`, seq)
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
    if (withUnstored) restoreUnstored(this.sql, documents)
    return documents
  }

  /** Documents as they are stored, in order of insertion. */
  bodies(seqs: number[]): [number, string][] {
    this.#flushRows()
    return readBodies(this.sql, seqs)
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

// =============================================================================
// Writes the full-text entries of documents: the text of each searched field, in the form of the index.

/** A text for each searched field of the plan; undefined where the document has none. */
type Texts = readonly (string | undefined)[]

/** The index entries of a document. */
interface TextEntry {
  seq: number
  /** texts by column, in the form of each index; undefined if the document has no text */
  columns: { stems: (string | null)[]; words: (string | null)[] } | undefined
  infixes: [FieldSlot, string[]][]
}

/**
 * The full-text indexes of one version of a schema.
 *
 * Entries are buffered until `flush`, which writes one index after the other. Writing each document's entries at once
 * would be slow: a statement with a list of values opens a savepoint, and then FTS5 writes a segment for the few
 * documents that it has in memory.
 */
class TextEntries {
  readonly #terms: Terms
  /** each column, and the numbers of its texts */
  readonly #columns: [column: string, texts: number[]][]
  // Their texts never change, so SQLite compiles them once.
  readonly #insertStems: string
  readonly #insertWords: string
  readonly tables: TextTables
  #waiting: { entry: TextEntry; isNew: boolean }[] = []

  constructor(
    private readonly sql: SqlStorage,
    private readonly schema: StoredSchema,
    private readonly plan: Plan,
    tables = PRESENT,
  ) {
    this.tables = tables
    this.#terms = new Terms(sql)
    this.#columns = [...Map.groupBy(plan.text.keys(), (number) => textColumn(plan.text[number]!.slot!))]
    const columns = this.#columns.map(([column]) => column)
    const into = ({ table }: TextIndex): string =>
      `INSERT INTO ${tables[table]} (rowid, ${columns.join(', ')}) VALUES (?, ${columns.map(() => '?').join(', ')})`
    this.#insertStems = into(STEMS)
    this.#insertWords = into(WORDS)
  }

  texts(draft: Draft): Texts {
    return this.plan.text.map((field) => textOf(field, draft))
  }

  /**
   * Computes the index entries of a document.
   * @param isNew it is not in the indexes yet
   * @returns buffers the entries for the next `flush`
   * @throws ApiError 400 when a text is too long for a row
   */
  prepare(seq: number, texts: Texts, isNew: boolean): () => void {
    const entry = this.#entry(seq, texts)
    return () => void this.#waiting.push({ entry, isNew })
  }

  #entry(seq: number, texts: Texts): TextEntry {
    if (texts.every((text) => text === undefined)) return { seq, columns: undefined, infixes: [] }
    const columns = { stems: this.#prepared(STEMS, texts), words: this.#prepared(WORDS, texts) }
    return { seq, columns, infixes: this.#infixWords(texts) }
  }

  /**
   * Writes the buffer. Call it in the transaction of the documents.
   * @returns how many entries it replaced; undefined if there was nothing
   */
  flush(): number | undefined {
    const waiting = this.#waiting
    if (waiting.length === 0) return undefined
    this.#waiting = []
    const infixes = Map.groupBy(
      waiting.flatMap(({ entry }) => entry.infixes),
      ([slot]) => slot,
    )
    for (const [slot, found] of infixes) {
      addInfixWords(
        this.sql,
        slot,
        found.flatMap(([, words]) => words),
      )
    }
    for (const { table } of [STEMS, WORDS]) {
      const insert = table === STEMS.table ? this.#insertStems : this.#insertWords
      for (const { entry, isNew } of waiting) {
        if (!isNew) this.sql.exec(`DELETE FROM ${this.tables[table]} WHERE rowid = ?`, entry.seq)
        if (entry.columns === undefined) continue
        const texts = table === STEMS.table ? entry.columns.stems : entry.columns.words
        this.sql.exec(insert, entry.seq, ...texts)
      }
    }
    this.#terms.add(waiting.flatMap(({ entry }) => entry.columns?.words ?? []))
    return waiting.filter(({ isNew }) => !isNew).length
  }

  remove(seq: number): void {
    this.flush()
    for (const table of Object.values(this.tables)) this.sql.exec(`DELETE FROM ${table} WHERE rowid = ?`, seq)
  }

  clear(): void {
    this.#waiting = []
    for (const table of Object.values(this.tables)) {
      this.sql.exec(`INSERT INTO ${table} (${table}) VALUES ('delete-all')`)
    }
    this.sql.exec(`DELETE FROM ${TERMS}`)
    this.#terms.reset()
    for (const { slot } of this.plan.text) if (slot?.infix) clearInfixIndex(this.sql, slot)
  }

  #prepared(index: TextIndex, texts: Texts): (string | null)[] {
    return this.#columns.map(([column, numbers]) => {
      const found = numbers.flatMap((number) => {
        const text = texts[number]
        if (text === undefined) return []
        const { field, slot } = this.plan.text[number]!
        return [{ text, code: textCode(slot!), analyzer: analyzerOf(index, rulesOf(this.schema, field)) }]
      })
      const [first] = found
      if (first === undefined) return null
      return stored(isShared(column) ? sharedText(found) : first.analyzer.prepare(first.text))
    })
  }

  #infixWords(texts: Texts): [FieldSlot, string[]][] {
    return this.plan.text.flatMap(({ slot, field }, number): [FieldSlot, string[]][] => {
      const text = texts[number]
      if (!slot?.infix || text === undefined) return []
      const words = analyzerOf(WORDS, rulesOf(this.schema, field)).tokenize(text)
      return [[slot, words.map((word) => word.text)]]
    })
  }
}

// =============================================================================
// include_fields and exclude_fields: selects the parts of a document that a reply contains.

type Json = Record<string, unknown>

/** Field patterns as a tree of names: `a.b` is `b` below `a`. */
interface Selection {
  /** everything below this name is selected */
  whole: boolean
  children: Map<string, Selection>
  /** `pre*`: names with this prefix are selected */
  prefixes: string[]
}

/**
 * Projects a document.
 * @param include comma-separated names, dotted names and `prefix*`; '' for all
 * @param exclude the same, removed afterwards
 */
export function project(document: Document, include: string, exclude: string): Document {
  const included = parseSelection(include)
  const excluded = parseSelection(exclude)
  let projected: Json = document
  if (included !== undefined) projected = (keep(projected, included, '') ?? {}) as Json
  if (excluded !== undefined) projected = drop(projected, excluded, '') as Json
  return projected as Document
}

/** Whether any part of a top-level field is selected. If not, an expensive field need not be read. */
export function isProjected(name: string, include: string, exclude: string): boolean {
  return name in project({ id: '', [name]: true } as Document, include, exclude)
}

/** Whether `exclude`, as `project` takes it, covers a whole field. */
export const isExcluded = (field: string, exclude: string): boolean =>
  splitOutside(exclude).some((name) =>
    name.endsWith('*') ? field.startsWith(name.slice(0, -1)) : field === name || field.startsWith(`${name}.`),
  )

function parseSelection(list: string): Selection | undefined {
  // `$other(...)` is a join, with commas of its own. run/join-attach.ts reads it.
  const names = (
    list.includes('$')
      ? splitOutside(list).filter((name) => !(name.startsWith('$') && name.includes('(')))
      : list.split(',')
  )
    .map((name) => name.trim())
    .filter((name) => name !== '')
  if (names.length === 0) return undefined
  const root = emptySelection()
  for (const name of names) {
    if (name.endsWith('*')) {
      root.prefixes.push(name.slice(0, -1))
      continue
    }
    // A key can also contain dots itself.
    child(root, name).whole = true
    const parts = name.split('.')
    if (parts.length > 1) parts.reduce(child, root).whole = true
  }
  return root
}

const emptySelection = (): Selection => ({ whole: false, children: new Map(), prefixes: [] })

function child(selection: Selection, name: string): Selection {
  const known = selection.children.get(name) ?? emptySelection()
  selection.children.set(name, known)
  return known
}

const isJson = (value: unknown): value is Json => typeof value === 'object' && value !== null

/** The selected part of a value, undefined for nothing. @param path the dotted name of `value`, with a dot */
function keep(value: unknown, selection: Selection, path: string): unknown {
  if (Array.isArray(value)) {
    const kept = value.map((element) => keep(element, selection, path)).filter((each) => each !== undefined)
    return kept.length > 0 ? kept : undefined
  }
  if (!isJson(value)) return undefined
  const kept: Json = {}
  for (const [name, inner] of Object.entries(value)) {
    const chosen = selection.children.get(name)
    if (chosen?.whole || selection.prefixes.some((prefix) => `${path}${name}`.startsWith(prefix))) {
      kept[name] = inner
      continue
    }
    const below = { ...(chosen ?? emptySelection()), prefixes: selection.prefixes }
    if (below.children.size === 0 && !reaches(below.prefixes, `${path}${name}.`)) continue
    const part = keep(inner, below, `${path}${name}.`)
    if (part !== undefined) kept[name] = part
  }
  return Object.keys(kept).length > 0 || path === '' ? kept : undefined
}

const reaches = (prefixes: string[], path: string): boolean =>
  prefixes.some((prefix) => prefix.startsWith(path))

const isEmptied = (before: unknown, after: unknown): boolean =>
  before !== after &&
  isJson(after) &&
  !Array.isArray(after) &&
  Object.keys(after).length === 0 &&
  Object.keys(before as Json).length > 0

function drop(value: unknown, selection: Selection, path: string): unknown {
  if (Array.isArray(value)) return value.map((element) => drop(element, selection, path))
  if (!isJson(value)) return value
  const kept: Json = {}
  for (const [name, inner] of Object.entries(value)) {
    const chosen = selection.children.get(name)
    if (chosen?.whole || selection.prefixes.some((prefix) => `${path}${name}`.startsWith(prefix))) continue
    const below = { ...(chosen ?? emptySelection()), prefixes: selection.prefixes }
    const touched = below.children.size > 0 || reaches(below.prefixes, `${path}${name}.`)
    const left = touched ? drop(inner, below, `${path}${name}.`) : inner
    // As in Typesense, an object goes with the last of its fields. Objects of a list stay, so that places do not shift.
    if (isEmptied(inner, left)) continue
    kept[name] = left
  }
  return kept
}
