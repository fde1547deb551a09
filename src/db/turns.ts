/** Rows of finished turns, and of what they cost. Each is written once, together with the conversation's row and the day's usage. */
import sql, { raw, type Sql } from 'sql-template-tag'
import * as v from 'valibot'
import { type ApiError, coded } from '../errors'
import { once } from '../lib/once'
import {
  all,
  allOf,
  batch,
  columnsOf,
  type Database,
  first,
  insert,
  isIn,
  RowCache,
  run,
  select,
  sets,
} from './client'
import {
  areOf,
  type ConversationEntry,
  erasureSince,
  marksFor,
  NO_TRACE,
  type Of,
  upsertConversation,
} from './conversations'
import { announcing, WROTE } from './deliveries'
import { modelIds, type Named } from './registry'
import { findResource, putResource } from './resources'
import { type RowOf, turns, usage } from './schema'

type TurnRow = RowOf<typeof turns>

export type ModelUsage = Omit<RowOf<typeof usage>, 'turns'>

/** What a turn cost, by model. */
export interface Cost {
  /** usage of the model that was asked; the turn counts towards this model */
  usage: ModelUsage
  /** usage of models that answered or wrote in its place; only tokens are counted for them */
  others?: ModelUsage[]
  /** the answer is copied from a turn that was already charged, so nothing is counted */
  copied?: true
  /** for a turn that was counted before it ran (`reserveTurn`): 0, or -1 if it is given back because it cost nothing */
  turns?: 0 | -1
}

type Later = 'followups' | 'assistant' | 'passages' | 'replacedBy' | 'verdict' | 'parts'

export interface TurnRecord extends Cost {
  conversation: ConversationEntry
  /** without columns that came later than the record */
  turn: Omit<TurnRow, Later> & Partial<Pick<TurnRow, Later>>
  /** numbers of the turns that it replaces. They stay as versions */
  replaced?: number[]
}

/**
 * Records a turn in one transaction. May be repeated: a turn that is already there adds nothing.
 *
 * Statements after the turn's insertion count the usage and tell the webhooks, each only if the one before it wrote a row. A row with the
 * same number and another time is left from an expired conversation of this id, and is replaced.
 *
 * @returns whether the conversation must be erased because its user's conversations were, after it began (conversations.ts)
 */
export async function recordTurn(
  db: Database,
  { conversation, turn, replaced = [], ...cost }: TurnRecord,
): Promise<boolean> {
  const costs = rowsOf(cost)
  const marks = await marksFor(conversation)
  const later = {
    followups: null,
    assistant: null,
    passages: null,
    replacedBy: null,
    verdict: null,
    parts: null,
  }
  const row = { ...later, ...turn }
  const [erased] = await batch(db, [
    erasureSince(conversation.createdAt, marks),
    sql`${insert(turns, row)} ON CONFLICT (conversation_id, turn) DO UPDATE SET ${sets<typeof turns>(row)}
      WHERE turns.created_at <> excluded.created_at`,
    ...costs.map((cost) => spending(cost, WROTE)),
    // A turn that waits for its visitor has not finished.
    ...(turn.finishReason === 'tool_calls'
      ? []
      : [announcing({ event: 'turn.finished', conversationId: conversation.id, turn: turn.turn }, WROTE)]),
    ...(replaced.length > 0
      ? [
          sql`UPDATE turns SET replaced_by = ${turn.turn} WHERE conversation_id = ${conversation.id}
            AND ${isIn('turn', replaced)} AND replaced_by IS NULL`,
        ]
      : []),
    ...upsertConversation(conversation),
  ])
  for (const cost of costs) forgetSpent(cost)
  return erased!.results.length > 0
}

const rowsOf = ({
  usage: spent,
  others = [],
  copied,
  turns = 1,
}: Omit<Parameters<typeof recordCost>[1], 'turns'> & { turns?: number }): UsageRow[] =>
  copied ? [] : [...(spent ? [{ ...spent, turns }] : []), ...others.map((other) => ({ ...other, turns: 0 }))]

