/**
 * Requests that may begin a turn queue here before any other work. A request that is refused here costs no key look-up and
 * no reading of its body.
 */
import { giveBack, waitToBegin } from '../../conversation/beginnings'

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
