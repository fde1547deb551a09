/** Limits the time of calls that may never be answered. */

/** A call was not answered in time. Its outcome is unknown. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer'
}

/** @throws NoAnswer when there is no answer in time */
export async function within<T>(milliseconds: number, answer: Promise<T>): Promise<T> {
  const answered = new AbortController()
  const late = scheduler.wait(milliseconds, { signal: answered.signal }).then(() => {
    throw new NoAnswer(`no answer within ${milliseconds} ms`)
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    late.catch(() => {})
    answered.abort()
  }
}