/** Adds to a day's usage, under a condition. */
const spending = ({ day, owner, modelId, turns, inputTokens, outputTokens }: UsageRow, condition: Sql): Sql =>
  sql`INSERT INTO usage (day, owner, model_id, turns, input_tokens, output_tokens)
    SELECT ${day}, ${owner}, ${modelId}, ${turns}, ${inputTokens}, ${outputTokens} WHERE ${condition}
    ON CONFLICT (day, owner, model_id) DO UPDATE SET turns = turns + excluded.turns,
      input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens`

/**
 * Adds the cost of a turn without an answer, or, without `usage`, of calls that belong to no turn. Nothing records
 * that it was counted, so a repeated call counts twice.
 */
export async function recordCost(
  db: Database,
  cost: Omit<Cost, 'usage'> & Partial<Pick<Cost, 'usage'>>,
): Promise<void> {
  const rows = rowsOf(cost)
  if (rows.length === 0) return
  await batch(
    db,
    rows.map((row) => spending(row, sql`true`)),
  )
  for (const row of rows) forgetSpent(row)
}

/** A turn without its trace, which would be long. */
export type StoredTurn = Omit<TurnRow, 'trace'>

export type TracedRow = TurnRow

/** Turns without their traces. Rows from before migration 0011 have suggestions in their traces alone. */
const STORED = once(() => {
  const { trace: _, followups: __, ...columns } = turns.columns
  return sql`${raw(columnsOf(turns, Object.keys(columns)))},
    coalesce(followups, json_extract(trace, '$.followups')) AS followups`
})

interface TurnPage {
  /** a turn's number: only earlier ones */
  before?: number
  /** a turn's number: the conversation as it was before this one took the place of others */
  asOf?: number | undefined
  limit: number
  /** milliseconds */
  now: number
}

/** The latest turns of a conversation that have not expired, newest first. */
export const latestTurns = (db: Database, conversationId: string, page: TurnPage): Promise<StoredTurn[]> =>
  all(
    db,
    sql`SELECT ${STORED()} FROM turns WHERE ${onPage(conversationId, page)} ORDER BY turn DESC LIMIT ${page.limit}`,
  )

/** The same with their traces. */
export const latestTraces = (db: Database, conversationId: string, page: TurnPage): Promise<TracedRow[]> =>
  all(
    db,
    sql`SELECT ${STORED()}, trace FROM turns WHERE ${onPage(conversationId, page)}
      ORDER BY turn DESC LIMIT ${page.limit}`,
  )

const onPage = (conversationId: string, { before, asOf, now }: Omit<TurnPage, 'limit'>): Sql =>
  allOf(
    sql`conversation_id = ${conversationId} AND expires_at > ${now}`,
    asOf === undefined
      ? sql`replaced_by IS NULL`
      : sql`turn < ${asOf} AND (replaced_by IS NULL OR replaced_by >= ${asOf})`,
    before === undefined ? undefined : sql`turn < ${before}`,
  )

/**
 * Which turns of a conversation took the place of which, as far as they have not expired. One that waited for its visitor is no
 * version: the turn that went on from it holds its answer. @param now milliseconds
 */
export const replacements = (
  db: Database,
  conversationId: string,
  now: number,
): Promise<{ turn: number; by: number }[]> =>
  all(
    db,
    sql`SELECT turn, replaced_by AS by FROM turns
      WHERE conversation_id = ${conversationId} AND expires_at > ${now} AND replaced_by IS NOT NULL
        AND finish_reason <> 'tool_calls' ORDER BY turn`,
  )

/** A turn that has not expired, also a version that another one replaced. @param now milliseconds */
export const findTurn = (
  db: Database,
  conversationId: string,
  turn: number,
  now: number,
): Promise<TracedRow | undefined> =>
  first(
    db,
    sql`SELECT ${STORED()}, trace FROM turns
      WHERE conversation_id = ${conversationId} AND turn = ${turn} AND expires_at > ${now}`,
  )

