/** Which Workers plan an account has, and what else wrangler has no command for. */
import { runWrangler } from '../wrangler.mjs'

const API = 'https://api.cloudflare.com/client/v4'

/**
 * @param {string} account
 * @returns {Promise<import('./settings.mjs').Plan>} undefined when the token may not see it
 * @throws Error when Cloudflare cannot be reached
 */
export async function findPlan(account) {
  const { success, result } = await call(`/accounts/${account}/subscriptions`)
  if (!success) return undefined
  return result.some(isWorkersPaid) ? 'paid' : 'free'
}

/**
 * Asks Cloudflare's API what wrangler has no command for.
 * @param {string} path
 * @returns {Promise<any>} the result
 * @throws Error with what Cloudflare answered
 */
export async function ask(path) {
  const { success, result, errors } = await call(path)
  if (success) return result
  const said = errors.map(
    (/** @type {{ code: number, message: string }} */ { code, message }) => `${message} [code: ${code}]`,
  )
  throw new Error(`GET ${path.split('?')[0]} failed: ${said.join('; ')}`)
}

/** @param {string} path @returns {Promise<any>} the reply's JSON @throws Error when Cloudflare cannot be reached */
async function call(path) {
  const base = process.env.CLOUDFLARE_API_BASE_URL || API
  const response = await fetch(base + path, {
    headers: { authorization: `Bearer ${await findToken()}` },
    signal: AbortSignal.timeout(30_000),
  })
  return response.json()
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
