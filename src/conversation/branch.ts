/**
 * A question that continues from an earlier turn begins a conversation of its own, with what was said before.
 */
import { coded } from '../errors'
import { historyStore } from '../registry/engines'
import { unknownTurn } from '../turn/errors'
import type { AskRequest } from '../turn/request'
import { type TranscriptMessage, transcriptOf } from '../turn/transcript'
import type { Memory } from './memory'
import { QUEUE_LIMIT } from './turn-queue'

/**
 * Returns what was said up to the turn that a question continues from.
 * @param continued whether another question is running there or waiting
 * @returns undefined if that is the last turn; the question then stays in its conversation
 * @throws ApiError 404 for a turn that is not there; 409 for one that is still being written while another
 *   question waits
 */
export async function transcriptTo(
  env: Cloudflare.Env,
  memory: Memory | undefined,
  { conversationId, historyId, after = 0 }: AskRequest,
  continued: boolean,
): Promise<TranscriptMessage[] | undefined> {
  const standing = memory?.log.standing(after) ?? 'unknown'
  if (!memory || memory.closed || standing === 'unknown') throw unknownTurn()
  if (standing !== 'earlier' && !continued) return undefined
  if (standing === 'running') {
    throw coded(
      'conflict',
      409,
      'The previous response is still being written. Ask again when it is there.',
      1,
    )
  }
  // Include turns that may end meanwhile.
  const later = Array.from(
    { length: memory.log.latest()! - after + QUEUE_LIMIT + 1 },
    (_, n) => after + 1 + n,
  )
  const without = memory.outbox.originsOf(later)
  const stored = await historyStore(env, historyId).messages(conversationId, without)
  return transcriptOf([...stored, ...memory.outbox.pending(historyId, without)])
}
