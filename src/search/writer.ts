/**
 * Documents on their way into a collection: checked, merged with what is there, embedded, written.
 *
 * Embedding leaves the object while other calls go on, so nothing that was read before it can be trusted after
 * it. A batch is therefore prepared in rounds: find the texts that lack a vector, make the vectors, and look
 * again, until none is missing; then it is prepared once more and written without giving up control. Batches
 * without embedding fields skip the rounds.
 */
import { ApiError } from '../errors'
import { detectFields } from './detect'
import { coerceDocument, type Draft, idOf, parseDocument } from './document'
import {
  type Embedded,
  type Embedders,
  type EmbeddingRequest,
  embeddedKey,
  embeddingText,
  requireSources,
} from './embedding'
import type { StoredSchema } from './layout'
import { leaves, merge, replace } from './nested'
import { type FieldPlan, type Plan, planOf } from './plan'
import type { DirtyValues, WriteAction } from './rpc'
import type { Store, Vectors } from './store'
import { addField, rebuildTextIndex, textColumnsFor } from './tables'
import type { Field } from './types'

export interface Incoming {
  /** the raw JSON, or a document of our own making */
  document: string | Draft
  action: WriteAction
  dirtyValues?: DirtyValues | undefined
  /** the id that the request's path names */
  id?: string
}

export interface Written {
  seq: number
  id: string
}

interface Prepared {
  /** of the document that is replaced */
  seq: number | undefined
  draft: Draft & { id: string }
  /** it came with its id */
  named: boolean
  vectors: Vectors
  requests: EmbeddingRequest[]
  newFields: Field[]
}

/** What a batch knows about the documents that it meets. */
interface View {
  seqs: Map<string, number>
  /** documents as the batch itself has left them, while it is prepared without being written */
  drafts: Map<string, Draft> | undefined
}

/** A document that changes under every look at it is given up after this many rounds. */
const MAX_ROUNDS = 5

export class Writer {
  #storage: DurableObjectStorage
  #store: Store
  #embedders: Embedders
  #onTextRebuilt: () => void

  /** @param onTextRebuilt text_index has been emptied for more columns: everything has to be indexed again */
  constructor(
    storage: DurableObjectStorage,
    store: Store,
    embedders: Embedders,
    onTextRebuilt: () => void = () => {},
  ) {
    this.#storage = storage
    this.#store = store
    this.#embedders = embedders
    this.#onTextRebuilt = onTextRebuilt
  }

