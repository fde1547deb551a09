/** What OpenAI's clients send to /v1/chat/completions (contract 3.3): a pure reading of the body. */
import * as v from 'valibot'
import type { TranscriptMessage } from '../../conversation/transcript'
import { ApiError } from '../../errors'
import { textIn } from '../message-text'

const LONGEST_ID = 512
const MOST_MESSAGES = 1_000

const Tokens = v.pipe(v.number(), v.safeInteger(), v.minValue(1))

const Body = v.looseObject({
  model: v.pipe(v.string(), v.minLength(1)),
  messages: v.pipe(
    v.array(v.looseObject({ role: v.string(), content: v.optional(v.unknown()) })),
    v.minLength(1),
    v.maxLength(MOST_MESSAGES),
  ),
  stream: v.nullish(v.boolean()),
  stream_options: v.nullish(v.looseObject({ include_usage: v.nullish(v.boolean()) })),
  n: v.nullish(v.literal(1, 'One answer can be written at a time: `n` must be 1.')),
  temperature: v.nullish(v.pipe(v.number(), v.minValue(0), v.maxValue(2))),
  top_p: v.nullish(v.pipe(v.number(), v.minValue(0), v.maxValue(1))),
  seed: v.nullish(v.pipe(v.number(), v.safeInteger())),
  max_tokens: v.nullish(Tokens),
  max_completion_tokens: v.nullish(Tokens),
  user: v.nullish(v.string()),
  metadata: v.nullish(
    v.looseObject({ conversation_id: v.nullish(v.pipe(v.string(), v.maxLength(LONGEST_ID))) }),
  ),
})

export interface ChatCompletionRequest {
  /** name of an assistant */
  model: string
  question: string
  /** what was said before, oldest first, without instructions */
  transcript: TranscriptMessage[]
  /** what messages of the roles `system` and `developer` say */
  instructions: string
  stream: boolean
  includeUsage: boolean
  user?: string
  conversationId?: string
  /** properties of the language model, by the names that a conversation model has for them */
  sampling: Sampling
}

export interface Sampling {
  temperature?: number
  top_p?: number
  seed?: number
  max_tokens?: number
}

/** A fault of the request, with the parameter that has it. */
export class InvalidParameter extends ApiError {
  constructor(
    message: string,
    readonly param: string | null,
  ) {
    super(400, message)
  }
}

/**
 * @param body parsed JSON
 * @throws InvalidParameter
 */
export function readChatCompletion(body: unknown): ChatCompletionRequest {
  const parsed = v.safeParse(Body, body, { abortEarly: true })
  if (!parsed.success) {
    const [issue] = parsed.issues
    const param = v.getDotPath(issue)
    throw new InvalidParameter(param === null ? issue.message : `\`${param}\`: ${issue.message}`, param)
  }
  const { model, messages, stream, stream_options: options, user, metadata, ...given } = parsed.output
  const last = messages.length - 1
  const asked = messages[last]!
  if (asked.role !== 'user') {
    throw new InvalidParameter('The last message must have the role `user`: it is the question.', 'messages')
  }
  const question = readText(asked.content, last)
  if (question.trim() === '') throw new InvalidParameter('The last message has no text.', 'messages')
  const transcript: TranscriptMessage[] = []
  const instructions: string[] = []
  for (const { role, content } of messages.slice(0, last)) {
    const message = textIn(content, false)
    if (role === 'user' || role === 'assistant') transcript.push({ role, message })
    else if (role === 'system' || role === 'developer') instructions.push(message)
  }
  const { temperature, top_p, seed, max_tokens, max_completion_tokens } = given
  return {
    model,
    question,
    transcript,
    instructions: instructions.join('\n\n').trim(),
    stream: stream ?? false,
    includeUsage: options?.include_usage ?? false,
    ...(user && { user }),
    ...(metadata?.conversation_id && { conversationId: metadata.conversation_id }),
    sampling: withoutNulls({ temperature, top_p, seed, max_tokens: max_completion_tokens ?? max_tokens }),
  }
}

function readText(content: unknown, index: number): string {
  try {
    return textIn(content, true)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    throw new InvalidParameter(error.message, `messages.${index}.content`)
  }
}

const withoutNulls = (values: Record<string, number | null | undefined>): Sampling =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => typeof value === 'number'))
