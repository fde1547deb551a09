/** Distances between vectors, and their storage format. */

export function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) sum += a[i]! * b[i]!
  return sum
}

export const norm = (vector: Float32Array): number => Math.sqrt(dot(vector, vector))

/** Cosine distance, 0 to 2. A zero vector has no direction and counts as perpendicular. */
export function cosineDistance(a: Float32Array, normOfA: number, b: Float32Array): number {
  const norms = normOfA * norm(b)
  return norms === 0 ? 1 : Math.min(2, Math.max(0, 1 - dot(a, b) / norms))
}

/** The square of the Euclidean distance. */
export function squaredDistance(a: Float32Array, b: Float32Array): number {
  let sum = 0
  for (let i = 0; i < a.length; i++) sum += (a[i]! - (b[i] ?? 0)) ** 2
  return sum
}

/** Whether two vectors have the same direction, up to rounding. A cosine index stores nothing else of them. */
export const isSameDirection = (a: Float32Array, b: Float32Array): boolean =>
  a.length === b.length && cosineDistance(a, norm(a), b) < 1e-5

// Workers run on little-endian machines, so the array's own bytes are the storage format.
export const toBlob = (vector: Float32Array): ArrayBuffer => vector.slice().buffer

export const fromBlob = (blob: ArrayBuffer): Float32Array => new Float32Array(blob)

/** The shortest decimal that gives the same float32: 0.1 instead of 0.10000000149011612. */
export function shortest(value: number): number {
  for (const digits of [7, 8]) {
    const rounded = Number(value.toPrecision(digits))
    if (Math.fround(rounded) === value) return rounded
  }
  return Number(value.toPrecision(9))
}
