/**
 * What keys fix in a conversation: its model and its user. Typesense reads conversation parameters before it looks at
 * keys, so there a search key can spend on any model. Here the key decides.
 *
 * A request may bring several keys, one for each search. All of them have to agree.
 */
import { ApiError, forbidden } from '../errors'
import type { Access } from './access'

/** Characters of a user's id, a label that is stored with every conversation. */
const LONGEST_USER_ID = 256

/** Who asks. */
export interface Identity {
  owner: string
  /** '' for nobody */
  userId: string
  /** the owner's key fixes the user; otherwise the name is only the caller's claim */
  proven: boolean
}

/**
 * The one value that keys fix, undefined if none does.
 * @throws ApiError 401 when two keys fix different ones: the request cannot obey both
 */
function agreed(values: (string | undefined)[]): string | undefined {
  const fixed = new Set(values.filter((value) => value !== undefined))
  if (fixed.size > 1) throw forbidden()
  return [...fixed][0]
}

/** The conversation model that keys fix, undefined if none does. @throws ApiError 401 */
export const pinnedModel = (accesses: readonly Access[]): string | undefined =>
  agreed(
    accesses.map(({ limits, embedded }) => limits.conversation_model_id ?? embedded.conversation_model_id),
  )

/**
 * Whether the keys allow this model. Answer a forbidden one like an unknown one, so that a key cannot be used to find
 * out which models exist.
 */
export const mayAsk = (accesses: readonly Access[], modelId: string): boolean =>
  accesses.every(({ limits }) => (limits.conversation_model_id ?? modelId) === modelId)

/** The user that a key fixes. A scoped key may use either of the names that requests use. */
const fixedUser = ({ limits, embedded }: Access): string | undefined =>
  limits.user_id ?? embedded.user_id ?? embedded['x-typesense-user-id']

/**
 * Who asks. The owner is the first key. The user is the one that a key fixes, or else the one that the request names;
 * a name that contradicts the key's is ignored. Only the owner's key proves a user: other keys of the request say
 * nothing about the owner's users.
 *
 * @param named `x-typesense-user-id` of the request
 * @throws ApiError 400 for an overlong name, 401 when the keys fix different users
 */
export function identify(accesses: readonly Access[], named: string | undefined): Identity {
  const pinned = agreed(accesses.map(fixedUser))
  const userId = pinned ?? named ?? ''
  if (userId.length > LONGEST_USER_ID) {
    throw new ApiError(400, `\`x-typesense-user-id\` is longer than ${LONGEST_USER_ID} characters.`)
  }
  const [first] = accesses
  if (!first) throw forbidden()
  return { owner: first.owner, userId, proven: userId !== '' && fixedUser(first) === userId }
}
