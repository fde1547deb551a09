/**
 * Daily budgets of tokens and turns, of a key and of a model. A day is one of UTC.
 *
 * The spend is written when a turn ends and read before one begins, from a sum that may be seconds old. A budget
 * can thus be overrun by the turns that are running when it is reached, and by no more.
 */
import { type Budget, dayOf, isLimited, type Spent, spentByOwner, spentOnModel, usedUp } from '../db/usage'
import { type ApiError, coded } from '../errors'
import type { Access } from './access'

const DAY_MS = 86_400_000

/**
 * @param accesses the keys of the request: each has to have something left
 * @param now unix milliseconds
 * @throws ApiError 429 saying which budget is spent and when it begins anew
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
 * Checks the budget in a body from outside.
 * @throws ApiError 400
 */
export function checkBudget(budget: Budget, wrong: (name: string) => ApiError): void {
  for (const name of ['tokens_per_day', 'turns_per_day'] as const) {
    const value = budget[name]
    if (value !== undefined && !(Number.isSafeInteger(value) && (value as number) > 0)) throw wrong(name)
  }
}
