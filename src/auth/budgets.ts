/**
 * Daily budgets of tokens and turns, for keys and models. Days are UTC.
 *
 * Usage is written when a turn ends, and read before a turn begins, from a sum that may be seconds old. So only turns
 * that are already running can overrun a budget.
 */
import { type Budget, dayOf, isLimited, type Spent, spentByOwner, spentOnModel, usedUp } from '../db/usage'
import { type ApiError, coded } from '../errors'
import type { Access } from './access'

const DAY_MS = 86_400_000

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
    .map(async ([owner, budget]) =>
      requireLeft('this API key', budget, await spentByOwner(env, day, owner), now),
    )
  if (isLimited(model)) {
    const spent = spentOnModel(env, day, model.id)
    checks.push(spent.then((sum) => requireLeft('this conversation model', model, sum, now)))
  }
  await Promise.all(checks)
}

function requireLeft(whose: string, budget: Budget, spent: Spent, now: number): void {
  const used = usedUp(budget, spent)
  if (!used) return
  const reset = (Math.floor(now / DAY_MS) + 1) * DAY_MS
  throw coded(
    'over_budget',
    429,
    `The budget of ${used.most} ${used.unit} a day of ${whose} is spent. It begins anew at ${new Date(reset).toISOString()}.`,
    Math.ceil((reset - now) / 1000),
  )
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
