/**
 * A trial without an account: `wrangler ... --temporary` makes a temporary preview account, which Cloudflare deletes after
 * 60 minutes unless somebody claims it (https://developers.cloudflare.com/workers/platform/claim-deployments/).
 */
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { answerTo } from '../options.mjs'
import { readConfig, runWrangler } from '../wrangler.mjs'

/** The file in which wrangler keeps the account until it expires. */
const KEPT = 'wrangler-temporary-account.toml'

const NOTICE = `This makes a temporary account at Cloudflare. It is deleted after 60 minutes unless you claim it.
Going on means that you accept Cloudflare's Terms of Service (https://www.cloudflare.com/terms/)
and Privacy Policy (https://www.cloudflare.com/privacypolicy/).`

/**
 * Asks at a terminal. wrangler itself runs without one, and then takes the terms as accepted.
 * @returns {Promise<boolean>} whether whoever deploys goes on
 */
export async function acceptsTerms() {
  console.log(`${NOTICE}\n`)
  if (!process.stdin.isTTY) return true
  return (await answerTo('Type yes to go on: ')).toLowerCase() === 'yes'
}

/**
 * The configuration for such an account, which has Workers, assets, Durable Objects and one D1 database of 100 MB, and
 * neither Workers AI nor Vectorize.
 * @param {Record<string, any>} config
 * @returns {Record<string, any>}
 */
export function inTemporaryAccount(config) {
  const { ai: _, vectorize: __, ...rest } = config
  return { ...rest, vars: { ...config.vars, AI_BACKEND: 'local', VECTORS: 'embedded', CONSOLE: 'on' } }
}

export const TEMPORARY_NOTES = [
  'A temporary account has neither Workers AI nor Vectorize: the built-in engines answer, as with `npm start`. Its database may have 100 MB. Models of other providers work with a key of theirs.',
]

/**
 * Opens a temporary account, or the one that wrangler keeps. Its token goes into the environment of the commands that follow:
 * wrangler 4.124 refuses `d1 migrations apply --temporary`, because it takes the account that it has just opened for a login.
 * @returns {Promise<{ id: string, token: string, claim: string }>} `claim`: the address at which the account is claimed
 * @throws Error with wrangler's output, such as for somebody who is logged in
 */
export async function openAccount() {
  await runWrangler(['d1', 'list', '--temporary'])
  const file = configFolders()
    .map((folder) => join(folder, '.wrangler', KEPT))
    .find(existsSync)
  if (file === undefined) throw new Error(`wrangler opened a temporary account, and kept no ${KEPT}.`)
  const { account, claim } = readConfig(file)
  return { id: account.id, token: account.apiToken, claim: claim.url }
}

/** Where wrangler looks for its own folder, first the one that it looks for first. @returns {string[]} */
function configFolders() {
  const { XDG_CONFIG_HOME, APPDATA } = process.env
  const home = homedir()
  return [
    home,
    ...(XDG_CONFIG_HOME ? [XDG_CONFIG_HOME] : []),
    ...(process.platform === 'darwin' ? [join(home, 'Library/Preferences')] : []),
    ...(APPDATA ? [join(APPDATA, 'xdg.config')] : []),
    join(home, '.config'),
  ]
}
