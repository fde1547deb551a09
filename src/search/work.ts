import type { Alarm } from '../alarm'

/** What an object brings to the collection in it. */
export interface Surroundings {
  storage: DurableObjectStorage
  env: Cloudflare.Env
  objectId: string
  alarm: Alarm
}

/** Something that a collection does in the background. */
export interface Background {
  /** for the log */
  readonly name: string
  /**
   * Does one bounded piece of its work, or nothing. What is left to do has to be in storage, since the object
   * may die at any `await`.
   * @returns in how many milliseconds it wants its next step, 0 for at once; undefined when nothing is left
   */
  step(): Promise<number | undefined>
}
