/** Sequence numbers of a block: what is in memory of a collection is kept and forgotten by blocks. */
export const BLOCK = 4_096

/** The documents of a block: their sequence numbers less the block's first, in ascending order. */
export type Offsets = Uint16Array
