/** Shared by protocols whose clients choose the ids of their chats (http/chat-names.ts). */
import type { Access } from '../../auth/access'
import type { Chat } from '../../conversation/ask'
import { conversationObject } from '../../conversation/conversation-object'
import { answeredTurns, endedTurn } from '../../conversation/conversations'
import { deleteConversation } from '../../conversation/erasure'
import { openRow } from '../../conversation/open-row'
import { ApiError, unwrap } from '../../errors'
import { once } from '../../lib/once'
import { textOf } from '../../lib/parts'
import type { Turn } from '../../turn/fold'
import type { TranscriptMessage } from '../../turn/look-back'
import type { Asker, Replacement } from '../../turn/request'
import { askerOf } from '../http/admit-turn'
import { parseJson, readText } from '../http/body'
import { type ChatName, type ChatParties, chatIds, findChat, openParties } from '../http/chat-names'
import { originOf } from '../http/request-log'
import type { OpenCall } from '../http/route'
import { type AssistantAnswering, type AssistantQuestion, askAssistant } from './assistant'
import { requireOwn } from './foreign'
import { chatReader } from './read'

export interface ChatQuestion
  extends Pick<
    AssistantQuestion,
    'question' | 'transcript' | 'labels' | 'protocol' | 'bodyText' | 'changes'
  > {
  /** the client's own name for the chat; absent: a conversation begins */
  chat?: string | undefined
}

/**
 * Opens a question to an assistant. Its body, as text and as JSON, is read while the registry is.
 * @param nameOf the chat that a body names. What it throws is ignored
 * @throws ApiError as `openParties` and `requireOwn`, and 400 for what is not JSON
 */
export async function openQuestion(
  call: OpenCall,
  own: string,
  nameOf: (body: unknown) => ChatName | undefined = () => undefined,
  admit?: () => Promise<Access>,
): Promise<{ parties: ChatParties; bodyText: string; body: unknown }> {
  const read = once(async () => {
    const bodyText = await readText(call.request)
    return { bodyText, body: parseJson(bodyText) }
  })
  const parties = await openParties(call, {
    ...(admit && { admit }),
    chat: async () => nameOf((await read()).body),
  })
  const { bodyText, body } = await read()
  requireOwn(body, own, parties.assistant.name)
  return { parties, bodyText, body }
}

/** Asks in the conversation that the chat's name stands for. @throws ApiError */
export function askChat(parties: ChatParties, { chat, ...asked }: ChatQuestion): Promise<AssistantAnswering> {
  const find = async () => (chat === undefined ? undefined : findChat(parties, chat, undefined, true))
  return inChat(parties, find, (found) => askAssistant({ ...parties, ...asked, chat: found }))
}

/**
 * Asks in the conversation of a chat. Looks it up once more, more thoroughly, if the messages of one that its object knows turn
 * out to be gone. Its rate then counts twice.
 */
export async function inChat<C extends Pick<Chat, 'seen'> | undefined, T>(
  parties: ChatParties,
  find: () => Promise<C>,
  ask: (chat: C) => Promise<T>,
): Promise<T> {
  const chat = await find()
  try {
    return await ask(chat)
  } catch (error) {
    const isGone = chat?.seen && error instanceof ApiError && error.code === 'unknown_conversation'
    if (!isGone) throw error
    parties.prefetch.distrust()
    return ask(await find())
  }
}

/** The running answer of a chat, from its beginning. @returns undefined if none is running */
export async function runningTurn(parties: ChatParties, chat: string) {
  const events = await atChat(parties, chat, async (id, asker) =>
    unwrap(await conversationObject(parties.env, id).running(asker)),
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
  const stop = async (id: string) => unwrap(await conversationObject(env, id).stop(asker))
  return (await atChat(parties, chat, stop)) ?? false
}

/** The last hundred answered turns of a chat, oldest first, for a client that reopens it. @returns none for an unknown chat */
export async function turnsOf(
  parties: ChatParties,
  chat: string,
): Promise<{ conversationId: string; turns: Turn[] }> {
  const found = await atChat(parties, chat, async (conversationId, asker) => ({
    conversationId,
    turns: await answeredTurns(parties.env, asker, conversationId),
  }))
  return found ?? { conversationId: '', turns: [] }
}

/** A turn of a chat that has ended, answered or not. @returns undefined for an unknown one */
export const endedTurnOf = (parties: ChatParties, chat: string, turn: number): Promise<Turn | undefined> =>
  atChat(parties, chat, async (id, asker) => {
    const row = await openRow(parties.env, asker, id)
    if (typeof row === 'string') return undefined
    return (await endedTurn(parties.env, asker, { conversation: row.id, turn }))?.turn
  })

/** Deletes the conversation of a chat, if the caller may. Does nothing if there is none. */
export async function deleteChat(parties: ChatParties, chat: string): Promise<void> {
  const { env, request, access, record, user: userId } = parties
  const asker = await askerOf({ request, accesses: [access], userId }, 'conversations:delete')
  await atChat<void>(parties, chat, (id) => deleteConversation(env, asker, id, originOf(record)))
}

/**
 * Calls the conversations that a chat's name may stand for, until one returns something.
 * @returns undefined if none does, or if there is none @throws ApiError what a call throws, but for 404
 */
async function atChat<T>(
  parties: ChatParties,
  chat: string,
  call: (conversationId: string, asker: Asker) => Promise<T | null | undefined>,
): Promise<T | undefined> {
  const { asker, ids } = await chatIds(parties, chat)
  for (const id of ids) {
    const value = await call(id, asker).catch((error) => {
      if (!(error instanceof ApiError) || error.status !== 404) throw error
    })
    if (value) return value
  }
  return undefined
}

// Detects that a question is asked again to get another answer, by a client that does not say so. Pure.

/**
 * What a question with a whole transcript may replace: the last turn, if it asked the same. A client that regenerates
 * leaves the old answer out of the transcript; if a user repeats a question, the answer is in it. A question without
 * a transcript may come from a client that never sends one, so it can replace only the single turn of a conversation.
 * @returns undefined if the question is repeated
 */
export function askedAgain({
  question,
  transcript,
}: {
  question: string
  transcript: readonly TranscriptMessage[]
}): Replacement | undefined {
  const before = transcript.findLast(({ role }) => role === 'user')
  if (before === undefined) return { last: 'only' }
  return textOf(before.content) === question ? undefined : { last: 'any' }
}
