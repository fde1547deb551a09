/**
 * Logs requests: one line of JSON when the answer begins, and an audit line for administrators' changes, deleted
 * conversations and traces that were read. Paths, queries, bodies and keys are never logged; the route is its pattern.
 * LOG_CONTENT=on, for debugging, adds the question. A turn has a line of its own (turn/turn-line.ts).
 */
import type { Note } from '../../auth/admit'
import { foreignOrigin } from '../../lib/origins'
import type { Origin } from '../../search/fault-log'

/** The data of a request for the log. Each layer adds what it learns. */
export interface RequestRecord extends Note {
  readonly requestId: string
  /** unix milliseconds */
  readonly started: number
  readonly method: string
  /** pattern of the route that took it */
  route?: string
  action?: string
  /** what an audited request was about: an id or a name */
  target?: string
  question?: string
  /** when the time of its searches is over, in unix milliseconds */
  searchedUntil?: number
  /** that the route names */
  collection?: string
}

/** What a collection's object is told of the request, for its own log. */
export const originOf = ({ requestId }: Pick<RequestRecord, 'requestId'>): Origin => ({ requestId })

/** A caller's id is accepted only in this form, because it goes into logs and back into a header. */
const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/

export function newRecord(request: Request): RequestRecord {
  const given = request.headers.get('x-request-id') ?? ''
  return {
    requestId: REQUEST_ID.test(given) ? given : crypto.randomUUID(),
    started: Date.now(),
    method: request.method,
    address: request.headers.get('cf-connecting-ip') ?? '',
    origin: foreignOrigin(request),
  }
}

/** Actions on conversations that are audited. The others are everyday use. */
const AUDITED_OF_CONVERSATIONS = ['conversations:delete', 'conversations:trace']

/**
 * Whether an action is audited: administrators' changes (anything but documents, conversations and analytics events), deleting
 * conversations, and reading traces of others' answers.
 */
const isAudited = (action: string, method: string): boolean =>
  AUDITED_OF_CONVERSATIONS.includes(action) ||
  (method !== 'GET' && !/^((documents|conversations):|analytics\/events:create$)/.test(action))

const LONGEST_TEXT = 2_000

/** Writes the lines of a request once its status is known. */
export function logRequest(env: Cloudflare.Env, record: RequestRecord, status: number): void {
  const { requestId: request_id, started, method, route, action, key, denied, target, question } = record
  if (env.LOG_REQUESTS !== 'on' && env.LOG_REQUESTS !== 'audit') return
  const now = Date.now()
  const ts = new Date(now).toISOString()
  if (action !== undefined && key !== undefined && isAudited(action, method)) {
    const line = {
      type: 'audit',
      ts,
      request_id,
      key,
      action,
      target: target?.slice(0, LONGEST_TEXT),
      status,
    }
    console.log(JSON.stringify(line))
  }
  if (env.LOG_REQUESTS === 'audit') return
  // Time until the answer begins. A stream may go on for minutes.
  const ms = now - started
  const content = env.LOG_CONTENT === 'on' &&
    question !== undefined && { question: question.slice(0, LONGEST_TEXT) }
  console.log(
    JSON.stringify({ type: 'request', ts, request_id, method, route, status, ms, key, denied, ...content }),
  )
}
