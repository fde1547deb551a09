/** One call to a language model: its text and its cost, and what all calls of a turn cost. */
import { type ApiError, coded } from '../errors'
import {
  type FailedAttempt,
  type FinishReason,
  type GenerationRequest,
  type LanguageModel,
  type Verdict,
  verdictOf,
} from '../models/language-model'
import { ProviderError } from '../models/provider-error'
import type { CallTrace } from './events'
import { byteLength } from './prompt'

export interface Generated {
  text: string
  finish: FinishReason
  usage: TokenUsage
  /** full name of the model that wrote the text */
  model: string
  verdict: Verdict
}

/** Callbacks while a call runs. */
export interface Progress {
  /** called with each piece of text as it arrives */
  onText?: (text: string) => void
  /** called with each piece of the model's reasoning, which is paid for and shown to nobody */
  onThought?: (text: string) => void
  /** called with the cost that the provider reports */
  onUsage?: (usage: TokenUsage) => void
  /** called before the first piece if another model answers instead of the one asked */
  onModel?: (model: { name: string; id: string }) => void
  /** called for an attempt that failed before its first piece and is followed by another */
  onFailed?: (attempt: FailedAttempt) => void
}

export interface TokenUsage {
  inputTokens: number
  outputTokens: number
  estimated: boolean
}

/** Characters of an answer. A row of history can hold more; this leaves room to spare. */
const LONGEST_ANSWER = 500_000

// About right for English with the common tokenizers. Wherever the figure is shown, it is flagged as an
// estimate.
const BYTES_A_TOKEN = 4

/** @throws ApiError for any fault of the provider, including an answer without text */
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
  let verdict: Verdict = {}
  let thoughts = 0
  let { name } = model
  for await (const delta of model.generate(request, signal)) {
    switch (delta.type) {
      case 'text':
        length += delta.text.length
        if (length > LONGEST_ANSWER) {
          throw coded(
            'answer_too_long',
            400,
            `The answer exceeds the maximum of ${LONGEST_ANSWER} characters.`,
          )
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
        verdict = verdictOf(delta)
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
    verdict,
  }
}

/** The error for an answer without text. @param name full name of the model; only the operator may see it */
export const malformedBy = (name: string): ApiError =>
  new ProviderError(400, `Got malformed response from ${name}.`, { upstream: 200, fault: 'empty' })

/**
 * Estimates what a call has used so far from the length of its texts.
 * @param received bytes of its answer and its reasoning
 */
export const usageOfPart = (request: GenerationRequest, received: number): TokenUsage => ({
  inputTokens: tokens(request.messages.reduce((sum, { content }) => sum + byteLength(content), 0)),
  outputTokens: tokens(received),
  estimated: true,
})

const tokens = (bytes: number): number => Math.ceil(bytes / BYTES_A_TOKEN)

// What a turn spends on language models.

/** Tokens that one conversation model spent. */
export interface Spending {
  modelId: string
  inputTokens: number
  outputTokens: number
}

/** Whether nothing has been spent. */
export const isNothing = (spent: Spending[]): boolean =>
  spent.every(({ inputTokens, outputTokens }) => inputTokens + outputTokens === 0)

/** Calls, and before each the attempts that failed in its place. What those cost is an estimate. */
export const attemptsOf = (calls: readonly CallTrace[]) =>
  calls.flatMap((call) => [
    ...(call.failed ?? []).map((attempt) => ({ ...attempt, estimated: (attempt.input_tokens ?? 0) > 0 })),
    call,
  ])

type Tokens = { input_tokens?: number; output_tokens?: number; estimated?: boolean }

/** @returns whether any part is an estimate, too */
export const sumOf = (attempts: readonly Tokens[]) =>
  attempts.reduce<TokenUsage>(
    (sum, { input_tokens = 0, output_tokens = 0, estimated }) => ({
      inputTokens: sum.inputTokens + input_tokens,
      outputTokens: sum.outputTokens + output_tokens,
      estimated: sum.estimated || estimated === true,
    }),
    { inputTokens: 0, outputTokens: 0, estimated: false },
  )

/** The calls that a turn pays for: not those that were charged before it began. */
export const owedOf = (calls: readonly CallTrace[]): CallTrace[] => calls.filter(({ charged }) => !charged)

/**
 * Sums what a turn has spent, by model, including failed calls.
 * @param asked the model that was asked; it comes first, even if others did all the work
 */
export function spendingOf(calls: readonly CallTrace[], asked: string): [Spending, ...Spending[]] {
  const attempts = attemptsOf(owedOf(calls))
  const spentOn = (modelId: string): Spending => {
    const { inputTokens, outputTokens } = sumOf(
      attempts.filter(({ model_id = asked }) => model_id === modelId),
    )
    return { modelId, inputTokens, outputTokens }
  }
  const others = new Set(attempts.map(({ model_id = asked }) => model_id))
  others.delete(asked)
  return [spentOn(asked), ...[...others].map(spentOn)]
}
