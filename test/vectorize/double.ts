/**
 * A counterpart of a Vectorize index: what its documentation says of limits, of mutations that are processed
 * later and in order, of namespaces and of approximate scores, and faults that a test asks for. Parley sends no metadata.
 *
 * Sources: developers.cloudflare.com/vectorize, the pages platform/limits, best-practices/insert-vectors,
 * best-practices/query-vectors and reference/client-api. The numbers of ids that
 * `getByIds` and `deleteByIds` take are not on those pages; they are what the service answers (code 40007).
 */
export const LIMITS = {
  dimensions: 1536,
  upsertVectors: 1_000,
  upsertBytes: 100_000_000,
  deleteIds: 100,
  getIds: 20,
  topK: 100,
  topKWithPayload: 50,
  idBytes: 64,
  namespaceBytes: 64,
  jobVectors: 200_000,
  jobMutations: 1_000,
}

const bytes = (text: string): number => new TextEncoder().encode(text).byteLength

const refuse = (kind: string, message: string): never => {
  throw new Error(`VECTOR_${kind}_ERROR: ${message}`)
}

/**
 * What goes wrong with the next call of a method:
 *
 *     refused      it throws and has done nothing, as a rate limit does
 *     unanswered   it has done its work, and throws
 *     dropped      it answers with a mutation that is never processed
 *     silent       it never answers
 */
export type Fault = 'refused' | 'unanswered' | 'dropped' | 'silent'

type Method = 'query' | 'upsert' | 'deleteByIds' | 'getByIds' | 'describe'

interface Stored {
  id: string
  namespace: string
  values: Float32Array
  /** int8, each scaled by its largest component: what approximate scores are made from */
  coarse: Int8Array
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
}

interface QueryOptions {
  topK?: number
  namespace?: string
  returnValues?: boolean
}

export class VectorizeDouble {
  /** false: scores are exact without values too */
  isApproximate = true
  /** false: mutations wait for `runJob` */
  automatic = false
  /** every `n`th vector is overlooked by a query, another one for each query; 0: none */
  overlooks = 0
  /** ids that no upsert is taken with */
  rejects: (id: string) => boolean = () => false
  /** how many calls of a method there were */
  readonly calls: Record<Method, number> = { query: 0, upsert: 0, deleteByIds: 0, getByIds: 0, describe: 0 }

  #stored = new Map<string, Stored>()
  #queue: Mutation[] = []
  #faults: Record<Method, Fault[]> = { query: [], upsert: [], deleteByIds: [], getByIds: [], describe: [] }
  #processed = { mutation: '', datetime: '' }
  #queries = 0

  constructor(readonly dimensions: number) {
    if (dimensions > LIMITS.dimensions) refuse('INDEX', `at most ${LIMITS.dimensions} dimensions`)
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

  /** What was written behind the owner's back. */
  tamper(change: (stored: Map<string, Pick<Stored, 'values'>>) => void): void {
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

  getByIds(ids: string[]): Promise<{ id: string; values: number[]; namespace: string }[]> {
    if (ids.length > LIMITS.getIds) {
      refuse('GET', `too many ids in payload; max id count is ${LIMITS.getIds}, got ${ids.length}`)
    }
    return this.#answer('getByIds', () =>
      ids
        .flatMap((id) => this.#stored.get(id) ?? [])
        .map(({ id, values, namespace }) => ({ id, values: [...values], namespace })),
    )
  }

  query(
    vector: ArrayLike<number>,
    options: QueryOptions = {},
  ): Promise<{ matches: Record<string, unknown>[]; count: number }> {
    this.#checkQuery(vector, options)
    const { topK = 5, namespace, returnValues = false } = options
    return this.#answer('query', () => {
      const asked = Float32Array.from(vector)
      const turn = this.#queries++
      const scored: { found: Stored; score: number }[] = []
      for (const found of this.#stored.values()) {
        if (namespace !== undefined && found.namespace !== namespace) continue
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
        }))
      return { matches, count: matches.length }
    })
  }

  #checkQuery(vector: ArrayLike<number>, options: QueryOptions): void {
    const { topK = 5, returnValues = false } = options
    if (vector.length !== this.dimensions) refuse('QUERY', `expected ${this.dimensions} dimensions`)
    const most = returnValues ? LIMITS.topKWithPayload : LIMITS.topK
    if (topK < 1 || topK > most) refuse('QUERY', `(code = 40025) max top K is ${most}, got ${topK}`)
  }

  #made({ id, values, namespace = '' }: Given): Stored {
    if (bytes(id) > LIMITS.idBytes || id === '') refuse('UPSERT', `an id has 1 to ${LIMITS.idBytes} bytes`)
    if (bytes(namespace) > LIMITS.namespaceBytes) {
      refuse('UPSERT', `a namespace has at most ${LIMITS.namespaceBytes} bytes`)
    }
    if (values.length !== this.dimensions) {
      refuse('UPSERT', `expected ${this.dimensions} dimensions, and got ${values.length} dimensions`)
    }
    const copy = Float32Array.from(values)
    const largest = copy.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1
    const coarse = Int8Array.from(copy, (value) => Math.round((value / largest) * 31))
    return { id, namespace, values: copy, coarse }
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
