import { Gate } from './few'

/**
 * Long work must pause, or nobody else is served. Promises that have settled run one after another, and workerd looks at no
 * socket and no other request in between. Only a timer makes it look.
 */
export const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1))

/** Says when to pause, by the amount of work done. */
export class Pauses {
  #done = 0

  /** @param every work between pauses, in bytes or whatever unit `due` is given */
  constructor(private readonly every: number) {}

  /** Counts work. @returns whether the caller should now `await pause()` */
  due(done: number): boolean {
    this.#done += done
    if (this.#done < this.every) return false
    this.#done = 0
    return true
  }
}

/**
 * Waits for work with a time limit. Clears its timer, because a timer would keep a Durable Object awake.
 * @returns whether the work settled in time @throws what it throws in that time
 */
export async function settlesWithin(milliseconds: number, work: Promise<unknown>): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | null = null
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), milliseconds)
  })
  try {
    return await Promise.race([work.then(() => true), late])
  } finally {
    clearTimeout(timer)
  }
}

const LONGEST_MS = 300_000

/**
 * How long failed work waits before its next attempt: twice as long each time, five minutes at most.
 * @param failures in a row, without the latest one
 * @returns milliseconds
 */
export const backoff = (failures: number, firstMs = 1_000): number =>
  Math.min(LONGEST_MS, firstMs * 2 ** failures)

/** Half of the wait is random, so that callers who failed together do not retry together. */
export const jittered = (ms: number): number => ms / 2 + (Math.random() * ms) / 2

// =============================================================================
// Serves other connections while a fast stream is read.
//
// A read of data that has already arrived resolves at once. workerd's event loop is then never idle, and serves no other
// connection of the isolate until the stream ends. Only a timer makes it look at them. All streams of an isolate count
// together, so a hundred of them delay the others no more than one does.

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

// =============================================================================
// The outgoing calls of an object: to models, embedders and Vectorize.
//
// At most six calls of an object wait for the head of their reply, and all its requests share them
// (https://developers.cloudflare.com/workers/platform/limits/#simultaneous-open-connections). The platform makes the seventh
// wait behind the others, whoever waits for it. So background work takes four at most, and a call that somebody waits for goes
// ahead of it. workerd on its own has no such limit.

/** Calls of an object at once, and those of its background work among them. */
const MOST_CALLS = 6
const MOST_BACKGROUND_CALLS = 4

/** Lets a call pass. @param signal ends the wait for it @throws what the call throws; the signal's reason */
export type Pass = <Result>(call: () => Promise<Result>, signal?: AbortSignal) => Promise<Result>

class Outgoing {
  readonly #gate = new Gate(MOST_CALLS)
  readonly #backgroundGate = new Gate(MOST_BACKGROUND_CALLS)

  /** A call that somebody waits for. */
  readonly foreground: Pass = (call, signal) => this.#gate.pass(call, true, signal)
  readonly background: Pass = (call, signal) =>
    this.#backgroundGate.pass(() => this.#gate.pass(call, false, signal), false, signal)
}

/** What an object's environment has besides its bindings. The Worker's own has none of it: each request has six calls. */
interface Counting {
  outgoing?: Outgoing
  /** for the calls of background work */
  pass?: Pass
}

/** The environment of an object, whose calls are counted together. */
export const counting = <Env extends object>(env: Env, outgoing = new Outgoing()): Env =>
  Object.create(env, {
    outgoing: { value: outgoing },
    pass: { value: outgoing.foreground },
  })

/** The same environment for background work. */
export function inBackground<Env extends object>(env: Env): Env {
  const { outgoing } = env as Counting
  return outgoing ? Object.create(env, { pass: { value: outgoing.background } }) : env
}

/**
 * Makes a call when there is room for it. It counts until its promise settles: for a fetch, until the reply's head is there.
 * @param signal of the call. A call that is given up while it waits is never made
 */
export const outgoing = <Result>(
  env: object,
  call: () => Promise<Result>,
  signal?: AbortSignal,
): Promise<Result> => {
  const { pass } = env as Counting
  return pass ? pass(call, signal) : call()
}
