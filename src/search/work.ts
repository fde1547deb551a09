import type { Alarm } from '../durable/objects'

/** What the object provides to the collection in it. */
export interface Surroundings {
  storage: DurableObjectStorage
  env: Cloudflare.Env
  objectId: string
  alarm: Alarm
}

/** Work that a collection does in the background. */
export interface Background {
  /** for the log */
  readonly name: string
  /**
   * Does one bounded step, or nothing. Remaining work has to be in storage, since the object may die at any `await`.
   * @returns milliseconds until the next step, 0 for at once; undefined when nothing is left
   */
  step(): Promise<number | undefined>
}
