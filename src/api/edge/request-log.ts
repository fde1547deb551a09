/**
 * What is written down of a request: one line of JSON when its answer begins, and one more for an administrator's
 * change, deleted conversations and traces that were read. Paths, queries, bodies and keys stay out; the route is its pattern. With LOG_CONTENT=on, which is for
 * finding faults, the question of a search is in.
 */
import type { Note } from '../../auth/admit'
import { foreignOrigin } from '../../origins'

/** What is known of a request so far. Whoever learns something adds it. */
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
}

/** A caller's id is kept when it can be nothing but one: it goes into logs and back into a header. */
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

/** What is done to conversations and has to be accounted for. The rest of their actions is everyday use. */
const AUDITED_OF_CONVERSATIONS = ['conversations:delete', 'conversations:trace']

/**
 * Whether an audit asks for an action: one that changes what an administrator looks after, rather than documents or
 * conversations, that deletes conversations, or that shows how others' answers came about.
 */
const isAudited = (action: string, method: string): boolean =>
  AUDITED_OF_CONVERSATIONS.includes(action) ||
  (method !== 'GET' && !/^(documents|conversations):/.test(action))

const LONGEST_TEXT = 2_000

/** Writes the lines of a request whose answer is known. */
export function logRequest(env: Cloudflare.Env, record: RequestRecord, status: number): void {
  const { requestId: request_id, started, method, route, action, key, denied, target, question } = record
  const now = Date.now()
  const ts = new Date(now).toISOString()
  if (env.LOG_REQUESTS !== 'on' && env.LOG_REQUESTS !== 'audit') return
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
  // Until the answer begins: a stream may go on for minutes.
  const ms = now - started
  const content = env.LOG_CONTENT === 'on' &&
    question !== undefined && { question: question.slice(0, LONGEST_TEXT) }
  console.log(
    JSON.stringify({ type: 'request', ts, request_id, method, route, status, ms, key, denied, ...content }),
  )
}
