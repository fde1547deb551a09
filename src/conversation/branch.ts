/** A question that goes on from an earlier turn than the last one: a conversation of its own, with what was said before. */
import { ApiError } from '../errors'
import { collectionObject } from '../search/catalog'
import type { Memory } from './memory'
import { TURN_NOT_FOUND } from './ownership'
import type { AskRequest } from './request'
import { type TranscriptMessage, transcriptOf } from './transcript'

/**
 * What was said up to the turn that a question goes on from.
 * @returns undefined where that is the last turn, and the question goes on in the same conversation
 * @throws ApiError 404 for a turn that is not there
 */
export async function transcriptTo(
  env: Cloudflare.Env,
  memory: Memory | undefined,
  { conversationId, historyId, after = 0 }: AskRequest,
): Promise<TranscriptMessage[] | undefined> {
  const standing = memory?.log.standing(after) ?? 'unknown'
  if (!memory || memory.closed || standing === 'unknown') throw new ApiError(404, TURN_NOT_FOUND)
  if (standing === 'last') return undefined
  const without = memory.outbox.originsOf(memory.log.ended(after + 1).map(({ turn }) => turn))
  const stored = await collectionObject(env, historyId).messages(conversationId, without)
  return transcriptOf([...stored, ...memory.outbox.pending(historyId, without)])
}
