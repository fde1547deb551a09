/** Sequence numbers of documents, both ends included. */
export interface Range {
  low: number
  high: number
}

/** Every document. */
export const EVERYWHERE: Range = { low: 0, high: Number.MAX_SAFE_INTEGER }
/** No document: for checking whether a filter compiles. */
export const NOWHERE: Range = { low: 1, high: 0 }
