/**
 * Removes the traces of older turns. A trace is 15 to 30 KB, several times as long as the rest of its turn, so D1 would be full
 * of them. The turn itself stays until it expires.
 *
 * SQLite's row numbers grow with time, so the sweep walks the rows in their order and remembers how far it came. An
 * index would be billed as one more row for each turn.
 */
import { sql } from 'drizzle-orm'
import * as v from 'valibot'
import { once } from '../lib/once'
import type { Database } from './client'
import { NO_TRACE } from './messages'
import { findResource, putResource } from './resources'
import { turns } from './schema'

/** The row of `resources` that says how far the sweep came. A backup does not have it (backup.ts). */
export const SWEEP = 'sweep'
const TRACES = 'traces'

const Progress = once(() => v.object({ after: v.number() }))

/**
 * Removes some traces. Traces of turns with feedback stay, and so does what OpenSearch's API stores in a trace.
 * @param before unix milliseconds; traces of turns from before then go
 * @param limit rows to look at
 * @returns whether there may be more
 */
export async function trimTraces(db: Database, before: number, limit: number): Promise<boolean> {
  const stored = await findResource(db, SWEEP, TRACES)
  const after = stored === undefined ? 0 : v.parse(Progress(), JSON.parse(stored.body)).after
  const rows = await db.all<{ number: number; createdAt: number }>(
    sql`SELECT rowid AS number, created_at AS createdAt FROM turns WHERE rowid > ${after} ORDER BY rowid LIMIT ${limit}`,
  )
  const young = rows.findIndex(({ createdAt }) => createdAt >= before)
  const last = rows.at(young === -1 ? -1 : young - 1)
  if (rows.length === 0) {
    await startAgain(db, after)
    return false
  }
  if (young === 0 || last === undefined) return false
  await db
    .update(turns)
    .set({
      trace: NO_TRACE,
      // Rows from before migration 0011 have their suggestions in the trace alone.
      followups: sql`coalesce(${turns.followups}, json_extract(${turns.trace}, '$.followups'), '[]')`,
    })
    .where(
      sql`turns.rowid > ${after} AND turns.rowid <= ${last.number} AND length(${turns.trace}) > ${NO_TRACE.length}
        AND json_type(${turns.trace}, '$.message') IS NULL AND json_type(${turns.trace}, '$.traces') IS NULL
        AND NOT EXISTS (SELECT 1 FROM feedback f WHERE f.conversation_id = ${turns.conversationId} AND f.turn = ${turns.turn})`,
    )
  await remember(db, last.number)
  return rows.length === limit
}

/**
 * Moves the sweep back to the last row that exists. SQLite gives the numbers of deleted rows at the end to new ones,
 * which the sweep would otherwise skip.
 */
async function startAgain(db: Database, after: number): Promise<void> {
  if (after === 0) return
  const { last } = await db.get<{ last: number }>(sql`SELECT coalesce(max(rowid), 0) AS last FROM turns`)
  if (last < after) await remember(db, last)
}

const remember = (db: Database, after: number): Promise<number> =>
  putResource(db, { kind: SWEEP, id: TRACES, body: JSON.stringify({ after }) })
