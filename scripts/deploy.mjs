/**
 * `npm run deploy`: Parley on Cloudflare, from whatever is there to a deployment that was tried out. It may be run
 * again at any time: what exists is left alone, and after a failure the next run goes on from there (deploy/plan.mjs).
 */

import './installed.mjs'
import { databaseId, find, findAccount, findPlan, post } from './deploy/find.mjs'
import { configFile, keptSecrets, makeSecrets, secretsFile, wanted, writeConfig } from './deploy/names.mjs'
import { fail, readDeployOptions, usage } from './deploy/options.mjs'
import { action, describe, NOTHING, plan } from './deploy/plan.mjs'
import { settle } from './deploy/settings.mjs'
import { acceptsTerms, openAccount } from './deploy/temporary.mjs'
import { upload } from './deploy/upload.mjs'
import { report, verify } from './deploy/verify.mjs'
import { optionsOf } from './options.mjs'
import { runWrangler } from './wrangler.mjs'

/** What is wanted and what that takes, or the end of the program. */
async function prepare() {
  try {
    const named = wanted(wish.environment, wish.temporary)
    if (wish.dryRun) {
      const { goal, notes } = settle(named, NOTHING, { ...wish, plan: wish.plan ?? 'paid' })
      return { account: '', claim: undefined, goal, notes, steps: plan(goal, NOTHING) }
    }
    if (named.configArgs.length > 0) writeConfig(named.config, configFile(named.worker))
    if (wish.temporary) {
      if (!(await acceptsTerms())) throw new Error('Nothing was made.')
      const { id, token, claim } = await openAccount()
      process.env.CLOUDFLARE_ACCOUNT_ID = id
      process.env.CLOUDFLARE_API_TOKEN = token
      return { account: id, claim, ...settled(named, await find(named, id), wish) }
    }
    console.log('Looking at what is there ...')
    const account = await findAccount(named.accountId)
    process.env.CLOUDFLARE_ACCOUNT_ID = account
    const [found, accountPlan] = await Promise.all([find(named, account), wish.plan ?? findPlan(account)])
    return { account, claim: undefined, ...settled(named, found, { ...wish, plan: accountPlan }) }
  } catch (error) {
    return fail(error)
  }
}

/**
 * What is to be done, with its configuration written down for wrangler.
 * @param {ReturnType<typeof wanted>} named
 * @param {import('./deploy/plan.mjs').Found} found
 * @param {import('./deploy/settings.mjs').Wish} wish
 */
function settled(named, found, wish) {
  const { goal, notes } = settle(named, found, wish)
  const steps = plan(goal, found)
  if (goal.configArgs.length > 0) writeConfig(goal.config, configFile(goal.worker))
  return { goal, notes, steps }
}

const wish = optionsOf(readDeployOptions, usage)
const { account, claim, goal, notes, steps } = await prepare()
for (const note of notes) console.log(`\n${note}\n`)
const titles = steps.map((step, index) => `${index + 1}/${steps.length}  ${describe(step)}`)

if (wish.dryRun) {
  console.log('A first deployment does this; a later one leaves out what is there.\n')
  for (const [index, step] of steps.entries()) {
    console.log(titles[index])
    const how = action(step)
    if (how === undefined) continue
    if ('wrangler' in how) console.log(`     wrangler ${[...how.wrangler, ...goal.configArgs].join(' ')}`)
    else console.log(`     POST ${how.path} ${JSON.stringify(how.body)}`)
  }
  process.exit(0)
}

const file = secretsFile(account, goal.worker, process.env)
/** @type {string[]} */
let made = []
const given = process.env.ADMIN_API_KEY || undefined
let key = given
let url = wish.url
/** @type {string | undefined} */
let database

/**
 * Posts to Cloudflare's API.
 * @param {string} path below the account; `:database` stands for the id of the database
 * @param {object} body
 */
async function postStep(path, body) {
  if (path.includes(':database')) database ??= await databaseId(account, goal.database)
  await post(`/accounts/${account}${path.replace(':database', database ?? '')}`, body)
}

for (const [index, step] of steps.entries()) {
  console.log(titles[index])
  const how = action(step)
  try {
    if (how === undefined) {
      console.log(await verify(url, key, wish))
    } else if ('path' in how) {
      await postStep(how.path, how.body)
    } else if (step.do === 'deploy') {
      const secrets = makeSecrets(step.secrets, process.env, file)
      made = secrets.made
      key ??= secrets.values.ADMIN_API_KEY ?? keptSecrets(file).ADMIN_API_KEY
      const own = await upload([...how.wrangler, ...goal.configArgs], secrets.values)
      url ??= own
    } else {
      await runWrangler([...how.wrangler, ...goal.configArgs])
    }
  } catch (error) {
    fail(error, `This step failed: ${describe(step)}.`, 'Run `npm run deploy` again: it goes on from here.')
  }
}

console.log(
  `\n${report({ url, claim, key, given: given !== undefined, made, file, logged: Boolean(process.env.CI) })}`,
)
