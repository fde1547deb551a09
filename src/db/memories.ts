/** Conversations as OpenSearch's memories: numbered pages, and the details of messages. */
import { and, asc, count, desc, eq, gt, isNull, lt, sql } from 'drizzle-orm'
import type { Database } from './client'
import { areOf, type Of } from './conversations'
import { conversations, messages, type turns as Turns, turns } from './schema'

export type MessageTurn = Pick<
  typeof Turns.$inferSelect,
  'conversationId' | 'turn' | 'question' | 'answer' | 'createdAt'
> & {
  /** JSON of MessageDetails; null: none */
  more: string | null
  /** JSON, in the order in which they were added; null: none */
  traces: string | null
}

interface Page {
  limit: number
  offset: number
  /** milliseconds */
  now: number
}

/** @param by the column that the list is ordered by, latest first */
export const pageOfConversations = (
  db: Database,
  whose: Of,
  by: 'createdAt' | 'updatedAt',
  { limit, offset, now }: Page,
) =>
  db
    .select()
    .from(conversations)
    .where(
      and(
        areOf(whose),
        // The plus stops SQLite from using this column's index. With that index it would sort all rows for one page.
        sql`+${conversations.expiresAt} > ${now}`,
      ),
    )
    .orderBy(desc(conversations[by]), desc(sql`rowid`))
    .limit(limit)
    .offset(offset)

const MESSAGE = {
  conversationId: turns.conversationId,
  turn: turns.turn,
  question: turns.question,
  answer: turns.answer,
  createdAt: turns.createdAt,
  more: sql<string | null>`json_extract(${turns.trace}, '$.message')`,
  traces: sql<string | null>`json_extract(${turns.trace}, '$.traces')`,
}

/** Turns of a conversation by their numbers. @param order of the numbers */
export const pageOfTurns = (
  db: Database,
  conversationId: string,
  order: 'asc' | 'desc',
  { limit, offset, now }: Page,
) =>
  db
    .select(MESSAGE)
    .from(turns)
    .where(and(eq(turns.conversationId, conversationId), gt(turns.expiresAt, now), isNull(turns.replacedBy)))
    .orderBy(order === 'asc' ? asc(turns.turn) : desc(turns.turn))
    .limit(limit)
    .offset(offset)

export async function findMessageTurn(
  db: Database,
  conversationId: string,
  turn: number,
  now: number,
): Promise<MessageTurn | undefined> {
  const [row] = await db
    .select(MESSAGE)
    .from(turns)
    .where(and(eq(turns.conversationId, conversationId), eq(turns.turn, turn), gt(turns.expiresAt, now)))
  return row
}

/**
 * The first messages of a client's transcript, from before the first turn. Oldest first,
 * timestamps in seconds.
 */
export const messagesBeforeTurns = (db: Database, conversationId: string, most: number) => {
  const begun = sql`(SELECT ${turns.createdAt} / 1000 FROM ${turns} WHERE ${turns.conversationId} = ${conversationId}
    ORDER BY ${turns.turn} LIMIT 1)`
  return db
    .select({ role: messages.role, message: messages.message, timestamp: messages.timestamp })
    .from(messages)
    .where(and(eq(messages.conversationId, conversationId), lt(messages.timestamp, begun)))
    .orderBy(asc(messages.timestamp), asc(sql`rowid`))
    .limit(most)
}

/** How many turns a conversation has that have not expired. */
export async function countTurns(db: Database, conversationId: string, now: number): Promise<number> {
  const [row] = await db
    .select({ many: count() })
    .from(turns)
    .where(and(eq(turns.conversationId, conversationId), gt(turns.expiresAt, now), isNull(turns.replacedBy)))
  return row!.many
}

/** Merges a patch into a conversation's details, key by key. @returns the new JSON */
export async function mergeDetails(
  db: Database,
  id: string,
  patch: unknown,
  title: string | undefined,
  now: number,
) {
  const [row] = await db
    .update(conversations)
    .set({
      details: sql`json_set(json_patch(coalesce(${conversations.details}, '{}'), ${JSON.stringify(patch)}), '$.version',
        coalesce(json_extract(${conversations.details}, '$.version'), 1) + 1)`,
      updatedAt: now,
      // The latest name wins, whoever set it.
      ...(title !== undefined && { title, name: null }),
    })
    .where(eq(conversations.id, id))
    .returning({ details: conversations.details })
  return row?.details ?? '{}'
}

/** Merges a patch into the details of a turn's message, key by key. @returns the new version */
export async function mergeMessage(
  db: Database,
  conversationId: string,
  turn: number,
  patch: unknown,
  answer: string | undefined,
): Promise<number> {
  const message = sql`json_patch(coalesce(json_extract(${turns.trace}, '$.message'), '{}'), ${JSON.stringify(patch)})`
  const version = sql`coalesce(json_extract(${turns.trace}, '$.message.version'), 1) + 1`
  const [row] = await db
    .update(turns)
    .set({
      trace: sql`json_set(${turns.trace}, '$.message', json(json_set(${message}, '$.version', ${version})))`,
      // Citations point to places in the old text.
      ...(answer !== undefined && { answer, citations: '[]' }),
    })
    .where(and(eq(turns.conversationId, conversationId), eq(turns.turn, turn)))
    .returning({ version: sql<number>`json_extract(${turns.trace}, '$.message.version')` })
  return row?.version ?? 1
}

/** Adds a trace to a turn's message, in one statement. @returns its place; undefined if there is no such turn */
export async function addTrace(
  db: Database,
  conversationId: string,
  turn: number,
  trace: unknown,
): Promise<number | undefined> {
  const list = sql`coalesce(json_extract(${turns.trace}, '$.traces'), json('[]'))`
  const [row] = await db
    .update(turns)
    .set({
      trace: sql`json_set(${turns.trace}, '$.traces', json_insert(${list}, '$[#]', json(${JSON.stringify(trace)})))`,
    })
    .where(and(eq(turns.conversationId, conversationId), eq(turns.turn, turn)))
    .returning({ many: sql<number>`json_array_length(${turns.trace}, '$.traces')` })
  return row === undefined ? undefined : row.many - 1
}

/** Whether there is any conversation, or any turn, of any owner. */
export async function isAny(db: Database, what: 'conversation' | 'turn'): Promise<boolean> {
  const table = what === 'turn' ? turns : conversations
  return (await db.select({ one: sql`1` }).from(table).limit(1)).length > 0
}
