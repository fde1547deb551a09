/**
 * A counterpart of a Vectorize index: what its documentation says of limits, of mutations that are processed
 * later and in order, of namespaces, of metadata filters and of approximate scores, and faults that a test asks for.
 *
 * Sources: developers.cloudflare.com/vectorize, the pages platform/limits, best-practices/insert-vectors,
 * best-practices/query-vectors, reference/client-api and reference/metadata-filtering. The numbers of ids that
 * `getByIds` and `deleteByIds` take are not on those pages; they are what the service answers (code 40007).
 */
import {
  bytes,
  checkFilter,
  type Filter,
  isBadKey,
  isScalar,
  LIMITS,
  type Metadata,
  passes,
  refuse,
} from './metadata-filter'

/**
 * What goes wrong with the next call of a method:
 *
 *     refused      it throws and has done nothing, as a rate limit does
 *     unanswered   it has done its work, and throws
 *     dropped      it answers with a mutation that is never processed
 *     silent       it never answers
 */
export type Fault = 'refused' | 'unanswered' | 'dropped' | 'silent'

/**
 * What a filter does on a property without a metadata index. The documentation does not say; people have reported
 * all three.
 */
export type Unindexed = 'refused' | 'nothing' | 'ignored'

export type MetadataType = 'string' | 'number' | 'boolean'

type Method = 'query' | 'upsert' | 'deleteByIds' | 'getByIds' | 'describe'

interface Stored {
  id: string
  namespace: string
  values: Float32Array
  /** int8, each scaled by its largest component: what approximate scores are made from */
  coarse: Int8Array
  metadata: Metadata
  /** properties that had a metadata index when this vector came */
  indexed: Set<string>
}

interface Mutation {
  id: string
  upserted: Stored[]
  deleted: string[]
}

interface Given {
  id: string
  values: ArrayLike<number>
  namespace?: string
  metadata?: Metadata
}

interface QueryOptions {
  topK?: number
  namespace?: string
  returnValues?: boolean
  returnMetadata?: boolean | 'all' | 'indexed' | 'none'
  filter?: Filter
}

export class VectorizeDouble {
  unindexed: Unindexed = 'refused'
  /** false: scores are exact without values too */
  isApproximate = true
  /** false: mutations wait for `runJob` */
  automatic = false
  /** every `n`th vector is overlooked by a query, another one for each query; 0: none */
  overlooks = 0
  /** ids that no upsert is taken with */
  rejects: (id: string) => boolean = () => false
  /** the filters of the queries that had one */
  readonly filters: Filter[] = []
  /** how many calls of a method there were */
  readonly calls: Record<Method, number> = { query: 0, upsert: 0, deleteByIds: 0, getByIds: 0, describe: 0 }

  #stored = new Map<string, Stored>()
  #queue: Mutation[] = []
  #faults: Record<Method, Fault[]> = { query: [], upsert: [], deleteByIds: [], getByIds: [], describe: [] }
  #processed = { mutation: '', datetime: '' }
  #metadataIndexes = new Map<string, MetadataType>()
  #queries = 0

  constructor(readonly dimensions: number) {
    if (dimensions > LIMITS.dimensions) refuse('INDEX', `at most ${LIMITS.dimensions} dimensions`)
  }

