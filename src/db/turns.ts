/**
 * Rows of finished turns, written once each together with what they add: the conversation's row and the day's
 * usage.
 */
import { and, asc, desc, eq, getTableColumns, gt, lt, lte, ne, sql } from 'drizzle-orm'
import type { Database } from './client'
import { conversations, turns, usage } from './schema'
import { forgetSpent } from './usage'

export type TurnRow = typeof turns.$inferSelect

export type Spent = Omit<typeof usage.$inferSelect, 'turns'>

/** What a turn cost, a row a model. */
export interface Cost {
  /** of the model that was asked: the turn counts as one of its */
  usage: Spent
  /** of models that answered or wrote in its place: their tokens count, the turn does not */
  others?: Spent[]
}

export interface TurnRecord extends Cost {
  /** the conversation; how many turns it has is counted here */
  conversation: Omit<typeof conversations.$inferSelect, 'turns'>
  turn: TurnRow
  /** numbers of turns whose place it takes */
  replaced?: number[]
}

/**
 * Writes a turn down, as one transaction. May be repeated: a turn that is there already adds nothing.
 *
 * The usage is counted by the statements that follow the turn's insertion, each if and only if the one before it
 * wrote. A row of the same number and another time is what is left of an expired conversation of this id, and gives way.
 */
export async function recordTurn(
  db: Database,
  { conversation, turn, usage: spent, others = [], replaced = [] }: TurnRecord,
): Promise<void> {
  const { id, expiresAt } = conversation
  const many = sql`(SELECT count(*) FROM ${turns} WHERE ${turns.conversationId} = ${id})`
  const same = sql`${conversations.createdAt} = excluded.created_at`
  await db.batch([
    db
      .insert(turns)
      .values(turn)
      .onConflictDoUpdate({
        target: [turns.conversationId, turns.turn],
        set: turn,
        setWhere: ne(turns.createdAt, turn.createdAt),
      }),
    ...rowsOf(spent, others).map((row) =>
      db
        .insert(usage)
        .select(
          sql`SELECT ${row.day}, ${row.owner}, ${row.modelId}, ${row.turns}, ${row.inputTokens}, ${row.outputTokens}
            WHERE changes() = 1`,
        )
        .onConflictDoUpdate(ADDED),
    ),
    ...(replaced.length > 0 ? [db.delete(turns).where(numbered(id, replaced))] : []),
    db
      .insert(conversations)
      .values({ ...conversation, turns: many })
      .onConflictDoUpdate({
        target: conversations.id,
        set: {
          ...conversation,
          turns: many,
          updatedAt: sql`CASE WHEN ${same} THEN max(${conversations.updatedAt}, excluded.updated_at)
            ELSE excluded.updated_at END`,
          // One that is about to be erased stays so, whatever arrives late.
          expiresAt: sql`CASE WHEN ${same} AND ${conversations.expiresAt} = 0 THEN 0
            WHEN ${same} THEN max(${conversations.expiresAt}, ${expiresAt}) ELSE ${expiresAt} END`,
        },
      }),
  ])
  for (const row of rowsOf(spent, others)) forgetSpent(row)
}

const rowsOf = (spent: Spent, others: Spent[]): (typeof usage.$inferSelect)[] => [
  { ...spent, turns: 1 },
  ...others.map((other) => ({ ...other, turns: 0 })),
]

const numbered = (conversationId: string, numbers: number[]) =>
  sql`${turns.conversationId} = ${conversationId}
    AND ${turns.turn} IN (SELECT value FROM json_each(${JSON.stringify(numbers)}))`

const ADDED = {
  target: [usage.day, usage.owner, usage.modelId],
  set: {
    turns: sql`${usage.turns} + excluded.turns`,
    inputTokens: sql`${usage.inputTokens} + excluded.input_tokens`,
    outputTokens: sql`${usage.outputTokens} + excluded.output_tokens`,
  },
}

/** Adds what a turn spent that came to no answer. There is no row to tell by that it was counted before. */
export async function recordCost(db: Database, { usage: spent, others = [] }: Cost): Promise<void> {
  const rows = rowsOf(spent, others)
  await db.insert(usage).values(rows).onConflictDoUpdate(ADDED)
  for (const row of rows) forgetSpent(row)
}

/** A turn without its trace, which is long, but for what that has to say to everybody. */
export interface StoredTurn extends Omit<TurnRow, 'trace'> {
  /** JSON; null where nothing was suggested */
  followups: string | null
}

export type TracedRow = StoredTurn & Pick<TurnRow, 'trace'>

const { trace, ...WITHOUT_TRACE } = getTableColumns(turns)
const STORED = {
  ...WITHOUT_TRACE,
  followups: sql<string | null>`json_extract(${turns.trace}, '$.followups')`,
}
const TRACED = { ...STORED, trace }

interface TurnPage {
  /** a turn's number: only earlier ones */
  before?: number
  limit: number
  /** milliseconds */
  now: number
}

/** Some turns of a conversation that have not expired, the latest first. */
export const latestTurns = (db: Database, conversationId: string, page: TurnPage): Promise<StoredTurn[]> =>
  db
    .select(STORED)
    .from(turns)
    .where(onPage(conversationId, page))
    .orderBy(desc(turns.turn))
    .limit(page.limit)

/** The same with their traces. */
export const latestTraces = (db: Database, conversationId: string, page: TurnPage): Promise<TracedRow[]> =>
  db
    .select(TRACED)
    .from(turns)
    .where(onPage(conversationId, page))
    .orderBy(desc(turns.turn))
    .limit(page.limit)

const onPage = (conversationId: string, { before, now }: TurnPage) =>
  and(
    eq(turns.conversationId, conversationId),
    gt(turns.expiresAt, now),
    before === undefined ? undefined : lt(turns.turn, before),
  )

/** One turn that has not expired. @param now milliseconds */
export async function findTurn(
  db: Database,
  conversationId: string,
  turn: number,
  now: number,
): Promise<TracedRow | undefined> {
  const [row] = await db
    .select(TRACED)
    .from(turns)
    .where(and(eq(turns.conversationId, conversationId), eq(turns.turn, turn), gt(turns.expiresAt, now)))
  return row
}

/** Removes a turn that did not become history after all. */
export async function deleteTurn(db: Database, conversationId: string, turn: number): Promise<void> {
  await db.delete(turns).where(and(eq(turns.conversationId, conversationId), eq(turns.turn, turn)))
}

/** Deletes some turns that have expired, the oldest first. @returns how many */
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
