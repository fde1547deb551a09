/** Takes conversations from a backup. */
import { type BackupRow, historyIds, restoreRows } from '../db/backup'
import { ApiError, collectionMissing, unwrap } from '../errors'
import { mapFew } from '../lib/few'
import { historyStore } from '../registry/engines'
import { conversationObject } from './conversation-object'
import { ADMIN } from './stored'

/** Objects called at the same time. */
const AT_ONCE = 5

/**
 * Stores the rows of conversations, and tells each object the owner and the last turn's number. Otherwise a
 * conversation would belong to whoever continued it first. The messages are documents of the history collection,
 * which must exist.
 * @returns how many rows were stored. A conversation that is there already is left as it is
 * @throws ApiError 400 for a row that is not a conversation's, 404 for a missing history collection
 */
export async function restoreConversations(env: Cloudflare.Env, rows: BackupRow[]): Promise<number> {
  const db = env.DB
  const ids = await historyIds(db, [...new Set(rows.map(historyOf))])
  const known = rows.map((row, index) => {
    const { id, last_turn: last } = row
    if (typeof id !== 'string' || id === '') {
      throw new ApiError(400, `\`rows.${index}.id\`: Expected the id of a conversation.`)
    }
    if (last != null && !(Number.isSafeInteger(last) && Number(last) >= 0)) {
      throw new ApiError(400, `\`rows.${index}.last_turn\`: Expected the number of a turn.`)
    }
    const historyId = ids.get(historyOf(row))
    if (historyId === undefined) throw collectionMissing(historyOf(row))
    return { row: { ...row, history_id: historyId } as BackupRow, historyId }
  })
  for (const historyId of new Set(ids.values())) await historyStore(env, historyId).keepHistory()
  const stored = await restoreRows(
    db,
    'conversations',
    known.map(({ row }) => row),
  )
  await mapFew(known, AT_ONCE, async ({ row, historyId }) => {
    const { id, owner, user_id, proof, protocol, model_id, title } = row as Record<string, string>
    const createdAt = Number(row.created_at)
    const expiresAt = Number(row.expires_at)
    unwrap(
      await conversationObject(env, id!).tell({
        what: 'restored',
        conversationId: id!,
        asker: ADMIN,
        protocol: protocol!,
        historyId,
        modelId: model_id!,
        ttl: 0,
        begun: {
          owner: { owner: owner!, userId: user_id!, ...(proof && { proof }) },
          title: title!,
          createdAt,
        },
        turn: Number(row.last_turn ?? 0),
        expiresAt,
      }),
    )
  })
  return stored
}

function historyOf({ history_collection: name }: BackupRow): string {
  if (typeof name === 'string') return name
  throw new ApiError(400, '`history_collection` of a conversation must name a collection.')
}
