/** One call to the language model: its text, and what it cost. */
import { type ApiError, coded } from '../errors'
import type { FailedAttempt, FinishReason, GenerationRequest, LanguageModel } from '../models/language-model'
import { ProviderError } from '../models/provider-error'
import { byteLength } from './serialise'

export interface Generated {
  text: string
  finish: FinishReason
  usage: TokenUsage
  /** full name of the model that said it */
  model: string
  /** the model itself says that this is no answer: nothing is cited */
  declined: boolean
}

/** What becomes of a call while it goes on. */
export interface Progress {
  /** each piece as it arrives */
  onText?: (text: string) => void
  /** each piece of its thoughts, which are paid for and shown to nobody */
  onThought?: (text: string) => void
  /** what it cost, as the provider says */
  onUsage?: (usage: TokenUsage) => void
  /** another model that answers in the place of the one asked, before its first piece */
  onModel?: (model: { name: string; id: string }) => void
  /** an attempt that failed before its first piece, and is followed by another one */
  onFailed?: (attempt: FailedAttempt) => void
}

export interface TokenUsage {
  inputTokens: number
  outputTokens: number
  estimated: boolean
}

/** Characters of an answer. What a row of history can hold, with room to spare. */
const LONGEST_ANSWER = 500_000

// About right for English under the common tokenizers; flagged as an estimate wherever it is shown.
const BYTES_A_TOKEN = 4

/** @throws ApiError for what the provider did wrong, an answer without any text included */
export async function generate(
  model: LanguageModel,
  request: GenerationRequest,
  signal: AbortSignal,
  { onText, onThought, onUsage, onModel, onFailed }: Progress = {},
): Promise<Generated> {
  const pieces: string[] = []
  let length = 0
  let finish: FinishReason | undefined
  let usage: TokenUsage | undefined
  let declined = false
  let thoughts = 0
  let { name } = model
  for await (const delta of model.generate(request, signal)) {
    switch (delta.type) {
      case 'text':
        length += delta.text.length
        if (length > LONGEST_ANSWER) {
          throw coded('too_long', 400, `The answer exceeds the maximum of ${LONGEST_ANSWER} characters.`)
        }
        pieces.push(delta.text)
        onText?.(delta.text)
        break
      case 'usage':
        usage = { inputTokens: delta.inputTokens, outputTokens: delta.outputTokens, estimated: false }
        onUsage?.(usage)
        break
      case 'reasoning':
        thoughts += byteLength(delta.text)
        onThought?.(delta.text)
        break
      case 'finish':
        finish = delta.reason
        declined = delta.declined === true
        break
      case 'model':
        name = delta.name
        onModel?.(delta)
        break
      case 'failed':
        onFailed?.(delta)
        break
    }
  }
  const text = pieces.join('')
  if (!finish || text.trim() === '') {
    throw malformedBy(name)
  }
  return {
    text,
    finish,
    usage: usage ?? usageOfPart(request, byteLength(text) + thoughts),
    model: name,
    declined,
  }
}

/** The error for an answer without text. @param name full name of the model, which is nobody's business but the operator's */
export const malformedBy = (name: string): ApiError =>
  new ProviderError(400, `Got malformed response from ${name}.`, { upstream: 200, fault: 'empty' })

/**
 * What a call has used when it got this far, by the length of its texts.
 * @param received bytes of its answer and its thoughts
 */
export const usageOfPart = (request: GenerationRequest, received: number): TokenUsage => ({
  inputTokens: tokens(request.messages.reduce((sum, { content }) => sum + byteLength(content), 0)),
  outputTokens: tokens(received),
  estimated: true,
})

const tokens = (bytes: number): number => Math.ceil(bytes / BYTES_A_TOKEN)

export const addUsage = (usages: TokenUsage[]): TokenUsage =>
  usages.reduce(
    (sum, usage) => ({
      inputTokens: sum.inputTokens + usage.inputTokens,
      outputTokens: sum.outputTokens + usage.outputTokens,
      estimated: sum.estimated || usage.estimated,
    }),
    { inputTokens: 0, outputTokens: 0, estimated: false },
  )
