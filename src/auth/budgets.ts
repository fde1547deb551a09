/**
 * Daily budgets of tokens and turns, for keys and models. Days are UTC.
 *
 * Tokens are written when a turn ends, and read before a turn begins, from a sum that may be seconds old. So turns that are
 * already running can overrun a budget of tokens. A turn is counted before it runs (db/usage.ts, `reserveTurn`), after this check,
 * which refuses most of those that are too many.
 */
import {
  type Budget,
  dayOf,
  isLimited,
  KEY_BUDGET,
  MODEL_BUDGET,
  overBudget,
  type Spent,
  spentByOwner,
  spentOnModel,
  usedUp,
} from '../db/usage'
import type { ApiError } from '../errors'
import type { Access } from './access'

/**
 * @param accesses the keys of the request: each needs some budget left
 * @param now unix milliseconds
 * @throws ApiError 429 naming the spent budget and when it renews
 */
export async function requireBudget(
  env: Cloudflare.Env,
  accesses: readonly Access[],
  model: Budget & { id: string },
  now = Date.now(),
): Promise<void> {
  const day = dayOf(now)
  const limits = new Map(accesses.map((access) => [access.owner, access.limits]))
  const checks = [...limits]
    .filter(([, budget]) => isLimited(budget))
    .map(async ([owner, budget]) => requireLeft(KEY_BUDGET, budget, await spentByOwner(env, day, owner), now))
  if (isLimited(model)) {
    const spent = spentOnModel(env, day, model.id)
    checks.push(spent.then((sum) => requireLeft(MODEL_BUDGET, model, sum, now)))
  }
  await Promise.all(checks)
}

function requireLeft(whose: string, budget: Budget, spent: Spent, now: number): void {
  const used = usedUp(budget, spent)
  if (used) throw overBudget(whose, used, now)
}

/**
 * Checks a budget in the body of a request.
 * @throws ApiError 400
 */
export function checkBudget(budget: Budget, wrong: (name: string) => ApiError): void {
  for (const name of ['tokens_per_day', 'turns_per_day'] as const) {
    const value = budget[name]
    if (value !== undefined && !(Number.isSafeInteger(value) && (value as number) > 0)) throw wrong(name)
  }
}
