/** What a turn spends on language models. */
import type { CallTrace } from './events'

/** Tokens that one conversation model spent. */
export interface Spending {
  modelId: string
  inputTokens: number
  outputTokens: number
}

/** Whether nothing has been spent. */
export const isNothing = (spent: Spending[]): boolean =>
  spent.every(({ inputTokens, outputTokens }) => inputTokens + outputTokens === 0)

/**
 * Sums what a turn has spent, by model, including failed calls. Calls that are charged already do not count.
 * @param asked the model that was asked; it comes first, even if others did all the work
 */
export function spendingOf(calls: readonly CallTrace[], asked: string): [Spending, ...Spending[]] {
  const first: Spending = { modelId: asked, inputTokens: 0, outputTokens: 0 }
  const byModel = new Map([[asked, first]])
  const spent = calls.flatMap((call) => (call.charged ? [] : [...(call.failed ?? []), call]))
  for (const { model_id: modelId = asked, input_tokens = 0, output_tokens = 0 } of spent) {
    const sum = byModel.get(modelId) ?? { modelId, inputTokens: 0, outputTokens: 0 }
    sum.inputTokens += input_tokens
    sum.outputTokens += output_tokens
    byModel.set(modelId, sum)
  }
  byModel.delete(asked)
  return [first, ...byModel.values()]
}
