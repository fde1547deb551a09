/** What a collection counts of searches and events: when a search counts, what is bounded, what expires. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect, it, vi } from 'vitest'
import type { AnalyticsRecord } from '../../src/analytics/ledger'
import { Ledger, MOST_LOG_BYTES, MOST_TYPING_BYTES } from '../../src/analytics/ledger'
import { ApiError, unwrap } from '../../src/errors'
import { Store } from '../../src/search/documents/store'
import { Writer } from '../../src/search/documents/writer'
import { readSchema } from '../../src/search/schema/plan'
import { Embedders } from '../../src/search/vectors/embedders'
import { makeCollection, type TestCollection } from '../search/make-collection'
import { exportAll } from '../search/object'

const DAY_MS = 86_400_000
/** What docs/analytics.md says of a flush. */
const ROWS_A_DOCUMENT = 10

const queries = (documents: Record<string, unknown>[] = []): Promise<TestCollection> =>
  makeCollection(
    [
      { name: 'q', type: 'string' },
      { name: 'count', type: 'int32' },
    ],
    documents,
  )

/** Works with a ledger of its own in a collection's object. */
const inLedger = <T>(
  { objectId }: TestCollection,
  work: (ledger: Ledger, sql: SqlStorage) => Promise<T> | T,
) =>
  runInDurableObject(env.COLLECTION.get(env.COLLECTION.idFromName(objectId)), (_, { storage }) => {
    const store = new Store(storage.sql, readSchema(storage.sql)!, 0)
    const embedders = new Embedders(env)
    const writer = new Writer(storage, store, embedders)
    return work(new Ledger(storage, { store, writer, embedders }, () => {}), storage.sql)
  })

const query = (q: string, more: object = {}): AnalyticsRecord => ({
  kind: 'query',
  rule: 'popular',
  id: q,
  document: { q },
  limit: 2,
  ...more,
})

const typed = (q: string, by = 'ann', counts = true, more: object = {}) =>
  query(q, { typed: { by, counts }, ...more })

const logged = (user: string, more: object = {}): AnalyticsRecord => ({
  kind: 'log',
  rule: 'log',
  user,
  event: { query: 'shoe', user_id: user, ...more },
})

const counter = (ids: string[], more: object = {}): AnalyticsRecord => ({
  kind: 'counter',
  rule: 'r',
  field: 'n',
  weight: 3,
  ids,
  ...more,
})

it('a search counts when its user pauses for four seconds', async () => {
  const place = await queries()
  const waiting = await inLedger(place, (ledger, sql) => {
    const now = Date.now()
    ledger.record([typed('s'), typed('s', 'bob')], now)
    ledger.record([typed('sh')], now + 3_999)
    ledger.record([typed('shoe'), typed('hat', 'bob')], now + 7_000)
    ledger.record([typed('socks')], now + 11_000)
    // A search that the rule does not count still shows that its user went on.
    ledger.record([typed('sandals', 'ann', false)], now + 12_000)
    expect(ledger.status().typed).toEqual({ popular: 1 })
    return sql.exec('SELECT id, count FROM analytics_queries ORDER BY id').toArray()
  })
  expect(waiting).toEqual([
    { id: 's', count: 1 },
    { id: 'shoe', count: 1 },
  ])
})

it('new queries wait up to twice a limit, known ones go on counting', async () => {
  const place = await queries()
  const { object } = place
  unwrap(await object.recordEvents(['a', 'b', 'c', 'd', 'e', 'a'].map((q) => query(q))))
  unwrap(await object.recordEvents([query('f'), query('b')]))
  expect(unwrap(await object.eventStatus()).queries).toBe(4)
  unwrap(await object.flushEvents())
  expect(await exportAll(object)).toEqual([
    { id: 'a', q: 'a', count: 2 },
    { id: 'b', q: 'b', count: 2 },
  ])
  expect(unwrap(await object.eventStatus())).toEqual({ typed: {}, queries: 0, counters: 0 })
})

it('counts more queries than a step takes, and adds to what is there', async () => {
  const { object } = await queries([{ id: 'q7', q: 'q7', count: 5 }])
  const many = Array.from({ length: 450 }, (_, number) => query(`q${number}`, { limit: 1_000 }))
  unwrap(await object.recordEvents(many))
  unwrap(await object.flushEvents())
  const documents = await exportAll(object)
  expect(documents).toHaveLength(450)
  expect(documents.find(({ id }) => id === 'q7')).toEqual({ id: 'q7', q: 'q7', count: 6 })
})

