/**
 * The outgoing calls of an object: to models, embedders and Vectorize.
 *
 * At most six calls of an object wait for the head of their reply, and all its requests share them
 * (https://developers.cloudflare.com/workers/platform/limits/#simultaneous-open-connections). The platform makes the seventh
 * wait behind the others, whoever waits for it. So background work takes four at most, and a call that somebody waits for goes
 * ahead of it. workerd on its own has no such limit.
 */
import { Gate } from './few'

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
