/** Who asks, as conversations are told of it. */
import type { Access } from '../../auth/access'
import { identify } from '../../auth/pins'
import { presentedVisitor, visitorDigest } from '../../auth/visitor'
import { userProof, visitorProof } from '../../conversation/ownership'
import type { Asker } from '../../turn/request'

/** A request, with what it says of who sends it. */
export interface Caller {
  request: Request
  /** the keys of the request, that of its first search first */
  accesses: readonly Access[]
  /** the user that the request names */
  userId: string | undefined
  /** its query parameters, where it may name its visitor there */
  query?: Readonly<Record<string, string>>
}

/**
 * Who asks, and how far the key reaches.
 * @param action what is to be done to conversations: a key that is given it by name reaches further
 * @throws ApiError 400 for an overlong name or a visitor's secret that is none, 401 when keys fix different users
 */
export async function askerOf(
  { request, accesses, userId, query }: Caller,
  action = 'conversations:get',
): Promise<Asker> {
  const { owner, userId: user, proven } = identify(accesses, userId)
  const secret = presentedVisitor(request, query)
  const proofs = [
    ...(proven ? [userProof(user)] : []),
    ...(secret === undefined ? [] : [visitorProof(await visitorDigest(owner, secret))]),
  ]
  const reach = accesses[0]!.reach(action)
  return { owner, userId: user, proofs, ...(reach !== 'own' && { reach }) }
}
