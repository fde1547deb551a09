/** A vector field in an object of its own, with a Vectorize double beside it. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { Alarm } from '../../src/durable/objects'
import { migrate } from '../../src/search/collection/open'
import type { Store } from '../../src/search/documents/store'
import { createVectorsTable } from '../../src/search/schema/tables'
import { fromBlob } from '../../src/search/vectors/packed-vectors'
import type { VectorIndex } from '../../src/search/vectors/vector-index'
import { nothing, Reconciler, type Reconciliation } from '../../src/vectorize/reconcile'
import { VectorMirror } from '../../src/vectorize/vector-mirror'
import { VectorizeDouble } from './double'

export const SLOT = 1
const DIMENSIONS = 384

export const OBJECT_ID = '11111111-2222-4333-8444-555555555555'

export class Stage {
  readonly double = new VectorizeDouble(DIMENSIONS)
  readonly sql: SqlStorage
  mirror!: VectorMirror
  index!: VectorIndex
  #storage: DurableObjectStorage
  #life = { closed: false }

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage
    this.sql = storage.sql
    migrate(storage.sql)
    this.addTable(SLOT)
    this.wake()
  }

  addTable(slot: number): void {
    createVectorsTable(this.sql, { slot })
  }

  /** As the object does when it wakes: nothing but its storage is left. */
  wake(vectors: 'vectorize' | 'embedded' = 'vectorize'): void {
    this.#life.closed = true
    const life = { closed: false }
    this.#life = life
    this.mirror = new VectorMirror(this.#around(vectors), () => life.closed)
    this.index = this.indexOf(SLOT)
  }

  indexOf(slot: number): VectorIndex {
    const field = { name: 'v', type: 'float[]', num_dim: DIMENSIONS, vec_dist: 'cosine' }
    return this.mirror.index(field as Parameters<VectorMirror['index']>[0], { slot })
  }

  #around(vectors: 'vectorize' | 'embedded') {
    return {
      storage: this.#storage,
      env: { ...env, VECTORS: vectors, VECTORIZE_384: this.double as unknown as Vectorize },
      objectId: OBJECT_ID,
      alarm: new Alarm(this.#storage),
    }
  }

  /** Writes a vector as a transaction does. */
  put(seq: number, vector: Float32Array): void {
    this.sql.exec(`INSERT OR IGNORE INTO documents (seq, id, body) VALUES (?, ?, '{}')`, seq, String(seq))
    this.index.put(seq, vector)
  }

  remove(seq: number): void {
    this.sql.exec('DELETE FROM documents WHERE seq = ?', seq)
    this.index.remove(seq)
  }

  /** Sends and processes and looks, until nothing is on its way. As if ten minutes passed where something is lost. */
  async settle(): Promise<void> {
    for (let round = 0; round < 200; round++) {
      while ((await this.mirror.send()) === 0);
      while (this.double.runJob());
      while ((await this.mirror.look()) === 0);
      if (this.waiting() === 0) return
      this.sql.exec('UPDATE vector_mutations SET sent_at = 0')
    }
    throw new Error('it does not come to an end')
  }

  waiting(): number {
    return this.sql.exec<{ count: number }>('SELECT count(*) AS count FROM vector_outbox').one().count
  }

  reconciler(nextSeq: number): Reconciler {
    return new Reconciler(this.#around('vectorize'), this.mirror, { nextSeq, closed: false } as Store)
  }

  /** Compares everything. */
  async reconcile(nextSeq: number): Promise<Reconciliation> {
    const reconciler = this.reconciler(nextSeq)
    const counts = nothing()
    for (let place: { slot: number; seq: number } | undefined = { slot: 0, seq: 0 }; place !== undefined; ) {
      place = await reconciler.step(place, counts)
    }
    return counts
  }

  /** What the table holds, by document. */
  rows(slot = SLOT): Map<number, number[]> {
    const rows = this.sql.exec<{ seq: number; vector: ArrayBuffer }>(
      `SELECT seq, vector FROM vectors_${slot} ORDER BY seq`,
    )
    return new Map(rows.toArray().map(({ seq, vector }) => [seq, [...fromBlob(vector)]]))
  }

  /** What Vectorize shows, by document. */
  shown(slot = SLOT): Map<number, number[]> {
    const ours = [...this.double.visible].filter(([id]) => id.split(':')[1] === String(slot))
    const bySeq = ours.map(([id, values]): [number, number[]] => [Number(id.split(':')[2]), [...values]])
    return new Map(bySeq.sort(([a], [b]) => a - b))
  }
}

export async function withStage(work: (stage: Stage) => Promise<void>): Promise<void> {
  const namespace = env.COLLECTION as DurableObjectNamespace
  await runInDurableObject(namespace.getByName(crypto.randomUUID()), (_object, { storage }) =>
    work(new Stage(storage)),
  )
}

/** A direction that is told from others by its number. */
export function direction(number: number): Float32Array {
  const vector = new Float32Array(DIMENSIONS)
  for (let i = 0; i < 8; i++) vector[(number * 31 + i * 7) % DIMENSIONS] = Math.sin(number + i) + 1.1
  return vector
}
