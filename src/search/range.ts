/** Documents' numbers, both ends included. */
export interface Range {
  low: number
  high: number
}

/** No document is outside of it. */
export const EVERYWHERE: Range = { low: 0, high: Number.MAX_SAFE_INTEGER }
/** No document is inside of it: for whoever wants to know whether a filter can be compiled. */
export const NOWHERE: Range = { low: 1, high: 0 }
