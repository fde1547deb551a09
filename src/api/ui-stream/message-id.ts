/**
 * Ids of assistant messages. Each names its turn, so that a client's transcript says where in the conversation the client
 * is.
 */

/** `<conversation id>.<turn>` */
export const messageId = (place: { conversation_id: string; turn: number }): string =>
  `${place.conversation_id}.${place.turn}`

/** Where the turn of a message is; undefined for a message that Parley did not write. */
export function placeOfMessage(messageId: string): { conversationId: string; turn: number } | undefined {
  const conversationId = messageId.slice(0, messageId.lastIndexOf('.'))
  const turn = turnOf(messageId, conversationId)
  return conversationId === '' || turn === undefined ? undefined : { conversationId, turn }
}

/** The turn of a message of this conversation; undefined for any other message. */
export function turnOf(messageId: string, conversationId: string): number | undefined {
  const prefix = `${conversationId}.`
  if (!messageId.startsWith(prefix)) return undefined
  const turn = messageId.slice(prefix.length)
  return /^\d{1,9}$/.test(turn) ? Number(turn) : undefined
}
