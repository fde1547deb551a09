/**
 * Limits how fast turns begin in an isolate. Requests that may begin one queue here before any other work. A request that is
 * refused here costs no key look-up and no reading of its body.
 *
 * Beginning a turn takes CPU time: a key, a body, a search, a prompt, an object. A turn that waits for its
 * model or its reader takes almost none. workerd looks at other connections only when it has nothing else to
 * do, so a thousand questions at once would block everybody until the last had begun. So each request waits
 * here before anything else is done for it. Requests begin in the order they came, with pauses between them.
 * The pauses grow while the isolate is busy.
 *
 * Each request waits on its own timers and holds nothing that it must give back. The platform ends a request whose
 * caller leaves without running the rest of it, so another request that waited for a release would wait for ever.
 */
import { type ApiError, coded } from '../../errors'

/** Admitted requests, and whether they began a turn. */
const entered = new WeakMap<Request, 'entered' | 'begun'>()

/**
 * Waits until the request may begin a turn. Does nothing if it was admitted before.
 * @throws ApiError 503 with `retryAfter` if too many begin at once
 */
export async function enter(request: Request): Promise<void> {
  if (entered.has(request)) return
  await waitToBegin()
  entered.set(request, 'entered')
}

/** The request begins a turn. */
export const begun = (request: Request): void => void entered.set(request, 'begun')

/** The request was answered. If it began no turn, for example because of its key, its place is given back. */
export function leave(request: Request): void {
  if (entered.get(request) === 'entered') giveBack()
  entered.delete(request)
}

/** Shortest time from one beginning to the next, in milliseconds. */
const STEP_MS = 10
/** After an idle while, this many turns begin without waiting. */
const BURST = 4
/** Longest wait, in milliseconds. */
const LONGEST_WAIT_MS = 5_000
/** A sleeping request checks the queue at least this often, in milliseconds. */
const LONGEST_SLEEP_MS = 500
/** If no timer has run for this many milliseconds, nobody waits any more. */
const FORSAKEN_MS = 2 * LONGEST_SLEEP_MS
/** The request whose turn is next checks this often whether the isolate is busy, in milliseconds. */
const TICK_MS = 2
/** Milliseconds that a timer may be late without the isolate counting as busy. */
const USUAL_DELAY_MS = 5
/** What a busy millisecond counts on the clock. It is above zero, or a busy isolate would begin no turn. */
const BUSY_SHARE = 0.2

/** Milliseconds in which turns could begin: all that passed, but only a part of the busy ones. */
let clock = 0
/** when the clock was last set, in milliseconds since 1970 */
let seen = 0
/** when the last request in line begins, on the clock */
let next = 0

/** Sets the clock. @param due when the calling timer should have fired, in milliseconds since 1970 */
function advance(due?: number): void {
  const now = Date.now()
  const isLate = due !== undefined && now - due > USUAL_DELAY_MS
  const passed = Math.max(0, now - seen)
  // Cap a long standstill. If all of it counted, it would admit so many turns at once that they caused the next
  // standstill.
  clock += isLate ? Math.min(passed * BUSY_SHARE, STEP_MS) : passed
  seen = now
}

/**
 * Waits until a turn may begin. Without a crowd it does not wait at all.
 * @throws ApiError 503 with `retryAfter`: at once if too many wait already, or after five seconds of waiting
 */
export async function waitToBegin(): Promise<void> {
  const came = Date.now()
  // While requests wait, their timers set the clock: they see how busy the isolate is. Timers end with their
  // requests. So if nobody has set the clock for long, nobody waits.
  if (came - seen > FORSAKEN_MS) next = clock
  if (next <= clock) advance()
  const place = Math.max(next, clock - BURST * STEP_MS) + STEP_MS
  if (place - clock > LONGEST_WAIT_MS) throw tooMany()
  next = place
  while (place > clock) {
    const wait = sleepBefore(place - clock)
    const due = Date.now() + wait
    await new Promise((resolve) => setTimeout(resolve, wait))
    advance(due)
    if (Date.now() - came > LONGEST_WAIT_MS) throw tooMany()
  }
}

/**
 * How long to sleep before a place in line. The last sleeps are short: workerd reads 16 sockets between two
 * looks at its timers. So a crowd of new requests delays each timer by a few milliseconds, and a long sleep
 * would not show that.
 */
function sleepBefore(ahead: number): number {
  return ahead > STEP_MS ? Math.min(ahead - STEP_MS, LONGEST_SLEEP_MS) : Math.min(ahead, TICK_MS)
}

/** Call this if an admitted request began no turn. The next one may take its place. */
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
