/** The queries of the sweep of expired history. Each is bounded and uses an index. */
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
 * A page of the models with expired messages, deleted models included, by id. One query finds the few with work among
 * any number of models.
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

/** A model's messages from before a time (unix seconds), oldest first. */
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

/** How long messages of a deleted model may still arrive: from running turns, and after an outage of D1. */
const ON_THEIR_WAY_S = 86_400

/** Deletes the rows of models that were deleted a while ago and have no messages left. @param now unix seconds */
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
