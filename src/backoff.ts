const LONGEST_MS = 300_000

/**
 * How long work that failed waits for its next attempt: twice as long each time, five minutes at the most.
 * @param failures in a row, the latest one left out
 * @returns milliseconds
 */
export const backoff = (failures: number, firstMs = 1_000): number =>
  Math.min(LONGEST_MS, firstMs * 2 ** failures)

/** A wait of which half is chance, so that callers who failed together do not come back together. */
export const jittered = (ms: number): number => ms / 2 + (Math.random() * ms) / 2
