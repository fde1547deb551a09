/**
 * Writes documents: checks them, merges them with the stored ones, and stores the result.
 *
 * The built-in model's vectors are made at once. For others the document is marked in the same transaction, and a
 * queue makes them later (embedding/queue.ts).
 */

import { ApiError, storageFull } from '../../errors'
import { integer, isInt64 } from '../../lib/json'
import { logFault, type Origin } from '../fault-log'
import { refuse } from '../refused'
import type { FieldSlot, StoredSchema } from '../schema/layout'
import { type FieldPlan, type Plan, planOf } from '../schema/plan'
import { addField, outgrowsTextIndex, rebuildTextIndex, textColumnsFor } from '../schema/tables'
import { isObject, leaves, merge, partsOf, place, replace } from '../schema/values'
import type { DirtyValues, Field, WriteAction } from '../types'
import type { Embedders } from '../vectors/embedders'
import { coerceDocument, type Draft, detectFields, idOf, parseDocument } from './document'
import { embeddingText, requireSources } from './join-keys'
import type { Store, Vectors } from './store'

export interface Incoming {
  /** raw JSON, or a document that Parley made */
  document: string | Draft
  action: WriteAction
  dirtyValues?: DirtyValues | undefined
  /** the id in the request's path */
  id?: string
  /** why its references are refused (references.ts) */
  fault?: ApiError | undefined
}

export interface Written {
  seq: number
  id: string
}

interface Prepared {
  /** sequence number of the document that it replaces */
  seq: number | undefined
  draft: Draft & { id: string }
  vectors: Vectors
  /** fields whose vectors are made in the background, and fields that need none any more */
  queued: FieldPlan[]
  settled: FieldPlan[]
  newFields: Field[]
}

/** Sequence numbers by id: of the stored documents that a batch concerns, and of those that it has added. */
type Seqs = Map<string, number>

export class Writer {
  /** @param onTextRebuilt the full-text indexes were recreated empty, and every document has to be indexed again */
  constructor(
    private readonly storage: DurableObjectStorage,
    private readonly store: Store,
    private readonly embedders: Embedders,
    private readonly onTextRebuilt: () => void = () => {},
  ) {}

  /**
   * Writes a batch in one transaction. A refused document does not affect the others.
   * @param origin of the call, for the log
   * @returns the result for each of `items`, in order
   */
  write(items: Incoming[], origin: Origin = {}): (Written | ApiError)[] {
    const parsed = items.map(parse)
    try {
      return this.storage.transactionSync(() => this.#commit(parsed))
    } catch (error) {
      // No known input leads here. If one does, it must not fail the rest of the batch.
      logFault(this.store.schema.name, 'batch', origin, error)
      this.store.reset()
      return items.map((item) => this.#commitAlone(parse(item), origin))
    }
  }

  /**
   * Writes the whole batch or nothing.
   * @param before runs first, in the same transaction; false skips the batch
   * @param after runs last in it, with the ids of the documents
   * @throws ApiError for the first refused document
   */
  writeTogether(items: Incoming[], before: () => boolean, after: (ids: string[]) => void): void {
    const parsed = items.map(parse)
    this.store.transact(this.storage, () => {
      if (!before()) return
      const ids = this.#commit(parsed).map((result) => {
        if (result instanceof ApiError) throw result
        return result.id
      })
      after(ids)
    })
  }

  #commitAlone(item: Parsed, origin: Origin): Written | ApiError {
    try {
      return this.storage.transactionSync(() => this.#commit([item])[0] as Written | ApiError)
    } catch (error) {
      logFault(this.store.schema.name, 'document', origin, error)
      this.store.reset()
      return storageFull(error) ?? new ApiError(500, 'The document could not be written.')
    }
  }

  #commit(items: Parsed[]): (Written | ApiError)[] {
    const seqs = this.#seqsOf(items)
    const results = items.map((item) => collect(() => this.#writeOne(item, seqs)))
    this.store.finish()
    return results
  }

  #writeOne(item: Parsed, seqs: Seqs): Written {
    const prepared = this.#prepare(item, seqs)
    this.store.requireRoom(prepared.seq, prepared.vectors)
    if (prepared.newFields.length > 0) this.addFields(prepared.newFields)
    const { draft, vectors } = prepared
    const { id } = draft
    if (prepared.seq !== undefined) {
      this.store.update(prepared.seq, draft, vectors)
      this.#replaceVectors(prepared.seq, prepared)
      return { seq: prepared.seq, id }
    }
    const seq = this.store.insert(draft, vectors)
    for (const { slot } of prepared.queued) this.store.pending.mark(slot as FieldSlot, seq)
    seqs.set(id, seq)
    return { seq, id }
  }

