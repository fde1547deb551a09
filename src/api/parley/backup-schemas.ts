/** Schemas of requests that back up and restore. As schemas.ts, it imports nothing of the Worker. */
import * as v from 'valibot'
import { BACKUP_KINDS } from '../../db/backup-kinds.ts'
import { once } from '../../lib/once.ts'
import { CollectionName } from './schemas.ts'

export const BackupPath = once(() => v.object({ kind: v.picklist(BACKUP_KINDS) }))

export const BackupQuery = once(() =>
  v.object({
    after: v.optional(
      v.pipe(v.string(), v.maxLength(LONGEST_POSITION), v.description('`next` of the last answer')),
    ),
  }),
)

export const BackupDocumentsPath = once(() => v.object({ collection: CollectionName() }))

export const BackupDocumentsQuery = once(() =>
  v.object({
    after: v.optional(
      v.pipe(
        v.string(),
        v.regex(/^\d{1,15}$/, 'Expected `next` of an earlier answer.'),
        v.transform(Number),
        v.description('`next` of the last answer'),
      ),
    ),
  }),
)

/** An id has up to 512 characters, and a position up to three ids as JSON. */
const LONGEST_POSITION = 4_096
const MOST_ROWS = 500

export const Restore = once(() =>
  v.strictObject({
    rows: v.pipe(
      v.array(v.record(v.string(), v.union([v.string(), v.number(), v.null()]))),
      v.maxLength(MOST_ROWS),
      v.description('Rows of this kind, as `GET /operations/backup/{kind}` gave them'),
    ),
  }),
)
