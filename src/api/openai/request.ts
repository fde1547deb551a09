/** Reads the body of /v1/chat/completions (contract 3.3). Pure. */
import * as v from 'valibot'
import { once } from '../../lib/once'
import {
  checkBody,
  common,
  Effort,
  Format,
  formOf,
  LONGEST_ID,
  type ModelQuestion,
  message,
  othersOf,
  readMessages,
  SETTINGS,
  settings,
  Tokens,
  under,
} from './question'

const Body = once(() =>
  v.looseObject({
    ...common(),
    messages: v.array(v.looseObject({ role: v.string(), ...message() })),
    stream_options: v.nullish(v.looseObject({ include_usage: v.nullish(v.boolean()) })),
    ...settings(),
    reasoning_effort: Effort(),
    modalities: v.nullish(v.array(v.literal('text', 'Answers are texts alone.'))),
    max_completion_tokens: v.nullish(Tokens()),
    response_format: v.nullish(Format()),
    metadata: v.nullish(
      v.looseObject({ conversation_id: v.nullish(v.pipe(v.string(), v.maxLength(LONGEST_ID))) }),
    ),
  }),
)

export interface ChatCompletionRequest extends ModelQuestion {
  includeUsage: boolean
}

/**
 * @param body parsed JSON
 * @throws InvalidParameter
 */
export function readChatCompletion(body: unknown): ChatCompletionRequest {
  const {
    model,
    messages,
    stream,
    stream_options: options,
    user,
    metadata,
    store,
    response_format: format,
    n: _,
    tool_choice: __,
    ...given
  } = checkBody(Body(), body)
  const { include_usage: includeUsage, ...streamed } = options ?? {}
  const { conversation_id: conversation, ...labels } = metadata ?? {}
  // The newer name counts where both are given.
  if (given.max_completion_tokens != null) delete given.max_tokens
  const form = formOf(format, 'response_format')
  return {
    model,
    ...readMessages(messages, 'messages'),
    stream: stream ?? false,
    includeUsage: includeUsage ?? false,
    ...(user && { user }),
    ...(store === false && { unstored: true }),
    ...(conversation && { conversation }),
    ...(form && { form }),
    ...othersOf({ ...given, ...under('stream_options', streamed), ...under('metadata', labels) }, [
      ...SETTINGS,
      'max_completion_tokens',
      'reasoning_effort',
    ]),
  }
}
