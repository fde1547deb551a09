/** What the sweep of expired history asks of D1. Every query is bounded and goes by an index. */
import { and, asc, eq, gt, lt, sql } from 'drizzle-orm'
import type { Database } from './client'
import { conversationModels, messages } from './schema'

export interface ExpiryRule {
  id: string
  /** seconds */
  ttl: number
}

export interface ExpiredMessage {
  historyId: string
  documentId: string
}

/**
 * A page of the models that have expired messages, deleted models too, in the order of their ids: one query finds
 * the few with work among any number.
 * @param now unix seconds
 */
export const expiryRules = (db: Database, now: number, after: string, limit: number): Promise<ExpiryRule[]> =>
  db
    .select({ id: conversationModels.id, ttl: conversationModels.ttl })
    .from(conversationModels)
    .where(
      and(
        gt(conversationModels.id, after),
        sql`EXISTS (SELECT 1 FROM ${messages} WHERE ${messages.modelId} = ${conversationModels.id}
          AND ${messages.timestamp} < ${now} - ${conversationModels.ttl})`,
      ),
    )
    .orderBy(asc(conversationModels.id))
    .limit(limit)

/** A model's messages said before a moment (unix seconds), the oldest first. */
export const expiredMessages = (
  db: Database,
  modelId: string,
  before: number,
  limit: number,
): Promise<ExpiredMessage[]> =>
  db
    .select({ historyId: messages.historyId, documentId: messages.documentId })
    .from(messages)
    .where(and(eq(messages.modelId, modelId), lt(messages.timestamp, before)))
    .orderBy(asc(messages.timestamp))
    .limit(limit)

/** How long a deleted model may still be named by messages on their way: of running turns, and while D1 is out. */
const ON_THEIR_WAY_S = 86_400

/** Deletes the rows of models that were deleted a while ago and whose last message is gone. @param now unix seconds */
export async function forgetDeletedModels(db: Database, now: number): Promise<void> {
  await db
    .delete(conversationModels)
    .where(
      and(
        lt(conversationModels.deletedAt, now - ON_THEIR_WAY_S),
        sql`NOT EXISTS (SELECT 1 FROM ${messages} WHERE ${messages.modelId} = ${conversationModels.id})`,
      ),
    )
}
