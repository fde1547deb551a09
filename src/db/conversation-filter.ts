/** Filters for the list of conversations, besides the owner. */
import { and, eq, gte, lt, type SQL, sql } from 'drizzle-orm'
import { conversations, feedback, turns } from './schema'

export interface ConversationFilter {
  /** one of its answers has this rating */
  rating?: 'up' | 'down' | undefined
  /** count only this giver's ratings; absent: everybody's */
  giver?: string | undefined
  /** one of its answers cites nothing */
  unanswered?: boolean | undefined
  /** one of its turns failed */
  failed?: boolean | undefined
  /** last used at this moment or later, in milliseconds */
  from?: number | undefined
  /** last used before this moment, in milliseconds */
  to?: number | undefined
  /** words of one of its questions and its answer */
  words?: SearchedWords | undefined
}

export interface SearchedWords {
  /** words that a question or its answer has to contain, or begin with */
  words: string[]
  /**
   * runs of text in a script without spaces. The index treats such a run as one word, so these may occur anywhere
   * inside it
   */
  parts: string[]
}

/**
 * A search looks at this many matching turns, the latest ones. Without a limit, a common word would match every turn.
 * In 100,000 turns, a rare word takes 0.2 ms and one with 5,000 matches 30 ms. Reading all texts takes 400 ms and as
 * many rows as there are.
 */
export const MOST_MATCHES = 5_000
/** A search for parts of words reads the texts of this many turns, the latest ones. Each takes 4 microseconds. */
export const MOST_READ = 20_000

export function filteredBy(filter: ConversationFilter): SQL | undefined {
  const { rating, giver, unanswered, failed, from, to, words } = filter
  return and(
    from === undefined ? undefined : gte(conversations.updatedAt, from),
    to === undefined ? undefined : lt(conversations.updatedAt, to),
    rating && sql`${conversations.id} IN ${rated(rating, giver)}`,
    // Word these two conditions exactly as the partial indexes do, or SQLite does not use those.
    unanswered
      ? sql`EXISTS (SELECT 1 FROM ${turns} WHERE ${turns.conversationId} = ${conversations.id}
          AND citations = '[]' AND timings <> '{}' AND replaced_by IS NULL)`
      : undefined,
    failed ? sql`failed_at IS NOT NULL` : undefined,
    words &&
      sql`${conversations.id} IN (SELECT ${turns.conversationId} FROM ${turns}
        WHERE ${matching(words)} AND replaced_by IS NULL)`,
  )
}

const rated = (rating: 'up' | 'down', giver: string | undefined): SQL =>
  sql`(SELECT ${feedback.conversationId} FROM ${feedback}
    WHERE ${and(eq(feedback.rating, rating), giver === undefined ? undefined : eq(feedback.giver, giver))})`

/** Row ids of turns grow with time, so the highest ones are the latest. */
function matching({ words, parts }: SearchedWords): SQL | undefined {
  const query = words.map((word) => `"${word}"*`).join(' ')
  return and(
    words.length === 0
      ? undefined
      : sql`turns.rowid IN (SELECT rowid FROM turns_text WHERE turns_text MATCH ${query}
          ORDER BY rowid DESC LIMIT ${MOST_MATCHES})`,
    parts.length === 0
      ? undefined
      : sql`turns.rowid IN (SELECT rowid FROM turns ORDER BY rowid DESC LIMIT ${MOST_READ})`,
    ...parts.map((part) => sql`instr(${turns.question} || char(10) || ${turns.answer}, ${part}) > 0`),
  )
}
