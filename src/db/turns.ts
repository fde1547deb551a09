/** Rows of finished turns. Each is written once, together with the conversation's row and the day's usage. */
import sql, { raw, type Sql } from 'sql-template-tag'
import * as v from 'valibot'
import { once } from '../lib/once'
import { all, allOf, batch, columnsOf, type Database, first, insert, isIn, run, select, sets } from './client'
import { type ConversationEntry, erasureSince, marksFor, upsertConversation } from './conversations'
import { NO_TRACE } from './messages'
import { findResource, putResource } from './resources'
import { type RowOf, turns, type usage } from './schema'
import { forgetSpent, type UsageRow } from './usage'

export type TurnRow = RowOf<typeof turns>

export type Spent = Omit<RowOf<typeof usage>, 'turns'>

/** What a turn cost, by model. */
export interface Cost {
  /** usage of the model that was asked; the turn counts towards this model */
  usage: Spent
  /** usage of models that answered or wrote in its place; only tokens are counted for them */
  others?: Spent[]
  /** the answer is copied from a turn that was already charged, so nothing is counted */
  copied?: true
  /** for a turn that was counted before it ran (usage.ts): 0, or -1 if it is given back because it cost nothing */
  turns?: 0 | -1
}

type Later = 'followups' | 'assistant' | 'passages' | 'replacedBy' | 'verdict'

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
 * Statements after the turn's insertion count the usage, each only if the one before it wrote a row. A row with the
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
  const row = { followups: null, assistant: null, passages: null, replacedBy: null, verdict: null, ...turn }
  const [erased] = await batch(db, [
    erasureSince(conversation.createdAt, marks),
    sql`${insert(turns, row)} ON CONFLICT (conversation_id, turn) DO UPDATE SET ${sets<typeof turns>(row)}
      WHERE turns.created_at <> excluded.created_at`,
    ...costs.map((cost) => spending(cost, sql`changes() = 1`)),
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

/** Which turns of a conversation took the place of which, as far as they have not expired. @param now milliseconds */
export const replacements = (
  db: Database,
  conversationId: string,
  now: number,
): Promise<{ turn: number; by: number }[]> =>
  all(
    db,
    sql`SELECT turn, replaced_by AS by FROM turns
      WHERE conversation_id = ${conversationId} AND expires_at > ${now} AND replaced_by IS NOT NULL ORDER BY turn`,
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
  const row = await first<{ last: number }>(db, sql`SELECT coalesce(max(rowid), 0) AS last FROM turns`)
  if (row!.last < after) await remember(db, row!.last)
}

const remember = (db: Database, after: number): Promise<number> =>
  putResource(db, { kind: SWEEP, id: TRACES, body: JSON.stringify({ after }) })
