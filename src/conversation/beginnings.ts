/**
 * How many turns of an isolate may be at their beginning at once: from the moment that they are asked for until their
 * first event is there.
 *
 * A beginning is the part of a turn that costs time of the processor: a search, a prompt, a new object. A turn that
 * waits for its model, or for its reader, costs next to none. Without a bound a thousand questions at once would keep
 * everybody else waiting until the last of them has begun.
 */
import { ApiError } from '../errors'

export const MOST_BEGINNINGS = 128

/** Seconds after which there will be room again. */
const RETRY_AFTER = 1

/** A beginning that takes longer, or whose request has gone, does not count any more, in milliseconds. */
const LONGEST_MS = 10_000

/** when each began; in the order in which they did */
const beginnings = new Set<{ since: number }>()
const byEvents = new WeakMap<ReadableStream<Uint8Array>, { since: number }>()

/** @throws ApiError 503 with `retryAfter` while too many turns begin */
export function requireRoomToBegin(now = Date.now()): void {
  for (const beginning of beginnings) {
    if (now - beginning.since < LONGEST_MS) break
    beginnings.delete(beginning)
  }
  if (beginnings.size < MOST_BEGINNINGS) return
  throw new ApiError(503, 'Too many questions are asked at once. Try again in a moment.', RETRY_AFTER)
}

/**
 * Counts a turn as beginning while it is asked for, and until somebody has read the first of its events.
 * @throws ApiError 503 with `retryAfter`, and what `work` throws
 */
export async function beginning<T extends { events: ReadableStream<Uint8Array> }>(
  work: () => Promise<T>,
): Promise<T> {
  requireRoomToBegin()
  const entry = { since: Date.now() }
  beginnings.add(entry)
  try {
    const asked = await work()
    byEvents.set(asked.events, entry)
    return asked
  } catch (error) {
    beginnings.delete(entry)
    throw error
  }
}

/** The first events of a turn have been read, or nobody will read them. */
export function hasBegun(events: ReadableStream<Uint8Array>): void {
  const entry = byEvents.get(events)
  if (entry) beginnings.delete(entry)
}
