/** Sequence numbers of a block. Data of a collection is cached in memory, and dropped, by blocks. */
export const BLOCK = 4_096

/** The documents of a block: their sequence numbers less the block's first, in ascending order. */
export type Offsets = Uint16Array
