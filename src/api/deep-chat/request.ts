/** Reads what deep-chat sends: `{messages: [{role, text}], conversation_id}`. Pure. */
import * as v from 'valibot'
import { ApiError } from '../../errors'
import { once } from '../../lib/once'
import { contentOf } from '../../lib/parts'
import type { TranscriptMessage } from '../../turn/look-back'
import { shaped } from '../http/body'

const Body = once(() =>
  v.looseObject({
    messages: v.array(
      v.looseObject({ role: v.string(), text: v.optional(v.string()), files: v.optional(v.unknown()) }),
    ),
    conversation_id: v.nullish(v.pipe(v.string(), v.maxLength(512))),
  }),
)

export interface DeepChatRequest {
  /** the page's name for the chat, from `additionalBodyProps` */
  chat?: string
  question: string
  transcript: TranscriptMessage[]
}

/** @throws ApiError 400 that names the place of the first fault */
export function readDeepChat(body: unknown): DeepChatRequest {
  const { messages, conversation_id: chat } = shaped(Body(), body)
  const asked = messages.at(-1)
  if (asked?.role !== 'user' || !asked.text?.trim()) {
    throw new ApiError(400, 'The last of `messages` must be the message of a `user`, with a `text`.')
  }
  if (asked.files !== undefined) {
    throw new ApiError(400, 'Files cannot be read here: send their text.')
  }
  return {
    ...(chat && { chat }),
    question: asked.text,
    transcript: messages
      .slice(0, -1)
      .flatMap(({ role, text = '' }) =>
        role === 'user' || role === 'ai'
          ? [{ role: role === 'ai' ? 'assistant' : role, content: contentOf(text) } as const]
          : [],
      ),
  }
}
