/**
 * The values of a field in a block of documents, packed into one row: what a filter, an order or a facet needs of 4,096
 * documents. An object that wakes reads this row instead of theirs.
 *
 * A search that had to read the documents' rows leaves the block to be packed, and so does an import that has changed one. A
 * write removes what was packed of its block, in the same transaction. So what is there is true, and what is missing is read.
 */
import { readColumn } from '../../lib/stored-json'
import { type Block, type Forms, Words } from './block'

/** Takes the place of a slot for the documents that a block has. */
export const PRESENT = -1

/** The packed blocks of a collection. */
export class PackedColumns {
  readonly #sql: SqlStorage

  constructor(sql: SqlStorage) {
    this.#sql = sql
  }

  read(block: number, slot: number): ArrayBuffer | undefined {
    const [row] = this.#sql
      .exec<{ packed: ArrayBuffer }>(
        'SELECT packed FROM packed_columns WHERE block = ? AND slot = ?',
        block,
        slot,
      )
      .toArray()
    return row?.packed
  }

  write(block: number, slot: number, packed: ArrayBuffer): void {
    this.#sql.exec(
      'INSERT OR REPLACE INTO packed_columns (block, slot, packed) VALUES (?, ?, ?)',
      block,
      slot,
      packed,
    )
  }

  /** @returns the slots that were packed */
  remove(block: number): number[] {
    return this.#sql
      .exec<{ slot: number }>('DELETE FROM packed_columns WHERE block = ? RETURNING slot', block)
      .toArray()
      .map(({ slot }) => slot)
  }

  removeAll(): void {
    this.#sql.exec('DELETE FROM packed_columns')
  }
}

/** Types of numbers, the narrowest first, and what stands for no value. */
const NUMBERS = [
  [Int8Array, -128],
  [Int16Array, -32_768],
  [Int32Array, -2_147_483_648],
] as const

/** Bytes of the head: the type of the values, and the bytes of each part. */
const HEAD = 4 * Uint32Array.BYTES_PER_ELEMENT
/** PLACES have as many longitudes behind their latitudes. */
const [TEXT, FLOAT, WIDE_TEXT, BIG, PLACES] = [100, 101, 102, 103, 104]
/** Bytes of a row: SQLite takes 2 MB. */
const MOST_BYTES = 1_900_000

/** Numbers in the narrowest type that has all of them. */
function narrowed(values: Float64Array): [type: number, values: ArrayBufferView] {
  for (const [type, [Type, none]] of NUMBERS.entries()) {
    const narrow = new Type(values.length)
    let at = 0
    for (; at < values.length; at++) {
      const value = values[at]!
      narrow[at] = Number.isNaN(value) ? none : value
      // Also -0 is another number.
      if (!Number.isNaN(value) && (value === none || !Object.is(narrow[at], value))) break
    }
    if (at === values.length) return [type, narrow]
  }
  return [FLOAT, values]
}

function typed({ values, longitudes }: Block): [type: number, values: ArrayBufferView] {
  if (longitudes !== undefined) {
    const both = new Float64Array(2 * values.length)
    both.set(values as Float64Array)
    both.set(longitudes, values.length)
    return [PLACES, both]
  }
  if (values instanceof Float64Array) return narrowed(values)
  if (values instanceof BigInt64Array) return [BIG, values]
  return [values instanceof Uint16Array ? TEXT : WIDE_TEXT, values]
}

/** @returns undefined for a block that is too large for a row */
export function packed(block: Block): ArrayBuffer | undefined {
  const { starts, words } = block
  const [type, all] = typed(block)
  const texts = new TextEncoder().encode(words ? JSON.stringify(words.texts) : '')
  const parts = [starts === undefined ? new Uint32Array(0) : Uint32Array.from(starts), all, texts]
  const head = new Uint32Array(HEAD / Uint32Array.BYTES_PER_ELEMENT)
  head.set([type, ...parts.map(({ byteLength }) => byteLength)])
  // Every part begins where its type needs it: the head and the starts have multiples of 4 bytes, the values of 8 at most.
  const padding = (HEAD + parts[0]!.byteLength) % Float64Array.BYTES_PER_ELEMENT
  const size = HEAD + padding + parts.reduce((sum, { byteLength }) => sum + byteLength, 0)
  if (size > MOST_BYTES) return undefined
  const bytes = new Uint8Array(size)
  bytes.set(new Uint8Array(head.buffer))
  let at = HEAD
  for (const [number, { buffer, byteOffset, byteLength }] of parts.entries()) {
    bytes.set(new Uint8Array(buffer, byteOffset, byteLength), at)
    at += byteLength + (number === 0 ? padding : 0)
  }
  return bytes.buffer
}

/** @param forms of its strings, if it has some */
export function unpacked(bytes: ArrayBuffer, forms: Forms): Block {
  const [type, startBytes, valueBytes, textBytes] = new Uint32Array(bytes, 0, 4)
  const padding = (HEAD + startBytes!) % Float64Array.BYTES_PER_ELEMENT
  const from = HEAD + startBytes! + padding
  const starts = startBytes === 0 ? undefined : new Uint32Array(bytes, HEAD, startBytes! / 4)
  if (type === TEXT || type === WIDE_TEXT) {
    const texts = readColumn<string | number>(
      new TextDecoder().decode(new Uint8Array(bytes, from + valueBytes!, textBytes)),
    )
    const values =
      type === TEXT
        ? new Uint16Array(bytes, from, valueBytes! / 2)
        : new Uint32Array(bytes, from, valueBytes! / 4)
    return { values, starts, words: new Words(texts, forms) }
  }
  if (type === BIG) return { values: new BigInt64Array(bytes, from, valueBytes! / 8), starts }
  if (type === PLACES) {
    const half = valueBytes! / 2
    return {
      values: new Float64Array(bytes, from, half / 8),
      starts,
      longitudes: new Float64Array(bytes, from + half, half / 8),
    }
  }
  const [Type, none] = NUMBERS[type!] ?? [Float64Array, Number.NaN]
  const values = new Float64Array(new Type(bytes, from, valueBytes! / Type.BYTES_PER_ELEMENT))
  for (let at = 0; at < values.length; at++) if (values[at] === none) values[at] = Number.NaN
  return { values, starts }
}
