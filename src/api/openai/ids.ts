/** Ids of responses and of messages. Each names its conversation and its place there. Pure. */

export interface Place {
  /** its id, or a handle of it (conversation/conversation-id.ts) */
  conversation: string
  turn: number
}

export const responseId = (conversation: string, turn: number): string => `resp_${conversation}.${turn}`
/** The answer of a turn. */
export const messageId = (conversation: string, turn: number): string => `msg_${conversation}.${turn}`

/** The place in an id of ours, after its prefix; undefined for any other id. */
export function readPlace(id: string, prefix: 'resp_' | 'msg_'): Place | undefined {
  const [, conversation, turn] = /^(.{1,512})\.(\d{1,9})$/s.exec(id.slice(prefix.length)) ?? []
  if (!id.startsWith(prefix) || conversation === undefined) return undefined
  return { conversation, turn: Number(turn) }
}

/**
 * A message of a conversation: the question or the answer of a turn, or a document of the history that belongs to no
 * recorded turn.
 */
type MessagePlace = { turn: number; role: 'user' | 'assistant' } | { document: string }

/** `msg_CONVERSATION.3` is an answer, `….3.q` its question, and `….dID` a document of the history. */
export function itemId(conversation: string, place: MessagePlace): string {
  if ('document' in place) return `msg_${conversation}.d${encodeURIComponent(place.document)}`
  return messageId(conversation, place.turn) + (place.role === 'user' ? '.q' : '')
}

/** @returns undefined for an id of another conversation, and for one that is not ours */
export function readItemId(conversation: string, id: string): MessagePlace | undefined {
  const prefix = `msg_${conversation}.`
  if (!id.startsWith(prefix)) return undefined
  const rest = id.slice(prefix.length)
  const [, turn, question] = /^(\d{1,9})(\.q)?$/.exec(rest) ?? []
  if (turn !== undefined) return { turn: Number(turn), role: question ? 'user' : 'assistant' }
  if (!rest.startsWith('d')) return undefined
  try {
    return { document: decodeURIComponent(rest.slice(1)) }
  } catch {
    return undefined
  }
}
