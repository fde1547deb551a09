/** Checks that every protocol makes before a turn begins: who asks, is there budget left, is it a retry. */
import type { Access } from '../../auth/access'
import { requireBudget } from '../../auth/budgets'
import { sha256 } from '../../auth/digest'
import { identify } from '../../auth/pins'
import { requireRate } from '../../auth/rate-limit'
import { presentedVisitor, visitorDigest } from '../../auth/visitor'
import { isToldApart, userProof, visitorProof } from '../../conversation/ownership'
import { isUnguessable } from '../../conversation/unguessable'
import { ApiError } from '../../errors'
import type { ConversationModelConfig } from '../../models/language-model'
import type { Asker } from '../../turn/request'
import { begun, enter } from './front-door'
import type { RequestRecord } from './request-log'

const LONGEST_IDEMPOTENCY_KEY = 255

/**
 * Headers that stay the same when a request is retried: the address, from Cloudflare and from a proxy before it, the client,
 * its language and its page.
 */
const TRAITS = ['cf-connecting-ip', 'x-forwarded-for', 'user-agent', 'accept-language', 'origin']

/** Permission to begin a turn. */
export interface Admission {
  asker: Asker
  /** of the request, for the log */
  requestId: string
  idempotencyKey?: string
  fingerprint: string
  /** the budget of the key that the turn is charged to */
  turnsPerDay?: number
  /** present if a key is made for pages */
  plain?: true
}

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
): Promise<Admission> {
  const { request, accesses } = caller
  // A scoped key can turn a search into a question, which the request itself did not show.
  await enter(request)
  const asker = await askerOf(caller)
  const given = request.headers.get('idempotency-key') || undefined
  if (given !== undefined && given.length > LONGEST_IDEMPOTENCY_KEY) {
    throw new ApiError(400, `\`Idempotency-Key\` is longer than ${LONGEST_IDEMPOTENCY_KEY} characters.`)
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
    requestId: record.requestId,
    fingerprint,
    ...(idempotencyKey !== undefined && { idempotencyKey }),
    ...(turnsPerDay !== undefined && { turnsPerDay }),
    ...(accesses.some(({ forPages }) => forPages) && { plain: true }),
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
