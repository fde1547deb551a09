/**
 * API keys in D1. Values are stored as hashes; schema.ts tells when a sealed value is stored too.
 *
 * Conversations and usage refer to a key by its id, so ids are never reused. If the deleted key has the highest id,
 * an empty row remains, which nobody sees and no value matches.
 */
import { and, asc, eq, lt, ne, type SQL, sql } from 'drizzle-orm'
import * as v from 'valibot'
import { once } from '../lib/once'
import { readStored } from '../lib/stored-json'
import { columnsOf, type Database, type Reads } from './client'
import { apiKeys } from './schema'

/** A stored key. `actions` and `collections` are lists of strings. */
export interface ApiKeyRecord {
  id: number
  /** the first four characters of the value */
  prefix: string
  /** SHA-256 of the value, hexadecimal */
  hash: string
  sealedValue: string | null
  description: string
  actions: string[]
  collections: string[]
  /** unix seconds */
  expiresAt: number
  autodelete: boolean
  limits: KeyLimits
}

/** What a key imposes on its holder; {} for an ordinary key. */
export interface KeyLimits {
  /** the only conversation model that it may use */
  conversation_model_id?: string
  /** the only assistant that it may ask; all else it may do is read what it asked */
  assistant?: string
  /** the user that it speaks for, whatever the request says */
  user_id?: string
  /** origins of pages that may use it; requests without an origin do not come from a page */
  allowed_origins?: string[]
  /** tokens, in and out, that its conversations may use in a day */
  tokens_per_day?: number
  turns_per_day?: number
}

const Strings = once(() => v.array(v.string()))

const Limits: () => v.GenericSchema<KeyLimits> = once(() =>
  v.object({
    conversation_model_id: v.exactOptional(v.string()),
    assistant: v.exactOptional(v.string()),
    user_id: v.exactOptional(v.string()),
    allowed_origins: v.exactOptional(Strings()),
    tokens_per_day: v.exactOptional(v.number()),
    turns_per_day: v.exactOptional(v.number()),
  }),
)

type Row = typeof apiKeys.$inferSelect

/** The actions of a deleted key. Any other key has at least one. */
const NONE = '[]'
const alive = once(() => ne(apiKeys.actions, NONE))

/** The columns of a key that hold JSON. @throws ValiError, SyntaxError for what no version has written */
export const columnsOfKey = ({
  actions,
  collections,
  limits,
}: Pick<Row, 'actions' | 'collections' | 'limits'>) => ({
  actions: readStored(Strings(), actions),
  collections: readStored(Strings(), collections),
  limits: limits === null ? {} : readStored(Limits(), limits),
})

/** A key as it is stored. SQLite has numbers for booleans. */
export const recordOf = (row: Row): ApiKeyRecord => ({
  ...row,
  ...columnsOfKey(row),
  autodelete: Boolean(row.autodelete),
})

/** Stores a key under the next id, counting from 0. @returns undefined when another key has the same value */
export async function insertApiKey(
  db: Database,
  key: Omit<ApiKeyRecord, 'id'>,
): Promise<ApiKeyRecord | undefined> {
  const rows = await db
    .insert(apiKeys)
    .values({
      ...key,
      id: sql`(select coalesce(max(id) + 1, 0) from api_keys)`,
      actions: JSON.stringify(key.actions),
      collections: JSON.stringify(key.collections),
      limits: storedLimits(key.limits),
    })
    .onConflictDoNothing({ target: apiKeys.hash })
    .returning()
  return rows[0] && recordOf(rows[0])
}

export async function listApiKeys(db: Database): Promise<ApiKeyRecord[]> {
  return (await db.select().from(apiKeys).where(alive()).orderBy(asc(apiKeys.id))).map(recordOf)
}

export async function getApiKey(db: Database, id: number): Promise<ApiKeyRecord | undefined> {
  const row = await db
    .select()
    .from(apiKeys)
    .where(and(eq(apiKeys.id, id), alive()))
    .get()
  return row && recordOf(row)
}

/**
 * Changes what may change of a key: neither its value nor what it opens.
 * @returns the key as it is now; undefined when there is none
 */
export async function updateApiKey(
  db: Database,
  id: number,
  { limits, ...changes }: Partial<Pick<ApiKeyRecord, 'description' | 'expiresAt' | 'autodelete' | 'limits'>>,
): Promise<ApiKeyRecord | undefined> {
  const rows = await db
    .update(apiKeys)
    .set({ ...changes, ...(limits !== undefined && { limits: storedLimits(limits) }) })
    .where(and(eq(apiKeys.id, id), alive()))
    .returning()
  return rows[0] && recordOf(rows[0])
}

const storedLimits = (limits: KeyLimits): string | null =>
  Object.keys(limits).length > 0 ? JSON.stringify(limits) : null

/** @returns false when there is no such key */
export const deleteApiKey = async (db: Database, id: number): Promise<boolean> =>
  (await deleteWhere(db, eq(apiKeys.id, id))) > 0

/** @returns how many keys were deleted */
async function deleteWhere(db: Database, which: SQL | undefined): Promise<number> {
  const [emptied] = await db.batch([
    db
      .update(apiKeys)
      .set({
        hash: sql`'deleted ' || ${apiKeys.id}`,
        prefix: '',
        sealedValue: null,
        description: '',
        actions: NONE,
        collections: NONE,
        limits: null,
      })
      .where(and(which, alive())),
    db
      .delete(apiKeys)
      .where(and(eq(apiKeys.actions, NONE), lt(apiKeys.id, sql`(SELECT max(id) FROM api_keys)`))),
  ])
  return emptied.meta.changes
}

/** A statement that finds the key with a hash. */
export const apiKeyByHash = (db: Reads, hash: string): D1PreparedStatement =>
  db.prepare(`SELECT ${columnsOf(apiKeys)} FROM api_keys WHERE hash = ?1`).bind(hash)

/** The key in the reply to `apiKeyByHash`. */
export const keyIn = ([row]: readonly unknown[]): ApiKeyRecord | undefined =>
  row === undefined ? undefined : recordOf(row as Row)

export async function findApiKeysByPrefix(db: Database, prefix: string): Promise<ApiKeyRecord[]> {
  return (await db.select().from(apiKeys).where(eq(apiKeys.prefix, prefix))).map(recordOf)
}

/** Deletes keys with `autodelete` that expired before `now` (unix seconds). */
export async function deleteExpiredApiKeys(db: Database, now: number): Promise<void> {
  await deleteWhere(db, and(eq(apiKeys.autodelete, true), lt(apiKeys.expiresAt, now)))
}
