/** What was said in a conversation up to each of its turns, for readers of finished turns. */
import { database } from '../db/client'
import { ttlsOf } from '../db/conversation-models'
import { type Part, textOf } from '../lib/parts'
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
  if (turns.length === 0) return new Map()
  const all = await Promise.all(
    memory.histories.map((historyId) => messagesIn(env, memory, conversationId, historyId)),
  )
  return new Map(
    turns.map(({ turn, saidAt }) => {
      const answer = memory.log.turn(turn)?.answer
      const told = all.map((messages) => upTo(messages, answer, saidAt)).find((found) => found !== undefined)
      // Its answer was deleted or changed: what was said until then.
      return [turn, told ?? (all.at(-1) ?? []).filter(({ timestamp }) => timestamp <= (saidAt ?? 0))]
    }),
  )
}

/** The messages up to an answer. Several turns may share its second, so the time alone does not tell. */
function upTo(
  messages: HistoryMessage[],
  answer: Part[] | undefined,
  saidAt: number | null,
): HistoryMessage[] | undefined {
  const said = answer && textOf(answer)
  const at = messages.findIndex(
    ({ role, content, timestamp }) =>
      role === 'assistant' && textOf(content) === said && timestamp === saidAt,
  )
  return at < 0 ? undefined : messages.slice(0, at + 1)
}

/** What one history holds of a conversation, oldest first, without what has expired. */
async function messagesIn(
  env: Cloudflare.Env,
  memory: Memory,
  conversationId: string,
  historyId: string,
): Promise<HistoryMessage[]> {
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
  return messages
}
