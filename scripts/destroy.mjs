/**
 * `npm run destroy`: removes what `npm run deploy` made, after asking. It may be run again after a failure: it goes on
 * from there (deploy/removal.mjs).
 */
import './installed.mjs'
import { databaseId, find, findAccount, remove } from './deploy/find.mjs'
import { secretsFile, wanted } from './deploy/names.mjs'
import { destroyUsage, fail, readDestroyOptions } from './deploy/options.mjs'
import { planRemoval } from './deploy/removal.mjs'
import { answerTo, optionsOf } from './options.mjs'

const wish = optionsOf(readDestroyOptions, destroyUsage)

/** What is there and what of it goes, or the end of the program. */
async function prepare() {
  try {
    const goal = wanted(wish.environment)
    console.log('Looking at what is there ...')
    const account = await findAccount(goal.accountId)
    process.env.CLOUDFLARE_ACCOUNT_ID = account
    return { account, goal, ...planRemoval(goal, await find(goal, account)) }
  } catch (error) {
    return fail(error)
  }
}

/** @param {string} worker @returns {Promise<boolean>} whether somebody at a terminal typed its name */
async function agreed(worker) {
  if (!process.stdin.isTTY) {
    return fail(new Error('Nobody is there to ask. Nothing was removed. To remove all of this, add --yes.'))
  }
  return (await answerTo(`\nNone of this can be undone. Type ${worker} to remove it: `)) === worker
}

const { account, goal, steps, left } = await prepare()
const { worker } = goal
for (const { said } of steps) console.log(`  ${said}`)
for (const what of left) console.log(`  Leave what no deployment made: ${what}`)
if (wish.dryRun) process.exit(0)
if (!wish.yes && !(await agreed(worker))) {
  console.log('Nothing was removed.')
  process.exit(1)
}
for (const [index, { said, path }] of steps.entries()) {
  console.log(`${index + 1}/${steps.length}  ${said}`)
  try {
    const id = path.includes(':database') ? await databaseId(account, goal.database) : ''
    await remove(`/accounts/${account}${path.replace(':database', id)}`)
  } catch (error) {
    fail(error, `This step failed: ${said}.`, 'Run `npm run destroy` again: it goes on from here.')
  }
}
console.log(`\nThe deployment ${worker} is removed. Its secrets are still in ${secretsFile(account, worker, process.env)},
if they were made here: what ENCRYPTION_KEY sealed in a backup cannot be read without it.`)
