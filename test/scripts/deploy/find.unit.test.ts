/** What a look at an account asks of Cloudflare's API itself: pages, refusals, and how it says who asks. */
import type { IncomingHttpHeaders } from 'node:http'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { find } from '../../../scripts/deploy/find.mjs'
import { wanted } from '../../../scripts/deploy/names.mjs'
import { markOwner } from '../../../scripts/deploy/plan.mjs'
import { ACCOUNT, startCloudflareApi } from '../../clients/cloudflare-api'
import { type Served, serve } from '../../serve'

type Reply = { result?: unknown; errors?: { code: number; message: string }[] } | string

let api: Served
let replies: Record<string, (page: string | null) => Reply>
let calls: string[]
let headers: IncomingHttpHeaders

beforeEach(async () => {
  calls = []
  replies = {
    'GET /d1/database': () => ({ result: [] }),
    'GET /vectorize/v2/indexes': () => ({ result: [] }),
    'GET /workers/scripts/parley/secrets': () => ({
      errors: [{ code: 10007, message: 'This Worker is not there' }],
    }),
  }
  api = await serve((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, 'http://api')
    const call = `${request.method} ${pathname.replace('/accounts/me', '')}`
    calls.push(call)
    headers = request.headers
    const reply = replies[call]!(searchParams.get('page'))
    response.end(typeof reply === 'string' ? reply : JSON.stringify({ success: 'result' in reply, ...reply }))
  })
  vi.stubEnv('CLOUDFLARE_API_BASE_URL', api.url)
  vi.stubEnv('CLOUDFLARE_API_TOKEN', 'a token')
})

afterEach(async () => {
  vi.unstubAllEnvs()
  await api.stop()
})

it('asks for each thing once, as the token', async () => {
  expect(await find(wanted(), 'me')).toMatchObject({
    database: false,
    deployed: false,
    secrets: [],
    indexNames: [],
  })
  expect(calls.toSorted()).toEqual(Object.keys(replies).toSorted())
  expect(headers.authorization).toBe('Bearer a token')
})

it('finds a database on any page of the list', async () => {
  const other = { name: 'another', uuid: 'x' }
  replies['GET /d1/database'] = (page) => ({
    result: page === '2' ? [{ name: 'parley', uuid: 'ours', jurisdiction: 'eu' }] : Array(1000).fill(other),
  })
  replies['POST /d1/database/ours/query'] = () => ({
    errors: [{ code: 7500, message: 'no such table: owner: SQLITE_ERROR' }],
  })
  expect(await find(wanted(), 'me')).toMatchObject({ database: true, jurisdiction: 'eu', migrations: [] })
})

it('takes no refusal for a Worker that is not there', async () => {
  replies['GET /workers/scripts/parley/secrets'] = () => ({
    errors: [{ code: 10000, message: 'Authentication error' }],
  })
  await expect(find(wanted(), 'me')).rejects.toThrow(
    'GET /accounts/me/workers/scripts/parley/secrets failed: Authentication error [code: 10000]',
  )
})

it('says so where an answer is no JSON', async () => {
  replies['GET /d1/database'] = () => '<html>'
  await expect(find(wanted(), 'me')).rejects.toThrow('Cloudflare answered 200, and no JSON')
})

// A run of wrangler takes seconds, and many where other tests take the machine.
it('asks as whom wrangler is logged in as, by one run of it', { timeout: 180_000 }, async () => {
  vi.stubEnv('CLOUDFLARE_API_TOKEN', '')
  vi.stubEnv('CLOUDFLARE_API_KEY', 'a key')
  vi.stubEnv('CLOUDFLARE_EMAIL', 'me@example.com')
  await find(wanted(), 'me')
  expect(headers).toMatchObject({ 'x-auth-key': 'a key', 'x-auth-email': 'me@example.com' })
  expect(headers.authorization).toBeUndefined()
})

it('finds indexes, and of its own database mark, records and migrations', async () => {
  const account = await startCloudflareApi()
  vi.stubEnv('CLOUDFLARE_API_BASE_URL', account.url)
  const goal = wanted()
  const [index] = goal.indexes
  const [first] = goal.migrations
  const records = [{ kind: 'd1' as const, name: 'parley' }]
  const sqlite = new DatabaseSync(':memory:')
  sqlite.exec(markOwner('parley', records))
  sqlite.exec(`CREATE TABLE d1_migrations (name TEXT); INSERT INTO d1_migrations VALUES ('${first}')`)
  account.databases.set('parley', { uuid: 'ours', sqlite })
  account.indexes.set(index!.name, { config: { dimensions: 1024, metric: 'cosine' } })

  const before = await find(goal, ACCOUNT)
  expect(before).toMatchObject({ owner: 'parley', records, migrations: [first] })
  expect(before.indexes).toEqual([{ name: index!.name, dimensions: 1024 }])

  // Nothing is asked of another Worker's database.
  sqlite.exec("UPDATE owner SET worker = 'somebody-else'")
  expect(await find(goal, ACCOUNT)).toMatchObject({ owner: 'somebody-else', migrations: [] })
  await account.close()
})
