/** POST /v1/chat/completions (contract 3.3): its body, and its answer. */

import * as v from 'valibot'
import { once } from '../../lib/once'
import { deliver } from '../http/deliver'
import type { OpenCall } from '../http/route'
import { chatReader } from '../shared/read'
import { streamTurn, wholeTurn } from '../shared/stream'
import { askModel } from './ask-model'
import { CompletionEncoder, chunkWording, completion } from './encoder'
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

export async function complete(call: OpenCall): Promise<Response> {
  const created = Math.floor(call.record.started / 1000)
  const { asked, assistant, headers, ignored, events, words, resume, delivery } = await askModel(
    call,
    readChatCompletion,
    ({ model, includeUsage }) => chunkWording({ model, created }, includeUsage),
  )
  const shape = { model: asked.model, created, fields: assistant, unstored: asked.unstored, ignored }
  const read = chatReader(events, resume, words)
  if (asked.stream) {
    const encoder = new CompletionEncoder(shape, asked.includeUsage)
    return streamTurn(read, encoder, { headers, opensAt: 'text' })
  }
  const turn = await wholeTurn(read)
  return deliver(completion(turn, shape), headers, delivery(turn.turn))
}

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