  /** Vectors from now on can be filtered by this property; those that are there already cannot. */
  createMetadataIndex(property: string, type: MetadataType): void {
    if (this.#metadataIndexes.size >= LIMITS.metadataIndexes) refuse('INDEX', 'too many metadata indexes')
    this.#metadataIndexes.set(property, type)
  }

  /** Vectors that come later are in no such index. */
  deleteMetadataIndex(property: string): void {
    this.#metadataIndexes.delete(property)
    for (const vector of this.#stored.values()) vector.indexed.delete(property)
  }

  /** The next calls of a method meet these faults, one each. */
  fail(method: Method, ...faults: Fault[]): void {
    this.#faults[method].push(...faults)
  }

  /** Ids and values that are visible now. */
  get visible(): Map<string, Float32Array> {
    return new Map([...this.#stored.values()].map(({ id, values }) => [id, values]))
  }

  get waiting(): number {
    return this.#queue.length
  }

  /** Metadata of what is visible now, by id. */
  get metadata(): Map<string, Metadata> {
    return new Map([...this.#stored.values()].map(({ id, metadata }) => [id, metadata]))
  }

  /** What was written behind the owner's back. */
  tamper(change: (stored: Map<string, Pick<Stored, 'values' | 'metadata' | 'indexed'>>) => void): void {
    change(this.#stored)
  }

  /** Puts a vector there that nobody has upserted. */
  plant(id: string, namespace: string, values: Float32Array): void {
    this.#stored.set(id, this.#made({ id, namespace, values }))
  }

  /** Processes what one job takes. @returns whether something is left */
  runJob(most = LIMITS.jobMutations): boolean {
    let vectors = 0
    for (let taken = 0; taken < Math.min(most, LIMITS.jobMutations); taken++) {
      const [mutation] = this.#queue
      if (mutation === undefined) break
      vectors += mutation.upserted.length + mutation.deleted.length
      if (vectors > LIMITS.jobVectors && taken > 0) break
      this.#queue.shift()
      for (const vector of mutation.upserted) this.#stored.set(vector.id, vector)
      for (const id of mutation.deleted) this.#stored.delete(id)
      this.#processed = { mutation: mutation.id, datetime: new Date().toISOString() }
    }
    return this.#queue.length > 0
  }

  describe(): Promise<Record<string, unknown>> {
    return this.#answer('describe', () => ({
      vectorCount: this.#stored.size,
      dimensions: this.dimensions,
      processedUpToDatetime: this.#processed.datetime,
      processedUpToMutation: this.#processed.mutation,
    }))
  }

  upsert(vectors: Given[]): Promise<{ mutationId: string }> {
    if (vectors.length > LIMITS.upsertVectors) {
      refuse('UPSERT', `at most ${LIMITS.upsertVectors} vectors, got ${vectors.length}`)
    }
    // Numbers travel as decimals, of which none is longer.
    const size = vectors.reduce((sum, { values }) => sum + values.length * 22, 0)
    if (size > LIMITS.upsertBytes) refuse('UPSERT', `at most ${LIMITS.upsertBytes} bytes`)
    const upserted = vectors.map((vector) => this.#made(vector))
    const rejected = upserted.find(({ id }) => this.rejects(id))
    if (rejected !== undefined) this.#faults.upsert.unshift('refused')
    return this.#mutate('upsert', { upserted, deleted: [] })
  }

  deleteByIds(ids: string[]): Promise<{ mutationId: string }> {
    if (ids.length > LIMITS.deleteIds) {
      refuse('DELETE', `too many ids in payload; max id count is ${LIMITS.deleteIds}, got ${ids.length}`)
    }
    return this.#mutate('deleteByIds', { upserted: [], deleted: [...ids] })
  }

  getByIds(
    ids: string[],
  ): Promise<{ id: string; values: number[]; namespace: string; metadata?: Metadata }[]> {
    if (ids.length > LIMITS.getIds) {
      refuse('GET', `too many ids in payload; max id count is ${LIMITS.getIds}, got ${ids.length}`)
    }
    return this.#answer('getByIds', () =>
      ids
        .flatMap((id) => this.#stored.get(id) ?? [])
        .map(({ id, values, namespace, metadata }) => ({
          id,
          values: [...values],
          namespace,
          ...(Object.keys(metadata).length > 0 && { metadata: { ...metadata } }),
        })),
    )
  }

  query(
    vector: ArrayLike<number>,
    options: QueryOptions = {},
  ): Promise<{ matches: Metadata[]; count: number }> {
    this.#checkQuery(vector, options)
    const { topK = 5, namespace, returnValues = false } = options
    const filter = this.#effective(options.filter ?? {})
    if (options.filter !== undefined) this.filters.push(options.filter)
    const metadata = options.returnMetadata ?? 'none'
    return this.#answer('query', () => {
      const asked = Float32Array.from(vector)
      const turn = this.#queries++
      const scored: { found: Stored; score: number }[] = []
      for (const found of this.#stored.values()) {
        if (namespace !== undefined && found.namespace !== namespace) continue
        if (!passes(found, filter)) continue
        if (!returnValues && this.overlooks > 0 && hash(found.coarse, turn) % this.overlooks === 0) continue
        const isExact = returnValues || !this.isApproximate
        scored.push({ found, score: cosine(asked, isExact ? found.values : found.coarse) })
      }
      const matches = scored
        .sort((a, b) => b.score - a.score)
        .slice(0, topK)
        .map(({ found, score }) => ({
          id: found.id,
          score,
          namespace: found.namespace,
          ...(returnValues && { values: [...found.values] }),
          ...(metadata !== 'none' && metadata !== false && { metadata: found.metadata }),
        }))
      return { matches, count: matches.length }
    })
  }

  #checkQuery(vector: ArrayLike<number>, options: QueryOptions): void {
    const { topK = 5, filter, returnValues = false, returnMetadata = 'none' } = options
    if (vector.length !== this.dimensions) refuse('QUERY', `expected ${this.dimensions} dimensions`)
    const payload = returnValues || (returnMetadata !== 'none' && returnMetadata !== false)
    const most = payload ? LIMITS.topKWithPayload : LIMITS.topK
    if (topK < 1 || topK > most) refuse('QUERY', `(code = 40025) max top K is ${most}, got ${topK}`)
    if (filter === undefined) return
    checkFilter(filter)
    for (const property of Object.keys(filter)) {
      if (this.unindexed === 'refused' && !this.#metadataIndexes.has(property))
        refuse('QUERY', `no metadata index on ${property}`)
    }
  }

  /** What is left of a filter. */
  #effective(filter: Filter): Filter {
    if (this.unindexed !== 'ignored') return filter
    return Object.fromEntries(
      Object.entries(filter).filter(([property]) => this.#metadataIndexes.has(property)),
    )
  }

  #made({ id, values, namespace = '', metadata = {} }: Given): Stored {
    if (bytes(id) > LIMITS.idBytes || id === '') refuse('UPSERT', `an id has 1 to ${LIMITS.idBytes} bytes`)
    if (bytes(namespace) > LIMITS.namespaceBytes) {
      refuse('UPSERT', `a namespace has at most ${LIMITS.namespaceBytes} bytes`)
    }
    if (values.length !== this.dimensions) {
      refuse('UPSERT', `expected ${this.dimensions} dimensions, and got ${values.length} dimensions`)
    }
    if (bytes(JSON.stringify(metadata)) > LIMITS.metadataBytes) {
      refuse('UPSERT', `metadata has at most ${LIMITS.metadataBytes} bytes`)
    }
    for (const [key, value] of Object.entries(metadata)) {
      if (isBadKey(key)) refuse('UPSERT', `${key} cannot be a key of metadata`)
      if (!isScalar(value)) refuse('UPSERT', `${key} has a value that metadata cannot have`)
    }
    const copy = Float32Array.from(values)
    const largest = copy.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1
    const coarse = Int8Array.from(copy, (value) => Math.round((value / largest) * 31))
    const indexed = new Set(
      [...this.#metadataIndexes].filter(([key, type]) => typeof metadata[key] === type).map(([key]) => key),
    )
    return { id, namespace, values: copy, coarse, metadata: { ...metadata }, indexed }
  }

  #mutate(method: 'upsert' | 'deleteByIds', work: Omit<Mutation, 'id'>): Promise<{ mutationId: string }> {
    const id = crypto.randomUUID()
    const dropped = this.#faults[method][0] === 'dropped'
    if (dropped) this.#faults[method].shift()
    return this.#answer(method, () => {
      if (!dropped) this.#queue.push({ id, ...work })
      if (this.automatic) while (this.runJob());
      return { mutationId: id }
    })
  }

  /** Over RPC, in truth: what is answered arrives later. */
  async #answer<T>(method: Method, work: () => T): Promise<T> {
    this.calls[method]++
    const fault = this.#faults[method].shift()
    if (fault === 'silent') return await new Promise(() => {})
    await Promise.resolve()
    if (fault === 'refused') throw new Error('VECTORIZE_ERROR: too many requests, slow down (429)')
    const value = work()
    if (fault === 'unanswered') throw new Error('VECTORIZE_ERROR: the connection was lost')
    return value
  }
}

/** FNV-1a over the non-zero components of a vector and a number. */
function hash(bytes: Int8Array, salt: number): number {
  let value = (2166136261 ^ salt) >>> 0
  for (const byte of bytes) if (byte !== 0) value = Math.imul(value ^ (byte & 255), 16777619) >>> 0
  return value
}

function cosine(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let [product, ofA, ofB] = [0, 0, 0]
  for (let i = 0; i < a.length; i++) {
    product += a[i]! * b[i]!
    ofA += a[i]! * a[i]!
    ofB += b[i]! * b[i]!
  }
  return ofA === 0 || ofB === 0 ? 0 : product / Math.sqrt(ofA * ofB)
}
