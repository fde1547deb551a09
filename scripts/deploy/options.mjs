/** The options of `npm run deploy`. */
import { parseArgs } from 'node:util'
import { JURISDICTIONS, REGIONS } from './settings.mjs'

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
