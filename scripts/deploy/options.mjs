/** The options of a deployment and its removal, and how these programs end when something fails: with what to do about it. */
import { parseArgs } from 'node:util'
import { JURISDICTIONS, REGIONS } from './settings.mjs'

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

/** @param {unknown} error */
const message = (error) => (error instanceof Error ? error.message : String(error))

/**
 * Ends the program with what happened and, where it is known, what to do about it.
 * @param {unknown} error
 * @param {string[]} more
 * @returns {never}
 */
export function fail(error, ...more) {
  const what = message(error).trim()
  console.error([what, advice(what), ...more].filter(Boolean).join('\n\n'))
  process.exit(1)
}

/** Of a trial without an account, which has no Workers AI. */
const TEMPORARY_MODEL = 'local/extractive'

/** Of Workers AI, good enough for the sample: the trial question costs less than a hundredth of a cent. */
const DEFAULT_MODEL = 'cloudflare/@cf/meta/llama-3.3-70b-instruct-fp8-fast'

export const usage = `Usage: npm run deploy -- [options]

  --dry-run     print what a first deployment does; needs no account and no network
  --sample      load Parley's documentation as a sample to ask about, and leave it there
  --model NAME  the conversation model of the trial question and of the sample
                (default ${DEFAULT_MODEL})
  --env NAME    a deployment of its own beside the first, such as staging: another Worker, with its own data
  --region R    where data lives, of a first deployment, and new objects of a later one:
                weur, eeur, enam, wnam, apac or oc; none takes it back (docs/regions.md)
  --jurisdiction J
                keeps data inside eu, us or fedramp, from the first deployment on, for good
  --plan P      free or paid: the account's plan, where the token may not see it
  --temporary   a trial without an account, deleted after 60 minutes unless you claim it (docs/deploy.md)
  --url URL     where the deployment answers, when that is not its workers.dev address
  --help        this text

  CLOUDFLARE_API_TOKEN, CLOUDFLARE_ACCOUNT_ID  instead of \`npx wrangler login\`
  ADMIN_API_KEY, ENCRYPTION_KEY                secrets of your own; without them new ones are made`

/**
 * @param {string[]} args
 * @returns {{ help: boolean, dryRun: boolean, environment: string | undefined, temporary: boolean, sample: boolean, model: string, url: string | undefined } & import('./settings.mjs').Wish}
 * @throws Error saying what is wrong with them
 */
export function readDeployOptions(args) {
  const { values } = parseArgs({
    args,
    options: {
      'dry-run': { type: 'boolean', default: false },
      sample: { type: 'boolean', default: false },
      model: { type: 'string' },
      env: { type: 'string' },
      region: { type: 'string' },
      jurisdiction: { type: 'string' },
      plan: { type: 'string' },
      temporary: { type: 'boolean', default: false },
      url: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.url !== undefined && !/^https?:\/\//.test(values.url)) {
    throw new Error(`--url takes an address such as https://chat.example.com, not "${values.url}".`)
  }
  const { temporary } = values
  const other = /** @type {const} */ (['env', 'region', 'jurisdiction', 'plan']).find((name) => values[name])
  if (temporary && other !== undefined) {
    throw new Error(`--temporary is a trial that lasts for an hour. It takes no --${other}.`)
  }
  return {
    help: values.help,
    dryRun: values['dry-run'],
    environment: readEnvironment(values.env),
    temporary,
    region: readChoice('region', values.region, [...Object.keys(REGIONS), 'none']),
    jurisdiction: readChoice('jurisdiction', values.jurisdiction, Object.keys(JURISDICTIONS)),
    plan: /** @type {import('./settings.mjs').Plan} */ (readChoice('plan', values.plan, ['free', 'paid'])),
    sample: values.sample,
    model: values.model ?? (temporary ? TEMPORARY_MODEL : DEFAULT_MODEL),
    url: values.url?.replace(/\/+$/, ''),
  }
}

/** The options of `npm run destroy`. */
export const destroyUsage = `Usage: npm run destroy -- [options]

  --env NAME    the deployment of this environment, such as staging
  --yes         do not ask
  --dry-run     print what would be removed, and remove nothing
  --help        this text`

/**
 * @param {string[]} args
 * @returns {{ help: boolean, dryRun: boolean, yes: boolean, environment: string | undefined }}
 * @throws Error saying what is wrong with them
 */
export function readDestroyOptions(args) {
  const { values } = parseArgs({
    args,
    options: {
      'dry-run': { type: 'boolean', default: false },
      env: { type: 'string' },
      yes: { type: 'boolean', short: 'y', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  return {
    help: values.help,
    dryRun: values['dry-run'],
    yes: values.yes,
    environment: readEnvironment(values.env),
  }
}

/** @param {string | undefined} name @throws Error for a name that no Worker could have */
function readEnvironment(name) {
  if (name !== undefined && !/^[a-z0-9][a-z0-9-]{0,30}$/.test(name)) {
    throw new Error(
      `--env takes a name of lower-case letters, digits and dashes, such as staging, not "${name}".`,
    )
  }
  return name
}

/**
 * @param {string} option
 * @param {string | undefined} value
 * @param {string[]} choices
 * @throws Error for another value
 */
function readChoice(option, value, choices) {
  if (value !== undefined && !choices.includes(value)) {
    throw new Error(`--${option} is one of ${choices.join(', ')}, not "${value}".`)
  }
  return value
}
