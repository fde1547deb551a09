/** Which Workers plan an account has. */
import { ask, Refused } from './api.mjs'

/**
 * @param {string} account
 * @returns {Promise<import('./settings.mjs').Plan>} undefined when the token may not see it
 * @throws Error when Cloudflare cannot be reached
 */
export async function findPlan(account) {
  try {
    return (await ask(`/accounts/${account}/subscriptions`)).some(isWorkersPaid) ? 'paid' : 'free'
  } catch (error) {
    if (error instanceof Refused) return undefined
    throw error
  }
}

/**
 * A plan's id names its product: `workers_paid`, or that of a contract.
 * @param {{ state?: string, rate_plan?: { id?: string, public_name?: string } }} subscription
 */
const isWorkersPaid = ({ state, rate_plan: { id = '', public_name: name = '' } = {} }) =>
  /workers/i.test(`${id} ${name}`) &&
  !/free/i.test(`${id} ${name}`) &&
  !/cancelled|expired/i.test(state ?? '')
