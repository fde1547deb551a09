/** What every protocol asks before a turn of a conversation begins: who asks, is there budget, is it a retry. */
import type { Access } from '../../auth/access'
import { requireBudget } from '../../auth/budgets'
import { sha256 } from '../../auth/digest'
import { identify } from '../../auth/pins'
import { requireRate } from '../../auth/rate-limit'
import type { Asker } from '../../conversation/request'
import { ApiError } from '../../errors'
import type { ConversationModelConfig } from '../../models/language-model'

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
export interface TurnCaller {
  env: Cloudflare.Env
  request: Request
  /** the keys of the request, that of its first search first */
  accesses: readonly Access[]
  /** the body that was read of the request */
  body: string
  /** the user that the request names */
  userId: string | undefined
}

/** The user that a request names: its header first, else its query parameter, as with keys. */
export const namedUser = (
  request: Request,
  query: Readonly<Record<string, string>> = {},
): string | undefined => request.headers.get('x-typesense-user-id') ?? query['x-typesense-user-id']

/**
 * @throws ApiError 400 for an overlong header, 401 when the keys contradict each other, 429 when a budget is spent
 *   or the key asks too often
 */
export async function admitTurn(
  { env, request, accesses, body, userId }: TurnCaller,
  model: ConversationModelConfig,
): Promise<Admission> {
  const asker = identify(accesses, userId)
  const idempotencyKey = request.headers.get('idempotency-key') || undefined
  if (idempotencyKey !== undefined && idempotencyKey.length > LONGEST_IDEMPOTENCY_KEY) {
    throw new ApiError(400, `\`Idempotency-Key\` is longer than ${LONGEST_IDEMPOTENCY_KEY} characters.`)
  }
  await requireBudget(env, accesses, model)
  for (const access of new Map(accesses.map((access) => [access.digest, access])).values()) {
    await requireRate(env, 'RATE_LIMIT_TURNS', access)
  }
  const keys = accesses.map(({ digest }) => digest)
  // Visitors of one page share its key, and may ask the same at the same moment: without a name they are told apart by
  // their traits. A caller who names the turn may come back from another network, or with another client.
  const traits = idempotencyKey === undefined ? TRAITS.map((name) => request.headers.get(name)) : []
  const identity = [asker.owner, asker.userId, ...traits]
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
