/** Vectors as int8, each scaled by its largest component. A removed row is refilled with the last one. */
import { Simd, wholeLanes } from '../../simd'
import type { VectorDistance } from '../types'
import { BoundedHeap } from './bounded-heap'
import { norm } from './vector-math'

/**
 * Rows are stored in blocks of this many, so growing copies nothing. Doubling one large array would briefly need two
 * and a half times its memory, and an isolate has 128 MB.
 */
const BLOCK_ROWS = 256

/** Bytes of rows that are compared at once, unless one row is longer. */
const AT_ONCE = 131_072

/** Bytes of a row besides its components, roughly: its number, two scales and its entry in the map. */
const ROW_BYTES = 64

/** Bytes of memory that a matrix takes. */
export const matrixBytes = (rows: number, dimensions: number): number =>
  rows * (wholeLanes(dimensions) + ROW_BYTES)

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
  const most = Math.min(BLOCK_ROWS, Math.max(1, Math.floor(AT_ONCE / stride)))
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

export class Int8Matrix {
  #dimensions = 0
  /** bytes of a row: the components, and zeros */
  #stride = 0
  #blocks: Int8Array[] = []
  #seqs: number[] = []
  /** times the int8 product, this gives the cosine, or for `ip` the inner product */
  #cosineScale: number[] = []
  #innerScale: number[] = []
  #rowOf = new Map<number, number>()
  #centre: Float32Array | undefined

  /**
   * @param centre taken from each vector and query before it is rounded. A shift changes no Euclidean distance, and vectors that
   *   are close together far from zero would all be rounded to the same int8.
   */
  constructor(centre?: Float32Array) {
    this.#centre = centre
  }

  get size(): number {
    return this.#rowOf.size
  }

  put(seq: number, vector: Float32Array): void {
    if (this.#dimensions === 0) {
      this.#dimensions = vector.length
      this.#stride = wholeLanes(vector.length)
    }
    let row = this.#rowOf.get(seq)
    if (row === undefined) {
      row = this.#rowOf.size
      if (row === this.#blocks.length * BLOCK_ROWS) {
        this.#blocks.push(new Int8Array(BLOCK_ROWS * this.#stride))
      }
      this.#rowOf.set(seq, row)
      this.#seqs[row] = seq
    }
    const { step, int8, length } = this.#quantized(vector)
    this.#row(row).set(int8)
    this.#innerScale[row] = step
    this.#cosineScale[row] = length === 0 ? 0 : step / length
  }

  remove(seq: number): void {
    const row = this.#rowOf.get(seq)
    if (row === undefined) return
    this.#rowOf.delete(seq)
    const last = this.#rowOf.size
    const lastSeq = this.#seqs.pop()!
    const cosineScale = this.#cosineScale.pop()!
    const innerScale = this.#innerScale.pop()!
    if (row !== last) {
      // The last row moves into the gap.
      this.#row(row).set(this.#row(last))
      this.#seqs[row] = lastSeq
      this.#cosineScale[row] = cosineScale
      this.#innerScale[row] = innerScale
      this.#rowOf.set(lastSeq, row)
    }
    // One spare block stays for what comes next.
    if (last <= (this.#blocks.length - 2) * BLOCK_ROWS) this.#blocks.pop()
  }

  #row(row: number): Int8Array {
    const start = (row % BLOCK_ROWS) * this.#stride
    return this.#blocks[Math.floor(row / BLOCK_ROWS)]!.subarray(start, start + this.#stride)
  }

  /** @returns what 1 of its int8 stands for, these until the next call, and the length of the vector */
  #quantized(vector: Float32Array): { step: number; int8: Int8Array; length: number } {
    const { simd, floats, bytes, vector: out, rows } = benchFor(this.#stride)
    floats.fill(0)
    floats.set(vector.length > this.#dimensions ? vector.subarray(0, this.#dimensions) : vector)
    if (this.#centre !== undefined) {
      for (const [at, value] of this.#centre.entries()) floats[at]! -= value
    }
    const step = simd.quantize(0, this.#stride, out) / 127
    return { step, int8: bytes.subarray(out, rows), length: norm(floats) }
  }

  /** Half the square of a row's length, in units of the query's step. */
  #halfSquares(step: number): (row: number) => number {
    return (row) => {
      const [inner, cosine] = [this.#innerScale[row]!, this.#cosineScale[row]!]
      return cosine === 0 ? 0 : (inner / cosine) ** 2 / (2 * (step || 1))
    }
  }

  /** The numbers of the `k` most similar rows, in no order. */
  nearest(
    query: Float32Array,
    k: number,
    distance: VectorDistance,
    allowed: ReadonlySet<number> | undefined,
  ): number[] {
    if (this.size === 0) return []
    const scales = distance === 'cosine' ? this.#cosineScale : this.#innerScale
    const stride = this.#stride
    const { step } = this.#quantized(query)
    // |q - x|² is least where 2 q·x - |x|² is greatest, so half the square is taken off the product.
    const squares = distance === 'l2' ? this.#halfSquares(step) : undefined
    const { simd, bytes, vector, rows, products } = benchFor(stride)
    const best = new BoundedHeap(Math.min(k, this.size))
    const numbers: number[] = []
    const compare = () => {
      if (numbers.length === 0) return
      simd.products(vector, rows, numbers.length, stride, products.byteOffset)
      for (let at = 0; at < numbers.length; at++) {
        const row = numbers[at]!
        best.offer(products[at]! * scales[row]! - (squares?.(row) ?? 0), row)
      }
      numbers.length = 0
    }
    for (const [number, block] of this.#blocks.entries()) {
      const first = number * BLOCK_ROWS
      const end = Math.min(this.size, first + BLOCK_ROWS)
      for (let from = first; from < end; from += products.length) {
        const to = Math.min(end, from + products.length)
        if (allowed === undefined)
          bytes.set(block.subarray((from - first) * stride, (to - first) * stride), rows)
        for (let row = from; row < to; row++) {
          if (allowed !== undefined) {
            if (!allowed.has(this.#seqs[row]!)) continue
            bytes.set(this.#row(row), rows + numbers.length * stride)
          }
          numbers.push(row)
        }
        compare()
      }
    }
    return best.items().map((row) => this.#seqs[row]!)
  }
}
