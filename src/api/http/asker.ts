/** Who asks a question, for the Conversation object. */
import type { Access } from '../../auth/access'
import { identify } from '../../auth/pins'
import { presentedVisitor, visitorDigest } from '../../auth/visitor'
import { userProof, visitorProof } from '../../conversation/ownership'
import type { Asker } from '../../turn/request'

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
