const LONGEST_MS = 300_000

/**
 * How long failed work waits before its next attempt: twice as long each time, five minutes at most.
 * @param failures in a row, without the latest one
 * @returns milliseconds
 */
export const backoff = (failures: number, firstMs = 1_000): number =>
  Math.min(LONGEST_MS, firstMs * 2 ** failures)

/** Half of the wait is random, so that callers who failed together do not retry together. */
export const jittered = (ms: number): number => ms / 2 + (Math.random() * ms) / 2