/** The turn that stands in the place of one, which may be itself: the end of those that took its place one after the other. */
export async function currentTurn(db: Database, conversationId: string, turn: number): Promise<number> {
  const row = await first<{ turn: number }>(
    db,
    sql`WITH RECURSIVE later(turn) AS (
        SELECT ${turn} UNION
        SELECT replaced_by FROM turns JOIN later USING (turn)
        WHERE conversation_id = ${conversationId} AND replaced_by IS NOT NULL)
      SELECT max(turn) AS turn FROM later`,
  )
  return row!.turn
}

/**
 * The turns of a conversation that were recorded between two times, oldest first. Times are in milliseconds since
 * 1970.
 */
export const turnsBetween = (
  db: Database,
  conversationId: string,
  { from, to, now }: { from: number; to: number; now: number },
): Promise<Pick<TurnRow, 'turn' | 'createdAt' | 'question' | 'answer'>[]> =>
  all(
    db,
    sql`${select(turns, 'turn', 'createdAt', 'question', 'answer')}
      WHERE ${onPage(conversationId, { now })} AND created_at BETWEEN ${from} AND ${to} ORDER BY turn`,
  )

/** The last row of turns. SQLite numbers rows in the order of time. */
export async function latestTurnRow(db: Database): Promise<number> {
  const row = await first<{ last: number }>(db, sql`SELECT coalesce(max(rowid), 0) AS last FROM turns`)
  return row!.last
}

/** A turn as far as it says how well it was answered. */
export interface AskedTurn extends Pick<TurnRow, 'conversationId' | 'turn' | 'createdAt'> {
  /** its row */
  number: number
  /** as it was searched */
  question: string
  /** 1: its answer cites nothing, and called no tool */
  bare: number
  declined: number | null
  warned: number | null
  /** 1: it was asked again */
  again: number
  /** JSON: the first documents of its prompt */
  passages: string | null
  /** JSON: for each person who rated it down, their reasons */
  reasons: string
}

interface AskedPage {
  /** a row: only later ones */
  after: number
  limit: number
  /** a user whose turns are left out */
  without: string
  /** milliseconds */
  now: number
}

/** Turns that were answered and have not expired, in the order of their rows. */
export const askedTurns = (db: Database, whose: Of, page: AskedPage): Promise<AskedTurn[]> =>
  all(
    db,
    sql`SELECT turns.rowid AS number, conversation_id AS conversationId, turn, turns.created_at AS createdAt,
        coalesce(standalone, question) AS question, citations = '[]' AND parts IS NULL AS bare, verdict ->> '$.declined' AS declined,
        verdict ->> '$.warned' AS warned, replaced_by IS NOT NULL AS again,
        json_extract(passages, '$[0]', '$[1]', '$[2]') AS passages,
        (SELECT json_group_array(json(f.reasons)) FROM feedback f WHERE f.conversation_id = turns.conversation_id
          AND f.turn = turns.turn AND f.rating = 'down') AS reasons
      FROM turns JOIN conversations ON conversations.id = conversation_id
      WHERE ${allOf(
        sql`turns.rowid > ${page.after} AND timings <> '{}' AND finish_reason <> 'tool_calls'
          AND turns.expires_at > ${page.now}`,
        sql`user_id <> ${page.without}`,
        ...areOf(whose),
      )} ORDER BY turns.rowid LIMIT ${page.limit}`,
  )

/** Deletes a turn that somebody deleted, with the versions that it replaced. */
export async function deleteTurn(db: Database, conversationId: string, turn: number): Promise<void> {
  await run(
    db,
    sql`WITH RECURSIVE gone(turn) AS (SELECT ${turn} UNION SELECT older.turn FROM turns older
        JOIN gone ON older.replaced_by = gone.turn WHERE older.conversation_id = ${conversationId})
      DELETE FROM turns WHERE conversation_id = ${conversationId} AND turn IN (SELECT turn FROM gone)`,
  )
}

