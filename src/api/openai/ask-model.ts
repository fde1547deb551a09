/** An assistant asked by its name as a model, whichever of OpenAI's APIs the request is for. */

import { ApiError } from '../../errors'
import type { Assistant } from '../../registry/assistants'
import type { Override } from '../../registry/overrides'
import { type AssistantAnswering, askAssistant, type Changes } from '../assistants/ask'
import { type Chat, type ChatParties, findChat } from '../assistants/chat'
import { admitAsker, openAssistant } from '../assistants/open'
import { namedUser } from '../edge/admit-turn'
import { parseJson, readText } from '../edge/body'
import { enter } from '../edge/front-door'
import type { OpenCall } from '../edge/route'
import { UnknownModel } from './errors'
import type { ModelQuestion } from './question'

export interface ModelAnswering<Q extends ModelQuestion> extends AssistantAnswering {
  asked: Q
  assistant: Assistant
}

/**
 * @param read reads the body
 * @param check looks at the conversation that was found
 * @throws ApiError
 */
export async function askModel<Q extends ModelQuestion>(
  { env, request, query, record }: OpenCall,
  read: (body: unknown) => Q,
  check: (asked: Q, chat: Chat | undefined) => void = () => {},
): Promise<ModelAnswering<Q>> {
  await enter(request)
  const access = await admitAsker(env, request, record)
  const bodyText = await readText(request)
  const asked = read(parseJson(bodyText))
  const { model, question, transcript, stream } = asked
  const assistant = await openAssistant(env, access, model, record).catch((error) => {
    throw error instanceof ApiError && error.status === 404 ? new UnknownModel(model) : error
  })
  const parties: ChatParties = {
    env,
    request,
    access,
    assistant,
    user: namedUser(request, query) ?? asked.user,
  }
  const name = asked.conversation ?? request.headers.get('x-conversation-id')
  const chat = name ? await findChat(parties, name) : undefined
  check(asked, chat)
  const answering = await askAssistant({
    ...parties,
    ...chat,
    after: asked.after,
    record,
    question,
    transcript,
    changes: changesOf(assistant, asked, access.owner === 'admin'),
    stream,
    protocol: 'openai',
    bodyText,
  })
  return { ...answering, asked, assistant }
}

/** What the assistant lets a request change. Clients send the rest unasked: it is passed over. */
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
    // Clients send a system prompt by default: whoever holds a page's key must not rewrite the assistant by it.
    ...(isAdmin && instructions !== '' && { prompt: { append: [instructions] } }),
  }
}
