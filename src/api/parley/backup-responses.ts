/** Schemas of responses of the routes that back up and restore, for ui/openapi.json and tests. */
import * as v from 'valibot'

const Count = v.pipe(v.number(), v.integer(), v.minValue(0))

export const BackupCounts = v.object({
  counts: v.pipe(v.record(v.string(), Count), v.description('Rows by kind')),
})

export const BackupPage = v.object({
  rows: v.array(v.record(v.string(), v.union([v.string(), v.number(), v.null()]))),
  next: v.optional(v.pipe(v.string(), v.description('Send it as `after` for the next page'))),
})

export const BackupDocuments = v.object({
  lines: v.pipe(
    v.string(),
    v.description('JSON lines, a document each, in the order in which they were added'),
  ),
  next: v.optional(v.pipe(Count, v.description('Send it as `after` for the next page'))),
})

export const Restored = v.object({
  stored: v.pipe(Count, v.description('Rows that were not there yet')),
  keys: v.optional(
    v.pipe(
      v.array(v.object({ id: Count, description: v.string(), value: v.string() })),
      v.description('Of `keys`: the new values of those that were stored. They are not shown again'),
    ),
  ),
})
