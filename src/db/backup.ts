/**
 * Rows of D1 as a backup holds them, by their columns' names in the database. Secrets are left out: a sealed value
 * opens only with the key of its deployment, and anyone could test guesses of an API key against its hash.
 */
import sql, { empty, join, raw } from 'sql-template-tag'
import { ApiError } from '../errors'
import { once } from '../lib/once'
import { BACKUP_KINDS, type BackupKind } from './backup-kinds'
import { all, columnOf, type Database, first, isIn, select } from './client'
import {
  aliases,
  apiKeys,
  assistants,
  collections,
  conversationModels,
  conversations,
  erasures,
  feedback,
  resources,
  type Table,
  turns,
  usage,
} from './schema'
import { SWEEP } from './turns'

type Value = string | number | null
export type BackupRow = Record<string, Value>

interface Source {
  table: Table
  /** columns of the primary key */
  key: string[]
  /** columns that a backup does not have */
  without: string[]
  /** columns that the backup has instead, as SQL over the table, named `t` */
  instead?: Record<string, string>
  /** columns that hold JSON */
  json?: string[]
  /** rows per page. Few, where rows are large: a turn can have 2 MB */
  page: number
}

const PAGE = 500
const TURNS_A_PAGE = 20

/** An object's id means nothing in another deployment, so a backup names the collection instead. */
const HISTORY = '(SELECT c.name FROM collections c WHERE c.object_id = t.history_id)'

/**
 * The names of a model's secrets, as JSON. Older rows have only the masked `api_key`, which was then the only secret.
 */
const SECRETS = `CASE WHEN json_valid(t.masked_api_key) THEN (SELECT json_group_array(key) FROM json_each(t.masked_api_key))
  WHEN t.masked_api_key IS NOT NULL THEN '["api_key"]' END`

const SOURCES = once(
  (): Record<BackupKind, Source> => ({
    aliases: { table: aliases, key: ['name'], without: [], page: PAGE },
    assistants: { table: assistants, key: ['name'], without: [], json: ['config'], page: PAGE },
    conversations: {
      table: conversations,
      key: ['id'],
      without: ['history_id'],
      instead: {
        history_collection: HISTORY,
        last_turn: '(SELECT coalesce(max(r.turn), 0) FROM turns r WHERE r.conversation_id = t.id)',
      },
      json: ['details'],
      page: PAGE,
    },
    erasures: { table: erasures, key: ['id'], without: [], page: PAGE },
    feedback: {
      table: feedback,
      key: ['conversation_id', 'turn', 'giver'],
      without: [],
      json: ['reasons'],
      page: PAGE,
    },
    keys: {
      table: apiKeys,
      key: ['id'],
      without: ['prefix', 'hash', 'sealed_value'],
      json: ['actions', 'collections', 'limits'],
      page: PAGE,
    },
    models: {
      table: conversationModels,
      key: ['id'],
      without: ['sealed_api_key', 'masked_api_key'],
      instead: { secrets: SECRETS },
      json: ['config'],
      page: PAGE,
    },
    resources: {
      table: resources,
      key: ['kind', 'id'],
      without: ['sealed'],
      instead: { had_secrets: 't.sealed IS NOT NULL' },
      json: ['body'],
      page: TURNS_A_PAGE,
    },
    turns: {
      table: turns,
      key: ['conversation_id', 'turn'],
      without: [],
      json: ['citations', 'usage', 'timings', 'trace', 'followups', 'passages'],
      page: TURNS_A_PAGE,
    },
    usage: { table: usage, key: ['day', 'owner', 'model_id'], without: [], page: PAGE },
  }),
)

/** A table's columns, by their names in the database. */
const namesOf = ({ columns }: Table): string[] => Object.keys(columns).map(columnOf)

/** Conversations without a history collection cannot be continued or read: their collection was dropped. */
function rowsOf(kind: BackupKind): string {
  if (kind === 'conversations') return `${HISTORY} IS NOT NULL AND t.expires_at > 0`
  return kind === 'resources' ? `t.kind <> '${SWEEP}'` : 'true'
}

/** How many rows of each kind a backup has. */
export async function backupCounts(db: Database): Promise<Record<BackupKind, number>> {
  const counts = BACKUP_KINDS.map((kind) => {
    const { name } = SOURCES()[kind].table
    return `(SELECT count(*) FROM ${name} t WHERE ${rowsOf(kind)}) AS ${kind}`
  })
  return (await first<Record<BackupKind, number>>(db, raw(`SELECT ${counts.join(', ')}`)))!
}

