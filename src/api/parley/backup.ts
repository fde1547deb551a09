/** Backup and restore: rows as they are, for the admin key (docs/backup.md). */
import { type Access, ADMIN } from '../../auth/access'
import { restoreKeys } from '../../auth/keys'
import { restoreConversations } from '../../conversation/restore'
import { columnsOfKey } from '../../db/api-keys'
import { type BackupRow, backupCounts, backupPage, restoreRows } from '../../db/backup'
import type { BackupKind } from '../../db/backup-kinds'
import { ApiError, unwrap } from '../../errors'
import { storedConfig as assistantIn } from '../../registry/assistants'
import { findCollection, forgetNames } from '../../registry/collections'
import { ownObject } from '../../registry/engines'
import { keepHistoriesOf, storedConfig as modelIn } from '../../registry/models'
import { json } from '../http/deliver'
import type { operations } from './operations'
import type { Served } from './route'

type Serving<Name extends keyof typeof operations> = Served<(typeof operations)[Name]>

/**
 * A backup is of everybody's conversations, and a restored key can be one that may do everything. So no other key has these
 * actions, `*` included.
 * @throws ApiError 401
 */
function requireAdmin({ owner }: Access): void {
  if (owner === ADMIN.owner) return
  throw new ApiError(401, 'Forbidden - only the admin key backs up and restores.')
}

/** How many rows of each kind there are. */
export async function count({ env, access }: Serving<'countBackup'>): Promise<Response> {
  requireAdmin(access)
  return json({ counts: await backupCounts(env.DB) })
}

export async function page({ env, access, path, query }: Serving<'readBackup'>): Promise<Response> {
  requireAdmin(access)
  const after = query.after === undefined ? undefined : positionOf(query.after)
  const { rows, next } = await backupPage(env.DB, path.kind, after)
  return json({ rows, ...(next && { next: JSON.stringify(next) }) })
}

/** @throws ApiError 400 */
function positionOf(text: string): (string | number | null)[] {
  try {
    const values: unknown = JSON.parse(text)
    if (Array.isArray(values) && values.every((value) => ['string', 'number'].includes(typeof value)))
      return values
  } catch {
    // Reported below.
  }
  throw new ApiError(400, '`after`: Expected `next` of an earlier answer.')
}

/** Characters of documents in an answer. The last call may exceed this. */
const DOCUMENTS = 4_000_000

export async function documents({ env, access, path, query }: Serving<'readDocuments'>): Promise<Response> {
  requireAdmin(access)
  const collection = ownObject(env, await findCollection(env, path.collection))
  const lines: string[] = []
  let characters = 0
  let after = query.after ?? 0
  while (characters < DOCUMENTS) {
    const some = unwrap(await collection.exportPage({ filterBy: '', include: '', exclude: '' }, after))
    if (some.lines !== '') lines.push(some.lines)
    characters += some.lines.length
    after = some.cursor
    if (some.done) return json({ lines: lines.join('\n') })
  }
  return json({ lines: lines.join('\n'), next: after })
}

/** The functions that later read the JSON of a kind's rows. One unreadable row would fail the list of all rows. */
const READERS: { readonly [Kind in BackupKind]?: (row: Record<string, string>) => unknown } = {
  assistants: ({ config }) => assistantIn({ config: config! }),
  keys: ({ actions, collections, limits }) =>
    columnsOfKey({ actions: actions!, collections: collections!, limits: limits ?? null }),
  models: ({ config }) => modelIn({ config: config! }),
}

/** @throws ApiError 400 */
function requireReadable(kind: BackupKind, rows: BackupRow[]): void {
  for (const [index, row] of rows.entries()) {
    try {
      READERS[kind]?.(row as Record<string, string>)
    } catch {
      throw new ApiError(400, `\`rows.${index}\`: Its JSON is not what a backup has of ${kind}.`)
    }
  }
}

export async function restore({ env, access, path, body }: Serving<'restoreBackup'>): Promise<Response> {
  requireAdmin(access)
  const { rows } = body
  requireReadable(path.kind, rows)
  switch (path.kind) {
    case 'keys':
      return json(await restoreKeys(env, rows))
    case 'conversations':
      return json({ stored: await restoreConversations(env, rows) })
    case 'models': {
      const stored = await restoreRows(env.DB, 'models', rows)
      await keepHistoriesOf(env, rows)
      return json({ stored })
    }
    default: {
      const stored = await restoreRows(env.DB, path.kind, rows)
      forgetNames()
      return json({ stored })
    }
  }
}
