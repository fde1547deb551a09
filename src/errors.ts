/** The one error type of the project, what its codes are, and how it crosses a Durable Object's RPC border. */

/**
 * What went wrong: a closed set, the same for every protocol. A protocol's own status, type and words for a code are
 * in its table (api/<protocol>/errors.ts). What a retry can do is in turn/errors.ts.
 */
export type ErrorCode =
  // Why a turn ended.
  | 'stopped'
  | 'interrupted'
  | 'over_time'
  | 'unsafe'
  | 'too_long'
  | 'search_failed'
  | 'search_timed_out'
  | 'search_unavailable'
  | 'model_refused'
  | 'model_denied'
  | 'model_failed'
  // What a request names and is not there.
  | 'unknown_conversation'
  | 'unknown_turn'
  | 'unknown_assistant'
  // What a caller has too much of.
  | 'over_budget'
  | 'too_many_waiting'
  // What an HTTP status says by itself.
  | StatusCode

/** The codes of errors that have nothing but an HTTP status to tell them apart. */
export type StatusCode =
  | 'bad_request'
  | 'unauthorized'
  | 'forbidden'
  | 'not_found'
  | 'method_not_allowed'
  | 'timed_out'
  | 'conflict'
  | 'too_large'
  | 'unsupported_media_type'
  | 'key_reused'
  | 'rate_limited'
  | 'unavailable'
  | 'internal'

/**
 * Everything a caller can cause is an ApiError; the app's single error handler writes it in the shape of
 * the protocol that was spoken. Anything else is a fault of ours and is answered as a 500 without detail.
 */
export class ApiError extends Error {
  override readonly name = 'ApiError'

  /**
   * @param status HTTP status to answer with
   * @param message the wire's own sentence, saying what to do
   * @param retryAfter seconds after which the same request may succeed, where that is known
   * @param confidential whether the message is for whoever runs the server: it quotes a provider, or tells of the
   *   deployment. Whoever holds a key made for pages is told `plainMessage` in its place
   * @param code what went wrong, for code to read. Absent: the status says it all (turn/errors.ts, `codeOf`)
   */
  constructor(
    readonly status: number,
    message: string,
    readonly retryAfter?: number,
    readonly confidential: boolean = false,
    readonly code?: ErrorCode,
  ) {
    super(message)
  }
}

/** An ApiError with a code. @param retryAfter seconds */
export const coded = (code: ErrorCode, status: number, message: string, retryAfter?: number): ApiError =>
  new ApiError(status, message, retryAfter, false, code)

/** The one message for a key that is missing, wrong, expired or not allowed to do this: there is no 403. */
export const forbidden = (): ApiError =>
  new ApiError(401, 'Forbidden - a valid `x-typesense-api-key` header must be sent.')

/** An ApiError as plain data: exceptions lose their class and properties on their way through RPC. */
export interface Failure {
  status: number
  message: string
  /** seconds */
  retryAfter?: number
  /** present: the message is for whoever runs the server (ApiError) */
  confidential?: true
  code?: ErrorCode
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
  throw asError(outcome.error)
}

/** A failure as the error that it was. */
export const asError = ({ status, message, retryAfter, confidential, code }: Failure): ApiError =>
  new ApiError(status, message, retryAfter, confidential, code)

/** An ApiError as plain data. */
export const failed = ({ status, message, retryAfter, confidential, code }: ApiError): Failure => ({
  status,
  message,
  ...(retryAfter !== undefined && { retryAfter }),
  ...(confidential && { confidential }),
  ...(code !== undefined && { code }),
})

/**
 * A failure as a visitor of a page is told it. What a confidential message says goes to the log, under the reference that
 * the visitor can pass on.
 * @param reference an id: of the request, where the caller knows it, else a new one
 */
export function plainFailure<F extends Failure>(failure: F, reference: string = crypto.randomUUID()): F {
  if (!failure.confidential) return failure
  const { confidential: _, ...rest } = failure
  const { status, message } = failure
  console.error(JSON.stringify({ type: 'failure', reference, status, message }))
  return { ...rest, message: plainMessage(reference) } as F
}

/** What a visitor is told in the place of a message that is the operator's. */
export const plainMessage = (reference: string): string =>
  `This did not work through no fault of yours. Try again later, or report it with the reference ${reference}.`

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