/**
 * Reads a page of a kind, in the order of the primary key.
 * @param after the values of the primary key of the last row before the page
 * @returns `next`: the primary key of the page's last row, if another page may follow
 * @throws ApiError 400 if `after` is not a valid position
 */
export async function backupPage(
  db: Database,
  kind: BackupKind,
  after: Value[] | undefined,
): Promise<{ rows: BackupRow[]; next?: Value[] }> {
  const source = SOURCES()[kind]
  const { table, key, without, instead = {}, page } = source
  if (after !== undefined && after.length !== key.length)
    throw new ApiError(400, '`after`: Not of this kind.')
  const columns = [
    ...namesOf(table).flatMap((name) => (without.includes(name) ? [] : [`t.${name}`])),
    ...Object.entries(instead).map(([name, expression]) => `${expression} AS ${name}`),
  ]
  const keys = key.map((name) => `t.${name}`).join(', ')
  const position = after ? sql`AND (${raw(keys)}) > (${join(after)})` : empty
  const rows = await all<BackupRow>(
    db,
    sql`${raw(`SELECT ${columns.join(', ')} FROM ${table.name} t WHERE ${rowsOf(kind)}`)}
      ${position} ORDER BY ${raw(keys)} LIMIT ${page}`,
  )
  const last = rows.length < page ? undefined : rows.at(-1)
  return { rows, ...(last && { next: key.map((name) => last[name]!) }) }
}

/** Characters of JSON in one statement: D1 takes 2 MB in a parameter. */
const MOST_CHARACTERS = 500_000

/**
 * Stores rows of a backup. A row whose primary key is taken is left as it is.
 * @returns how many were stored
 * @throws ApiError 400 for a row whose columns are not those of its table, or whose JSON column holds no JSON
 */
export async function restoreRows(db: Database, kind: BackupKind, rows: BackupRow[]): Promise<number> {
  const { table, json = [] } = SOURCES()[kind]
  for (const [index, row] of rows.entries()) {
    requireColumns(table, row, index)
    for (const name of json)
      if (!isJson(row[name])) throw new ApiError(400, `\`rows.${index}.${name}\`: Expected JSON.`)
  }
  const names = namesOf(table)
  const values = names.map((name) => `value->>'${name}'`)
  const insert = `INSERT INTO ${table.name} (${names.join(', ')}) SELECT ${values.join(', ')} FROM json_each(`
  let stored = 0
  for (const some of portions(rows)) {
    // Not `meta.changes`: D1 also counts the rows that triggers write.
    const written = await all(db, sql`${raw(insert)}${some}) WHERE true ON CONFLICT DO NOTHING RETURNING 1`)
    stored += written.length
  }
  return stored
}

function isJson(value: Value | undefined): boolean {
  if (typeof value !== 'string') return true
  try {
    JSON.parse(value)
    return true
  } catch {
    return false
  }
}

/**
 * Splits rows into lists of JSON, each short enough for one statement. A row that is too long gets a list of its own.
 */
function portions(rows: BackupRow[]): string[] {
  const lists: string[][] = [[]]
  let characters = 0
  for (const row of rows) {
    const text = JSON.stringify(row)
    if (characters > 0 && characters + text.length > MOST_CHARACTERS) {
      lists.push([])
      characters = 0
    }
    lists.at(-1)!.push(text)
    characters += text.length
  }
  return lists.filter((list) => list.length > 0).map((list) => `[${list.join(',')}]`)
}

/** @throws ApiError 400 */
function requireColumns({ columns }: Table, row: BackupRow, index: number): void {
  for (const [property, kind] of Object.entries(columns)) {
    const name = columnOf(property)
    const value = row[name] ?? null
    const wanted = kind.startsWith('text') ? 'string' : 'number'
    if (value === null ? !kind.endsWith('?') : typeof value !== wanted)
      throw new ApiError(400, `\`rows.${index}.${name}\`: Expected a ${wanted}.`)
  }
}

/** The objects of collections, by name. */
export async function historyIds(db: Database, names: string[]): Promise<Map<string, string>> {
  const rows = await all<{ name: string; objectId: string }>(
    db,
    sql`${select(collections, 'name', 'objectId')} WHERE ${isIn('name', names)}`,
  )
  return new Map(rows.map(({ name, objectId }) => [name, objectId]))
}
