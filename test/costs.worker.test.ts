/** The rows that a turn writes: what the costs in docs/costs.md are worked out from. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, expect, it, vi } from 'vitest'
import { IMPORT } from '../scripts/costs/deployment.mjs'
import { CONVERSATION } from '../scripts/costs/model.mjs'
import { ask, setStage } from './api/parley/stage'
import { call, send } from './api/typesense/api'

afterEach(() => vi.restoreAllMocks())

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

it('an import writes as many rows a document as the costs are worked out from', async () => {
  const fields = [
    { name: 'title', type: 'string' },
    { name: 'text', type: 'string' },
    { name: 'price', type: 'int32' },
    { name: 'brand', type: 'string', facet: true },
    {
      name: 'embedding',
      type: 'float[]',
      embed: { from: ['text'], model_config: { model_name: 'ts/all-MiniLM-L12-v2' } },
    },
  ]
  expect((await call('POST', '/collections', { body: { name: 'imported', fields } }))[0]).toBe(201)
  const cursors = await watchObjects()
  const count = 300
  const body = Array.from({ length: count }, (_, at) =>
    JSON.stringify({
      id: `d${at}`,
      title: `Lamp ${at}`,
      text: 'A lamp of glass. '.repeat(55),
      price: at,
      brand: `b${at % 9}`,
    }),
  ).join('\n')
  const response = await send('POST', '/collections/imported/documents/import', { body })
  expect((await response.text()).match(/"success":true/g)).toHaveLength(count)
  await expect
    .poll(async () => (await call('GET', '/collections/imported'))[1].pending_embeddings ?? 0, {
      timeout: 20_000,
    })
    .toBe(0)
  const rows = cursors.reduce((sum, { rowsWritten }) => sum + rowsWritten, 0) / count
  expect(rows).toBeLessThanOrEqual(IMPORT.rows)
  expect(rows).toBeGreaterThan(0.75 * IMPORT.rows)
})
