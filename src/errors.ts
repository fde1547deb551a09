/**
 * The one error type of the project, and how it crosses a Durable Object's RPC border.
 *
 * Everything a caller can cause is an ApiError; the app's single error handler writes it in the shape of
 * the protocol that was spoken. Anything else is a fault of ours and is answered as a 500 without detail.
 */
export class ApiError extends Error {
  override readonly name = 'ApiError'

  /**
   * @param status HTTP status to answer with
   * @param message the wire's own sentence, saying what to do
   * @param retryAfter seconds after which the same request may succeed, where that is known
   */
  constructor(
    readonly status: number,
    message: string,
    readonly retryAfter?: number,
  ) {
    super(message)
  }
}

/** An ApiError as plain data: exceptions lose their class and properties on their way through RPC. */
export interface Failure {
  status: number
  message: string
  /** seconds */
  retryAfter?: number
}

/** What an RPC method that can fail on its caller's account returns. */
export type Outcome<T> = { ok: true; value: T } | { ok: false; error: Failure }

/** Runs `work` and turns a thrown ApiError into data. Other errors pass through: they are bugs. */
export async function attempt<T>(work: () => T | Promise<T>): Promise<Outcome<T>> {
  try {
    return { ok: true, value: await work() }
  } catch (error) {
    if (error instanceof ApiError) {
      return { ok: false, error: failed(error) }
    }
    throw error
  }
}

/** The value of an outcome. @throws ApiError when it is a failure */
export function unwrap<T>(outcome: Outcome<T>): T {
  if (outcome.ok) return outcome.value
  throw new ApiError(outcome.error.status, outcome.error.message, outcome.error.retryAfter)
}

/** An ApiError as plain data. */
export const failed = ({ status, message, retryAfter }: ApiError): Failure => ({
  status,
  message,
  ...(retryAfter !== undefined && { retryAfter }),
})
