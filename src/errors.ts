/** The project's one error type, its codes, and how it crosses a Durable Object's RPC border. */

/**
 * What went wrong: a closed set, the same for every protocol. Each protocol maps a code to its own status, type and
 * words in a table (api/<protocol>/errors.ts, or beside its encoder). turn/errors.ts says what a retry can do.
 */
export type ErrorCode =
  // Why a turn ended.
  | 'stopped'
  | 'interrupted'
  | 'over_time'
  | 'unsafe'
  | 'too_long'
  | 'answer_too_long'
  | 'search_failed'
  | 'search_timed_out'
  | 'search_unavailable'
  | 'model_refused'
  | 'model_denied'
  | 'model_failed'
  // What a request names but does not exist.
  | 'unknown_conversation'
  | 'unknown_turn'
  | 'unknown_assistant'
  | 'unknown_model'
  | 'unknown_collection'
  | 'not_joined'
  // What a caller has too much of.
  | 'over_budget'
  | 'too_many_waiting'
  | 'storage_full'
  // What an HTTP status says by itself.
  | StatusCode

/** The codes of errors that only their HTTP status tells apart. */
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
 * Every error that a caller can cause is an ApiError. The app's single error handler writes it in the shape of the
 * protocol spoken. Anything else is a bug here and is answered as a 500 without detail.
 */
export class ApiError extends Error {
  override readonly name = 'ApiError'

  /**
   * @param status HTTP status of the reply
   * @param message the wire's own sentence, saying what to do
   * @param retryAfter seconds after which the same request may succeed, if known
   * @param confidential whether only the operator may read the message, because it quotes a provider or describes
   *   the deployment. A page key gets `plainMessage` instead
   * @param code what went wrong, for code to read. Absent: the status says it all (turn/errors.ts, `codeOf`)
   * @param detail what to do about it, where a wire fixes the message: a key of its own beside it
   */
  constructor(
    readonly status: number,
    message: string,
    readonly retryAfter?: number,
    readonly confidential: boolean = false,
    readonly code?: ErrorCode,
    readonly detail?: string,
  ) {
    super(message)
  }
}

/** The result of work; undefined if it is refused. */
export function unlessRefused<Result>(work: () => Result): Result | undefined {
  try {
    return work()
  } catch (error) {
    if (error instanceof ApiError) return undefined
    throw error
  }
}

/** An error in what the caller sent. */
export const badRequest = (message: string): ApiError => new ApiError(400, message)

/** An ApiError with a code. @param retryAfter seconds */
export const coded = (code: ErrorCode, status: number, message: string, retryAfter?: number): ApiError =>
  new ApiError(status, message, retryAfter, false, code)

/** An ApiError whose message the wire fixes, with a sentence that says more. */
export const detailed = (status: number, message: string, detail: string): ApiError =>
  new ApiError(status, message, undefined, false, undefined, detail)

/** The message and the detail of an error, for wires that fix no message. */
export const inFull = ({ message, detail }: Pick<Failure, 'message' | 'detail'>): string =>
  detail === undefined ? message : `${message} ${detail}`

const FORBIDDEN = 'Forbidden - a valid `x-typesense-api-key` header must be sent.'

/**
 * The one message for a key that is missing, wrong, expired or not allowed to do this: there is no 403.
 * @param detail what the key may do. Absent for an unknown key, and for one that visitors of a page can read
 */
export const forbidden = (detail?: string): ApiError =>
  detail === undefined ? new ApiError(401, FORBIDDEN) : detailed(401, FORBIDDEN, detail)

/** The collection was deleted, or its object never held one. The object does not know the name that was asked for. */
export const collectionGone = (): ApiError => coded('unknown_collection', 404, 'Collection not found')

/** @param name as the caller gave it */
export const collectionMissing = (name: string, status = 404): ApiError =>
  new ApiError(
    status,
    'Collection not found',
    undefined,
    false,
    'unknown_collection',
    `There is no collection or alias \`${name}\`.`,
  )

/** The conversation model does not exist, or the key may not use it. */
export const modelMissing = (status = 404): ApiError => coded('unknown_model', status, 'Model not found')

/** How SQLite and D1 say that there is no room: on the disk of a local start, in an object, in D1. */
const FULL = /SQLITE_FULL|database or disk is full|maximum (?:DB|database) size|no space left on device/i