  /** Removes a vector whose text has changed: no search may find a document by its old text. */
  #replaceVectors(seq: number, { queued, settled }: Prepared): void {
    const { pending } = this.store
    for (const plan of queued) {
      this.store.indexOf(plan).remove(seq)
      pending.mark(plan.slot as FieldSlot, seq)
    }
    for (const { slot } of settled) pending.settle(slot as FieldSlot, seq)
  }

  /** Adds fields that were detected in a document. @throws ApiError 400 past the limit of string fields */
  addFields(fields: Field[]): void {
    this.store.flush()
    const schema: StoredSchema = structuredClone(this.store.schema)
    let added = fields
    // The detected field replaces a definition without a type.
    const untyped = new Set(
      schema.fields
        .filter(({ name, type }) => !name.includes('.*') && /^(auto|string\*)$/.test(type))
        .map(({ name }) => name),
    )
    if (fields.some(({ name }) => untyped.has(name))) {
      const byName = new Map(fields.map((field) => [field.name, field]))
      schema.fields = schema.fields.filter(({ name }) => !(untyped.has(name) && byName.has(name)))
      added = [...byName.values()]
    }
    // Check this before any table changes. If this document is refused, the transaction continues and would keep the
    // changes.
    textColumnsFor([...schema.fields, ...added])
    for (const field of added) addField(this.store.sql, schema, field)
    if (outgrowsTextIndex(schema)) {
      this.store.discardFormer()
      rebuildTextIndex(this.store.sql, schema)
      this.onTextRebuilt()
    }
    this.store.saveSchema(schema)
  }

  #seqsOf(items: Parsed[]): Seqs {
    const ids = items.flatMap(({ id, draft }) => {
      if (id !== undefined) return id
      const own = !(draft instanceof ApiError) && Object.hasOwn(draft, 'id') && draft.id
      return typeof own === 'string' ? own.toWellFormed() : []
    })
    return ids.length === 0 ? new Map() : this.store.find(ids)
  }

  /** @throws ApiError for a document that is refused */
  #prepare(item: Parsed, seqs: Seqs): Prepared {
    const store = this.store
    if (item.draft instanceof ApiError) throw item.draft
    const { draft } = item
    const named = this.#identify(item, draft)
    const id = named ?? store.freeId()
    const seq = named === undefined ? undefined : seqs.get(id)
    if (seq !== undefined && item.action === 'create') {
      throw new ApiError(409, `A document with id ${id} already exists.`)
    }
    if (seq === undefined && item.action === 'update') {
      throw new ApiError(404, `Could not find a document with id: ${id}`)
    }
    if (item.fault !== undefined) throw item.fault
    draft.id = id
    if (seq !== undefined && store.schema.filling !== undefined) store.beforeWrite(seq)

    const operates = Object.hasOwn(draft, KEY)
    const stored = operates && seq !== undefined ? store.read([seq], true, true).get(seq) : undefined
    if (operates) applyOperations(draft, store.plan, stored)
    const dirty = item.dirtyValues ?? (store.plan.coerces ? 'coerce_or_reject' : 'reject')
    const newFields = detectFields(store.plan, draft, store.schema.enable_nested_fields, dirty)
    const plan = newFields.length === 0 ? store.plan : planWith(store.schema, newFields)
    const partial = seq !== undefined && (item.action === 'update' || item.action === 'emplace')
    coerceDocument(plan, draft, dirty, partial, store.schema.default_sorting_field)
    const vectors = takeVectors(plan, draft)

    const old =
      seq !== undefined && (partial || plan.embedded.length > 0)
        ? store.read([seq], true, true).get(seq)
        : undefined
    let whole: Draft = draft
    if (partial && old !== undefined) {
      whole = plan.embedded.length > 0 ? structuredClone(old) : old
      merge(whole, draft)
    } else if (seq !== undefined) {
      // A replacement removes vectors that it does not contain.
      for (const { name, field } of plan.vectors) {
        if (field.embed === undefined && !vectors.has(name)) vectors.set(name, null)
      }
    }
    return {
      seq,
      draft: whole as Draft & { id: string },
      vectors,
      ...this.#embed(plan, whole, vectors, old, seq, partial),
      newFields,
    }
  }

  /** The id that a document came with; undefined if it needs one. @throws ApiError 400 */
  #identify(item: Parsed, draft: Draft): string | undefined {
    if (item.id !== undefined && Object.hasOwn(draft, 'id') && draft.id !== item.id) {
      throw new ApiError(400, 'The `id` of the resource does not match the `id` in the JSON body.')
    }
    const id = idOf(draft) ?? item.id
    if (id === undefined && item.action === 'update') {
      throw new ApiError(400, 'For update, the `id` key must be provided.')
    }
    return id
  }

  /**
   * Adds the built-in model's vectors to `vectors`, and null where none can be made. Skips vectors that were sent or
   * whose text is unchanged.
   */
  #embed(
    plan: Plan,
    whole: Draft,
    vectors: Vectors,
    old: Draft | undefined,
    seq: number | undefined,
    partial: boolean,
  ): Pick<Prepared, 'queued' | 'settled'> {
    const queued: FieldPlan[] = []
    const settled: FieldPlan[] = []
    const isKept = (field: FieldPlan, text: string): boolean =>
      old !== undefined &&
      seq !== undefined &&
      embeddingText(field, plan, old) === text &&
      this.store.indexOf(field).get(seq) !== undefined
    for (const field of plan.embedded) {
      // The sources that a document must have are those of the replacement.
      const next = plan.replacing.find(({ name }) => name === field.name)
      if (!partial && !vectors.get(field.name)) requireSources(next ?? field, plan, whole)
      const text = embeddingText(field, plan, whole)
      if (text !== undefined && !vectors.has(field.name) && isKept(field, text)) continue
      const sent = vectors.get(field.name)
      const made = sent ?? (text === undefined ? undefined : this.embedders.embedNow(field.field, text))
      if (made) vectors.set(field.name, made)
      else if (text === undefined) vectors.set(field.name, null)
      else vectors.delete(field.name)
      if (made || text === undefined) settled.push(field)
      else queued.push(field)
    }
    for (const field of plan.replacing) {
      const text = embeddingText(field, plan, whole)
      // Without a text, leave the document to the queue, which drops it.
      if (text === undefined || !isKept(field, text)) queued.push(field)
    }
    return { queued, settled }
  }
}

