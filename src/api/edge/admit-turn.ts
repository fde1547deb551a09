/** What every protocol asks before a turn of a conversation begins: who asks, is there budget, is it a retry. */
import { requireBudget } from '../../auth/budgets'
import { sha256 } from '../../auth/digest'
import { requireRate } from '../../auth/rate-limit'
import { isToldApart, isUnguessable } from '../../conversation/ownership'
import { ApiError } from '../../errors'
import type { ConversationModelConfig } from '../../models/language-model'
import type { Asker } from '../../turn/request'
import { askerOf, type Caller } from './asker'
import { begun, enter } from './front-door'

const LONGEST_IDEMPOTENCY_KEY = 255

/**
 * What a request tells of who sends it, and a retry tells again: the address, as Cloudflare sets it and as a proxy before
 * it says, the client, its language and its page.
 */
const TRAITS = ['cf-connecting-ip', 'x-forwarded-for', 'user-agent', 'accept-language', 'origin']

/** A turn that may begin. */
export interface Admission {
  asker: Asker
  idempotencyKey?: string
  fingerprint: string
  /** true where a key is made for pages */
  plain?: true
}

/** What a turn is asked by. */
export interface TurnCaller extends Caller {
  env: Cloudflare.Env
  /** the body that was read of the request */
  body: string
}

/** The user that a request names: its header first, else its query parameter, as with keys. */
export const namedUser = (
  request: Request,
  query: Readonly<Record<string, string>> = {},
): string | undefined => request.headers.get('x-typesense-user-id') ?? query['x-typesense-user-id']

/**
 * @throws ApiError 400 for an overlong header, 401 when the keys contradict each other, 429 when a budget is spent
 *   or the key asks too often, 503 when too many are asked at once
 */
export async function admitTurn(
  { env, body, ...caller }: TurnCaller,
  model: ConversationModelConfig,
): Promise<Admission> {
  const { request, accesses } = caller
  // A scoped key may turn a search into a question, which its request did not show.
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
  const keys = accesses.map(({ digest }) => digest)
  // Two visitors of a page who are not told apart may both count their requests from 1. What anybody could come upon
  // names no turn to join: it tells requests apart, and that is all.
  const idempotencyKey =
    given !== undefined && (isToldApart(asker) || isUnguessable(given)) ? given : undefined
  // A caller who names the turn may come back from another network, or with another client.
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
    fingerprint,
    ...(idempotencyKey !== undefined && { idempotencyKey }),
    ...(accesses.some(({ forPages }) => forPages) && { plain: true }),
  }
}
