/**
 * Caches the matches of full-text expressions in memory, so that a repeated search and its further pages need not
 * find them again. SQLite takes a third of a microsecond for a match, this cache next to nothing.
 *
 * Matches are kept in blocks, as values are (column-memory.ts), and a write forgets the block of its document. A
 * block takes 2 bytes a match, or one bit a document if that is less. The expression that was used longest ago is
 * dropped first.
 */
import { BLOCK, type Offsets } from './block'

/** Bytes of a block besides its matches, roughly. */
const BLOCK_BYTES = 120
const BITMAP_BYTES = BLOCK / 8

/** The matches of a block. */
export interface Packed {
  /** the writes that had been made when the block was read */
  writes: number
  size: number
  bytes: Uint8Array
  isBitmap: boolean
}

export function packed(offsets: Offsets, writes: number): Packed {
  const size = offsets.length
  if (offsets.byteLength <= BITMAP_BYTES) {
    return { writes, size, bytes: new Uint8Array(offsets.slice().buffer), isBitmap: false }
  }
  const bytes = new Uint8Array(BITMAP_BYTES)
  for (const at of offsets) bytes[at >> 3]! |= 1 << (at & 7)
  return { writes, size, bytes, isBitmap: true }
}

function offsetsOf(bits: Uint8Array, size: number): Uint16Array<ArrayBuffer> {
  const offsets = new Uint16Array(size)
  let count = 0
  // 32 bits at a time: workerd runs on little-endian machines alone.
  for (const [index, some] of new Uint32Array(bits.buffer).entries()) {
    for (let left = some; left !== 0; left &= left - 1) {
      offsets[count++] = index * 32 + 31 - Math.clz32(left & -left)
    }
  }
  return offsets
}

export const unpacked = ({ size, bytes, isBitmap }: Packed): Offsets =>
  isBitmap ? offsetsOf(bytes, size) : new Uint16Array(bytes.buffer)

/** The cached matches of one expression. */
export class KeptMatches {
  readonly #memory: MatchMemory
  readonly #blocks = new Map<number, Packed>()
  bytes = 0
  /** whether the memory has forgotten it, so that its bytes do not count */
  isDropped = false

  constructor(memory: MatchMemory) {
    this.#memory = memory
  }

  /** A block; undefined if its matches are not known. */
  block(number: number): Packed | undefined {
    const block = this.#blocks.get(number)
    return block !== undefined && block.writes >= this.#memory.lastWrite(number) ? block : undefined
  }

  /** @param writes the `writes` of the memory before the block was read */
  keep(number: number, offsets: Offsets, writes: number): Packed {
    const block = packed(offsets, writes)
    const before = this.#blocks.get(number)
    const freed = before === undefined ? 0 : BLOCK_BYTES + before.bytes.byteLength
    const more = BLOCK_BYTES + block.bytes.byteLength - freed
    this.#blocks.set(number, block)
    this.bytes += more
    if (!this.isDropped) this.#memory.bytes += more
    return block
  }
}

/** The cached matches of a collection's recent expressions. */
export class MatchMemory {
  /** the one asked for longest ago is first */
  readonly #kept = new Map<string, KeptMatches>()
  /** by block: the number of the last write */
  readonly #written = new Map<number, number>()
  /** how many writes there were */
  writes = 0
  /** of all kept expressions */
  bytes = 0

  /** @param limit bytes */
  constructor(readonly limit: number) {}

  /** @param key identifies the expression */
  find(key: string): KeptMatches | undefined {
    const kept = this.#kept.get(key)
    if (kept === undefined) return undefined
    this.#kept.delete(key)
    this.#kept.set(key, kept)
    return kept
  }

  open(key: string): KeptMatches {
    const kept = this.find(key) ?? new KeptMatches(this)
    this.#kept.set(key, kept)
    return kept
  }

  /** Call this when matches were added. */
  makeRoom(limit = this.limit): void {
    for (const [key, kept] of this.#kept) {
      if (this.bytes <= limit) return
      this.bytes -= kept.bytes
      kept.isDropped = true
      this.#kept.delete(key)
    }
  }

  lastWrite = (number: number): number => this.#written.get(number) ?? 0

  /** Call this when a document of a block was written: the cached matches of the block become invalid. */
  forget(number: number): void {
    this.#written.set(number, ++this.writes)
  }

  /** A collection is also cleared when it is emptied, so a search that is under way must not go on with what it has. */
  clear(): void {
    this.writes += 1
    this.makeRoom(-1)
  }
}
