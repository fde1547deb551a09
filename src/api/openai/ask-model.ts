/** Asks an assistant, which the request names as its model. Both of OpenAI's APIs use this. */

import type { Chat } from '../../conversation/ask'
import { ApiError } from '../../errors'
import type { Assistant } from '../../registry/assistants'
import type { Override } from '../../registry/overrides'
import type { Wording } from '../../turn/wording'
import { enter, namedUser } from '../http/admit-turn'
import { parseJson, readText } from '../http/body'
import { type ChatParties, findChat, prefetchChat } from '../http/chat-names'
import { admitAsker, openAssistant } from '../http/open-assistant'
import type { OpenCall } from '../http/route'
import { type AssistantAnswering, askAssistant, type Changes } from '../shared/assistant'
import { askedAgain, inChat } from '../shared/chats'
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
  const { request, query } = call
  await enter(request)
  const access = await admitAsker(call)
  const bodyText = await readText(request)
  const asked = read(parseJson(bodyText))
  const { model } = asked
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
  const caller = { ...call, access, user }
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
  const { changes, ignored, onDropped } = changesOf(assistant, asked, access.owner === 'admin')
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
        transcript: asked.transcript,
        chat: chat && { ...chat, after: asked.after },
        ...(chat && name === opened && { replaces: askedAgain(asked) }),
        unstored: asked.unstored,
        question: asked.question,
        form: asked.form,
        changes,
        onDropped,
        words: asked.stream ? words?.(asked) : undefined,
        protocol: 'openai',
        bodyText,
      }),
  )
  const headers = asked.unstored ? {} : headersOf(answering)
  return { ...answering, asked, assistant, headers, ignored: ignored.size > 0 ? [...ignored] : undefined }
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

/**
 * The changes that the assistant allows, and the names of parameters that are passed over. `onDropped` adds those that the model
 * does not have. Clients send some of them by default.
 * @throws InvalidParameter, as `onDropped`, for one that may not be passed over
 */
function changesOf(
  { overrides, strict }: Assistant,
  { sampling, instructions, ...asked }: ModelQuestion,
  isAdmin: boolean,
) {
  const model: Record<string, unknown> = {}
  /** the request's names for settings, by the model's */
  const names: Record<string, string> = {}
  const ignored = new Set(asked.ignored)
  for (const [name, value] of Object.entries(sampling)) {
    const property = PROPERTIES[name] ?? name
    const override = property === 'max_tokens' ? 'max_response_tokens' : property
    // A text to stop at can only make an answer shorter.
    if (isAdmin || property === 'stop' || overrides.includes(override as Override)) {
      model[property] = value
      names[property] = name
    } else ignored.add(name)
  }
  // Clients send a system prompt by default. With a page's key it must not rewrite the assistant.
  if (instructions !== '' && !isAdmin) ignored.add('instructions')
  const [first] = ignored
  if (strict && first !== undefined) throw unsupported(first, 'this assistant')
  const prompt = isAdmin && instructions !== '' && { prompt: { append: [instructions] } }
  const changes: Changes = { model, ...prompt }
  const onDropped = (dropped: string[]) => {
    for (const name of dropped) {
      const isShaping = SHAPING.includes(name)
      // Clients send penalties of 0 by default, which a model without penalties keeps to.
      if (isShaping && !model[name]) continue
      if (isShaping || strict) throw unsupported(names[name]!, 'its model')
      ignored.add(names[name]!)
    }
  }
  return { changes, ignored, onDropped }
}
