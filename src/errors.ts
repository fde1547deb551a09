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

/** Where an error came from: the innermost lines of its stack, without its message. */
export const placesOf = (error: unknown): string[] =>
  error instanceof Error ? (error.stack?.match(/^ {4}at .*$/gm) ?? []).slice(0, 8) : []

/** The beginning of a message, enough to tell what failed. */
const LONGEST_REASON = 200

/**
 * What the log may hold of an error of the platform. Not the error as it is: D1's client puts every value of a query
 * that failed into its message, and those are questions, answers and documents. What D1 itself said is its cause.
 */
export function reasonOf(error: unknown): string {
  let cause = error
  while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause
  if (!(cause instanceof Error)) return typeof error
  // A parser quotes what it could not read.
  const said = cause instanceof SyntaxError ? '' : `: ${cause.message.slice(0, LONGEST_REASON)}`
  return [`${cause.name}${said}`, ...placesOf(error)].join('\n')
}