/** Deletes a turn that its history refused. Those that it would have replaced stand again. */
export async function takeBackTurn(db: Database, conversationId: string, turn: number): Promise<void> {
  await batch(db, [
    sql`DELETE FROM turns WHERE conversation_id = ${conversationId} AND turn = ${turn}`,
    sql`UPDATE turns SET replaced_by = NULL WHERE conversation_id = ${conversationId} AND replaced_by = ${turn}`,
  ])
}

/** Deletes some expired turns, oldest first. @returns how many */
export const deleteExpiredTurns = (db: Database, now: number, limit: number): Promise<number> =>
  run(
    db,
    sql`DELETE FROM turns WHERE (conversation_id, turn) IN
      (SELECT conversation_id, turn FROM turns WHERE expires_at <= ${now} ORDER BY expires_at LIMIT ${limit})`,
  )

// =============================================================================
// Removes the traces of older turns. A trace is 15 to 30 KB, several times as long as the rest of its turn, so D1 would be full
// of them. The turn itself stays until it expires.
//
// SQLite's row numbers grow with time, so the sweep walks the rows in their order and remembers how far it came. An
// index would be billed as one more row for each turn.

/** The row of `resources` that says how far the sweep came. A backup does not have it (backup.ts). */
export const SWEEP = 'sweep'
const TRACES = 'traces'

const Progress = once(() => v.object({ after: v.number() }))

/**
 * Removes some traces. Traces of turns with feedback stay, and so does what OpenSearch's API stores in a trace.
 * @param before unix milliseconds; traces of turns from before then go
 * @param limit rows to look at
 * @returns whether there may be more
 */
export async function trimTraces(db: Database, before: number, limit: number): Promise<boolean> {
  const stored = await findResource(db, SWEEP, TRACES)
  const after = stored === undefined ? 0 : v.parse(Progress(), JSON.parse(stored.body)).after
  const rows = await all<{ number: number; createdAt: number }>(
    db,
    sql`SELECT rowid AS number, created_at AS createdAt FROM turns WHERE rowid > ${after} ORDER BY rowid LIMIT ${limit}`,
  )
  const young = rows.findIndex(({ createdAt }) => createdAt >= before)
  const last = rows.at(young === -1 ? -1 : young - 1)
  if (rows.length === 0) {
    await startAgain(db, after)
    return false
  }
  if (young === 0 || last === undefined) return false
  await run(
    db,
    // Rows from before migration 0011 have their suggestions in the trace alone.
    sql`UPDATE turns SET trace = ${NO_TRACE},
        followups = coalesce(followups, json_extract(trace, '$.followups'), '[]')
      WHERE rowid > ${after} AND rowid <= ${last.number} AND length(trace) > ${NO_TRACE.length}
        AND json_type(trace, '$.message') IS NULL AND json_type(trace, '$.traces') IS NULL
        AND NOT EXISTS (SELECT 1 FROM feedback f WHERE f.conversation_id = turns.conversation_id AND f.turn = turns.turn)`,
  )
  await remember(db, last.number)
  return rows.length === limit
}

/**
 * Moves the sweep back to the last row that exists. SQLite gives the numbers of deleted rows at the end to new ones,
 * which the sweep would otherwise skip.
 */
async function startAgain(db: Database, after: number): Promise<void> {
  if (after === 0) return
  const last = await latestTurnRow(db)
  if (last < after) await remember(db, last)
}

const remember = (db: Database, after: number): Promise<number> =>
  putResource(db, { kind: SWEEP, id: TRACES, body: JSON.stringify({ after }) })

// =============================================================================
// Usage by day, key and model. Budgets and reports read it.

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

interface UsageFilter {
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
