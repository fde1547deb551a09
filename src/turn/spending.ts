/** What a turn spends on language models. */
import type { CallTrace } from './events'
import type { TokenUsage } from './generate'

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
