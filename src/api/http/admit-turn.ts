/** What every protocol does before a turn begins: the queue, who asks, is there budget left, is it a retry. */
import { type Access, identify, presentedVisitor, visitorDigest } from '../../auth/access'
import { requireBudget, requireRate } from '../../auth/authenticate'
import { isUnguessable } from '../../conversation/conversation-id'
import { isToldApart, userProof, visitorProof } from '../../conversation/stored'
import { sha256 } from '../../db/sealing'
import { type ApiError, badRequest, coded } from '../../errors'
import type { ConversationModelConfig } from '../../models/language-model'
import type { Asker } from '../../turn/request'
import type { RequestRecord } from './request-log'

const LONGEST_IDEMPOTENCY_KEY = 255

/**
 * Headers that stay the same when a request is retried: the address, from Cloudflare and from a proxy before it, the client,
 * its language and its page.
 */
const TRAITS = ['cf-connecting-ip', 'x-forwarded-for', 'user-agent', 'accept-language', 'origin']

/** Permission to begin a turn. */
export type Admission = Awaited<ReturnType<typeof admitTurn>>

/** The request that asks. */
export interface TurnCaller extends Caller {
  env: Cloudflare.Env
  /** the request's entry in the log */
  record: RequestRecord
  /** the request's body */
  body: string
}

/** The user that a request names: its header first, else its query parameter, as with keys. */
export const namedUser = (
  request: Request,
  query: Readonly<Record<string, string>> = {},
): string | undefined => request.headers.get('x-typesense-user-id') ?? query['x-typesense-user-id']

/** Questions looked ahead for since one was last admitted, by the owner of their key. */
const unadmitted = new Map<string, number>()
const MOST_UNADMITTED = 2

/**
 * Whether to ask the object of a chat's name before the question is admitted. To call an object creates it, so a key whose
 * questions are refused, for an unknown assistant or a spent budget, creates no more of them here.
 */
export function mayLookAhead({ owner }: Access): boolean {
  const count = unadmitted.get(owner) ?? 0
  if (count < MOST_UNADMITTED) unadmitted.set(owner, count + 1)
  return count < MOST_UNADMITTED
}

/**
 * @throws ApiError 400 for an overlong header, 401 when the keys contradict each other, 429 when a budget is spent
 *   or the key asks too often, 503 when too many are asked at once
 */
export async function admitTurn(
  { env, body, record, ...caller }: TurnCaller,
  model: ConversationModelConfig,
) {
  const { request, accesses } = caller
  // A scoped key can turn a search into a question, which the request itself did not show.
  await enter(request)
  const asker = await askerOf(caller)
  const given = request.headers.get('idempotency-key') || undefined
  if (given !== undefined && given.length > LONGEST_IDEMPOTENCY_KEY) {
    throw badRequest(`\`Idempotency-Key\` is longer than ${LONGEST_IDEMPOTENCY_KEY} characters.`)
  }
  await requireBudget(env, accesses, model)
  for (const access of new Map(accesses.map((access) => [access.digest, access])).values()) {
    await requireRate(env, 'RATE_LIMIT_TURNS', access)
  }
  for (const { owner } of accesses) unadmitted.delete(owner)
  const { turns_per_day: turnsPerDay } = accesses.find(({ owner }) => owner === asker.owner)?.limits ?? {}
  const keys = accesses.map(({ digest }) => digest)
  // Two visitors of a page may both number their requests from 1. If nothing tells them apart, a key that is easy to guess
  // must not join a turn. It only goes into the fingerprint.
  const idempotencyKey =
    given !== undefined && (isToldApart(asker) || isUnguessable(given)) ? given : undefined
  // With an idempotency key a caller can retry from another network or client.
  const traits =
    idempotencyKey === undefined ? [...TRAITS.map((name) => request.headers.get(name)), given] : []
  const identity = [asker.owner, asker.userId, ...(asker.proofs ?? []), ...traits]
  begun(request)
  const { pathname, search } = new URL(request.url)
  const fingerprint = await sha256(
    JSON.stringify([...identity, keys, request.method, pathname, search, body]),
  )
  return {
    asker,
    /** of the request, for the log */
    requestId: record.requestId,
    fingerprint,
    ...(idempotencyKey !== undefined && { idempotencyKey }),
    /** the budget of the key that the turn is charged to */
    ...(turnsPerDay !== undefined && { turnsPerDay }),
    /** present if a key is made for pages */
    ...(accesses.some(({ forPages }) => forPages) && { plain: true as const }),
  }
}

/** A request and what it says about its sender. */
export interface Caller {
  request: Request
  /** the keys of the request; first that of the first search */
  accesses: readonly Access[]
  /** the user that the request names */
  userId: string | undefined
}

/**
 * Who asks, and how far the key reaches.
 * @param action what is done to conversations. A key that lists this action by name reaches conversations of others
 * @throws ApiError 400 for a name that is too long or an invalid visitor's secret, 401 if keys fix different users
 */
export async function askerOf(
  { request, accesses, userId }: Caller,
  action = 'conversations:get',
): Promise<Asker> {
  const { owner, userId: user, proven } = identify(accesses, userId)
  const secret = presentedVisitor(request)
  const proofs = [
    ...(proven ? [userProof(user)] : []),
    ...(secret === undefined ? [] : [visitorProof(await visitorDigest(owner, secret))]),
  ]
  const reach = accesses[0]!.reach(action)
  return { owner, userId: user, proofs, ...(reach !== 'own' && { reach }) }
}

