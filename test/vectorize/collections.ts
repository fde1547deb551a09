/** Collections whose vectors go to a Vectorize double, asked through RPC as the Worker does it. */
import { runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { unwrap } from '../../src/errors'
import type { CollectionRpc } from '../../src/search/collection/handle'
import type { SearchParameters, SearchResult } from '../../src/search/types'
import { importAll, newObject } from '../search/object'
import { VectorizeDouble } from './double'

const DIMENSIONS = 1024
const BATCH = 500

export interface MirroredCollection {
  objectId: string
  object: CollectionRpc
}

export const FIELDS = [
  { name: 'title', type: 'string' },
  { name: 'year', type: 'int32' },
  { name: 'group', type: 'string', facet: true },
  {
    name: 'embedding',
    type: 'float[]',
    embed: { from: ['title'], model_config: { model_name: `local/hash-${DIMENSIONS}` } },
  },
]

/** Binds a new double to the Worker under test. */
export function bindDouble(): VectorizeDouble {
  const double = new VectorizeDouble(DIMENSIONS)
  Object.assign(env, { VECTORS: 'vectorize', VECTORIZE_1024: double })
  return double
}

export const embedVectors = (): void => void Object.assign(env, { VECTORS: 'embedded' })

export async function newMirrored(fields: Record<string, unknown>[] = FIELDS): Promise<MirroredCollection> {
  const { objectId, object } = newObject()
  unwrap(await object.create({ name: 'things', fields }, Math.floor(Date.now() / 1000)))
  return { objectId, object }
}

export async function importMany(object: CollectionRpc, documents: Record<string, unknown>[]): Promise<void> {
  for (let start = 0; start < documents.length; start += BATCH) {
    const results = await importAll(object, documents.slice(start, start + BATCH), { action: 'emplace' })
    const failed = results.find(({ success }) => success !== true)
    if (failed !== undefined) throw new Error(`a test document was refused: ${failed.error}`)
  }
}

const stubOf = ({ objectId }: MirroredCollection) => {
  const namespace = env.COLLECTION as DurableObjectNamespace
  return namespace.get(namespace.idFromName(objectId))
}

export const ring = (collection: MirroredCollection): Promise<boolean> =>
  runDurableObjectAlarm(stubOf(collection))

/** Runs SQL in the collection's object. */
export const query = (collection: MirroredCollection, sql: string): Promise<Record<string, unknown>[]> =>
  runInDurableObject(stubOf(collection), (_object, { storage }) => storage.sql.exec(sql).toArray())

/**
 * Keeps a collection's object in memory, which workerd drops after ten seconds without a call: when it wakes again, the bindings
 * of that moment decide where its vectors are.
 * @returns lets go of it. It ends by itself when the object is aborted
 */
export function keepAwake(collection: MirroredCollection): () => Promise<void> {
  let isOver = false
  const held = runInDurableObject(stubOf(collection), async () => {
    while (!isOver) await scheduler.wait(100)
  }).catch(() => {})
  return () => {
    isOver = true
    return held
  }
}

/** How many documents Vectorize does not show in their present state. */
export const waiting = async (collection: MirroredCollection): Promise<number> =>
  (await query(collection, 'SELECT count(*) AS count FROM vector_outbox'))[0]!.count as number

/** Rings and processes until everything is visible. */
export async function settle(collection: MirroredCollection, double: VectorizeDouble): Promise<void> {
  for (let round = 0; round < 600; round++) {
    await ring(collection)
    while (double.runJob());
    if ((await waiting(collection)) === 0) return
    await scheduler.wait(50)
  }
  throw new Error('Vectorize does not show everything in the end')
}

export const search = async (
  { object }: MirroredCollection,
  params: SearchParameters,
): Promise<SearchResult> => unwrap(await object.search({ exclude_fields: 'embedding', ...params }))

/** A generator of numbers from 0 to 1, the same at every run (Park and Miller). */
export function randomNumbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 48271) % 2147483647
    return state / 2147483647
  }
}

/** Words by Zipf's law, as texts have them. */
const words = (next: () => number, count: number): string =>
  Array.from({ length: count }, () => `word${Math.floor(4_000 ** next())}`).join(' ')

export function makeDocuments(count: number, seed = 1): Record<string, unknown>[] {
  const next = randomNumbers(seed)
  return Array.from({ length: count }, (_, n) => ({
    id: `d${n}`,
    title: words(next, 12),
    year: 1900 + Math.floor(next() * 120),
    group: `g${Math.floor(next() * 20)}`,
  }))
}

export const makeQuestions = (count: number): string[] => {
  const next = randomNumbers(77)
  return Array.from({ length: count }, () => words(next, 5))
}
