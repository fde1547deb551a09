/**
 * Log lines of what fails inside a collection. Each has the id of the request that caused the call, so one filter shows it
 * beside the line of the request and that of the turn (docs/operating.md).
 */
import { ApiError, placesOf, reasonOf } from '../errors'

/** Part of the options or the scope of a call. */
export interface Origin {
  /** id of the HTTP request; absent for background work, and for a Worker of an earlier version */
  requestId?: string | undefined
}

/**
 * Logs that a step of a call failed, with the platform's reason.
 * @param collection its name
 * @param event the step, such as `batch`
 */
export const logFault = (collection: string, event: string, origin: Origin, error: unknown): void =>
  log(collection, event, origin, { reason: reasonOf(error) })

/**
 * Runs the work of a call, and logs it if it fails by no mistake of the caller's.
 * @param collection its name
 * @param event the object's method
 * @throws what `work` throws
 */
export async function logging<T>(
  collection: () => string,
  event: string,
  origin: Origin = {},
  work: () => T | Promise<T>,
): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (isFault(error)) log(collection(), event, origin, outcomeOf(error))
    throw error
  }
}

/** Whether an error is the operator's to look at. A caller's own mistake is answered, and not logged. */
const isFault = (error: unknown): boolean =>
  !(error instanceof ApiError) || error.status >= 500 || error.confidential

/** The message of an unexpected error is left out: SQLite quotes the words of a search. */
const outcomeOf = (error: unknown): Record<string, unknown> =>
  error instanceof ApiError
    ? { status: error.status, code: error.code, message: error.message }
    : { status: 500, error: error instanceof Error ? error.name : typeof error, places: placesOf(error) }

function log(collection: string, event: string, { requestId }: Origin, rest: Record<string, unknown>): void {
  const line = { type: 'collection', ts: new Date().toISOString(), request_id: requestId, collection, event }
  console.error(JSON.stringify({ ...line, ...rest }))
}
