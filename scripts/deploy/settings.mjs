/**
 * What a deployment decides beyond wrangler.toml: where its data lives, and what the account's plan allows. Nothing here
 * talks to anybody.
 */

import { configArgs } from './names.mjs'
import { inTemporaryAccount, TEMPORARY_NOTES } from './temporary.mjs'

/**
 * Locations that D1 and Durable Objects both have, each with a cloud region close to it: `[placement]` knows only
 * those (https://developers.cloudflare.com/workers/configuration/placement/).
 * @type {Record<string, string>}
 */
export const REGIONS = {
  weur: 'aws:eu-west-1',
  eeur: 'gcp:europe-central2',
  enam: 'aws:us-east-1',
  wnam: 'aws:us-west-2',
  apac: 'aws:ap-southeast-1',
  oc: 'aws:ap-southeast-2',
}

/** Jurisdictions that both have. @type {Record<string, string>} */
export const JURISDICTIONS = { eu: 'aws:eu-central-1', us: 'aws:us-east-1', fedramp: 'aws:us-east-1' }

/** CPU of a call on the paid plan: the most there is, for imports. The default of 30 s would do for all else. */
const CPU_MS = 300_000

/**
 * @typedef {'free' | 'paid' | undefined} Plan undefined when the token may not see it
 * @typedef {{ region: string | undefined, jurisdiction: string | undefined, plan: Plan, temporary?: boolean }} Wish
 */

/**
 * @param {import('./names.mjs').Goal} goal
 * @param {import('./plan.mjs').Found} found
 * @param {Wish} wish
 * @returns {{ goal: import('./names.mjs').Goal, notes: string[] }} `notes` are for whoever deploys to read
 * @throws Error for a place that cannot be changed any more
 */
export function settle(goal, found, wish) {
  const place = placeOf(goal, found, wish)
  const plan = wish.plan ?? planOf(found)
  const { config, notes, changed } = wish.temporary
    ? { config: inTemporaryAccount(goal.config), notes: TEMPORARY_NOTES, changed: true }
    : allowedBy(plan, goal, found)
  const { jurisdiction, region } = place
  const near = JURISDICTIONS[jurisdiction ?? ''] ?? REGIONS[region ?? '']
  const isPlaced = near !== undefined
  return {
    goal: {
      ...goal,
      place,
      accountPlan: plan,
      indexes: config.vars?.VECTORS === 'embedded' ? [] : goal.indexes,
      config: {
        ...config,
        vars: { ...config.vars, JURISDICTION: jurisdiction ?? '', REGION: region ?? '' },
        ...(isPlaced && { placement: config.placement ?? { region: near } }),
      },
      configArgs: isPlaced || changed ? configArgs(goal.worker) : goal.configArgs,
    },
    notes,
  }
}

/** The plan that an earlier deployment saw, or was told. @param {import('./plan.mjs').Found} found @returns {Plan} */
function planOf({ records }) {
  const { name } = records.find(({ kind }) => kind === 'plan') ?? {}
  return name === 'free' || name === 'paid' ? name : undefined
}

/**
 * @param {import('./names.mjs').Goal} goal
 * @param {import('./plan.mjs').Found} found
 * @param {Wish} wish
 * @returns {{ jurisdiction: string | undefined, region: string | undefined }}
 */
function placeOf({ worker, database, config }, found, wish) {
  const recorded = (/** @type {string} */ kind) => found.records.find((record) => record.kind === kind)?.name
  const jurisdiction = wish.jurisdiction ?? (config.vars?.JURISDICTION || undefined)
  // A deployment without a record was made without one.
  const before = recorded('jurisdiction') ?? (found.owner === worker ? 'none' : undefined)
  if (before !== undefined && (jurisdiction ?? before) !== before) {
    throw new Error(
      `The deployment ${worker} has ${before === 'none' ? 'no jurisdiction' : `the jurisdiction ${before}`}, and its objects would be others, without their data, in ${jurisdiction}. Nothing was changed. Deploy another beside it, such as with --env ${jurisdiction}, and move the data.`,
    )
  }
  if (before === undefined && jurisdiction !== undefined && found.database) {
    const has = found.jurisdiction ?? 'none'
    if (has !== jurisdiction) {
      throw new Error(
        `The D1 database ${database.name} is there already, ${has === 'none' ? 'without a jurisdiction' : `in the jurisdiction ${has}`}, and that cannot be changed. Nothing was changed. Delete it, if nothing in it is needed, or give the Worker another name: npx wrangler d1 delete ${database.name}`,
      )
    }
  }
  const kept = before ?? jurisdiction
  if (kept !== undefined && kept !== 'none') {
    if (wish.region !== undefined) {
      throw new Error(
        `The jurisdiction ${kept} decides where the data is: leave out --region. Nothing was changed.`,
      )
    }
    return { jurisdiction: kept, region: undefined }
  }
  const region = wish.region ?? (config.vars?.REGION || recorded('region'))
  return { jurisdiction: undefined, region: region === 'none' ? undefined : region }
}

/**
 * @param {Plan} plan
 * @param {import('./names.mjs').Goal} goal
 * @param {import('./plan.mjs').Found} found
 * @returns {{ config: Record<string, any>, notes: string[], changed: boolean }}
 * @throws Error for a limit that the Free plan refuses
 */
function allowedBy(plan, { config, indexes }, found) {
  if (plan === 'paid') {
    return { config: { ...config, limits: { cpu_ms: CPU_MS, ...config.limits } }, notes: [], changed: true }
  }
  if (plan === undefined) {
    const note =
      'The plan of the account could not be read (the token lacks Billing Read), so nothing that needs the Paid plan is set: a call may take 30 s of CPU. Say --plan paid or --plan free.'
    return { config, notes: [note], changed: false }
  }
  if (config.limits?.cpu_ms !== undefined) {
    throw new Error(
      'wrangler.toml sets [limits] cpu_ms, which the Free plan refuses. Nothing was changed. Leave it out, or upgrade: https://dash.cloudflare.com/?to=/:account/workers/plans',
    )
  }
  const notes = [
    'The account is on the Workers Free plan. A request may take 10 ms of CPU, a day has 100,000 requests and as many rows written, and Workers AI gives 10,000 neurons a day: see docs/free-plan.md.',
  ]
  // A deployment that has an index keeps it: Vectorize exists on the Free plan too.
  if (indexes.some(({ name }) => found.indexNames.includes(name))) return { config, notes, changed: false }
  notes.push(
    'Vectors are searched in the collections themselves (VECTORS = "embedded"), and no index is made.',
  )
  const { vectorize: _, ...rest } = config
  return { config: { ...rest, vars: { ...config.vars, VECTORS: 'embedded' } }, notes, changed: true }
}
