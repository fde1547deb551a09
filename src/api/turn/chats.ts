/** Shared by protocols whose clients choose the ids of their chats (edge/chat-names.ts). */
import { conversationObject } from '../../conversation/conversation-object'
import { deleteConversation, getConversation } from '../../conversation/conversations'
import { ApiError, type Outcome, unwrap } from '../../errors'
import type { RecordedTurn } from '../../turn/fold'
import type { Asker } from '../../turn/request'
import { askerOf } from '../edge/asker'
import { type ChatParties, chatIds, findChat } from '../edge/chat-names'
import type { OpenCall } from '../edge/route'
import { type AssistantAnswering, type AssistantQuestion, askAssistant } from './assistant'
import { chatReader } from './read'

export interface ChatQuestion
  extends Pick<
    AssistantQuestion,
    'question' | 'transcript' | 'labels' | 'protocol' | 'bodyText' | 'changes'
  > {
  /** the client's own name for the chat; absent: a conversation begins */
  chat?: string | undefined
}

/** Asks in the conversation that the chat's name stands for. @throws ApiError */
export async function askChat(
  { record }: OpenCall,
  parties: ChatParties,
  { chat, ...asked }: ChatQuestion,
): Promise<AssistantAnswering> {
  const found = chat === undefined ? undefined : await findChat(parties, chat)
  return askAssistant({ ...parties, record, ...asked, ...found })
}

/** The running answer of a chat, from its beginning. @returns undefined if none is running */
export async function runningTurn(parties: ChatParties, chat: string) {
  const events = await atChat(parties, chat, (id, asker) =>
    conversationObject(parties.env, id).running(asker),
  )
  return events && chatReader(events)
}

/**
 * Stops the running answer of a chat for all its readers. A key that may only read what others asked does not stop their
 * answers.
 * @returns whether one was running
 */
export async function stopChat(parties: ChatParties, chat: string): Promise<boolean> {
  const { env, request, access, user: userId } = parties
  const asker = await askerOf({ request, accesses: [access], userId }, 'conversations:stop')
  const stopped = await atChat(parties, chat, (id) => conversationObject(env, id).stop(asker))
  return stopped ?? false
}

/** The last hundred turns of a chat, oldest first, for a client that reopens it. @returns none for an unknown chat */
export async function turnsOf(
  parties: ChatParties,
  chat: string,
): Promise<{ conversationId: string; turns: RecordedTurn[] }> {
  const { asker, ids } = await chatIds(parties, chat)
  for (const id of ids) {
    try {
      return { conversationId: id, turns: (await getConversation(parties.env, asker, id)).turns }
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error
    }
  }
  return { conversationId: '', turns: [] }
}

/** Calls the conversation of a chat. @returns undefined if there is none, or if it returns nothing */
async function atChat<T>(
  parties: ChatParties,
  chat: string,
  call: (conversationId: string, asker: Asker) => Promise<Outcome<T | null>>,
): Promise<T | undefined> {
  const { asker, ids } = await chatIds(parties, chat)
  for (const id of ids) {
    const outcome = await call(id, asker)
    if (!outcome.ok && outcome.error.status === 404) continue
    const value = unwrap(outcome)
    if (value) return value
  }
  return undefined
}

/** Deletes the conversation of a chat, if the caller may. Does nothing if there is none. */
export async function deleteChat(parties: ChatParties, chat: string): Promise<void> {
  const { env, request, access, user: userId } = parties
  const asker = await askerOf({ request, accesses: [access], userId }, 'conversations:delete')
  const { ids } = await chatIds(parties, chat)
  for (const id of ids) {
    try {
      await deleteConversation(env, asker, id)
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error
    }
  }
}
