/**
 * How fast the turns of an isolate begin.
 *
 * A beginning is the part of a turn that costs time of the processor: a key, a body, a search, a prompt, an object. A
 * turn that waits for its model, or for its reader, costs next to none. A thousand questions at once would keep
 * everybody else waiting until the last of them has begun, since workerd looks at other connections only when it has
 * nothing left to do. So a request waits here before anything else is done for it. Requests begin in the order in which
 * they came, with pauses in between, and the pauses are longer while the isolate is busy.
 *
 * Each request waits with timers of its own, and nothing is held that it has to give back: the platform ends a request
 * whose caller leaves without running the rest of it, and whoever relied on that would wait for ever.
 */
import { type ApiError, coded } from '../errors'

/** Milliseconds from one beginning to the next, at least. */
const STEP_MS = 10
/** Beginnings that nobody waits for, after a while without any. */
const BURST = 4
/** The longest that one waits, in milliseconds. */
const LONGEST_WAIT_MS = 5_000
/** After so many milliseconds a request looks again how far the others are. */
const LONGEST_SLEEP_MS = 500
/** Milliseconds by which a timer may be late without the isolate being busy. */
const USUAL_DELAY_MS = 20

/**
 * Milliseconds in which turns could begin: those that passed, less those in which the isolate was too busy to call a
 * timer that was due.
 */
let clock = 0
/** when the clock was last set, in milliseconds since 1970 */
let seen = 0
/** where on the clock the last request of all begins */
let next = 0

/** Sets the clock. @param due when a timer should have called, in milliseconds since 1970 */
function advance(due?: number): void {
  const now = Date.now()
  const isLate = due !== undefined && now - due > USUAL_DELAY_MS
  clock += Math.max(0, (isLate ? due : now) - seen)
  seen = now
}

/**
 * Waits until a turn may begin: for all but those that come in great numbers, not at all.
 * @throws ApiError 503 with `retryAfter` at once when too many wait already, and after five seconds of waiting
 */
export async function waitToBegin(): Promise<void> {
  const came = Date.now()
  // Where others wait, their timers set the clock: they know how busy the isolate is.
  if (next <= clock) advance()
  const place = Math.max(next, clock - BURST * STEP_MS) + STEP_MS
  if (place - clock > LONGEST_WAIT_MS) throw tooMany()
  next = place
  while (place > clock) {
    const wait = Math.min(place - clock, LONGEST_SLEEP_MS)
    const due = Date.now() + wait
    await new Promise((resolve) => setTimeout(resolve, wait))
    advance(due)
    if (Date.now() - came > LONGEST_WAIT_MS) throw tooMany()
  }
}

/** A request that was let in began no turn: the next one may come in its place. */
export function giveBack(): void {
  clock += STEP_MS
}

const tooMany = (): ApiError =>
  coded(
    'too_many_waiting',
    503,
    'Too many questions are asked at once. Try again in a few seconds.',
    LONGEST_WAIT_MS / 1_000,
  )
