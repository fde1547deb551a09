/** Whose the database is: a Worker that was bound to another's reads, writes and expires nothing there. */
import { createExecutionContext, createScheduledController, waitOnExecutionContext } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { requireOwnDatabase } from '../../src/db/owner'
import worker from '../../src/index'
import { checkRegistration, REGISTRATION_MS } from '../../src/search/collection/outline'

/** The environment of a Worker with objects of its own, whose isolate has met no database yet. */
const workerNamed = (name: string): Cloudflare.Env => ({
  ...env,
  CONVERSATION: { idFromName: () => ({ toString: () => name }) } as never,
})

const mark = () => env.DB.prepare('SELECT worker, namespace FROM owner').first()

const expiredKeys = async (): Promise<number> =>
  (await env.DB.prepare("SELECT count(*) AS n FROM api_keys WHERE description = 'expired'").first<{
    n: number
  }>())!.n

async function request(of: Cloudflare.Env, method: string, path: string, body?: unknown) {
  const context = createExecutionContext()
  const init = { method, headers: { 'x-typesense-api-key': 'xyz' } }
  const response = await worker.fetch(
    new Request(
      `https://parley.test${path}`,
      body === undefined ? init : { ...init, body: JSON.stringify(body) },
    ),
    of,
    context,
  )
  await waitOnExecutionContext(context)
  return { status: response.status, body: (await response.json()) as { message: string } }
}

beforeEach(async () => {
  await env.DB.exec('DROP TABLE IF EXISTS owner')
  await env.DB.exec('DELETE FROM api_keys WHERE id = 77')
  await env.DB.prepare(
    `INSERT INTO api_keys (id, prefix, hash, description, actions, collections, expires_at, autodelete)
     VALUES (77, 'abcd', 'hash', 'expired', '["*"]', '["*"]', 1, 1)`,
  ).run()
  vi.spyOn(console, 'error').mockImplementation(() => {})
})
afterEach(() => void vi.restoreAllMocks())

it('a database without a mark is taken by the first Worker that meets it, of several at once', async () => {
  const names = Array.from({ length: 8 }, (_, index) => `first-${index}`)
  const tries = await Promise.allSettled(names.map((name) => requireOwnDatabase(workerNamed(name))))
  expect(tries.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  const winner = names[tries.findIndex(({ status }) => status === 'fulfilled')]
  expect(await mark()).toEqual({ worker: null, namespace: winner })
})

it('one that was marked by a deployment is taken by its Worker, and keeps the name', async () => {
  await env.DB.exec('CREATE TABLE owner (id INTEGER PRIMARY KEY CHECK (id = 1), worker TEXT, namespace TEXT)')
  await env.DB.exec("INSERT INTO owner (id, worker) VALUES (1, 'parley')")
  expect((await request(workerNamed('second'), 'GET', '/collections')).status).toBe(200)
  expect(await mark()).toEqual({ worker: 'parley', namespace: 'second' })
})

it('another Worker is refused every request but for its health, and writes nothing', async () => {
  await requireOwnDatabase(workerNamed('mine'))
  const other = workerNamed('other')
  const before = await env.DB.prepare('SELECT count(*) AS n FROM collections').first()
  for (const [method, path, body] of [
    ['GET', '/collections', undefined],
    ['POST', '/collections', { name: 'foreign', fields: [{ name: 'a', type: 'string' }] }],
    ['POST', '/keys', { description: '', actions: ['*'], collections: ['*'] }],
    ['GET', '/conversations', undefined],
  ] as const) {
    const reply = await request(other, method, path, body)
    expect([path, reply.status]).toEqual([path, 503])
    expect(reply.body.message).toContain('belongs to another Worker')
    expect(reply.body.message).toContain('docs/deploy.md')
  }
  expect((await request(other, 'GET', '/health')).status).toBe(200)
  expect(await env.DB.prepare('SELECT count(*) AS n FROM collections').first()).toEqual(before)
  expect(await mark()).toEqual({ worker: null, namespace: 'mine' })
})

it("another Worker's cron expires nothing, and the owner's does", async () => {
  const sweep = async (of: Cloudflare.Env) => {
    const controller = createScheduledController({ scheduledTime: new Date(), cron: '* * * * *' })
    await worker.scheduled(controller, of)
  }
  // The owner's own objects are those of this environment: the sweep asks some of them.
  await requireOwnDatabase(workerNamed('elsewhere'))
  await expect(sweep(workerNamed('not-elsewhere'))).rejects.toThrow('belongs to another Worker')
  expect(await expiredKeys()).toBe(1)
  await sweep(workerNamed('elsewhere'))
  expect(await expiredKeys()).toBe(0)
})

it('a collection is no orphan because another database does not know it', async () => {
  await requireOwnDatabase(workerNamed('mine-too'))
  const meta = new Map<string, string>([['created_at', '1']])
  const sql = {
    exec: (_: string, name: string) => ({
      toArray: () => (meta.has(name) ? [{ value: meta.get(name) }] : []),
    }),
  } as unknown as SqlStorage
  expect(await checkRegistration(sql, workerNamed('not-mine'), 'object')).toBe(REGISTRATION_MS)
  expect(await checkRegistration(sql, workerNamed('mine-too'), 'object')).toBe('orphan')
})

it('a D1 that does not answer is no reason to refuse what works without it', async () => {
  const DB = { prepare: () => ({ first: async () => Promise.reject(new Error('D1 is down')) }) } as never
  const of = { ...workerNamed('down'), DB }
  await expect(requireOwnDatabase(of)).rejects.toThrow('D1 is down')
  expect((await request(of, 'GET', '/debug')).status).not.toBe(503)
})
