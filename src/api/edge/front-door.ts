/**
 * Where requests that may begin a turn wait for each other, before anything is done for them: no key is looked up and no
 * body is read for a request that is refused here.
 */
import { giveBack, waitToBegin } from '../../conversation/beginnings'

/** Requests that were let in, and whether they began a turn. */
const entered = new WeakMap<Request, 'entered' | 'begun'>()

/**
 * Lets a request in when it may begin a turn; one that is in already, at once.
 * @throws ApiError 503 with `retryAfter` when too many begin at once
 */
export async function enter(request: Request): Promise<void> {
  if (entered.has(request)) return
  await waitToBegin()
  entered.set(request, 'entered')
}

/** The request begins a turn. */
export const begun = (request: Request): void => void entered.set(request, 'begun')

/** The request was answered. One that was let in and began no turn, as for its key, keeps nobody else waiting. */
export function leave(request: Request): void {
  if (entered.get(request) === 'entered') giveBack()
  entered.delete(request)
}
