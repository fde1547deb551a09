/** Distances between vectors, and their storage format. */
import { FirstItems } from '../../lib/first-items'
import { Simd, wholeLanes } from '../../lib/simd'
import type { VectorDistance } from '../types'

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

interface Scored {
  score: number
  item: number
  slack: number
}

/** Keeps the items with the highest scores, the later ones among equals. */
export class BoundedHeap {
  readonly #best: FirstItems<Scored>

  constructor(limit: number) {
    this.#best = new FirstItems(limit, (a, b) => b.score - a.score || b.item - a.item)
  }

  /** Lower scores are not kept. */
  get least(): number {
    return this.#best.isFull ? this.#best.last!.score : Number.NEGATIVE_INFINITY
  }

  /** @param slack how far off the score may be */
  offer(score: number, item: number, slack: number): void {
    this.#best.offer({ score, item, slack })
  }

  /** The items that may be among the best `count` by their true scores, and some more, best first. @param more at least */
  likely(count: number, more = 0): number[] {
    const { items } = this.#best
    const last = items[Math.min(count, items.length) - 1]
    if (last === undefined) return []
    const isLikely = ({ score, slack }: Scored) => last.score - score <= Math.hypot(last.slack, slack)
    return items.filter((each, place) => place < count + more || isLikely(each)).map(({ item }) => item)
  }
}

// =============================================================================
// A block of vectors as int8, packed into one value: how they are stored, and how they are in memory.
//
// Each vector is scaled by its largest component. A field measured by Euclidean distance has a centre in each block, which is
// taken from its vectors and from the query before they are rounded: a shift changes no such distance, and vectors that are
// close together far from zero would all be rounded to the same int8.

/** What a field's vectors have in common. */
export interface Measure {
  /** `vec_dist` of the field */
  distance: VectorDistance
  dimensions: number
}

/** Sequence numbers of a block, and bytes of its vectors, unless one is longer. */
const MOST_SEQS = 256
const MOST_BYTES = 1 << 20

/** Bytes of rows that are compared at once, unless one row is longer. */
const AT_ONCE = 131_072

/** Bytes of a vector besides its components: two factors and its place; and in memory, roughly. */
const FLOAT = Float32Array.BYTES_PER_ELEMENT
const [PACKED_BYTES, ROW_BYTES] = [2 * FLOAT + 1, 64]

/** Bytes of memory that vectors take, roughly. */
export const vectorBytes = (vectors: number, dimensions: number): number =>
  vectors * (wholeLanes(dimensions) + ROW_BYTES)

/** How many sequence numbers a block spans. */
export const spanOf = ({ dimensions }: Measure): number =>
  Math.max(1, Math.min(MOST_SEQS, Math.floor(MOST_BYTES / wholeLanes(dimensions))))

/** Where vectors are computed with. One of the isolate: nothing waits in between. */
interface Bench {
  stride: number
  simd: Simd
  floats: Float32Array
  bytes: Int8Array
  /** where the floats as int8 are, and after them rows, and after these their products */
  vector: number
  rows: number
  products: Float64Array
}

let bench: Bench | undefined

/** @param stride bytes of a row */
function benchFor(stride: number): Bench {
  if (bench?.stride === stride) return bench
  const most = Math.max(1, Math.min(MOST_SEQS, Math.floor(AT_ONCE / stride)))
  const vector = 4 * stride
  const rows = vector + stride
  const products = rows + most * stride
  const needed = products + 8 * most
  const simd = bench && bench.bytes.length >= needed ? bench.simd : new Simd(needed)
  bench = {
    stride,
    simd,
    floats: new Float32Array(simd.memory, 0, stride),
    bytes: new Int8Array(simd.memory),
    vector,
    rows,
    products: new Float64Array(simd.memory, products, most),
  }
  return bench
}

/** A vector as int8. */
interface Quantized {
  /** what 1 of its int8 stands for */
  step: number
  int8: Int8Array
  length: number
}

/** @returns its `int8` lasts until the next call */
function quantized(vector: Float32Array, stride: number, centre: Float32Array | undefined): Quantized {
  const { simd, floats, bytes, vector: out, rows } = benchFor(stride)
  floats.fill(0)
  floats.set(vector.length > stride ? vector.subarray(0, stride) : vector)
  if (centre !== undefined) for (let at = 0; at < stride; at++) floats[at]! -= centre[at]!
  const step = simd.quantize(0, stride, out) / 127
  return { step, int8: bytes.subarray(out, rows), length: norm(floats) }
}

/** How far off a product may be, in standard deviations of the rounding. */
const DEVIATIONS = 4

/** What a block's vectors are compared with. */
export class Query {
  readonly measure: Measure
  readonly #stride: number
  #whole: Quantized | undefined

  constructor(
    private readonly vector: Float32Array,
    measure: Measure,
  ) {
    this.measure = measure
    this.#stride = wholeLanes(measure.dimensions)
  }