/** Who asks with a single key. */
export const askerWith = (
  { request, access, user }: { request: Request; access: Access; user: string | undefined },
  action?: string,
): Promise<Asker> => askerOf({ request, accesses: [access], userId: user }, action)

// Limits how fast turns begin in an isolate. Requests that may begin one queue here before any other work. A request that is
// refused here costs no key look-up and no reading of its body.
//
// Beginning a turn takes CPU time: a key, a body, a search, a prompt, an object. A turn that waits for its
// model or its reader takes almost none. workerd looks at other connections only when it has nothing else to
// do, so a thousand questions at once would block everybody until the last had begun. So each request waits
// here before anything else is done for it. Requests begin in the order they came, with pauses between them.
// The pauses grow while the isolate is busy.
//
// Each request waits on its own timers and holds nothing that it must give back. The platform ends a request whose
// caller leaves without running the rest of it, so another request that waited for a release would wait for ever.

/** Admitted requests, and whether they began a turn. */
const entered = new WeakMap<Request, 'entered' | 'begun'>()

/**
 * Waits until the request may begin a turn. Does nothing if it was admitted before.
 * @throws ApiError 503 with `retryAfter` if too many begin at once
 */
export async function enter(request: Request): Promise<void> {
  if (entered.has(request)) return
  await waitToBegin()
  entered.set(request, 'entered')
}

/** The request begins a turn. */
export const begun = (request: Request): void => void entered.set(request, 'begun')

/** The request was answered. If it began no turn, for example because of its key, its place is given back. */
export function leave(request: Request): void {
  if (entered.get(request) === 'entered') giveBack()
  entered.delete(request)
}

/** Shortest time from one beginning to the next, in milliseconds. */
const STEP_MS = 10
/** After an idle while, this many turns begin without waiting. */
const BURST = 4
/** Longest wait, in milliseconds. */
const LONGEST_WAIT_MS = 5_000
/** A sleeping request checks the queue at least this often, in milliseconds. */
const LONGEST_SLEEP_MS = 500
/** If no timer has run for this many milliseconds, nobody waits any more. */
const FORSAKEN_MS = 2 * LONGEST_SLEEP_MS
/** The request whose turn is next checks this often whether the isolate is busy, in milliseconds. */
const TICK_MS = 2
/** Milliseconds that a timer may be late without the isolate counting as busy. */
const USUAL_DELAY_MS = 5
/** What a busy millisecond counts on the clock. It is above zero, or a busy isolate would begin no turn. */
const BUSY_SHARE = 0.2

/** Milliseconds in which turns could begin: all that passed, but only a part of the busy ones. */
let clock = 0
/** when the clock was last set, in milliseconds since 1970 */
let seen = 0
/** when the last request in line begins, on the clock */
let next = 0

/** Sets the clock. @param due when the calling timer should have fired, in milliseconds since 1970 */
function advance(due?: number): void {
  const now = Date.now()
  const isLate = due !== undefined && now - due > USUAL_DELAY_MS
  const passed = Math.max(0, now - seen)
  // Cap a long standstill. If all of it counted, it would admit so many turns at once that they caused the next
  // standstill.
  clock += isLate ? Math.min(passed * BUSY_SHARE, STEP_MS) : passed
  seen = now
}

/**
 * Waits until a turn may begin. Without a crowd it does not wait at all.
 * @throws ApiError 503 with `retryAfter`: at once if too many wait already, or after five seconds of waiting
 */
export async function waitToBegin(): Promise<void> {
  const came = Date.now()
  // While requests wait, their timers set the clock: they see how busy the isolate is. Timers end with their
  // requests. So if nobody has set the clock for long, nobody waits.
  if (came - seen > FORSAKEN_MS) next = clock
  if (next <= clock) advance()
  const place = Math.max(next, clock - BURST * STEP_MS) + STEP_MS
  if (place - clock > LONGEST_WAIT_MS) throw tooMany()
  next = place
  while (place > clock) {
    const wait = sleepBefore(place - clock)
    const due = Date.now() + wait
    await new Promise((resolve) => setTimeout(resolve, wait))
    advance(due)
    if (Date.now() - came > LONGEST_WAIT_MS) throw tooMany()
  }
}

/**
 * How long to sleep before a place in line. The last sleeps are short: workerd reads 16 sockets between two
 * looks at its timers. So a crowd of new requests delays each timer by a few milliseconds, and a long sleep
 * would not show that.
 */
function sleepBefore(ahead: number): number {
  return ahead > STEP_MS ? Math.min(ahead - STEP_MS, LONGEST_SLEEP_MS) : Math.min(ahead, TICK_MS)
}

/** Call this if an admitted request began no turn. The next one may take its place. */
export function giveBack(): void {
  clock += STEP_MS
}

const tooMany = (): ApiError =>
  coded(
    'too_many_waiting',
    503,
    'Too many questions are asked at once. Try again in a few seconds.',
    LONGEST_WAIT_MS / 1_000,
  )
