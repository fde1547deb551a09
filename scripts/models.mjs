/**
 * `npm run models`: the models of Workers AI that docs/models.md lists. With `--check` they are compared with the catalogue of
 * Cloudflare that an account sees: price, context, plan, retirement, and whether they think unless they are told not to.
 */
import './installed.mjs'
import { parseArgs } from 'node:util'
import { CHECKED, differences, modelsTable, WORKERS_AI_MODELS } from './costs/workers-ai.mjs'
import { ask, askAll, findAccount } from './deploy/find.mjs'
import { fail } from './deploy/options.mjs'
import { optionsOf } from './options.mjs'

const usage = `Usage: npm run models -- [--check]

  --check   compare the list with Cloudflare's catalogue. The token needs Workers AI Read.
  --help    this text

  CLOUDFLARE_API_TOKEN, CLOUDFLARE_ACCOUNT_ID  instead of \`npx wrangler login\``

/** Models of a page; the API gives no more. */
const PAGE = 100

/** @param {string[]} args @throws Error for another option */
const readOptions = (args) =>
  parseArgs({
    args,
    options: {
      check: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  }).values

const { check } = optionsOf(readOptions, usage)
if (!check) {
  console.log(`${modelsTable()}\n\nCompared with Cloudflare's catalogue on ${CHECKED}.`)
  process.exit(0)
}
try {
  const account = await findAccount(process.env.CLOUDFLARE_ACCOUNT_ID)
  const models = await askAll(`/accounts/${account}/ai/models/search`, PAGE)
  /** @type {Record<string, unknown>} */
  const schemas = {}
  for (const name of Object.keys(WORKERS_AI_MODELS)) {
    if (!models.some((model) => model.name === name)) continue
    schemas[name] = await ask(`/accounts/${account}/ai/models/schema?model=${encodeURIComponent(name)}`)
  }
  const found = differences(models, schemas, new Date())
  for (const line of found) console.log(line)
  if (found.length > 0) {
    console.log('\nBring scripts/costs/workers-ai.mjs up to date, and docs/models.md with it.')
    process.exit(1)
  }
  console.log(
    `The catalogue has all ${Object.keys(WORKERS_AI_MODELS).length} language models as they are listed.`,
  )
} catch (error) {
  fail(error)
}
