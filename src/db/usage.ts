/** Usage by day, key and model. turns.ts writes it; budgets and reports read it. */
import sql from 'sql-template-tag'
import { type ApiError, coded } from '../errors'
import { all, allOf, type Database, select } from './client'
import { modelIds, type Named } from './registry'
import { RowCache } from './row-cache'
import { type RowOf, usage } from './schema'

export type UsageRow = RowOf<typeof usage>

export interface Spent {
  turns: number
  /** in and out */
  tokens: number
}

/** Daily limits of a model or a key. Anything but a number is no limit. */
export interface Budget {
  tokens_per_day?: unknown
  turns_per_day?: unknown
}

export const isLimited = (budget: Budget): boolean =>
  typeof budget.tokens_per_day === 'number' || typeof budget.turns_per_day === 'number'

/** Which limit of a budget is used up. @returns undefined while something is left of each */
export function usedUp(budget: Budget, spent: Spent): { unit: keyof Spent; most: number } | undefined {
  for (const unit of ['tokens', 'turns'] as const) {
    const most = budget[`${unit}_per_day`]
    if (typeof most === 'number' && spent[unit] >= most) return { unit, most }
  }
  return undefined
}

const DAY_MS = 86_400_000

/** @param whose budget it is @param now unix milliseconds */
export function overBudget(
  whose: string,
  { most, unit }: NonNullable<ReturnType<typeof usedUp>>,
  now: number,
): ApiError {
  const reset = (Math.floor(now / DAY_MS) + 1) * DAY_MS
  return coded(
    'over_budget',
    429,
    `The budget of ${most} ${unit} a day of ${whose} is spent. It begins anew at ${new Date(reset).toISOString()}.`,
    Math.ceil((reset - now) / 1000),
  )
}
export const KEY_BUDGET = 'this API key'
export const MODEL_BUDGET = 'this conversation model'

/** The UTC day of a time. @param now unix milliseconds */
export const dayOf = (now: number): string => new Date(now).toISOString().slice(0, 10)

/** How long a sum is cached. A budget can be overrun by what other isolates spend meanwhile. */
export const SPENT_CACHE_MS = 2_000

/** Expired sums are not used even while D1 does not answer: an old sum could let a budget be overrun. */
const sums = new RowCache<Spent>('what was spent', SPENT_CACHE_MS, { outlives: false })

const ownerKey = (day: string, owner: string): string => `${day} key ${owner}`
const modelKey = (day: string, modelId: string): string => `${day} model ${modelId}`

/** Drops the cached sums of a key and a model. Call it after this isolate added to them. */
export function forgetSpent({ day, owner, modelId }: Pick<UsageRow, 'day' | 'owner' | 'modelId'>): void {
  sums.forget(ownerKey(day, owner))
  sums.forget(modelKey(day, modelId))
}

const NOTHING: Spent = { turns: 0, tokens: 0 }

const cached = async (key: string, query: () => Promise<Spent | null>): Promise<Spent> =>
  (await sums.find(key, async () => (await query()) ?? NOTHING)) ?? NOTHING

/** See `RowCache.reading`. */
export function readingSpent(): { byOwner: KeepSpent; onModel: KeepSpent } {
  const keep = sums.reading()
  return {
    byOwner: (day, owner, spent = NOTHING) => keep(ownerKey(day, owner), spent),
    onModel: (day, modelId, spent = NOTHING) => keep(modelKey(day, modelId), spent),
  }
}

type KeepSpent = (day: string, of: string, spent?: Spent) => void

const SUMMED = 'coalesce(sum(turns), 0) AS turns, coalesce(sum(input_tokens + output_tokens), 0) AS tokens'

/** A statement that sums what the key with this hash has spent on a day, if it has a budget. */
export const spentByHash = (db: Database, day: string, hash: string): D1PreparedStatement =>
  db
    .prepare(
      `SELECT ${SUMMED} FROM usage WHERE day = ?1 AND owner = (
        SELECT CAST(id AS TEXT) FROM api_keys WHERE hash = ?2 AND instr(limits, '_per_day'))`,
    )
    .bind(day, hash)

