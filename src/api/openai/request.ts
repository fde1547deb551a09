/** Reads the body of /v1/chat/completions (contract 3.3). Pure. */
import * as v from 'valibot'
import { once } from '../../once'
import {
  checkBody,
  common,
  Format,
  formOf,
  givenOf,
  LONGEST_ID,
  type ModelQuestion,
  message,
  readMessages,
  Tokens,
} from './question'

const Body = once(() =>
  v.looseObject({
    ...common(),
    messages: v.array(v.looseObject({ role: v.string(), ...message() })),
    stream_options: v.nullish(v.looseObject({ include_usage: v.nullish(v.boolean()) })),
    n: v.nullish(v.literal(1, 'One answer can be written at a time: `n` must be 1.')),
    seed: v.nullish(v.pipe(v.number(), v.safeInteger())),
    max_tokens: v.nullish(Tokens()),
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
    ...given
  } = checkBody(Body(), body)
  const { temperature, top_p, seed, max_tokens, max_completion_tokens } = given
  const form = formOf(given.response_format, 'response_format')
  return {
    model,
    ...readMessages(messages, 'messages'),
    stream: stream ?? false,
    includeUsage: options?.include_usage ?? false,
    ...(user && { user }),
    ...(store === false && { unstored: true }),
    ...(metadata?.conversation_id && { conversation: metadata.conversation_id }),
    ...(form && { form }),
    sampling: givenOf({ temperature, top_p, seed, max_tokens: max_completion_tokens ?? max_tokens }),
  }
}
