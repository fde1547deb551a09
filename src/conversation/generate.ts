/** One call to the language model: its text, and what it cost. */
import { ApiError } from '../errors'
import type { FinishReason, GenerationRequest, LanguageModel } from '../models/language-model'
import { byteLength } from './serialise'

export interface Generated {
  text: string
  finish: FinishReason
  usage: TokenUsage
  /** full name of the model that said it */
  model: string
}

/** What becomes of a call while it goes on. */
export interface Progress {
  /** each piece as it arrives */
  onText?: (text: string) => void
  /** another model that answers in the place of the one asked, before its first piece */
  onModel?: (model: { name: string; id: string }) => void
  /** an attempt that failed before its first piece, and is followed by another one */
  onFailed?: (attempt: { model: string; error: string }) => void
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
  { onText, onModel, onFailed }: Progress = {},
): Promise<Generated> {
  const pieces: string[] = []
  let length = 0
  let finish: FinishReason | undefined
  let usage: TokenUsage | undefined
  let { name } = model
  for await (const delta of model.generate(request, signal)) {
    switch (delta.type) {
      case 'text':
        length += delta.text.length
        if (length > LONGEST_ANSWER) {
          throw new ApiError(400, `The answer exceeds the maximum of ${LONGEST_ANSWER} characters.`)
        }
        pieces.push(delta.text)
        onText?.(delta.text)
        break
      case 'usage':
        usage = { inputTokens: delta.inputTokens, outputTokens: delta.outputTokens, estimated: false }
        break
      case 'finish':
        finish = delta.reason
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
  if (!finish || text.trim() === '') throw malformedBy(name)
  return { text, finish, usage: usage ?? usageOfPart(request, text), model: name }
}

/** The error for an answer without text. @param name full name of the model, which is nobody's business but the operator's */
export const malformedBy = (name: string): ApiError =>
  new ApiError(400, `Got malformed response from ${name}.`, undefined, true)

/** What a call has used when it got this far, by the length of its texts. */
export const usageOfPart = (request: GenerationRequest, text: string): TokenUsage => ({
  inputTokens: tokens(request.messages.reduce((sum, { content }) => sum + byteLength(content), 0)),
  outputTokens: tokens(byteLength(text)),
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