it('a count that the schema refuses is dropped, and holds up no other', async () => {
  const place = await makeCollection(
    [{ name: 'n', type: 'int32', optional: true }],
    [{ id: '1' }, { id: '2', n: 2_147_483_647 }],
  )
  unwrap(await place.object.recordEvents([counter(['1', '2', 'gone'])]))
  unwrap(await place.object.flushEvents())
  expect(await exportAll(place.object)).toEqual([
    { id: '1', n: 3 },
    { id: '2', n: 2_147_483_647 },
  ])
  expect(unwrap(await place.object.eventStatus()).counters).toBe(0)
})

it('writes as few rows as the page on analytics says', async () => {
  const place = await queries()
  const rows = await inLedger(place, async (ledger, sql) => {
    const cursors: SqlStorageCursor<Record<string, SqlStorageValue>>[] = []
    const prototype = Object.getPrototypeOf(sql) as SqlStorage
    const { exec } = prototype
    const spy = vi.spyOn(prototype, 'exec').mockImplementation(function (this: SqlStorage, ...given) {
      const cursor = exec.apply(this, given)
      cursors.push(cursor)
      return cursor
    } as typeof exec)
    const written = () => cursors.splice(0).reduce((sum, { rowsWritten }) => sum + rowsWritten, 0)
    const measured: number[] = []
    ledger.record([typed('s'), typed('sh'), typed('shoe')])
    measured.push(written())
    ledger.record([query('hat')])
    measured.push(written())
    ledger.record([query('hat'), query('hat')])
    measured.push(written())
    await ledger.flush()
    measured.push(written())
    spy.mockRestore()
    return measured
  })
  const [typing, first, again, flushed] = rows
  expect([typing, first, again]).toEqual([0, 1, 2])
  // Two documents, the typed one among them, and the counters of the collection.
  expect(flushed).toBeLessThanOrEqual(2 * ROWS_A_DOCUMENT)
})

it('says in the log which collection refuses a count', async () => {
  const place = await queries()
  const logged = vi.spyOn(console, 'error').mockImplementation(() => {})
  await inLedger(place, async (ledger) => {
    const refusing = vi.spyOn(Writer.prototype, 'write').mockReturnValue([new ApiError(400, 'no room')])
    ledger.record([query('hat')])
    await ledger.flush()
    refusing.mockRestore()
  })
  const [[line = ''] = []] = logged.mock.calls
  logged.mockRestore()
  expect(JSON.parse(line)).toMatchObject({
    type: 'collection',
    collection: 'things',
    event: 'analytics: a count could not be written',
    reason: expect.stringContaining('no room'),
  })
})

it('the log forgets what is older than thirty days', async () => {
  const place = await queries()
  const left = await inLedger(place, async (ledger) => {
    const now = Date.now()
    ledger.record([logged('ann')], now - 30 * DAY_MS - 1)
    ledger.record([logged('ann'), logged('bob')], now - 29 * DAY_MS)
    const next = await ledger.work.step()
    expect(next).toBeGreaterThan(DAY_MS - 60_000)
    expect(next).toBeLessThanOrEqual(DAY_MS)
    return [ledger.events('log', 'ann', 10).length, ledger.events('log', 'bob', 10).length]
  })
  expect(left).toEqual([1, 1])
  expect(unwrap(await place.object.forgetEvents('log', 'ann'))).toBe(1)
  expect(unwrap(await place.object.forgetEvents('log'))).toBe(1)
})

it('an event counts once for a document, however often it names it', async () => {
  const { object } = await makeCollection([{ name: 'n', type: 'int32', optional: true }], [{ id: '1' }])
  unwrap(await object.recordEvents([counter(Array(100).fill('1'))]))
  unwrap(await object.flushEvents())
  expect(await exportAll(object)).toEqual([{ id: '1', n: 3 }])
})

it('long searches of many users do not wait in memory: past a bound they count at once', async () => {
  const place = await queries()
  const [typing, counted] = await inLedger(place, (ledger, sql) => {
    const long = 'x'.repeat(64 * 1024)
    const users = Array.from({ length: 200 }, (_, user) =>
      typed(`${user}`, `user ${user}`, true, { document: { q: long }, limit: 1_000 }),
    )
    for (const each of users) ledger.record([each])
    const { count } = sql.exec<{ count: number }>('SELECT count(*) AS count FROM analytics_queries').one()
    return [ledger.status().typed.popular!, count]
  })
  expect(typing).toBeGreaterThan(0)
  expect(typing * 64 * 1024).toBeLessThanOrEqual(MOST_TYPING_BYTES)
  expect(typing + counted).toBe(200)
})

