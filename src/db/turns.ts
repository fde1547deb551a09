/** Rows of finished turns. Each is written once, together with the conversation's row and the day's usage. */
import {
  and,
  asc,
  between,
  desc,
  eq,
  getTableColumns,
  gt,
  isNotNull,
  isNull,
  lt,
  lte,
  ne,
  sql,
} from 'drizzle-orm'
import * as v from 'valibot'
import { once } from '../lib/once'
import type { Database } from './client'
import { type ConversationEntry, erasureSince, marksFor, upsertConversation } from './conversations'
import { NO_TRACE } from './messages'
import { findResource, putResource } from './resources'
import { turns, usage } from './schema'
import { forgetSpent } from './usage'

export type TurnRow = typeof turns.$inferSelect

export type Spent = Omit<typeof usage.$inferSelect, 'turns'>

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
  const [erasures] = await db.batch([
    erasureSince(db, conversation.createdAt, marks),
    db
      .insert(turns)
      .values(turn)
      .onConflictDoUpdate({
        target: [turns.conversationId, turns.turn],
        set: { followups: null, assistant: null, passages: null, replacedBy: null, verdict: null, ...turn },
        setWhere: ne(turns.createdAt, turn.createdAt),
      }),
    ...costs.map((row) =>
      db
        .insert(usage)
        .select(
          sql`SELECT ${row.day}, ${row.owner}, ${row.modelId}, ${row.turns}, ${row.inputTokens}, ${row.outputTokens}
            WHERE changes() = 1`,
        )
        .onConflictDoUpdate(ADDED()),
    ),
    ...(replaced.length > 0
      ? [db.update(turns).set({ replacedBy: turn.turn }).where(numbered(conversation.id, replaced))]
      : []),
    ...upsertConversation(db, conversation),
  ])
  for (const row of costs) forgetSpent(row)
  return erasures.length > 0
}

const rowsOf = ({
  usage: spent,
  others = [],
  copied,
  turns = 1,
}: Omit<Parameters<typeof recordCost>[1], 'turns'> & { turns?: number }): (typeof usage.$inferSelect)[] =>
  copied ? [] : [...(spent ? [{ ...spent, turns }] : []), ...others.map((other) => ({ ...other, turns: 0 }))]

const numbered = (conversationId: string, numbers: number[]) =>
  sql`${turns.conversationId} = ${conversationId}
    AND ${turns.turn} IN (SELECT value FROM json_each(${JSON.stringify(numbers)})) AND ${turns.replacedBy} IS NULL`

const ADDED = once(() => ({
  target: [usage.day, usage.owner, usage.modelId],
  set: {
    turns: sql`${usage.turns} + excluded.turns`,
    inputTokens: sql`${usage.inputTokens} + excluded.input_tokens`,
    outputTokens: sql`${usage.outputTokens} + excluded.output_tokens`,
  },
}))

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
  await db.insert(usage).values(rows).onConflictDoUpdate(ADDED())
  for (const row of rows) forgetSpent(row)
}

/** A turn without its trace, which would be long. */
export type StoredTurn = Omit<TurnRow, 'trace'>

export type TracedRow = TurnRow

const STORED = once(() => {
  const { trace: _, ...columns } = getTableColumns(turns)
  return {
    ...columns,
    // Rows from before migration 0011 have suggestions in their traces alone.
    followups: sql<string | null>`coalesce(${turns.followups}, json_extract(${turns.trace}, '$.followups'))`,
  }
})
const TRACED = once(() => ({ ...STORED(), trace: turns.trace }))

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
  db
    .select(STORED())
    .from(turns)
    .where(onPage(conversationId, page))
    .orderBy(desc(turns.turn))
    .limit(page.limit)

/** The same with their traces. */
export const latestTraces = (db: Database, conversationId: string, page: TurnPage): Promise<TracedRow[]> =>
  db
    .select(TRACED())
    .from(turns)
    .where(onPage(conversationId, page))
    .orderBy(desc(turns.turn))
    .limit(page.limit)

const onPage = (conversationId: string, { before, asOf, now }: Omit<TurnPage, 'limit'>) =>
  and(
    eq(turns.conversationId, conversationId),
    gt(turns.expiresAt, now),
    asOf === undefined
      ? isNull(turns.replacedBy)
      : sql`${turns.turn} < ${asOf} AND (${turns.replacedBy} IS NULL OR ${turns.replacedBy} >= ${asOf})`,
    before === undefined ? undefined : lt(turns.turn, before),
  )