  /** The query as int8, beside a centre. It is kept, since other searches compute between two blocks. */
  from(centre: Float32Array | undefined): Quantized {
    if (centre === undefined && this.#whole !== undefined) return this.#whole
    const { int8, ...rest } = quantized(this.vector, this.#stride, centre)
    const own = { ...rest, int8: int8.slice() }
    if (centre === undefined) this.#whole = own
    return own
  }
}

export class PackedVectors {
  /** as they are stored */
  readonly bytes: ArrayBuffer
  /** the sequence number of the first document that the block spans */
  readonly first: number
  readonly count: number
  readonly #stride: number
  /** by row: times the product with int8 this gives the inner product, and times this the cosine */
  readonly #inner: Float32Array
  readonly #cosine: Float32Array
  readonly #centre: Float32Array | undefined
  readonly #rows: Int8Array
  /** by row: the document's place in the block */
  readonly #places: Uint8Array

  constructor(first: number, bytes: ArrayBuffer, { distance, dimensions }: Measure) {
    const stride = wholeLanes(dimensions)
    const centre = distance === 'l2' ? stride * FLOAT : 0
    const count = (bytes.byteLength - centre) / (stride + PACKED_BYTES)
    let at = 0
    const floats = (length: number) => {
      const part = new Float32Array(bytes, at, length)
      at += length * FLOAT
      return part
    }
    this.bytes = bytes
    this.first = first
    this.count = count
    this.#stride = stride
    this.#inner = floats(count)
    this.#cosine = floats(count)
    this.#centre = centre === 0 ? undefined : floats(stride)
    this.#rows = new Int8Array(bytes, at, count * stride)
    this.#places = new Uint8Array(bytes, at + count * stride, count)
  }

  /**
   * A block with some changes.
   * @param before undefined if it has no vectors
   * @param changes by sequence number: new vectors, and null for one that goes
   * @returns undefined if no vector is left
   */
  static with(
    before: PackedVectors | undefined,
    first: number,
    changes: ReadonlyMap<number, Float32Array | null>,
    measure: Measure,
  ): PackedVectors | undefined {
    const stride = wholeLanes(measure.dimensions)
    const rows: { place: number; row: number; vector?: Float32Array }[] = []
    for (let row = 0; row < (before?.count ?? 0); row++) {
      const place = before!.#places[row]!
      if (!changes.has(first + place)) rows.push({ place, row })
    }
    for (const [seq, vector] of changes) if (vector) rows.push({ place: seq - first, row: -1, vector })
    if (rows.length === 0) return undefined
    rows.sort((a, b) => a.place - b.place)
    const isCentred = measure.distance === 'l2'
    const length = rows.length * (stride + PACKED_BYTES) + (isCentred ? stride * FLOAT : 0)
    const block = new PackedVectors(first, new ArrayBuffer(length), measure)
    const centre = block.#centre
    centre?.set(before ? before.#centre! : meanOf([...changes.values()], stride))
    for (const [at, { place, row, vector }] of rows.entries()) {
      block.#places[at] = place
      if (vector === undefined) {
        block.#inner[at] = before!.#inner[row]!
        block.#cosine[at] = before!.#cosine[row]!
        block.#rows.set(before!.#row(row), at * stride)
        continue
      }
      const { step, int8, length: long } = quantized(vector, stride, centre)
      block.#inner[at] = step
      block.#cosine[at] = long === 0 ? 0 : step / long
      block.#rows.set(int8, at * stride)
    }
    return block
  }

  #row(row: number): Int8Array {
    return this.#rows.subarray(row * this.#stride, (row + 1) * this.#stride)
  }

  /**
   * Offers its vectors to a heap, the more similar the higher: cosines times the query's length, inner products, or half the
   * squares of Euclidean distances, negative.
   * @param allowed only these
   */
  offer(query: Query, best: BoundedHeap, allowed: ReadonlySet<number> | undefined): void {
    const { distance } = query.measure
    const stride = this.#stride
    const isCentred = this.#centre !== undefined
    const { step, int8, length } = query.from(this.#centre)
    const { simd, bytes, vector, rows, products } = benchFor(stride)
    bytes.set(int8, vector)
    const scales = distance === 'cosine' ? this.#cosine : this.#inner
    const compared = new Uint8Array(products.length)
    for (let row = 0; row < this.count; ) {
      let count = 0
      for (; row < this.count && count < products.length; row++) {
        if (allowed !== undefined && !allowed.has(this.first + this.#places[row]!)) continue
        compared[count] = row
        if (allowed !== undefined) bytes.set(this.#row(row), rows + count * stride)
        count++
      }
      if (count === 0) return
      if (allowed === undefined) bytes.set(this.#rows.subarray((row - count) * stride, row * stride), rows)
      simd.products(vector, rows, count, stride, products.byteOffset)
      for (let at = 0; at < count; at++) {
        const number = compared[at]!
        const scale = scales[number]!
        const own = isCentred ? this.#lengthOf(number) : 0
        const score = products[at]! * scale * step - (isCentred ? (own * own + length * length) / 2 : 0)
        if (score < best.least) continue
        const long = distance === 'cosine' ? 1 : this.#lengthOf(number)
        const rounding = Math.sqrt(((scale * length) ** 2 + (step * long) ** 2) / 12)
        best.offer(score, this.first + this.#places[number]!, DEVIATIONS * rounding)
      }
    }
  }

  #lengthOf(row: number): number {
    const [inner, cosine] = [this.#inner[row]!, this.#cosine[row]!]
    return cosine === 0 ? 0 : inner / cosine
  }
}

function meanOf(vectors: readonly (Float32Array | null)[], stride: number): Float32Array {
  const present = vectors.filter((vector) => vector !== null)
  const sums = new Float64Array(stride)
  for (const vector of present) {
    for (let at = 0; at < Math.min(stride, vector.length); at++) sums[at]! += vector[at]! / present.length
  }
  return Float32Array.from(sums)
}