/** What was spent on a day on each of the models that a request names, if it has a budget. */
export async function spentOnLimited(
  db: Database,
  day: string,
  named: Named,
): Promise<(Spent & { modelId: string })[]> {
  const query = `SELECT model_id AS modelId, ${SUMMED} FROM usage WHERE day = ?2 AND model_id IN (
    SELECT id FROM conversation_models WHERE id IN (${modelIds(named)}) AND instr(config, '_per_day')) GROUP BY model_id`
  const statement = db.prepare(query).bind(JSON.stringify(named), day)
  return (await statement.all<Spent & { modelId: string }>()).results
}

const spentBy = (env: Pick<Cloudflare.Env, 'DB'>, column: 'owner' | 'model_id', day: string, id: string) =>
  env.DB.prepare(`SELECT ${SUMMED} FROM usage WHERE day = ?1 AND ${column} = ?2`).bind(day, id).first<Spent>()

/** What a key has spent on a day, on all models. */
export const spentByOwner = (env: Pick<Cloudflare.Env, 'DB'>, day: string, owner: string): Promise<Spent> =>
  cached(ownerKey(day, owner), () => spentBy(env, 'owner', day, owner))

/** What all keys have spent on a model on a day. */
export const spentOnModel = (env: Pick<Cloudflare.Env, 'DB'>, day: string, modelId: string): Promise<Spent> =>
  cached(modelKey(day, modelId), () => spentBy(env, 'model_id', day, modelId))

/** A turn that was counted before it ran. */
export type Reserved = Pick<UsageRow, 'day' | 'owner' | 'modelId'>

const NO_BUDGET = Number.MAX_SAFE_INTEGER

/**
 * Counts a turn before it runs, if its key or its model has a budget of turns. One statement decides and counts, so turns that begin
 * at once, in whatever isolates, are never more than the budget.
 * @param turnsPerDay the budget of the key
 * @returns what was counted. If the turn costs nothing it is to be given back (`Cost`) @throws ApiError 429
 */
export async function reserveTurn(
  env: Pick<Cloudflare.Env, 'DB'>,
  {
    owner,
    model,
    turnsPerDay,
  }: { owner: string; model: Budget & { id: string }; turnsPerDay: number | undefined },
  now = Date.now(),
): Promise<Reserved | undefined> {
  const most = typeof model.turns_per_day === 'number' ? model.turns_per_day : undefined
  if (turnsPerDay === undefined && most === undefined) return undefined
  const reserved = { day: dayOf(now), owner, modelId: model.id }
  const sumOf = (column: string, value: string) =>
    `(SELECT coalesce(sum(turns), 0) FROM usage WHERE day = ?1 AND ${column} = ${value})`
  const [counted, sums] = await env.DB.batch<{ ofOwner: number }>([
    env.DB.prepare(
      `INSERT INTO usage (day, owner, model_id, turns, input_tokens, output_tokens) SELECT ?1, ?2, ?3, 1, 0, 0
        WHERE ${sumOf('owner', '?2')} < ?4 AND ${sumOf('model_id', '?3')} < ?5
        ON CONFLICT (day, owner, model_id) DO UPDATE SET turns = turns + 1`,
    ).bind(reserved.day, owner, model.id, turnsPerDay ?? NO_BUDGET, most ?? NO_BUDGET),
    env.DB.prepare(`SELECT ${sumOf('owner', '?2')} AS ofOwner`).bind(reserved.day, owner),
  ])
  forgetSpent(reserved)
  if (counted?.meta.changes === 1) return reserved
  const isOfKey = turnsPerDay !== undefined && (sums?.results[0]?.ofOwner ?? 0) >= turnsPerDay
  const unit = 'turns' as const
  throw isOfKey
    ? overBudget(KEY_BUDGET, { unit, most: turnsPerDay }, now)
    : overBudget(MODEL_BUDGET, { unit, most: most ?? 0 }, now)
}

export interface UsageFilter {
  /** first and last day, both included */
  from: string
  to: string
  owner?: string
  modelId?: string
  limit: number
  offset: number
}

/** Newest day first. */
export const listUsage = (db: Database, filter: UsageFilter): Promise<UsageRow[]> =>
  all(
    db,
    sql`${select(usage)} WHERE ${allOf(
      sql`day BETWEEN ${filter.from} AND ${filter.to}`,
      filter.owner === undefined ? undefined : sql`owner = ${filter.owner}`,
      filter.modelId === undefined ? undefined : sql`model_id = ${filter.modelId}`,
    )} ORDER BY day DESC, owner, model_id LIMIT ${filter.limit} OFFSET ${filter.offset}`,
  )
