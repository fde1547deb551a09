/**
 * Ids of messages: the memory's id and the turn's number, and of a trace its number below that. So an id leads to its
 * message without a look-up, and every protocol's turns have one.
 */

export interface MessageId {
  memoryId: string
  turn: number
  /** of a trace: its place among those of its message, from 0 */
  trace?: number
}

export const messageIdOf = (memoryId: string, turn: number, trace?: number): string =>
  `${memoryId}_${turn}${trace === undefined ? '' : `_${trace}`}`

/** undefined: no message has this id */
export function parseMessageId(id: string): MessageId | undefined {
  const [, memoryId, turn, trace] = /^(.{1,100}?)_(\d{1,9})(?:_(\d{1,6}))?$/s.exec(id) ?? []
  if (memoryId === undefined || turn === undefined) return undefined
  return { memoryId, turn: Number(turn), ...(trace !== undefined && { trace: Number(trace) }) }
}
