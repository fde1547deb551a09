/**
 * Serves other connections while a fast stream is read.
 *
 * A read of data that has already arrived resolves at once. workerd's event loop is then never idle, and serves no other
 * connection of the isolate until the stream ends. Only a timer makes it look at them. All streams of an isolate count
 * together, so a hundred of them delay the others no more than one does.
 */

/** Milliseconds of work between pauses. */
const WORK_MS = 10
/** The shortest timer for which workerd becomes idle. */
const PAUSE_MS = 1

/** The fixed cost of a read, as a number of bytes. */
const READ_COST = 256
/** Bytes between looks at the clock. A model at its usual pace then pauses a few times a second. */
const LEAST_COST = 16 * 1024
/** Bytes after which to pause whatever the clock says: on Cloudflare it stands still while a Worker computes. */
const MOST_COST = 256 * 1024

let cost = 0
let rested = 0

/** Bytes to parse between checks whether others wait. */
export const SLICE_BYTES = 8 * 1024

/** Counts the work of reading bytes. @returns whether to call `rest` */
export function worked(bytes: number): boolean {
  cost += bytes + READ_COST
  return cost >= LEAST_COST && (cost >= MOST_COST || Date.now() - rested >= WORK_MS)
}

/** Pauses, so that the event loop serves everybody else. */
export async function rest(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  cost = 0
  rested = Date.now()
}
