/**
 * Lets others have their turn while a stream is read that never pauses.
 *
 * A read of what has already arrived resolves at once. workerd's event loop is then never idle, and it serves no other
 * connection of the isolate until the stream ends. Only a timer lets it look at them. All streams of an isolate count
 * together: a hundred of them take no more from the others than one does.
 */

/** Work that is done at a stretch, in milliseconds. */
const WORK_MS = 10
/** The shortest timer for which workerd becomes idle. */
const PAUSE_MS = 1

/** What a read costs apart from its bytes, in bytes. */
const READ_COST = 256
/** Bytes before the clock is looked at. A model at its usual pace then pauses a few times a second. */
const LEAST_COST = 16 * 1024
/** Bytes after which the clock does not matter: on Cloudflare it stands still while a Worker computes. */
const MOST_COST = 256 * 1024

let cost = 0
let rested = 0

/** Bytes that are parsed without a look at whether others wait. */
export const SLICE_BYTES = 8 * 1024

/** Counts work on bytes that were read. @returns whether `rest` is due */
export function worked(bytes: number): boolean {
  cost += bytes + READ_COST
  return cost >= LEAST_COST && (cost >= MOST_COST || Date.now() - rested >= WORK_MS)
}

/** Lets the event loop serve everybody else. */
export async function rest(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  cost = 0
  rested = Date.now()
}
