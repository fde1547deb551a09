/**
 * What the history collections still hold of a conversation. Anybody may have deleted messages through the
 * documents API.
 */
import { historyStore } from '../registry/engines'
import type { Origin } from '../search/fault-log'
import type { Memory } from './memory'

/**
 * Finds turns, from a number on, whose messages somebody deleted. Turns that are not delivered yet do not
 * count.
 * @returns their numbers
 */
export async function deletedTurns(
  env: Cloudflare.Env,
  memory: Memory,
  conversationId: string,
  from: number,
  origin?: Origin,
): Promise<number[]> {
  const waiting = memory.outbox.turns
  const said = memory.log.ended(from).filter(({ turn, saidAt }) => saidAt !== null && !waiting.has(turn))
  if (said.length === 0) return []
  const timestamps = said.map(({ saidAt }) => saidAt!)
  const whole = await Promise.all(
    memory.histories.map((history) =>
      historyStore(env, history).wholeTurns(conversationId, timestamps, origin),
    ),
  )
  const left = new Set(whole.flat())
  return said.filter(({ saidAt }) => !left.has(saidAt!)).map(({ turn }) => turn)
}

/** Whether any message of the conversation is left. */
export async function isRemembered(
  env: Cloudflare.Env,
  memory: Memory,
  conversationId: string,
): Promise<boolean> {
  const left = await Promise.all(
    memory.histories.map((history) => historyStore(env, history).recentMessages(conversationId, 0)),
  )
  return left.some(({ messages }) => messages.length > 0)
}

export async function removeMessages(
  env: Cloudflare.Env,
  memory: Memory,
  conversationId: string,
  origin?: Origin,
): Promise<void> {
  for (const history of memory.histories) {
    const store = historyStore(env, history)
    while (!(await store.removeConversation(conversationId, origin)).done);
  }
}

/** Takes back the records of turns that were deleted while D1 was unavailable. Only their cost is still reported. */
export async function dropDeletedRecords(
  env: Cloudflare.Env,
  memory: Memory,
  conversationId: string,
): Promise<void> {
  const waiting = memory.records.turns
  if (waiting.length === 0) return
  const deleted = await deletedTurns(env, memory, conversationId, Math.min(...waiting)).catch(() => [])
  if (memory.closed) return
  for (const turn of deleted) memory.records.reduce(turn)
}
