/** What to do about a failure: from what wrangler printed to a sentence. */

/** The first that matches is told. @type {[RegExp, string][]} */
const ADVICE = [
  [
    /code: (10000|9109|10001)\]|Authentication error|Unauthorized|not authorized/i,
    'The token may not do this. It needs these permissions of the account: Workers Scripts Edit, D1 Edit, Vectorize Edit, Workers AI Read, Account Settings Read.',
  ],
  [
    /workers\.dev subdomain|workers\/onboarding/,
    'Choose a workers.dev subdomain for the account, once: https://dash.cloudflare.com/?to=/:account/workers/onboarding',
  ],
  [
    /code: 100328\]|CPU limits are not supported/i,
    'The account is on the Workers Free plan. Say so once: npm run deploy -- --plan free',
  ],
  [
    /paid plan|not_entitled|code: 10097\]|upgrade/i,
    'This needs the Workers Paid plan: https://dash.cloudflare.com/?to=/:account/workers/plans',
  ],
  [
    /ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|fetch failed|network/i,
    'Cloudflare could not be reached: look at your connection, and at https://www.cloudflarestatus.com',
  ],
  [
    /migration|SQLITE_|D1_ERROR/i,
    'The migration that failed was rolled back, and those before it stay applied. What is deployed still runs.',
  ],
]

/**
 * @param {string} output of the command that failed
 * @returns {string | undefined} undefined when only the output itself can help
 */
export const advice = (output) => ADVICE.find(([pattern]) => pattern.test(output))?.[1]
