/** A collection with fields to filter by in an object of its own, put together as the Collection does it, with its parts in reach. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { Alarm } from '../../src/durable/objects'
import { applyAlteration, prepareAlteration, readAlteration } from '../../src/search/collection/alter'
import { migrate } from '../../src/search/collection/open'
import { Reindex } from '../../src/search/collection/reindex'
import { Store } from '../../src/search/documents/store'
import { Writer } from '../../src/search/documents/writer'
import type { SearchContext } from '../../src/search/run/context'
import { executeSearch } from '../../src/search/run/search'
import { ColumnMemory } from '../../src/search/schema/column-memory'
import { readSchema, writeSchema } from '../../src/search/schema/plan'
import { parseSchema } from '../../src/search/schema/schema'
import { createTables } from '../../src/search/schema/tables'
import type { SearchParameters } from '../../src/search/types'
import { Embedders } from '../../src/search/vectors/embedders'
import { Reconciler, type Reconciliation } from '../../src/vectorize/reconcile'
import { VectorMirror } from '../../src/vectorize/vector-mirror'
import { idsOf } from '../search/make-collection'
import { passingIn } from '../search/passing'
import { randomNumbers } from './collections'
import { VectorizeDouble } from './double'
import { OBJECT_ID } from './stage'

export const DIMENSIONS = 384

export const FIELDS: Record<string, unknown>[] = [
  { name: 'title', type: 'string', optional: true },
  { name: 'year', type: 'int32', optional: true },
  { name: 'tag', type: 'string', facet: true, optional: true },
  { name: 'tags', type: 'string[]', facet: true, optional: true },
  { name: 'price', type: 'float', optional: true },
  { name: 'big', type: 'int64', facet: true, optional: true },
  { name: 'isNew', type: 'bool', optional: true },
  { name: 'maker', type: 'string', sort: true, optional: true },
  { name: 'place', type: 'geopoint', optional: true },
  { name: 'vector', type: 'float[]', num_dim: DIMENSIONS, optional: true },
]

/** Sizes at which Vectorize is asked, so small that a few hundred vectors are many. */
const bytesOf = (count: number): number => count * (DIMENSIONS + 64)
const sizes = (exact: number) => ({
  held: bytesOf(exact),
  exact: bytesOf(exact),
  complete: bytesOf(30),
  scan: bytesOf(200),
})

/** The tests do what the alarm does. Were it to ring, the Collection around this one would wake and do it as well. */
class NoAlarm extends Alarm {
  override within(): void {}
}

interface Options {
  fields?: Record<string, unknown>[]
  /** how many vectors are searched without asking Vectorize */
  exact?: number
}

export class FilteredCollection {
  readonly double = new VectorizeDouble(DIMENSIONS)
  readonly sql: SqlStorage
  mirror!: VectorMirror
  store!: Store
  readonly storage: DurableObjectStorage
  #sizes: ReturnType<typeof sizes>
  #life = { closed: false }

  constructor(storage: DurableObjectStorage, { fields = FIELDS, exact = 15 }: Options) {
    this.#sizes = sizes(exact)
    this.storage = storage
    this.sql = storage.sql
    migrate(this.sql)
    writeSchema(this.sql, createTables(this.sql, parseSchema({ name: 'things', fields })))
    this.wake()
  }

  /** As the object does when it wakes: nothing but its storage is left. */
  wake(): void {
    const schema = readSchema(this.sql)!
    this.#life.closed = true
    const life = { closed: false }
    this.#life = life
    this.mirror = new VectorMirror(this.#around, () => life.closed, this.#sizes)
    this.store = new Store(this.sql, schema, 0, this.mirror)
    for (const plan of this.store.plan.vectors) this.store.indexOf(plan)
  }

  get #around() {
    return {
      storage: this.storage,
      env: { ...env, VECTORS: 'vectorize' as const, VECTORIZE_384: this.double as unknown as Vectorize },
      objectId: OBJECT_ID,
      alarm: new NoAlarm(this.storage),
    }
  }

