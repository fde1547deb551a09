/** The rows that a turn writes: what the costs in docs/costs.md are worked out from. */
import { evictAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, expect, it, vi } from 'vitest'
import { CONVERSATION, IMPORT, SEARCHED } from '../scripts/costs/model.mjs'
import { sweepExpired } from '../src/conversation/expiry'
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

/** What D1 says of what was written since, in batches and alone. */
function watchDatabase(): D1Meta[] {
  const metas: D1Meta[] = []
  const batch = env.DB.batch.bind(env.DB)
  vi.spyOn(env.DB, 'batch').mockImplementation(async (statements) => {
    const results = await batch(statements)
    metas.push(...results.map(({ meta }) => meta as D1Meta))
    return results as never
  })
  const prototype = Object.getPrototypeOf(env.DB.prepare('SELECT 1')) as D1PreparedStatement
  const run = prototype.run
  vi.spyOn(prototype, 'run').mockImplementation(async function (this: D1PreparedStatement) {
    const result = await run.call(this)
    metas.push(result.meta as D1Meta)
    return result as never
  })
  return metas
}

/** How often an alarm was set since: each time is a row. */
async function watchAlarms(): Promise<number[]> {
  const alarms: number[] = []
  await runInDurableObject(env.COLLECTION.getByName(crypto.randomUUID()), (_, state) => {
    const prototype = Object.getPrototypeOf(state.storage) as DurableObjectStorage
    const set = prototype.setAlarm
    vi.spyOn(prototype, 'setAlarm').mockImplementation(function (this: DurableObjectStorage, at) {
      alarms.push(Number(at))
      return set.call(this, at)
    })
  })
  return alarms
}

const PIECE_MS = 50

/** A provider that writes for as long as the costs are worked out from. A rewritten question is there at once. */
function speak(): void {
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (_, init) => {
    const { stream, messages } = JSON.parse(String(init?.body))
    const line = (delta: object, finish: string | null = null) =>
      new TextEncoder().encode(
        `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`,
      )
    if (!stream) {
      const message = { role: 'assistant', content: 'How high is it?' }
      return Response.json({ choices: [{ index: 0, message, finish_reason: 'stop' }] })
    }
    const asked = String(messages.at(-1).content)
    const pieces = /<Answer>|ANSWER:/.test(asked) ? (CONVERSATION.objectSeconds * 1_000) / PIECE_MS : 1
    let said = 0
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        if (said === pieces) {
          controller.enqueue(line({}, 'stop'))
          controller.enqueue(new TextEncoder().encode('data: [DONE]\n\n'))
          return controller.close()
        }
        said += 1
        if (pieces > 1) await new Promise((resolve) => setTimeout(resolve, PIECE_MS))
        controller.enqueue(line({ content: `word${said} ` }))
      },
    })
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
  })
}

const rowsOf = (written: readonly { rowsWritten: number }[]): number =>
  written.reduce((sum, { rowsWritten }) => sum + rowsWritten, 0)
const rowsIn = (metas: readonly D1Meta[]): number =>
  metas.reduce((sum, { rows_written }) => sum + rows_written, 0)

