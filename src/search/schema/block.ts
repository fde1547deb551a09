/** Sequence numbers of a block. Data of a collection is cached in memory, and dropped, by blocks. */
export const BLOCK = 4_096

/** The documents of a block: their sequence numbers less the block's first, in ascending order. */
export type Offsets = Uint16Array

/** A field's values in a block. */
export interface Block {
  /** by offset: ids of strings with 0 for none, or numbers with NaN for none. Of a list, one value after the other */
  values: Uint16Array | Float64Array
  /** of a list: where each document's values begin, and where the last one's end */
  starts: Uint16Array | Uint32Array | undefined
}
