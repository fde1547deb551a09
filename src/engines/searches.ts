/** The searches of a cluster that are under way, so that one that nobody waits for any more can be ended. */
import { ApiError, attempt, type Outcome } from '../errors'

export class Searches {
  readonly #running = new Map<string, AbortController>()

  /**
   * Runs a search.
   * @param ticket names it for `abandon`; undefined: nobody will
   * @param work is given the signal that ends its calls
   */
  run<Result>(
    ticket: string | undefined,
    work: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Outcome<Result>> {
    const abort = new AbortController()
    if (ticket !== undefined) this.#running.set(ticket, abort)
    return attempt(async () => {
      try {
        return await work(abort.signal)
      } catch (error) {
        if (abort.signal.aborted) throw new ApiError(499, 'The caller has gone.')
        throw error
      } finally {
        if (ticket !== undefined) this.#running.delete(ticket)
      }
    })
  }

  abandon(ticket: string): void {
    this.#running.get(ticket)?.abort()
  }
}
