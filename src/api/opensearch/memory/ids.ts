/**
 * Ids of messages: the memory's id, the turn's number and, for a trace, its own number. So an id leads to its message
 * without a look-up, and turns of every protocol have one. A message from before the first turn has `b` and its place
 * instead of the turn's number.
 */

export interface MessageId {
  memoryId: string
  turn: number
  before?: number
  /** for a trace: its place among those of its message, from 0 */
  trace?: number
}

export const messageIdOf = ({ memoryId, turn, before, trace }: MessageId): string =>
  `${memoryId}_${before === undefined ? turn : `b${before}`}${trace === undefined ? '' : `_${trace}`}`

/** undefined: no message has this id */
export function parseMessageId(id: string): MessageId | undefined {
  const [, memoryId, b, number, trace] = /^(.{1,100}?)_(b?)(\d{1,9})(?:_(\d{1,6}))?$/s.exec(id) ?? []
  if (memoryId === undefined || number === undefined) return undefined
  if (b === 'b') return trace === undefined ? { memoryId, turn: 0, before: Number(number) } : undefined
  return { memoryId, turn: Number(number), ...(trace !== undefined && { trace: Number(trace) }) }
}
