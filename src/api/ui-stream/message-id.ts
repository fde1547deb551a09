/**
 * Ids of assistant messages. Each names its turn, so that a client's transcript says where in the conversation the client
 * is.
 */

/** `<conversation id>.<turn>` */
export const messageId = (place: { conversation_id: string; turn: number }): string =>
  `${place.conversation_id}.${place.turn}`

/** The turn of a message of this conversation; undefined for any other message. */
export function turnOf(messageId: string, conversationId: string): number | undefined {
  const prefix = `${conversationId}.`
  if (!messageId.startsWith(prefix)) return undefined
  const turn = messageId.slice(prefix.length)
  return /^\d{1,9}$/.test(turn) ? Number(turn) : undefined
}