  /**
   * Writes a batch as one transaction. A document that is refused does not keep others out.
   * @returns for each of `items`, in order, where it is now or why it is not
   */
  async write(items: Incoming[]): Promise<(Written | ApiError)[]> {
    const parsed = items.map(parse)
    const embedded = await this.#embedAll(parsed)
    // From here to the end nothing is awaited.
    try {
      return this.#storage.transactionSync(() => this.#commit(parsed, embedded))
    } catch (error) {
      // No input is known that gets here. Should one be found, it must not take its neighbours along.
      console.error('a batch was rolled back', error)
      this.#store.reset()
      return items.map((item) => this.#commitAlone(parse(item), embedded))
    }
  }

  /**
   * Writes all of a batch or nothing of it.
   * @param before runs first, in the same transaction; false means that there is nothing to do
   * @param after runs last in it, with the ids of the documents
   * @throws ApiError for the first document that is refused
   */
  async writeTogether(
    items: Incoming[],
    before: () => boolean,
    after: (ids: string[]) => void,
  ): Promise<void> {
    const parsed = items.map(parse)
    const embedded = await this.#embedAll(parsed)
    try {
      this.#storage.transactionSync(() => {
        if (!before()) return
        const ids = this.#commit(parsed, embedded).map((result) => {
          if (result instanceof ApiError) throw result
          return result.id
        })
        after(ids)
      })
    } catch (error) {
      this.#store.reset()
      throw error
    }
  }

  #commitAlone(item: Parsed, embedded: Embedded): Written | ApiError {
    try {
      return this.#storage.transactionSync(() => this.#commit([item], embedded)[0] as Written | ApiError)
    } catch (error) {
      console.error('a document could not be written', error)
      this.#store.reset()
      return new ApiError(500, 'The document could not be written.')
    }
  }

  async #embedAll(items: Parsed[]): Promise<Embedded> {
    const embedded: Embedded = new Map()
    for (let round = 0; round < MAX_ROUNDS && this.#store.plan.embedded.length > 0; round++) {
      const missing = this.#missing(items, embedded)
      if (missing.length === 0) break
      await this.#embedders.embed(missing, embedded)
      if (this.#store.closed) throw new ApiError(404, 'Collection not found')
    }
    return embedded
  }

  /** The texts of a batch that have no vector yet. */
  #missing(items: Parsed[], embedded: Embedded): EmbeddingRequest[] {
    const view: View = { seqs: this.#seqsOf(items), drafts: new Map() }
    const missing: EmbeddingRequest[] = []
    for (const item of items) {
      const prepared = collect(() => this.#prepare(item, view))
      if (prepared instanceof ApiError) continue
      // Documents without an id of their own are new, and no later one can mean them.
      if (prepared.named) view.drafts?.set(prepared.draft.id, prepared.draft)
      missing.push(...prepared.requests.filter((request) => !embedded.has(embeddedKey(request))))
    }
    return missing
  }

  #commit(items: Parsed[], embedded: Embedded): (Written | ApiError)[] {
    const view: View = { seqs: this.#seqsOf(items), drafts: undefined }
    const results = items.map((item) => collect(() => this.#writeOne(item, view, embedded)))
    this.#store.saveCounters()
    return results
  }

  #writeOne(item: Parsed, view: View, embedded: Embedded): Written {
    const prepared = this.#prepare(item, view)
    for (const request of prepared.requests) {
      const vector = embedded.get(embeddedKey(request))
      if (vector instanceof ApiError) throw vector
      if (vector === undefined)
        throw new ApiError(409, 'The document was changed while it was being embedded.')
      prepared.vectors.set(request.plan.name, vector)
    }
    this.#store.requireRoom(prepared.seq, prepared.vectors)
    if (prepared.newFields.length > 0) this.addFields(prepared.newFields)
    const { draft, vectors } = prepared
    const { id } = draft
    if (prepared.seq !== undefined) {
      this.#store.update(prepared.seq, draft, vectors)
      return { seq: prepared.seq, id }
    }
    const seq = this.#store.insert(draft, vectors)
    view.seqs.set(id, seq)
    return { seq, id }
  }

  /** Adds fields that were found in a document. @throws ApiError 400 past the limit of string fields */
  addFields(fields: Field[]): void {
    const schema: StoredSchema = structuredClone(this.#store.schema)
    let added = fields
    // A field that was declared without a type takes its declaration's place.
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
    // Refused before a table is touched: the transaction goes on without this document, and what it had
    // already changed of the tables would stay.
    textColumnsFor([...schema.fields, ...added])
    for (const field of added) addField(this.#store.sql, schema, field)
    if (schema.nextText > schema.textColumns) {
      rebuildTextIndex(this.#store.sql, schema)
      this.#onTextRebuilt()
    }
    this.#store.saveSchema(schema)
  }

  #seqsOf(items: Parsed[]): Map<string, number> {
    const ids = items.flatMap((item) => item.id ?? (item.draft instanceof ApiError ? [] : rawId(item.draft)))
    return ids.length === 0 ? new Map() : this.#store.find(ids)
  }

  /** @throws ApiError for a document that cannot be taken */
  #prepare(item: Parsed, view: View): Prepared {
    const store = this.#store
    if (item.draft instanceof ApiError) throw item.draft
    // While a batch is only being prepared, the draft is needed again.
    const draft = view.drafts === undefined ? item.draft : structuredClone(item.draft)
    const named = this.#identify(item, draft)
    const id = named ?? store.freeId()
    const seq =
      named === undefined ? undefined : (view.seqs.get(id) ?? (view.drafts?.has(id) ? -1 : undefined))
    if (seq !== undefined && item.action === 'create') {
      throw new ApiError(409, `A document with id ${id} already exists.`)
    }
    if (seq === undefined && item.action === 'update') {
      throw new ApiError(404, `Could not find a document with id: ${id}`)
    }
    draft.id = id

    const dirty = item.dirtyValues ?? (store.plan.coerces ? 'coerce_or_reject' : 'reject')
    const newFields = detectFields(store.plan, draft, store.schema.enable_nested_fields, dirty)
    const plan = newFields.length === 0 ? store.plan : planWith(store.schema, newFields)
    const partial = seq !== undefined && (item.action === 'update' || item.action === 'emplace')
    coerceDocument(plan, draft, dirty, partial, store.schema.default_sorting_field)
    const vectors = takeVectors(plan, draft)

    const old =
      seq !== undefined && (partial || plan.embedded.length > 0) ? this.#old(view, id, seq) : undefined
    let whole = draft
    if (partial && old !== undefined) {
      whole = view.drafts !== undefined || plan.embedded.length > 0 ? structuredClone(old) : old
      merge(whole, draft)
    } else if (seq !== undefined) {
      // Replaced: what is not sent again is gone.
      for (const { name, field } of plan.vectors) {
        if (field.embed === undefined && !vectors.has(name)) vectors.set(name, null)
      }
    }
    const requests = this.#requests(plan, whole, vectors, old, seq, partial)
    return {
      seq,
      draft: whole as Draft & { id: string },
      named: named !== undefined,
      vectors,
      requests,
      newFields,
    }
  }

  /** The id that a document came with; undefined asks for one. @throws ApiError 400 */
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

  #old(view: View, id: string, seq: number): Draft | undefined {
    return view.drafts?.get(id) ?? this.#store.read([seq], true, true).get(seq)
  }

  /** The vectors that a document needs: not those that were sent with it or whose text has not changed. */
  #requests(
    plan: Plan,
    whole: Draft,
    vectors: Vectors,
    old: Draft | undefined,
    seq: number | undefined,
    partial: boolean,
  ): EmbeddingRequest[] {
    const requests: EmbeddingRequest[] = []
    for (const field of plan.embedded) {
      if (vectors.get(field.name)) continue
      if (!partial) requireSources(field, plan, whole)
      const text = embeddingText(field, plan, whole)
      if (text === undefined) {
        vectors.set(field.name, null)
        continue
      }
      const kept =
        old !== undefined &&
        seq !== undefined &&
        seq >= 0 &&
        !vectors.has(field.name) &&
        embeddingText(field, plan, old) === text &&
        this.#store.vectors(field.field).get(seq) !== undefined
      if (!kept) requests.push({ plan: field, text })
      vectors.delete(field.name)
    }
    return requests
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

const rawId = (draft: Draft): string[] =>
  Object.hasOwn(draft, 'id') && typeof draft.id === 'string' ? [draft.id.toWellFormed()] : []

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
    // A list of vectors, from an array of objects, is nothing that a vector field can hold.
    if (found.length > 1 || leaf.inArray) invalidEmbedding(field)
    vectors.set(field.name, leaf.value === null ? null : vectorOf(field, leaf.value))
    replace(leaf, undefined)
  }
  return vectors
}

function vectorOf(plan: FieldPlan, value: unknown): Float32Array {
  if (!Array.isArray(value) || value.length !== plan.field.num_dim) invalidEmbedding(plan)
  const vector = Float32Array.from(value)
  // Beyond the range of a float32 numbers become infinite.
  if (!value.every((element) => typeof element === 'number') || !vector.every(Number.isFinite)) {
    throw new ApiError(400, `Field \`${plan.name}\` contains invalid float values.`)
  }
  return vector
}

function invalidEmbedding(plan: FieldPlan): never {
  throw new ApiError(400, `Field \`${plan.name}\` contains an invalid embedding.`)
}
