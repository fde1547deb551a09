/** A history collection's documents as what they are: the messages of conversations. */
import type { StoredMessage } from './rpc'
import type { Store } from './store'

/**
 * Makes conversations quick to find. SQLite keeps the index by itself, from the documents' own text.
 */
export function indexConversations(sql: SqlStorage): void {
  sql.exec(
    `CREATE INDEX IF NOT EXISTS documents_conversation
      ON documents (body->>'$.conversation_id', body->>'$.timestamp')`,
  )
}

/** A conversation's messages, oldest first; of the same second, in the order in which they came. */
export function conversationMessages(store: Store, conversationId: string): StoredMessage[] {
  const rows = store.sql.exec<Record<'id' | 'role' | 'message' | 'model' | 'timestamp', SqlStorageValue>>(
    `SELECT id, body->>'$.role' AS role, body->>'$.message' AS message, body->>'$.model_id' AS model,
        body->>'$.timestamp' AS timestamp
      FROM documents WHERE body->>'$.conversation_id' = ? ORDER BY body->>'$.timestamp', seq`,
    conversationId,
  )
  return rows.toArray().map(({ id, role, message, model, timestamp }) => ({
    documentId: String(id),
    role: String(role ?? ''),
    message: String(message ?? ''),
    timestamp: Number(timestamp ?? 0),
    modelId: String(model ?? ''),
  }))
}

/** Notes that a turn has been added. @returns false when it had been before */
export function claimOrigin(sql: SqlStorage, origin: string): boolean {
  return sql.exec('INSERT OR IGNORE INTO origins (origin) VALUES (?)', origin).rowsWritten > 0
}
