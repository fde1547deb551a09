/** Work that may take long, in steps: others have turns in between (run/pace.ts). */

/** Each step yields the number of rows that SQLite reads in the time that it took. */
export type Steps<Result = void> = Generator<number, Result>

/** Does all steps without a rest, for work that is known to be little. */
export function atOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

/** Things that a step looks at, and the rows that one of them counts as. */
const [A_STEP, ROWS_A_LOOK] = [16_384, 1 / 4]

/**
 * Does something for each of many things in memory, in steps.
 * @param cost of one of them, as many times as to look at a number
 */
export function* stepwise(count: number, work: (at: number) => void, cost = 1): Steps {
  const step = Math.ceil(A_STEP / cost)
  for (let from = 0; from < count; from += step) {
    const to = Math.min(count, from + step)
    for (let at = from; at < to; at++) work(at)
    yield (to - from) * cost * ROWS_A_LOOK
  }
}
