/** What only an operator does: sources that are read again, the account, maintenance, and backup and restore (docs/backup.md). */
import { requireAdmin } from '../../auth/access'
import { requireCollections } from '../../auth/authenticate'
import { restoreKeys } from '../../auth/keys'
import { restoreConversations } from '../../conversation/restore'
import { columnsOfKey } from '../../db/api-keys'
import { type BackupRow, backupCounts, backupPage, restoreRows } from '../../db/backup'
import type { BackupKind } from '../../db/backup-kinds'
import { dayOf, listUsage } from '../../db/turns'
import { steps } from '../../engines/port'
import { badRequest, unwrap } from '../../errors'
import { tryJson } from '../../lib/json'
import { storedConfig as assistantIn } from '../../registry/assistants'
import { findCollection, forgetNames } from '../../registry/collections'
import { ownObject } from '../../registry/engines'
import { keepHistoriesOf, storedConfig as modelIn } from '../../registry/models'
import { reconcileCollection, resealAll } from '../../registry/operations'
import { register, runNow } from '../../sources/register'
import { getSource, listSources, removeSource } from '../../sources/source'
import { guarded, type Handlers, type Serving } from './route'
import { MOST_USAGE } from './schemas'

const DAY_MS = 86_400_000
/** Days to show by default. */
const DEFAULT_DAYS = 30

/** @throws ApiError 401 for a source of a collection that the key does not name, 404 */
async function requireOwn({ env, access, record, path }: Serving<'deleteSource'>): Promise<void> {
  const { collection } = await getSource(env, path.name)
  requireCollections(access, record.action!, [collection], record)
}

/** A backup is of everybody's conversations, and a restored key can be one that may do everything. */
const backups = guarded(({ access }) => requireAdmin(access, 'backs up and restores'), {
  /** How many rows of each kind there are. */
  async countBackup({ env }) {
    return { counts: await backupCounts(env.DB) }
  },

  async readBackup({ env, path, query }) {
    const after = query.after === undefined ? undefined : positionOf(query.after)
    const { rows, next } = await backupPage(env.DB, path.kind, after)
    return { rows, ...(next && { next: JSON.stringify(next) }) }
  },

  async readDocuments({ env, path, query }) {
    const collection = ownObject(env, await findCollection(env, path.collection))
    const whole = { filterBy: '', include: '', exclude: '' }
    const lines: string[] = []
    let characters = 0
    for await (const some of steps(
      (after) => collection.exportPage(whole, after).then(unwrap),
      query.after,
    )) {
      if (some.lines !== '') lines.push(some.lines)
      characters += some.lines.length
      if (!some.done && characters >= DOCUMENTS) return { lines: lines.join('\n'), next: some.cursor }
    }
    return { lines: lines.join('\n') }
  },

  async restoreBackup({ env, path: { kind }, body: { rows } }) {
    requireReadable(kind, rows)
    if (kind === 'keys') return restoreKeys(env, rows)
    if (kind === 'conversations') return { stored: await restoreConversations(env, rows) }
    const stored = await restoreRows(env.DB, kind, rows)
    if (kind === 'models') await keepHistoriesOf(env, rows)
    else forgetNames()
    return { stored }
  },
})

export const operator = {
  async listSources({ env }) {
    return { sources: await listSources(env) }
  },

  async putSource({ env, access, record, path, body }) {
    const before = (await listSources(env)).find(({ name }) => name === path.name)
    const collections = [...(before ? [before.collection] : []), body.collection]
    requireCollections(access, record.action!, collections, record)
    return register(env, path.name, body)
  },

  async deleteSource(served) {
    await requireOwn(served)
    return removeSource(served.env, served.path.name)
  },

  async runSource(served) {
    await requireOwn(served)
    return runNow(served.env, served.path.name)
  },

  async listUsage({ env, query }) {
    const to = query.to ?? dayOf(Date.now())
    const from = query.from ?? dayOf(Date.parse(to) - (DEFAULT_DAYS - 1) * DAY_MS)
    const rows = await listUsage(env.DB, {
      from,
      to,
      limit: query.limit ?? MOST_USAGE,
      offset: query.offset ?? 0,
      ...(query.key !== undefined && { owner: query.key }),
      ...(query.model !== undefined && { modelId: query.model }),
    })
    return {
      from,
      to,
      usage: rows.map((row) => ({
        day: row.day,
        key: row.owner,
        conversation_model_id: row.modelId,
        turns: row.turns,
        input_tokens: row.inputTokens,
        output_tokens: row.outputTokens,
      })),
    }
  },

  /** Seals all secrets again, after a change of ENCRYPTION_KEY (docs/security.md). */
  async reseal({ env }) {
    return { resealed: await resealAll(env) }
  },

  /** Compares Vectorize with the documents (docs/search.md). */
  reconcileVectors({ env, query: { collection, after = '' } }) {
    return reconcileCollection(env, collection, after)
  },

  ...backups,
} satisfies Partial<Handlers>

/** @throws ApiError 400 */
function positionOf(text: string): (string | number | null)[] {
  const values = tryJson(text)
  if (Array.isArray(values) && values.every((value) => ['string', 'number'].includes(typeof value)))
    return values
  throw badRequest('`after`: Expected `next` of an earlier answer.')
}

/** Characters of documents in an answer. The last call may exceed this. */
const DOCUMENTS = 4_000_000

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
      throw badRequest(`\`rows.${index}\`: Its JSON is not what a backup has of ${kind}.`)
    }
  }
}