it('makes room in memory when users pause, or are forgotten', async () => {
  const place = await queries()
  const typing = await inLedger(place, (ledger) => {
    const event = { query: 'x'.repeat(1024 * 1024) }
    const now = Date.now()
    for (let round = 0; round < 30; round++) {
      ledger.record(
        [
          logged('ann', { ...event }),
          { ...logged('bob', event), typed: { by: 'bob', counts: true } } as never,
        ],
        now + round * 5_000,
      )
      if (round % 2 === 0) ledger.forget('log', 'bob')
    }
    return ledger.status().typed
  })
  expect(typing).toEqual({ log: 1 })
})

it('the log holds so many bytes, and lets the oldest events go', async () => {
  const place = await queries()
  const [kept, bytes] = await inLedger(place, (ledger, sql) => {
    const text = 'é'.repeat(512 * 1024)
    for (let event = 0; event < MOST_LOG_BYTES / (1024 * 1024) + 3; event++) {
      ledger.record([logged('ann', { event, text })])
    }
    const [{ bytes: size } = { bytes: 0 }] = sql
      .exec<{ bytes: number }>('SELECT sum(octet_length(event)) AS bytes FROM analytics_log')
      .toArray()
    return [ledger.events('log', 'ann', 1).map(({ event }) => event), size]
  })
  expect(kept).toEqual([MOST_LOG_BYTES / (1024 * 1024) + 2])
  expect(bytes).toBeLessThanOrEqual(MOST_LOG_BYTES)
  expect(bytes).toBeGreaterThan(MOST_LOG_BYTES / 2)
})

it('a rule deletes what it counted, and neither loaded documents nor those of another rule', async () => {
  const { object } = await queries([{ id: 'loaded', q: 'loaded', count: 0 }])
  const other = (q: string) => query(q, { rule: 'other', limit: 1_000 })
  unwrap(await object.recordEvents([query('a'), query('a'), query('b'), query('b'), query('loaded')]))
  unwrap(await object.recordEvents([other('c'), other('d')]))
  unwrap(await object.flushEvents())
  unwrap(await object.recordEvents([query('c'), query('e'), query('e'), query('e')]))
  unwrap(await object.flushEvents())
  expect((await exportAll(object)).map(({ id, count }) => [id, count]).sort()).toEqual([
    ['b', 2],
    ['c', 2],
    ['d', 1],
    ['e', 3],
    ['loaded', 1],
  ])
})

it("a document that was loaded under the id of a deleted one is no rule's", async () => {
  const { object } = await queries()
  unwrap(await object.recordEvents([query('a')]))
  unwrap(await object.flushEvents())
  unwrap(await object.remove('a', false))
  unwrap(await object.write('{"id":"a","q":"a","count":0}', { action: 'create' }))
  unwrap(await object.recordEvents(['b', 'b', 'c', 'c', 'd', 'd'].map((q) => query(q))))
  unwrap(await object.flushEvents())
  expect((await exportAll(object)).map(({ id }) => id).sort()).toEqual(['a', 'c', 'd'])
})

it('deletes surplus queries in steps', async () => {
  const place = await queries()
  const many = Array.from({ length: 900 }, (_, number) => query(`q${number}`, { limit: 500 }))
  unwrap(await place.object.recordEvents(many))
  unwrap(await place.object.flushEvents())
  unwrap(await place.object.recordEvents([query('q1', { limit: 10 })]))
  const removed = await inLedger(place, async (ledger) => {
    const spy = vi.spyOn(Store.prototype, 'remove')
    const steps: number[] = []
    ledger.record([], 0)
    for (let step = 0; step < 8; step++) {
      const before = spy.mock.calls.length
      // The first step starts the wait for a flush, unless the record did.
      vi.setSystemTime(Date.now() + 120_000)
      await ledger.work.step()
      steps.push(spy.mock.calls.length - before)
    }
    spy.mockRestore()
    vi.useRealTimers()
    return steps
  })
  expect(Math.max(...removed)).toBeLessThanOrEqual(200)
  expect(await exportAll(place.object)).toHaveLength(10)
})