interface Parsed extends Omit<Incoming, 'document'> {
  draft: Draft | ApiError
}

function parse({ document, ...rest }: Incoming): Parsed {
  return {
    ...rest,
    draft: typeof document === 'string' ? collect(() => parseDocument(document)) : structuredClone(document),
  }
}

function collect<T>(work: () => T): T | ApiError {
  try {
    return work()
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
}

const planWith = (schema: StoredSchema, fields: Field[]): Plan =>
  planOf({
    ...schema,
    fields: [...schema.fields.filter(({ name }) => !fields.some((field) => field.name === name)), ...fields],
  })

/** Takes the vectors out of a document, which is stored without them. @throws ApiError 400 */
export function takeVectors(plan: Plan, draft: Draft): Vectors {
  const vectors: Vectors = new Map()
  for (const field of plan.vectors) {
    const found = leaves(draft, field.name, field.path)
    const [leaf] = found
    if (leaf === undefined) continue
    // A vector field cannot hold several vectors, as an array of objects would bring.
    if (found.length > 1 || leaf.inArray) invalidEmbedding(field)
    vectors.set(field.name, leaf.value === null ? null : vectorOf(field, leaf.value))
    replace(leaf, undefined)
  }
  return vectors
}

const isBigInt = (value: unknown): value is bigint => typeof value === 'bigint'

function vectorOf(plan: FieldPlan, value: unknown): Float32Array {
  if (!Array.isArray(value) || value.length !== plan.field.num_dim) invalidEmbedding(plan)
  const numbers = value.some(isBigInt) ? value.map((each) => (isBigInt(each) ? Number(each) : each)) : value
  const vector = Float32Array.from(numbers)
  // Numbers beyond the range of float32 become infinite.
  if (!numbers.every((element) => typeof element === 'number') || !vector.every(Number.isFinite)) {
    throw new ApiError(400, `Field \`${plan.name}\` contains invalid float values.`)
  }
  return vector
}

function invalidEmbedding(plan: FieldPlan): never {
  throw new ApiError(400, `Field \`${plan.name}\` contains an invalid embedding.`)
}

// =============================================================================
// `$operations` of a document: `{"increment": {"likes": 1}}` adds to the stored value.

const KEY = '$operations'

/**
 * Replaces `$operations` by the resulting values. A field without a value counts as 0.
 * @param old the stored document
 * @throws ApiError 400 for another operation, for a value that is not a whole number, and for a field that cannot be
 *   incremented
 */
function applyOperations(draft: Draft, plan: Plan, old: Draft | undefined): void {
  const operations = draft[KEY]
  delete draft[KEY]
  if (!isObject(operations)) refuse(`\`${KEY}\` should be an object.`)
  for (const [operation, fields] of Object.entries(operations)) {
    if (operation !== 'increment') {
      refuse(`\`${KEY}\` has the operation \`${operation}\`. The only one that there is is \`increment\`.`)
    }
    if (!isObject(fields)) refuse(`\`increment\` should be an object of field names and whole numbers.`)
    for (const [name, by] of Object.entries(fields)) increment(draft, plan, old, name, by)
  }
}

function increment(draft: Draft, plan: Plan, old: Draft | undefined, name: string, by: unknown): void {
  const field = plan.fields.find((other) => other.name === name)
  if (field === undefined || field.array || (field.kind !== 'int32' && field.kind !== 'int64')) {
    refuse(`Field \`${name}\` cannot be incremented: it is not an int32 or int64 field of the schema.`)
  }
  if (!isInt64(by)) refuse(`Field \`${name}\` must be incremented by a whole number.`)
  if (leaves(draft, name, field.path).length > 0) {
    refuse(`Field \`${name}\` has a value and an increment. Send one of them.`)
  }
  const value = old === undefined ? undefined : leaves(old, name, field.path)[0]?.value
  const sum = integer(String(BigInt(isInt64(value) ? value : 0) + BigInt(by)))
  // A partial update merges objects deeply, so new objects on the path are enough.
  let parent: Record<string, unknown> = draft
  for (const part of partsOf(name)?.slice(0, -1) ?? []) {
    if (field.path === undefined) break
    if (!isObject(parent[part])) parent[part] = {}
    parent = parent[part] as Record<string, unknown>
  }
  place(draft, name, field.path, sum)
}
