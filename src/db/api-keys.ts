/**
 * API keys in D1. Values are stored as hashes; schema.ts tells when a sealed value is stored too.
 *
 * Conversations and usage refer to a key by its id, so ids are never reused. If the deleted key has the highest id,
 * an empty row remains, which nobody sees and no value matches.
 */
import sql, { raw, type Sql } from 'sql-template-tag'
import * as v from 'valibot'
import { once } from '../lib/once'
import { readStored } from '../lib/stored-json'
import { all, batch, columnsOf, type Database, first, insert, returning, select, sets } from './client'
import { apiKeys, type RowOf } from './schema'

const Strings = once(() => v.array(v.string()))

const Limits = once(() =>
  v.object({
    /** the only conversation model that it may use */
    conversation_model_id: v.exactOptional(v.string()),
    /** the only assistant that it may ask; all else it may do is read what it asked */
    assistant: v.exactOptional(v.string()),
    /** the user that it speaks for, whatever the request says */
    user_id: v.exactOptional(v.string()),
    /** origins of pages that may use it; requests without an origin do not come from a page */
    allowed_origins: v.exactOptional(Strings()),
    /** tokens, in and out, that its conversations may use in a day */
    tokens_per_day: v.exactOptional(v.number()),
    turns_per_day: v.exactOptional(v.number()),
  }),
)

/** What a key imposes on its holder; {} for an ordinary key. */
export type KeyLimits = v.InferOutput<ReturnType<typeof Limits>>

type Row = RowOf<typeof apiKeys>

/** The actions of a deleted key. Any other key has at least one. */
const NONE = '[]'
const ALIVE = raw(`actions <> '${NONE}'`)

/** The columns of a key that hold JSON. @throws ValiError, SyntaxError for what no version has written */
export const columnsOfKey = ({
  actions,
  collections,
  limits,
}: Pick<Row, 'actions' | 'collections' | 'limits'>) => ({
  actions: readStored(Strings(), actions),
  collections: readStored(Strings(), collections),
  limits: (limits === null ? {} : readStored(Limits(), limits)) as KeyLimits,
})

/** A stored key as it is used. */
export type ApiKeyRecord = ReturnType<typeof recordOf>

export const recordOf = (row: Row) => ({
  ...row,
  ...columnsOfKey(row),
  autodelete: Boolean(row.autodelete),
})

/** Stores a key under the next id, counting from 0. @returns undefined when another key has the same value */
export async function insertApiKey(
  db: Database,
  key: Omit<ApiKeyRecord, 'id'>,
): Promise<ApiKeyRecord | undefined> {
  const row = {
    ...key,
    id: sql`(SELECT coalesce(max(id) + 1, 0) FROM api_keys)`,
    actions: JSON.stringify(key.actions),
    collections: JSON.stringify(key.collections),
    autodelete: Number(key.autodelete),
    limits: storedLimits(key.limits),
  }
  return firstKey(db, sql`${insert(apiKeys, row)} ON CONFLICT (hash) DO NOTHING ${returning(apiKeys)}`)
}

async function firstKey(db: Database, query: Sql): Promise<ApiKeyRecord | undefined> {
  const row = await first<Row>(db, query)
  return row && recordOf(row)
}

export const listApiKeys = async (db: Database): Promise<ApiKeyRecord[]> =>
  (await all<Row>(db, sql`${select(apiKeys)} WHERE ${ALIVE} ORDER BY id`)).map(recordOf)

export const getApiKey = (db: Database, id: number): Promise<ApiKeyRecord | undefined> =>
  firstKey(db, sql`${select(apiKeys)} WHERE id = ${id} AND ${ALIVE}`)

/**
 * Changes what may change of a key: neither its value nor what it opens.
 * @returns the key as it is now; undefined when there is none
 */
export function updateApiKey(
  db: Database,
  id: number,
  {
    limits,
    autodelete,
    ...changes
  }: Partial<Pick<ApiKeyRecord, 'description' | 'expiresAt' | 'autodelete' | 'limits'>>,
): Promise<ApiKeyRecord | undefined> {
  const columns = sets<typeof apiKeys>({
    ...changes,
    autodelete: autodelete === undefined ? undefined : Number(autodelete),
    limits: limits === undefined ? undefined : storedLimits(limits),
  })
  return firstKey(db, sql`UPDATE api_keys SET ${columns} WHERE id = ${id} AND ${ALIVE} ${returning(apiKeys)}`)
}

const storedLimits = (limits: KeyLimits): string | null =>
  Object.keys(limits).length > 0 ? JSON.stringify(limits) : null

/** @returns false when there is no such key */
export const deleteApiKey = async (db: Database, id: number): Promise<boolean> =>
  (await deleteWhere(db, sql`id = ${id}`)) > 0

/** @returns how many keys were deleted */
async function deleteWhere(db: Database, which: Sql): Promise<number> {
  const [emptied] = await batch(db, [
    sql`UPDATE api_keys SET hash = 'deleted ' || id, prefix = '', sealed_value = NULL, description = '',
      actions = ${NONE}, collections = ${NONE}, limits = NULL WHERE ${which} AND ${ALIVE}`,
    sql`DELETE FROM api_keys WHERE actions = ${NONE} AND id < (SELECT max(id) FROM api_keys)`,
  ])
  return emptied!.meta.changes
}

/** A statement that finds the key with a hash. */
export const apiKeyByHash = (db: Database, hash: string): D1PreparedStatement =>
  db.prepare(`SELECT ${columnsOf(apiKeys)} FROM api_keys WHERE hash = ?1`).bind(hash)

/** The key in the reply to `apiKeyByHash`. */
export const keyIn = ([row]: readonly unknown[]): ApiKeyRecord | undefined =>
  row === undefined ? undefined : recordOf(row as Row)

export const findApiKeysByPrefix = async (db: Database, prefix: string): Promise<ApiKeyRecord[]> =>
  (await all<Row>(db, sql`${select(apiKeys)} WHERE prefix = ${prefix}`)).map(recordOf)

/** Deletes keys with `autodelete` that expired before `now` (unix seconds). */
export async function deleteExpiredApiKeys(db: Database, now: number): Promise<void> {
  await deleteWhere(db, sql`autodelete AND expires_at < ${now}`)
}
