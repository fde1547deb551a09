/** The rows that a turn writes: what the costs in docs/costs.md are worked out from. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect, it, vi } from 'vitest'
import { CONVERSATION } from '../scripts/costs/model.mjs'
import { ask, setStage } from './api/parley/stage'

/** Cursors over the SQLite of all objects that were opened since, by the prototype that they share. */
async function watchObjects(): Promise<SqlStorageCursor<Record<string, SqlStorageValue>>[]> {
  const cursors: SqlStorageCursor<Record<string, SqlStorageValue>>[] = []
  const any = env.COLLECTION.getByName(crypto.randomUUID())
  await runInDurableObject(any, (_, state) => {
    const prototype = Object.getPrototypeOf(state.storage.sql) as SqlStorage
    const exec = prototype.exec
    vi.spyOn(prototype, 'exec').mockImplementation(function (this: SqlStorage, ...query) {
      const cursor = exec.apply(this, query)
      cursors.push(cursor)
      return cursor
    } as typeof exec)
  })
  return cursors
}

/** What D1 says of batches since. */
function watchDatabase(): D1Meta[] {
  const metas: D1Meta[] = []
  const batch = env.DB.batch.bind(env.DB)
  vi.spyOn(env.DB, 'batch').mockImplementation(async (statements) => {
    const results = await batch(statements)
    metas.push(...results.map(({ meta }) => meta as D1Meta))
    return results as never
  })
  return metas
}

it('a turn writes as many rows as the costs are worked out from', async () => {
  await setStage()
  const cursors = await watchObjects()
  const metas = watchDatabase()

  const [, { conversation_id }] = await ask()
  for (let turn = 2; turn <= CONVERSATION.turns; turn += 1) {
    const [status] = await ask({ question: 'And how high is the Brandenburg Gate?', conversation_id })
    expect(status).toBe(200)
  }
  await vi.waitFor(() => expect(metas.length).toBeGreaterThanOrEqual(3 * CONVERSATION.turns))

  const objects = cursors.reduce((sum, { rowsWritten }) => sum + rowsWritten, 0) / CONVERSATION.turns
  const database = metas.reduce((sum, { rows_written }) => sum + rows_written, 0) / CONVERSATION.turns
  const read = cursors.reduce((sum, { rowsRead }) => sum + rowsRead, 0) / CONVERSATION.turns
  // Two alarms a turn are rows too, and a quarter less is not worth another table.
  for (const [measured, assumed] of [
    [objects + 2, CONVERSATION.rowsWritten.objects],
    [database, CONVERSATION.rowsWritten.database],
  ] as const) {
    expect(measured).toBeLessThanOrEqual(assumed)
    expect(measured).toBeGreaterThan(0.75 * assumed)
  }
  expect(read).toBeLessThan(CONVERSATION.rowsRead)
})
