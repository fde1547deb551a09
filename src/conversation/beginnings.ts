/**
 * How fast the turns of an isolate begin.
 *
 * A beginning is the part of a turn that costs time of the processor: a search, a prompt, an object. A turn that waits
 * for its model, or for its reader, costs next to none. A thousand questions at once would keep everybody else waiting
 * until the last of them has begun, since workerd looks at other connections only when it has nothing left to do. So
 * they begin one after another, with pauses in between.
 */
import { ApiError } from '../errors'

/** Milliseconds from one beginning to the next: more than one takes. */
const STEP_MS = 10
/** Beginnings that nobody waits for, after a while without any. */
const BURST = 20
/** The longest that one waits, in milliseconds. */
const LONGEST_WAIT_MS = 5_000

/** the moment of the next beginning, where none is owed to a burst */
let next = 0

/**
 * Waits until a turn may begin: for all but those that come in great numbers, not at all.
 * @throws ApiError 503 with `retryAfter` when too many wait already
 */
export async function waitToBegin(): Promise<void> {
  const now = Date.now()
  const moment = Math.max(next, now - BURST * STEP_MS) + STEP_MS
  const wait = moment - now
  if (wait > LONGEST_WAIT_MS) {
    const message = 'Too many questions are asked at once. Try again in a few seconds.'
    throw new ApiError(503, message, LONGEST_WAIT_MS / 1_000)
  }
  next = moment
  if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
}