/** The error of a write that found no room, which it logs; undefined for any other error. */
export function storageFull(error: unknown): ApiError | undefined {
  let cause = error
  while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause
  if (!(cause instanceof Error) || cause instanceof ApiError) return undefined
  // biome-ignore lint/plugin: the platform gives no code
  if (!FULL.test(cause.message)) return undefined
  logFailure('storage is full', cause)
  return coded(
    'storage_full',
    507,
    'The storage of this server is full, so nothing more can be stored. What is there can be read. Delete something or make room before you send this again.',
  )
}

/** An ApiError as plain data: exceptions lose their class and properties when they cross RPC. */
export interface Failure {
  status: number
  message: string
  /** seconds */
  retryAfter?: number
  /** present: only the operator may read the message (ApiError) */
  confidential?: true
  code?: ErrorCode
  /** what to do about it (ApiError) */
  detail?: string
}

/** What an RPC method returns if its caller can make it fail. */
export type Outcome<T> = { ok: true; value: T } | { ok: false; error: Failure }

/** Runs `work` and turns a thrown ApiError, or that of a full disk, into data. Other errors pass through: they are bugs. */
export async function attempt<T>(work: () => T | Promise<T>): Promise<Outcome<T>> {
  try {
    return { ok: true, value: await work() }
  } catch (error) {
    const known = error instanceof ApiError ? error : storageFull(error)
    if (known) return { ok: false, error: failed(known) }
    throw error
  }
}

/** The value of an outcome. @throws ApiError if it is a failure */
export function unwrap<T>(outcome: Outcome<T>): T {
  if (outcome.ok) return outcome.value
  throw asError(outcome.error)
}

/** Turns a failure back into its error. */
export const asError = ({ status, message, retryAfter, confidential, code, detail }: Failure): ApiError =>
  new ApiError(status, message, retryAfter, confidential, code, detail)

export const failed = ({ status, message, retryAfter, confidential, code, detail }: ApiError): Failure => ({
  status,
  message,
  ...(retryAfter !== undefined && { retryAfter }),
  ...(confidential && { confidential }),
  ...(code !== undefined && { code }),
  ...(detail !== undefined && { detail }),
})

/**
 * A failure as a page's visitor may see it. A confidential message goes to the log, under a reference that the
 * visitor can pass on.
 * @param reference an id: the request's if known, else a new one
 */
export function plainFailure<F extends Failure>(failure: F, reference: string = crypto.randomUUID()): F {
  if (!failure.confidential) return failure
  const { confidential: _, ...rest } = failure
  const { status, message } = failure
  console.error(JSON.stringify({ type: 'failure', reference, status, message }))
  return { ...rest, message: plainMessage(reference) } as F
}

/** What a visitor reads in place of a message for the operator. */
const plainMessage = (reference: string): string =>
  `This did not work through no fault of yours. Try again later, or report it with the reference ${reference}.`

/** Where an error came from: the innermost lines of its stack, without its message. */
export const placesOf = (error: unknown): string[] =>
  error instanceof Error ? (error.stack?.match(/^ {4}at .*$/gm) ?? []).slice(0, 8) : []

/** Characters of a message's beginning: enough to tell what failed. */
const LONGEST_REASON = 200

/**
 * What the log may hold of a platform error. Never log the error itself: D1's client puts every value of a failed
 * query into its message, and those are questions, answers and documents. D1's own message is the cause.
 */
export function reasonOf(error: unknown): string {
  let cause = error
  while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause
  if (!(cause instanceof Error)) return typeof error
  // A parser quotes what it could not read, so leave its message out.
  const said = cause instanceof SyntaxError ? '' : `: ${cause.message.slice(0, LONGEST_REASON)}`
  return [`${cause.name}${said}`, ...placesOf(error)].join('\n')
}

/** Ids that a line of the log shares with others. */
export interface Trail {
  /** of the HTTP request, or of the run of background work that caused it; absent: an alarm did */
  requestId?: string | undefined
  conversation?: string
  turn?: number
  /** name of a collection, or the id of its object */
  collection?: string
}

/**
 * Logs that work failed which goes on later, or which nobody waits for.
 * @param event what failed, in words
 * @param error undefined: there is none, and the event says it all
 */
export function logFailure(event: string, error: unknown, trail: Trail = {}): void {
  const { requestId, conversation, turn, collection } = trail
  const type = conversation !== undefined ? 'conversation' : collection !== undefined ? 'collection' : 'work'
  const ids = { request_id: requestId, conversation_id: conversation, turn, collection }
  const reason = error === undefined ? undefined : reasonOf(error)
  console.error(JSON.stringify({ type, ts: new Date().toISOString(), ...ids, event, reason }))
}