/** Which turns of a conversation took the place of which, as far as they have not expired. @param now milliseconds */
export const replacements = (
  db: Database,
  conversationId: string,
  now: number,
): Promise<{ turn: number; by: number }[]> =>
  db
    .select({ turn: turns.turn, by: sql<number>`${turns.replacedBy}` })
    .from(turns)
    .where(
      and(eq(turns.conversationId, conversationId), gt(turns.expiresAt, now), isNotNull(turns.replacedBy)),
    )
    .orderBy(asc(turns.turn))

/** A turn that has not expired, also a version that another one replaced. @param now milliseconds */
export async function findTurn(
  db: Database,
  conversationId: string,
  turn: number,
  now: number,
): Promise<TracedRow | undefined> {
  const [row] = await db
    .select(TRACED())
    .from(turns)
    .where(and(eq(turns.conversationId, conversationId), eq(turns.turn, turn), gt(turns.expiresAt, now)))
  return row
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
  db
    .select({
      turn: turns.turn,
      createdAt: turns.createdAt,
      question: turns.question,
      answer: turns.answer,
    })
    .from(turns)
    .where(and(onPage(conversationId, { now }), between(turns.createdAt, from, to)))
    .orderBy(asc(turns.turn))

/** Deletes a turn that somebody deleted, with the versions that it replaced. */
export async function deleteTurn(db: Database, conversationId: string, turn: number): Promise<void> {
  await db.run(sql`WITH RECURSIVE gone(turn) AS (SELECT ${turn} UNION
      SELECT older.turn FROM turns older JOIN gone ON older.replaced_by = gone.turn WHERE older.conversation_id = ${conversationId})
    DELETE FROM turns WHERE conversation_id = ${conversationId} AND turn IN (SELECT turn FROM gone)`)
}

/** Deletes a turn that its history refused. Those that it would have replaced stand again. */
export async function takeBackTurn(db: Database, conversationId: string, turn: number): Promise<void> {
  await db.batch([
    db.delete(turns).where(and(eq(turns.conversationId, conversationId), eq(turns.turn, turn))),
    db
      .update(turns)
      .set({ replacedBy: null })
      .where(and(eq(turns.conversationId, conversationId), eq(turns.replacedBy, turn))),
  ])
}

/** Deletes some expired turns, oldest first. @returns how many */
export async function deleteExpiredTurns(db: Database, now: number, limit: number): Promise<number> {
  const expired = db
    .select({ conversationId: turns.conversationId, turn: turns.turn })
    .from(turns)
    .where(lte(turns.expiresAt, now))
    .orderBy(asc(turns.expiresAt))
    .limit(limit)
  const { meta } = await db.delete(turns).where(sql`(${turns.conversationId}, ${turns.turn}) IN ${expired}`)
  return meta.changes
}

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
  const rows = await db.all<{ number: number; createdAt: number }>(
    sql`SELECT rowid AS number, created_at AS createdAt FROM turns WHERE rowid > ${after} ORDER BY rowid LIMIT ${limit}`,
  )
  const young = rows.findIndex(({ createdAt }) => createdAt >= before)
  const last = rows.at(young === -1 ? -1 : young - 1)
  if (rows.length === 0) {
    await startAgain(db, after)
    return false
  }
  if (young === 0 || last === undefined) return false
  await db
    .update(turns)
    .set({
      trace: NO_TRACE,
      // Rows from before migration 0011 have their suggestions in the trace alone.
      followups: sql`coalesce(${turns.followups}, json_extract(${turns.trace}, '$.followups'), '[]')`,
    })
    .where(
      sql`turns.rowid > ${after} AND turns.rowid <= ${last.number} AND length(${turns.trace}) > ${NO_TRACE.length}
        AND json_type(${turns.trace}, '$.message') IS NULL AND json_type(${turns.trace}, '$.traces') IS NULL
        AND NOT EXISTS (SELECT 1 FROM feedback f WHERE f.conversation_id = ${turns.conversationId} AND f.turn = ${turns.turn})`,
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
  const { last } = await db.get<{ last: number }>(sql`SELECT coalesce(max(rowid), 0) AS last FROM turns`)
  if (last < after) await remember(db, last)
}

const remember = (db: Database, after: number): Promise<number> =>
  putResource(db, { kind: SWEEP, id: TRACES, body: JSON.stringify({ after }) })
