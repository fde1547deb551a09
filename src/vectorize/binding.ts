/** The bound Vectorize indexes, and the ids and namespaces that a collection uses in them. */

import { inBackground, outgoing } from '../lib/outgoing'

/** The calls of a Vectorize index that Parley makes. */
export type VectorizeBinding = Pick<Vectorize, 'query' | 'upsert' | 'deleteByIds' | 'getByIds' | 'describe'>

/** The most ids that a query returns without values and metadata. */
export const MAX_TOP_K = 100
/** Vectors in an upsert. 1,000 are allowed, but 500 of 1536 dimensions are 3 MB, and several times that as JSON. */
export const MAX_UPSERT = 500
/** The most ids that `deleteByIds` takes. */
export const MAX_DELETE = 100
/** The most ids that `getByIds` takes. */
export const MAX_GET = 20

/**
 * The index for vectors of this many dimensions.
 * @returns undefined unless VECTORS is "vectorize" and such an index is bound
 */
export function vectorizeFor(env: Cloudflare.Env, dimensions: number): VectorizeBinding | undefined {
  if (env.VECTORS !== 'vectorize') return undefined
  const bound: Record<number, unknown> = {
    384: env.VECTORIZE_384,
    768: env.VECTORIZE_768,
    1024: env.VECTORIZE_1024,
    1536: env.VECTORIZE_1536,
  }
  const index = bound[dimensions] as VectorizeBinding | undefined
  return index && counted(index, env)
}

/** The index, with its calls among those of the object. */
const counted = (index: VectorizeBinding, env: Cloudflare.Env): VectorizeBinding => ({
  query: (...given) => outgoing(env, () => index.query(...given)),
  upsert: (...given) => outgoing(inBackground(env), () => index.upsert(...given)),
  deleteByIds: (...given) => outgoing(inBackground(env), () => index.deleteByIds(...given)),
  getByIds: (...given) => outgoing(inBackground(env), () => index.getByIds(...given)),
  describe: () => outgoing(inBackground(env), () => index.describe()),
})

/**
 * A namespace for each field of each collection. An object's id has 36 bytes, so this stays below the limit of 64.
 */
export const namespaceOf = (objectId: string, slot: number): string => `${objectId}:${slot}`

/**
 * A vector's id. It is unique in the index, which all collections share, and below the limit of 64 bytes. Sequence
 * numbers and slots are never reused, so every id that a collection ever sent can be made again.
 */
export const vectorId = (objectId: string, slot: number, seq: number): string => `${objectId}:${slot}:${seq}`

/** The sequence number of a vector's document. */
export const seqOf = (id: string): number => Number(id.slice(id.lastIndexOf(':') + 1))
