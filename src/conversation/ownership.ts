/**
 * Whose a conversation is: the key's and the user's that asked first. To anybody else it is as unknown as an
 * id that was never given out.
 */
import { ApiError } from '../errors'
import type { Asker, AskRequest } from './request'

/** The admin key on nobody's behalf: what a caller counts as who names none. */
export const ADMIN: Asker = { owner: 'admin', userId: '' }

/**
 * Whether a conversation is open to an asker. The admin key opens all of them; on behalf of a user it opens
 * that user's, and those that were begun without naming one.
 */
export function mayOpen(asker: Asker, conversation: Asker): boolean {
  if (asker.owner !== ADMIN.owner) {
    return asker.owner === conversation.owner && asker.userId === conversation.userId
  }
  return asker.userId === '' || conversation.userId === '' || asker.userId === conversation.userId
}

/** What Parley's own routes say to an unknown id, and to one of somebody else. */
export const conversationNotFound = (): ApiError => new ApiError(404, 'Conversation not found')

/**
 * What a turn ends with whose conversation nobody knows, or that is somebody else's: in the words of the routes
 * that it was asked on (contract typesense 1.6, 1.7; chat-protocols 1.7).
 */
export function unknownConversation({ shape, protocol }: Pick<AskRequest, 'shape' | 'protocol'>): ApiError {
  if (protocol === 'ai-chat') {
    // 400, since its clients take a 404 for a wrong address.
    return new ApiError(
      400,
      'The session is unknown or has expired. Begin a new one: leave the session state out.',
    )
  }
  if (protocol !== 'typesense') return conversationNotFound()
  return new ApiError(400, shape === 'single' ? 'Conversation not found' : '`conversation_id` is invalid.')
}
