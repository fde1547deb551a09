/** The Vectorize indexes that are bound, and what of a collection goes where in them. */

/** What Parley asks of a Vectorize index. */
export type VectorizeBinding = Pick<Vectorize, 'query' | 'upsert' | 'deleteByIds' | 'getByIds' | 'describe'>

/** Ids that a query can answer with: the limit without values and metadata. */
export const MAX_TOP_K = 100
/** Vectors of an upsert. 1,000 are allowed; of 1536 dimensions 500 are 3 MB, and several times that as JSON. */
export const MAX_UPSERT = 500
/** Ids that `deleteByIds` takes. */
export const MAX_DELETE = 100
/** Ids that `getByIds` takes. */
export const MAX_GET = 20

/**
 * The index for vectors of this many dimensions.
 * @returns undefined where VECTORS does not say "vectorize" or no index of these dimensions is bound
 */
export function vectorizeFor(env: Cloudflare.Env, dimensions: number): VectorizeBinding | undefined {
  if (env.VECTORS !== 'vectorize') return undefined
  const bound: Record<number, unknown> = {
    384: env.VECTORIZE_384,
    768: env.VECTORIZE_768,
    1024: env.VECTORIZE_1024,
    1536: env.VECTORIZE_1536,
  }
  return bound[dimensions] as VectorizeBinding | undefined
}

/** Every field of every collection has a namespace. The id of an object has 36 bytes, so this stays under 64. */
export const namespaceOf = (objectId: string, slot: number): string => `${objectId}:${slot}`

/**
 * A vector's id: unique in an index that all collections share, and under the 64 bytes that an id may have.
 * Sequence numbers and slots are never used twice, so whatever a collection has ever sent can be named again.
 */
export const vectorId = (objectId: string, slot: number, seq: number): string => `${objectId}:${slot}:${seq}`

/** The document of a vector's id. */
export const seqOf = (id: string): number => Number(id.slice(id.lastIndexOf(':') + 1))
