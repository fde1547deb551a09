/**
 * What keys fix of a conversation: its model and its user. Typesense reads conversation parameters before it
 * looks at keys, so that there a search key can spend on any model; here a key says which.
 *
 * A request may bring several keys, one a search. All of them have to agree.
 */
import { ApiError } from '../errors'
import { type Access, forbidden } from './access'

/** Characters of a user's id: it is a label, stored with every conversation. */
const LONGEST_USER_ID = 256

/** Who asks. */
export interface Identity {
  owner: string
  /** '' where nobody is named */
  userId: string
  /** whether the owner's key fixes the user: any other name is the caller's own word */
  proven: boolean
}

/**
 * The one value that keys fix, undefined when none does.
 * @throws ApiError 401 when two keys fix different ones: the request cannot obey both
 */
function agreed(values: (string | undefined)[]): string | undefined {
  const fixed = new Set(values.filter((value) => value !== undefined))
  if (fixed.size > 1) throw forbidden()
  return [...fixed][0]
}

/** The conversation model that keys fix, undefined when they leave it open. @throws ApiError 401 */
export const pinnedModel = (accesses: readonly Access[]): string | undefined =>
  agreed(
    accesses.map(({ limits, embedded }) => limits.conversation_model_id ?? embedded.conversation_model_id),
  )

/**
 * Whether the keys let this model be asked. One that they do not is to be answered like one that is unknown,
 * so that a key cannot be used to find out which models there are.
 */
export const mayAsk = (accesses: readonly Access[], modelId: string): boolean =>
  accesses.every(({ limits }) => (limits.conversation_model_id ?? modelId) === modelId)

/** The user that a key fixes. A scoped key says it in either of the words that requests have for it. */
const fixedUser = ({ limits, embedded }: Access): string | undefined =>
  limits.user_id ?? embedded.user_id ?? embedded['x-typesense-user-id']

/**
 * Who asks: the owner is the first key, the user the one that a key fixes, or else the one that the request
 * names. A name in the request that contradicts the key's is passed over. A user is proven by the owner's key alone:
 * what another key of the request fixes says nothing about the owner's users.
 *
 * @param named what the request says, by its `x-typesense-user-id`
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
