/** What was said in a conversation up to each of its turns, for readers of finished turns. */
import { database } from '../db/client'
import { ttlsOf } from '../db/conversation-models'
import { historyStore } from '../registry/engines'
import type { HistoryMessage, Reading } from '../turn/events'
import { readHistory } from '../turn/look-back'
import type { Asked } from './event-log'
import type { Memory } from './memory'

/** What a reader of finished turns gets besides their logs. @param from the first of them */
export async function askedOf(
  env: Cloudflare.Env,
  memory: Memory,
  conversationId: string,
  from: number,
  { results, history }: Reading = {},
): Promise<Asked> {
  const histories = history ? await historiesOf(env, memory, conversationId, from) : undefined
  return { results, histories }
}

/**
 * @param from the first turn
 * @returns by turn: its messages and all before it, oldest first, without expired ones
 */
async function historiesOf(
  env: Cloudflare.Env,
  memory: Memory,
  conversationId: string,
  from: number,
): Promise<Map<number, HistoryMessage[]>> {
  const turns = memory.log.ended(from).filter(({ status }) => status === 'done')
  const historyId = memory.histories.at(-1)
  if (turns.length === 0 || historyId === undefined) return new Map()
  const { messages } = await readHistory(
    {
      messages: async () => {
        const stored = await historyStore(env, historyId).messages(conversationId, [])
        const pending = memory.closed ? [] : memory.outbox.pending(historyId, [])
        return { messages: [...stored, ...pending], complete: true }
      },
      ttls: (ids) => ttlsOf(database(env), ids).catch(() => new Map<string, number>()),
      now: () => Date.now(),
    },
    { id: '', ttl: Number.POSITIVE_INFINITY },
  )
  return new Map(
    turns.map(({ turn, saidAt }) => [
      turn,
      messages.filter(({ timestamp }) => saidAt !== null && timestamp <= saidAt),
    ]),
  )
}