it('a turn writes as many rows as the costs are worked out from', { timeout: 180_000 }, async () => {
  await setStage()
  speak()
  const model = {
    id: 'slow',
    model_name: 'openai/slow',
    openai_url: 'https://llm.test',
    api_key: 'sk-1234567890',
    history_collection: 'history',
    max_bytes: 16_384,
    ttl: 3_600,
  }
  expect((await call('POST', '/conversations/models', { body: model }))[0]).toBe(201)
  const cursors = await watchObjects()
  const alarms = await watchAlarms()
  const metas = watchDatabase()

  const [, { conversation_id }] = await ask({ model: 'slow' })
  for (let turn = 2; turn <= CONVERSATION.turns; turn += 1) {
    const question = 'And how high is the Brandenburg Gate?'
    const [status] = await ask({ model: 'slow', question, conversation_id })
    expect(status).toBe(200)
  }
  await vi.waitFor(() => expect(metas.length).toBeGreaterThanOrEqual(4 * CONVERSATION.turns))

  const { turns, rowsWritten, rowsRead } = CONVERSATION
  const read = cursors.reduce((sum, each) => sum + each.rowsRead, 0) / turns
  expect(read).toBeLessThan(rowsRead)
  const written = { objects: (rowsOf(cursors) + alarms.length) / turns, database: rowsIn(metas) / turns }
  cursors.length = 0
  metas.length = 0
  alarms.length = 0

  // A day later all of it is deleted: by the cron trigger, and by the alarm of the conversation's object.
  const later = Date.now() + 2 * 3_600_000
  await sweepExpired(env, later / 1_000)
  const object = env.CONVERSATION.getByName(conversation_id)
  vi.spyOn(Date, 'now').mockReturnValue(later)
  await runDurableObjectAlarm(object)
  const expired = { objects: (rowsOf(cursors) + alarms.length) / turns, database: rowsIn(metas) / turns }
  expect(await runInDurableObject(object, (_, state) => state.storage.sql.databaseSize)).toBeLessThan(20_000)

  for (const kind of ['objects', 'database'] as const) {
    for (const [measured, assumed] of [
      [written[kind], rowsWritten[kind]],
      [expired[kind], CONVERSATION.rowsExpired[kind]],
    ] as const) {
      expect(measured).toBeLessThanOrEqual(assumed)
      expect(measured).toBeGreaterThan(0.75 * assumed)
    }
  }
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

it('a question about ten thousand documents reads as many rows as the costs say, awake and after a sleep', {
  timeout: 180_000,
}, async () => {
  const fields = [
    { name: 'title', type: 'string' },
    { name: 'text', type: 'string' },
    {
      name: 'embedding',
      type: 'float[]',
      embed: { from: ['title', 'text'], model_config: { model_name: 'ts/all-MiniLM-L12-v2' } },
    },
  ]
  expect((await call('POST', '/collections', { body: { name: 'large', fields } }))[0]).toBe(201)
  const word = (at: number) =>
    `${['ka', 'lo', 'mi', 'ne', 'ru'][at % 5]}${'bdfgk'[Math.trunc(at / 5) % 5]}${at}`
  // By Zipf's law, as in any language: the n-th word of 5,000 has a share of 1 / n.
  const drawn = (at: number) =>
    word(Math.trunc(5_000 ** ((Math.imul(at + 1, 2_654_435_761) >>> 0) / 2 ** 32)))
  for (let from = 0; from < SEARCHED.documents; from += 2_000) {
    const body = Array.from({ length: 2_000 }, (_, n) => {
      const text = Array.from({ length: 60 }, (_, at) => drawn((from + n) * 60 + at)).join(' ')
      return JSON.stringify({ id: `d${from + n}`, title: drawn(from + n), text })
    }).join('\n')
    const response = await send('POST', '/collections/large/documents/import', { body })
    expect((await response.text()).match(/"success":true/g)).toHaveLength(2_000)
  }
  await expect
    .poll(async () => (await call('GET', '/collections/large'))[1].pending_embeddings ?? 0, {
      timeout: 60_000,
    })
    .toBe(0)
  const cursors = await watchObjects()
  const rows = async (q: string): Promise<number> => {
    cursors.length = 0
    const [status, { found }] = await call(
      'GET',
      `/collections/large/documents/search?q=${q}&query_by=text,embedding`,
    )
    expect([status, found > 0]).toEqual([200, true])
    return cursors.reduce((sum, { rowsRead }) => sum + rowsRead, 0)
  }
  const q = [40, 300, 2_000].map(word).join('%20')
  const awake = await rows(q)
  expect(awake).toBeLessThanOrEqual(SEARCHED.rows)
  expect(awake).toBeGreaterThan(0.75 * SEARCHED.rows)
  await evictAllDurableObjects()
  const waking = (await rows(q)) - awake
  expect(waking).toBeLessThanOrEqual(SEARCHED.waking)
  expect(waking).toBeGreaterThan(0)
})
