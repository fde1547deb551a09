/** A turn's place in the budgets of turns of its key and its model: taken before it runs, given back if it cost nothing. */
import { database } from '../db/client'
import { type Cost, recordCost } from '../db/turns'
import { type Reserved, reserveTurn } from '../db/usage'
import { ApiError, coded, logFailure, type Trail } from '../errors'
import type { AskRequest } from '../turn/request'

export class Reservation {
  readonly #env: Cloudflare.Env
  readonly #request: AskRequest
  readonly #trail: Trail
  #reserved: Reserved | undefined
  /** set once the turn has cost something */
  used = false

  /** @param reserved what was taken for the turn in an earlier run */
  constructor(env: Cloudflare.Env, request: AskRequest, trail: Trail, reserved?: Reserved) {
    this.#env = env
    this.#request = request
    this.#trail = trail
    this.#reserved = reserved
  }

  /** What was taken, to be kept with the turn. */
  get reserved(): Reserved | undefined {
    return this.#reserved
  }

  /** @returns why the turn may not run; without budgets undefined at once, so that nothing waits */
  take(): Promise<ApiError | undefined> | undefined {
    const { asker, model, turnsPerDay } = this.#request
    if (this.#reserved) return undefined
    if (turnsPerDay === undefined && typeof model.turns_per_day !== 'number') return undefined
    return reserveTurn(this.#env, { owner: asker.owner, model, turnsPerDay }).then(
      (reserved) => {
        this.#reserved = reserved
        return undefined
      },
      (error) => {
        if (error instanceof ApiError) return error
        logFailure('a turn could not be counted', error, this.#trail)
        return coded('unavailable', 503, 'The budget of this key cannot be read now. Try again.')
      },
    )
  }

  /** What the cost of the turn adds to the count. */
  get counted(): Pick<Cost, 'turns'> {
    return this.#reserved ? { turns: 0 } : {}
  }

  /** Call this when the turn has ended, however it did. Never throws. */
  async end(): Promise<void> {
    if (!this.#reserved || this.used) return
    const usage = { ...this.#reserved, inputTokens: 0, outputTokens: 0 }
    await recordCost(database(this.#env), { usage, turns: -1 }).catch((error) =>
      logFailure('a turn that cost nothing stays counted', error, this.#trail),
    )
  }
}
