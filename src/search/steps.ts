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