  get #writer(): Writer {
    return new Writer(this.storage, this.store, new Embedders(env))
  }

  /** Writes documents, whole or in part. @throws Error for the first that is refused */
  write(...documents: Record<string, unknown>[]): void {
    for (const result of this.#writer.write(
      documents.map((document) => ({ document, action: 'emplace' as const })),
    ))
      if (result instanceof Error) throw result
  }

  /** PATCH /collections/:name, and the indexing that follows. */
  async alter(fields: Record<string, unknown>[]): Promise<void> {
    const alteration = await readAlteration({ fields }, this.store.schema, env)
    await prepareAlteration(alteration, this.store, env)
    const reindex = new Reindex(this.storage, this.store, new Embedders(env), this.#writer)
    this.storage.transactionSync(() => {
      const { carried, reindexing } = applyAlteration(this.store, alteration)
      if (reindexing) reindex.start(carried)
    })
    while (!reindex.step().done);
  }

  /** Sends and processes and looks, until nothing is on its way. */
  async settle(): Promise<void> {
    for (let round = 0; round < 50; round++) {
      while ((await this.mirror.send()) === 0);
      while (this.double.runJob());
      while ((await this.mirror.look()) === 0);
      if (this.waiting() === 0) return
    }
    throw new Error('it does not come to an end')
  }

  waiting(): number {
    return this.sql.exec<{ count: number }>('SELECT count(*) AS count FROM vector_outbox').one().count
  }

  /** Compares everything with what Vectorize shows. */
  async reconcile(): Promise<Reconciliation> {
    const reconciler = new Reconciler(this.#around, this.mirror, this.store)
    const { cursor, ...counts } = await reconciler.run('')
    if (cursor !== '') throw new Error('there are more than one call compares')
    return counts
  }

  /** The ids of the nearest that pass a filter, all of them compared. */
  exact(vector: Float32Array, filterBy: string, k = 10): string[] {
    const passing = new Set(passingIn(this.sql, this.store.schema, filterBy))
    const all = this.sql.exec<{ seq: number; id: string }>('SELECT seq, id FROM documents').toArray()
    const ids = new Map(all.filter(({ seq }) => passing.has(seq)).map(({ seq, id }) => [seq, id]))
    const field = this.store.plan.vectors[0]!.field
    const found = this.store.vectors(field).nearest(vector, k, new Set(ids.keys()))
    return found.map(({ seq }) => ids.get(seq)!)
  }

  /** The ids that a search for neighbours finds, in order. */
  async nearest(vector: Float32Array, params: SearchParameters): Promise<string[]> {
    const context: SearchContext = {
      sql: this.sql,
      schema: this.store.schema,
      requireOpen() {},
      columns: new ColumnMemory(),
      count: () => this.store.count,
      vectors: (field) => this.store.vectors(field),
      embedder: () => {
        throw new Error('nothing is embedded')
      },
      reranker: () => undefined,
      synonymSet: async () => undefined,
      curationSet: async () => undefined,
      stemmingDictionary: async () => undefined,
      read: (seqs, withoutVectors) => this.store.read(seqs, withoutVectors),
    }
    const result = await executeSearch(context, {
      q: '*',
      vector_query: `vector:([${vector.join(',')}])`,
      exclude_fields: 'vector',
      ...params,
    })
    return idsOf(result)
  }
}

export async function withFiltered(
  work: (collection: FilteredCollection) => Promise<void>,
  options: Options = {},
): Promise<void> {
  const namespace = env.COLLECTION as DurableObjectNamespace
  await runInDurableObject(namespace.getByName(crypto.randomUUID()), (_object, { storage }) =>
    work(new FilteredCollection(storage, options)),
  )
}

/** Vectors that look in all directions, the same at every run. */
export function makeVectors(count: number, seed = 1): Float32Array[] {
  const next = randomNumbers(seed)
  return Array.from({ length: count }, () =>
    Float32Array.from({ length: DIMENSIONS }, () => next() + next() + next() - 1.5),
  )
}
