/** Which Workers plan an account has. wrangler has no command for that. */
import { runWrangler } from '../wrangler.mjs'

const API = 'https://api.cloudflare.com/client/v4'

/**
 * @param {string} account
 * @returns {Promise<import('./settings.mjs').Plan>} undefined when the token may not see it
 * @throws Error when Cloudflare cannot be reached
 */
export async function findPlan(account) {
  const base = process.env.CLOUDFLARE_API_BASE_URL || API
  const response = await fetch(`${base}/accounts/${account}/subscriptions`, {
    headers: { authorization: `Bearer ${await findToken()}` },
    signal: AbortSignal.timeout(30_000),
  })
  const { success, result } = await response.json()
  if (!success) return undefined
  return result.some(isWorkersPaid) ? 'paid' : 'free'
}

/**
 * A plan's id names its product: `workers_paid`, or that of a contract.
 * @param {{ state?: string, rate_plan?: { id?: string, public_name?: string } }} subscription
 */
const isWorkersPaid = ({ state, rate_plan: { id = '', public_name: name = '' } = {} }) =>
  /workers/i.test(`${id} ${name}`) &&
  !/free/i.test(`${id} ${name}`) &&
  !/cancelled|expired/i.test(state ?? '')

/** @returns {Promise<string>} the one in the environment, or that of `wrangler login` */
async function findToken() {
  if (process.env.CLOUDFLARE_API_TOKEN) return process.env.CLOUDFLARE_API_TOKEN
  const { token } = JSON.parse(await runWrangler(['auth', 'token', '--json']))
  return token
}
