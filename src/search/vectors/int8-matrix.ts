/** Vectors as int8, each scaled by its largest component. A removed row is refilled with the last one. */
import type { VectorDistance } from '../types'
import { BoundedHeap } from './bounded-heap'
import { norm } from './vector-math'

/**
 * Rows are stored in blocks of this many, so growing copies nothing. Doubling one large array would briefly need two
 * and a half times its memory, and an isolate has 128 MB.
 */
const BLOCK_ROWS = 256

/** A sum of so many products of two int8 fits into an int32. V8 adds those faster than doubles. */
const EXACT = 65_536

/** Bytes of a row besides its components, roughly: its number, two scales and its entry in the map. */
const ROW_BYTES = 64

/** Bytes of memory that a matrix takes. */
export const matrixBytes = (rows: number, dimensions: number): number => rows * (dimensions + ROW_BYTES)

export class Int8Matrix {
  #dimensions = 0
  #blocks: Int8Array[] = []
  #seqs: number[] = []
  /** times the int8 product, this gives the cosine, or for `ip` the inner product */
  #cosineScale: number[] = []
  #innerScale: number[] = []
  #rowOf = new Map<number, number>()

  get size(): number {
    return this.#rowOf.size
  }

  put(seq: number, vector: Float32Array): void {
    if (this.#dimensions === 0) this.#dimensions = vector.length
    let row = this.#rowOf.get(seq)
    if (row === undefined) {
      row = this.#rowOf.size
      if (row === this.#blocks.length * BLOCK_ROWS) {
        this.#blocks.push(new Int8Array(BLOCK_ROWS * this.#dimensions))
      }
      this.#rowOf.set(seq, row)
      this.#seqs[row] = seq
    }
    const largest = vector.reduce((most, value) => Math.max(most, Math.abs(value)), 0)
    const length = norm(vector)
    const step = largest / 127
    const components = this.#row(row)
    for (let i = 0; i < this.#dimensions; i++) components[i] = step === 0 ? 0 : Math.round(vector[i]! / step)
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
    const start = (row % BLOCK_ROWS) * this.#dimensions
    return this.#blocks[Math.floor(row / BLOCK_ROWS)]!.subarray(start, start + this.#dimensions)
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
    const scales = distance === 'cosine' ? this.#cosineScale : this.#innerScale
    const dimensions = this.#dimensions
    const largest = query.reduce((most, value) => Math.max(most, Math.abs(value)), 0)
    const scaled = new Int8Array(dimensions)
    for (let i = 0; i < dimensions; i++) {
      scaled[i] = largest === 0 ? 0 : Math.round(((query[i] ?? 0) * 127) / largest)
    }
    // |q - x|² is least where 2 q·x - |x|² is greatest, so half the square is taken off the product.
    const squares = distance === 'l2' ? this.#halfSquares(largest / 127) : undefined
    const best = new BoundedHeap(Math.min(k, this.size))
    for (const [number, block] of this.#blocks.entries()) {
      const first = number * BLOCK_ROWS
      const end = Math.min(this.size, first + BLOCK_ROWS)
      for (let row = first, start = 0; row < end; row++, start += dimensions) {
        if (allowed !== undefined && !allowed.has(this.#seqs[row]!)) continue
        let product = 0
        for (let from = 0; from < dimensions; from += EXACT) {
          const to = Math.min(dimensions, from + EXACT)
          let sum = 0
          for (let i = from; i < to; i++) sum = (sum + Math.imul(block[start + i]!, scaled[i]!)) | 0
          product += sum
        }
        best.offer(product * scales[row]! - (squares?.(row) ?? 0), row)
      }
    }
    return best.items().map((row) => this.#seqs[row]!)
  }
}
