/** Asks an assistant, which the request names as its model. Both of OpenAI's APIs use this. */

import { ApiError } from '../../errors'
import type { Assistant } from '../../registry/assistants'
import type { Override } from '../../registry/overrides'
import type { Wording } from '../../turn/wording'
import { namedUser } from '../edge/admit-turn'
import { parseJson, readText } from '../edge/body'
import { type Chat, type ChatParties, findChat, lookAhead } from '../edge/chat-names'
import { enter } from '../edge/front-door'
import { admitAsker, openAssistant } from '../edge/open-assistant'
import type { OpenCall } from '../edge/route'
import { askedAgain } from '../turn/asked-again'
import { type AssistantAnswering, askAssistant, type Changes } from '../turn/assistant'
import { inChat } from '../turn/chats'
import { unknownModel } from './errors'
import { InvalidParameter, type ModelQuestion } from './question'
import { askTask, isTask } from './task'

export interface ModelAnswering<Q extends ModelQuestion> extends AssistantAnswering {
  asked: Q
  assistant: Assistant
  /** of the answer */
  headers: Record<string, string>
}

/**
 * @param read reads the body
 * @param words how the pieces of a streamed answer are written
 * @param check looks at the conversation that was found; absent: one begins where there is none
 * @throws ApiError
 */
export async function askModel<Q extends ModelQuestion>(
  { env, request, query, record }: OpenCall,
  read: (body: unknown) => Q,
  words?: (asked: Q) => Wording,
  check?: (asked: Q, chat: Chat | undefined) => void,
): Promise<ModelAnswering<Q>> {
  await enter(request)
  const access = await admitAsker(env, request, record)
  const bodyText = await readText(request)
  const asked = read(parseJson(bodyText))
  const { model, question, transcript } = asked
  const header = (name: string) => request.headers.get(name) || undefined
  const opened = header('x-openwebui-chat-id')
  const name = asked.conversation ?? header('x-conversation-id') ?? opened
  if (asked.unstored && (name ?? access.embedded.conversation_id) !== undefined) {
    throw new InvalidParameter(
      'With `store: false` nothing is kept, so the answer cannot belong to a conversation. Send what was said before as messages, and name no conversation and no earlier response.',
      'store',
    )
  }
  const user = namedUser(request, query) ?? asked.user ?? header('x-openwebui-user-id')
  const caller = { env, request, record, access, user }
  let ahead: ChatParties['ahead']
  const assistant = await openAssistant(env, access, model, record, () => {
    ahead = lookAhead({ ...caller, assistant: { name: model } }, { name, after: asked.after })
  }).catch((error) => {
    throw error instanceof ApiError && error.code === 'unknown_assistant' ? unknownModel(model) : error
  })
  const parties: ChatParties = { ...caller, assistant, ...(ahead && { ahead }) }
  if (isTask(asked, access.forPages)) {
    const answering = await askTask(parties, asked, bodyText)
    return { ...answering, asked, assistant, headers: headersOf(answering) }
  }
  const answering = await inChat(
    parties,
    async (given) => {
      const chat = name ? await findChat(given, name, asked.after, !check) : undefined
      check?.(asked, chat)
      return chat
    },
    (chat) =>
      askAssistant({
        ...parties,
        transcript,
        ...chat,
        ...(chat && name === opened && { replaces: askedAgain(asked) }),
        after: asked.after,
        unstored: asked.unstored,
        question,
        form: asked.form,
        changes: changesOf(assistant, asked, access.owner === 'admin'),
        words: asked.stream ? words?.(asked) : undefined,
        protocol: 'openai',
        bodyText,
      }),
  )
  return { ...answering, asked, assistant, headers: asked.unstored ? {} : headersOf(answering) }
}

const headersOf = ({ conversationId }: AssistantAnswering): Record<string, string> => ({
  'x-parley-conversation-id': conversationId,
})

/** The changes that the assistant allows. Others are ignored, because clients send them by default. */
function changesOf(
  { overrides }: Assistant,
  { sampling, instructions }: ModelQuestion,
  isAdmin: boolean,
): Changes {
  const allows = (name: Override) => isAdmin || overrides.includes(name)
  const { temperature, top_p, seed, max_tokens } = sampling
  return {
    model: {
      ...(temperature !== undefined && allows('temperature') && { temperature }),
      ...(top_p !== undefined && allows('top_p') && { top_p }),
      ...(seed !== undefined && allows('seed') && { seed }),
      ...(max_tokens !== undefined && allows('max_response_tokens') && { max_tokens }),
    },
    // Clients send a system prompt by default. With a page's key it must not rewrite the assistant.
    ...(isAdmin && instructions !== '' && { prompt: { append: [instructions] } }),
  }
}
