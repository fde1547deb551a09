/** What a deployment says at its end. */

/**
 * @typedef {object} Outcome
 * @property {string | undefined} url
 * @property {string | undefined} key the admin key, when this run knows it
 * @property {boolean} given whether that key came from the environment
 * @property {string | undefined} [claim] where its temporary account is claimed
 * @property {string[]} made names of the secrets that this run set and nobody had given it
 * @property {string} file where those are kept
 * @property {boolean} logged whether the output goes into a build's log, which more people read than may hold a key
 */

/** @param {Outcome} outcome */
function keyOf({ key, given, made, file, logged }) {
  if (given) return 'the one in ADMIN_API_KEY'
  if (key === undefined) return 'the ADMIN_API_KEY that was set before'
  if (!made.includes('ADMIN_API_KEY')) return `as before; kept in ${file}`
  if (logged)
    return 'was made, and is not shown in a log. Set your own: npx wrangler secret put ADMIN_API_KEY'
  return `${key}  (not shown again; kept in ${file})`
}

/**
 * Where the deployment answers, and with which key.
 * @param {Outcome} outcome
 * @returns {string}
 */
export function report(outcome) {
  const { url, claim, made, file, logged } = outcome
  const lines = [
    `Parley is deployed${url === undefined ? '' : ` at ${url}`}`,
    `  key       ${keyOf(outcome)}`,
  ]
  if (made.includes('ENCRYPTION_KEY') && !logged) {
    lines.push(
      `  sealing   ENCRYPTION_KEY was made and is kept in ${file}.`,
      '            Back it up: the credentials of providers that it seals cannot be read without it.',
    )
  }
  if (claim !== undefined) {
    lines.push(
      `  claim     ${logged ? 'not shown in a log: whoever opens the address owns the account' : claim}`,
      '            Cloudflare deletes all of it within 60 minutes unless you open that address. Keep it secret.',
    )
  }
  return lines.join('\n')
}
