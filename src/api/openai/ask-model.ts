/** Asks an assistant, which the request names as its model. Both of OpenAI's APIs use this. */

import type { Chat } from '../../conversation/ask'
import { ApiError } from '../../errors'
import type { Assistant } from '../../registry/assistants'
import type { Override } from '../../registry/overrides'
import type { Wording } from '../../turn/wording'
import { namedUser } from '../http/admit-turn'
import { parseJson, readText } from '../http/body'
import { type ChatParties, findChat, prefetchChat } from '../http/chat-names'
import { enter } from '../http/front-door'
import { admitAsker, openAssistant } from '../http/open-assistant'
import type { OpenCall } from '../http/route'
import { askedAgain } from '../shared/asked-again'
import { type AssistantAnswering, askAssistant, type Changes } from '../shared/assistant'
import { inChat } from '../shared/chats'
import { unknownModel } from './errors'
import { InvalidParameter, type ModelQuestion } from './question'
import { askTask, isTask } from './task'

export interface ModelAnswering<Q extends ModelQuestion> extends AssistantAnswering {
  asked: Q
  assistant: Assistant
  /** names of parameters that were passed over, if there are any */
  ignored: string[] | undefined
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
  call: OpenCall,
  read: (body: unknown) => Q,
  words?: (asked: Q) => Wording,
  check?: (asked: Q, chat: Chat | undefined) => void,
): Promise<ModelAnswering<Q>> {
  const { env, request, query, record, prefetch } = call
  await enter(request)
  const access = await admitAsker(call)
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
  const caller = { env, request, record, prefetch, access, user }
  const assistant = await openAssistant(call, access, model, () => {
    prefetchChat({ ...caller, assistant: { name: model } }, { name, after: asked.after })
  }).catch((error) => {
    throw error instanceof ApiError && error.code === 'unknown_assistant' ? unknownModel(model) : error
  })
  const parties: ChatParties = { ...caller, assistant }
  if (isTask(asked, access.forPages)) {
    const answering = await askTask(parties, asked, bodyText)
    return { ...answering, asked, assistant, ignored: undefined, headers: headersOf(answering) }
  }
  const { changes, names, denied } = changesOf(assistant, asked, access.owner === 'admin')
  const ignored = [...asked.ignored, ...denied]
  // Clients send penalties of 0 by default, which a model without penalties keeps to.
  const isAsked = (name: string) => !SHAPING.includes(name) || Boolean(changes.model?.[name])
  if (assistant.strict && ignored[0] !== undefined) throw unsupported(ignored[0], 'this assistant')
  const answering = await inChat(
    parties,
    async () => {
      const chat = name ? await findChat(parties, name, asked.after, !check) : undefined
      check?.(asked, chat)
      return chat
    },
    (chat) =>
      askAssistant({
        ...parties,
        transcript,
        chat: chat && { ...chat, after: asked.after },
        ...(chat && name === opened && { replaces: askedAgain(asked) }),
        unstored: asked.unstored,
        question,
        form: asked.form,
        changes,
        onDropped: (dropped) => {
          const needed = dropped.find((name) => isAsked(name) && (assistant.strict || SHAPING.includes(name)))
          if (needed !== undefined) throw unsupported(names[needed]!, 'its model')
        },
        words: asked.stream ? words?.(asked) : undefined,
        protocol: 'openai',
        bodyText,
      }),
  )
  ignored.push(...answering.dropped.filter(isAsked).map((name) => names[name]!))
  return {
    ...answering,
    asked,
    assistant,
    ignored: ignored.length > 0 ? ignored : undefined,
    headers: asked.unstored ? {} : headersOf(answering),
  }
}

const headersOf = ({ conversationId }: AssistantAnswering): Record<string, string> => ({
  'x-parley-conversation-id': conversationId,
})

/** Settings that change what the caller gets, so that no answer may do without them in silence. */
const SHAPING = ['stop', 'frequency_penalty', 'presence_penalty']

const unsupported = (name: string, by: string): InvalidParameter =>
  new InvalidParameter(
    `Unsupported parameter: \`${name}\` is not supported by ${by}. Leave it out.`,
    name,
    'unsupported_parameter',
  )

/** A conversation model's names for settings, where the request has others. */
const PROPERTIES: Record<string, string> = {
  max_completion_tokens: 'max_tokens',
  max_output_tokens: 'max_tokens',
  'reasoning.effort': 'reasoning_effort',
}

/** The changes that the assistant allows. */
function changesOf(
  { overrides }: Assistant,
  { sampling, instructions }: ModelQuestion,
  isAdmin: boolean,
): {
  changes: Changes
  /** the request's names for settings, by the model's */
  names: Record<string, string>
  /** names of parameters that the assistant does not allow. Clients send some of them by default */
  denied: string[]
} {
  const model: Record<string, unknown> = {}
  const names: Record<string, string> = {}
  const denied: string[] = []
  for (const [name, value] of Object.entries(sampling)) {
    const property = PROPERTIES[name] ?? name
    const override = property === 'max_tokens' ? 'max_response_tokens' : property
    // A text to stop at can only make an answer shorter.
    if (isAdmin || property === 'stop' || overrides.includes(override as Override)) {
      model[property] = value
      names[property] = name
    } else denied.push(name)
  }
  // Clients send a system prompt by default. With a page's key it must not rewrite the assistant.
  if (instructions !== '' && !isAdmin) denied.push('instructions')
  return {
    changes: { model, ...(isAdmin && instructions !== '' && { prompt: { append: [instructions] } }) },
    names,
    denied,
  }
}
