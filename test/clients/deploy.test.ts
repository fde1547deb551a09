/**
 * `npm run deploy` with the real wrangler, against a counterpart of Cloudflare's API. The deployment that it tries out
 * afterwards is the Parley of these tests: an upload to the counterpart serves nothing.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, test } from 'vitest'
import { verify } from '../../scripts/deploy/verify.mjs'
import { wanted } from '../../scripts/deploy/wanted.mjs'
import { NUMBERS, STRINGS } from '../../src/search/vectors/vectorize/labels'
import { ACCOUNT, type CloudflareApi, startCloudflareApi } from './cloudflare-api'
import { KEY } from './harness'

const DEPLOY = join(import.meta.dirname, '../../scripts/deploy.mjs')
const ADMIN = 'an admin key for the deployment test'
const goal = wanted()

let api: CloudflareApi
let folder: string
let keyId: number

beforeAll(async () => {
  const response = await fetch(`${inject('url')}/keys`, {
    method: 'POST',
    headers: { 'x-typesense-api-key': KEY },
    body: JSON.stringify({ description: 'deployment', actions: ['*'], collections: ['*'], value: ADMIN }),
  })
  keyId = ((await response.json()) as { id: number }).id
})

afterAll(() =>
  fetch(`${inject('url')}/keys/${keyId}`, { method: 'DELETE', headers: { 'x-typesense-api-key': KEY } }),
)

beforeEach(async () => {
  api = await startCloudflareApi()
  folder = mkdtempSync(join(tmpdir(), 'parley-deploy-test-'))
})

afterEach(async () => {
  await api.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Runs the script as npm does, with a home of its own: nobody is logged in there. */
async function deploy(env: Record<string, string>, ...args: string[]) {
  const child = spawn(process.execPath, [DEPLOY, ...args], {
    env: {
      PATH: process.env.PATH,
      HOME: folder,
      PARLEY_DEPLOY_FOLDER: join(folder, 'kept'),
      ...env,
    } as never,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (data) => {
      output += data
    })
  }
  const [code] = await once(child, 'close')
  return { code, output }
}

const loggedIn = () => ({
  CLOUDFLARE_API_BASE_URL: api.url,
  CLOUDFLARE_API_TOKEN: 'token',
  CLOUDFLARE_ACCOUNT_ID: ACCOUNT,
})

const tables = () =>
  [...api.databases.values()].flatMap(({ sqlite }) =>
    sqlite
      .prepare("SELECT name FROM sqlite_master WHERE type = 'table'")
      .all()
      .map(({ name }) => name),
  )

const place = (call: RegExp) => api.calls.findIndex((made) => call.test(made))

const UPLOAD = /^PUT \/workers\/scripts\/parley$/
const METADATA_INDEX = /^POST \/vectorize\/v2\/indexes\/[^/]+\/metadata_index\/create$/
const MIGRATION = /^POST \/d1\/database\/[^/]+\/query$/

test('the first run makes everything and asks a question, the second makes nothing', {
  timeout: 300_000,
}, async () => {
  const env = { ...loggedIn(), ADMIN_API_KEY: ADMIN }
  const args = ['--url', inject('url'), '--model', 'local/extractive']
  const first = await deploy(env, ...args)
  expect(first.output).toContain(`Parley is deployed at ${inject('url')}`)
  expect(first.code).toBe(0)
  expect(first.output).toMatch(/answered .*goose named Ada/)
  expect([...api.databases.keys()]).toEqual(['parley'])
  expect([...api.indexes.keys()]).toEqual(goal.indexes.map(({ name }) => name))
  for (const { metadata } of api.indexes.values()) {
    const made = (type: string) =>
      metadata
        .filter(({ indexType }) => indexType.toLowerCase() === type)
        .map(({ propertyName }) => propertyName)
    expect([made('string'), made('number')]).toEqual([[...STRINGS], [...NUMBERS]])
  }
  expect(tables()).toEqual(
    expect.arrayContaining(['collections', 'conversation_models', 'messages', 'api_keys']),
  )
  const worker = api.workers.get('parley')!
  expect(worker.crons).toEqual(['* * * * *'])
  expect(Object.fromEntries(worker.secrets)).toEqual({
    ADMIN_API_KEY: ADMIN,
    ENCRYPTION_KEY: expect.stringMatching(/^[0-9a-f]{64}$/),
  })
  // No version ever served without its tables: they were there before the upload, and the secrets came with it.
  expect(place(MIGRATION)).toBeGreaterThan(place(/^POST \/d1\/database$/))
  expect(place(UPLOAD)).toBeGreaterThan(place(MIGRATION))
  // A vector is only found by a metadata index that was there before it.
  expect(place(UPLOAD)).toBeGreaterThan(api.calls.findLastIndex((call) => METADATA_INDEX.test(call)))
  expect(api.calls.filter((call) => /^(PUT|PATCH) .*secrets/.test(call))).toEqual([])

  api.calls.length = 0
  const second = await deploy(env, ...args)
  expect(second.code).toBe(0)
  expect(second.output).toMatch(/1\/2 {2}Deploy the Worker parley; its secrets stay as they are/)
  expect(second.output).toMatch(/answered .*goose named Ada/)
  expect(
    api.changes().filter((call) => !/\/(assets-upload-session|subdomain|schedules|query)$/.test(call)),
  ).toEqual(['PUT /workers/scripts/parley'])
  expect(api.workers.get('parley')!.uploads).toBe(2)
  expect(api.workers.get('parley')!.secrets).toEqual(worker.secrets)

  const left = await fetch(`${inject('url')}/collections/parley_deploy_check`, {
    headers: { 'x-typesense-api-key': KEY },
  })
  expect(left.status).toBe(404)
})

const ratelimits = (worker: string) =>
  api.workers
    .get(worker)!
    .bindings.filter(({ type }) => type === 'ratelimit')
    .map((binding) => String(binding.namespace_id))

test('a second Worker of the account has a database, an index and limits of its own', {
  timeout: 600_000,
}, async () => {
  const env = { ...loggedIn(), ADMIN_API_KEY: ADMIN }
  const args = ['--url', inject('url'), '--model', 'local/extractive']
  expect((await deploy(env, ...args)).code).toBe(0)
  const first = api.databases.get('parley')!.sqlite
  const contents = () => [
    first.prepare('SELECT * FROM owner').all(),
    first.prepare('SELECT * FROM d1_migrations').all(),
  ]
  const before = contents()
  expect(before[0]).toEqual([{ id: 1, worker: 'parley', namespace: null }])

  const two = { ...env, WRANGLER_CI_OVERRIDE_NAME: 'parley-two' }
  const second = await deploy(two, ...args)
  expect(second.output).toContain('Parley is deployed at')
  expect(second.code).toBe(0)
  expect([...api.databases.keys()]).toEqual(['parley', 'parley-two'])
  expect([...api.indexes.keys()]).toEqual(['parley-1024', 'parley-two-1024'])
  const own = api.databases.get('parley-two')!
  expect(own.sqlite.prepare('SELECT worker FROM owner').get()).toEqual({ worker: 'parley-two' })
  const bound = (worker: string, type: string) =>
    api.workers.get(worker)!.bindings.find((binding) => binding.type === type)!
  expect(bound('parley', 'd1').id).toBe(api.databases.get('parley')!.uuid)
  expect(bound('parley-two', 'd1').id).toBe(own.uuid)
  expect(bound('parley-two', 'vectorize').index_name).toBe('parley-two-1024')
  expect(ratelimits('parley')).toEqual(['1001', '1002'])
  expect(new Set([...ratelimits('parley'), ...ratelimits('parley-two')]).size).toBe(4)
  expect(contents()).toEqual(before)

  // Its next deployment finds what is its own.
  api.calls.length = 0
  const again = await deploy(two, ...args)
  expect(again.output).toMatch(/1\/2 {2}Deploy the Worker parley-two; its secrets stay as they are/)
  expect(api.changes().filter((call) => /^POST \/(d1\/database|vectorize\/v2\/indexes)$/.test(call))).toEqual(
    [],
  )
})

test("another Worker's database is refused before anything is written, and one without a mark is taken over", {
  timeout: 600_000,
}, async () => {
  const env = { ...loggedIn(), ADMIN_API_KEY: ADMIN }
  const args = ['--url', inject('url'), '--model', 'local/extractive']
  expect((await deploy(env, ...args)).code).toBe(0)
  const { sqlite } = api.databases.get('parley')!
  const mark = () => sqlite.prepare('SELECT worker, namespace FROM owner').get()

  sqlite.exec("UPDATE owner SET worker = 'somebody-else'")
  api.calls.length = 0
  const refused = await deploy(env, ...args)
  expect(refused.code).toBe(1)
  expect(refused.output).toContain('The D1 database parley belongs to the Worker somebody-else')
  expect(api.changes().filter((call) => !/\/query$/.test(call))).toEqual([])
  expect(api.workers.get('parley')!.uploads).toBe(1)
  expect(mark()).toEqual({ worker: 'somebody-else', namespace: null })

  // As a version before left it, and as the Worker itself marks it when it is the first.
  for (const left of ['DROP TABLE owner', "UPDATE owner SET worker = NULL, namespace = 'objects'"]) {
    sqlite.exec(left)
    const taken = await deploy(env, ...args)
    expect(taken.output).toContain('Mark the database as the one of the Worker parley')
    expect(taken.code).toBe(0)
    expect(mark()).toMatchObject({ worker: 'parley' })
  }
  expect(mark()).toEqual({ worker: 'parley', namespace: 'objects' })

  // A Worker of another name that was deployed when all shared one database is asked which one it means.
  api.workers.set('shop', { ...api.workers.get('parley')!, secrets: new Map([['ADMIN_API_KEY', ADMIN]]) })
  api.calls.length = 0
  const shop = await deploy({ ...env, WRANGLER_CI_OVERRIDE_NAME: 'shop' }, ...args)
  expect(shop.code).toBe(1)
  expect(shop.output).toContain('give its database_id in wrangler.toml')
  expect(api.changes()).toEqual([])
})

test('after a failure it says what to do, and the next run goes on with the same secrets', {
  timeout: 300_000,
}, async () => {
  api.refuseOnce(MIGRATION, 400, 7500, 'near "CREATE": syntax error: SQLITE_ERROR')
  const atMigration = await deploy(loggedIn())
  expect(atMigration.code).toBe(1)
  expect(atMigration.output).toContain('SQLITE_ERROR')
  expect(atMigration.output).toContain('Run `npm run deploy` again')
  expect(api.workers.size).toBe(0)

  api.refuseOnce(UPLOAD, 403, 10000, 'Authentication error')
  const atUpload = await deploy(loggedIn())
  expect(atUpload.code).toBe(1)
  expect(atUpload.output).not.toContain('Create the D1 database')
  expect(atUpload.output).toContain('Workers Scripts Edit')
  expect(api.workers.size).toBe(0)
  expect(tables()).toContain('conversation_models')
  const [file] = readdirSync(join(folder, 'kept'))
  const path = join(folder, 'kept', file!)
  const kept = JSON.parse(readFileSync(path, 'utf8'))
  expect(statSync(path).mode & 0o077).toBe(0)

  // As Workers Builds runs it: it wants to read what was deployed.
  const report = join(folder, 'report.json')
  const last = await deploy({ ...loggedIn(), WRANGLER_OUTPUT_FILE_PATH: report }, '--url', inject('url'))
  expect(readFileSync(report, 'utf8')).toContain('"targets":["https://parley.developer.workers.dev"')
  expect(last.code).toBe(0)
  expect(last.output).toMatch(/1\/2 {2}Deploy the Worker parley, with new secrets/)
  expect(Object.fromEntries(api.workers.get('parley')!.secrets)).toEqual(kept)
  expect(atUpload.output).not.toContain(kept.ENCRYPTION_KEY)
  expect(last.output).not.toContain(kept.ENCRYPTION_KEY)
  expect(last.output).toContain(`${kept.ADMIN_API_KEY}  (not shown again`)
  // This Parley does not know the key that was made: the deployment is reported all the same.
  expect(last.output).toContain('It is deployed and healthy, but the trial question failed')
  expect(last.output).toContain(`Parley is deployed at ${inject('url')}`)
})

test('--dry-run tells the plan without an account or a call', async () => {
  const { code, output } = await deploy({ CLOUDFLARE_API_BASE_URL: api.url }, '--dry-run')
  expect(code).toBe(0)
  expect(output).toContain('wrangler d1 create parley')
  expect(output).toContain('wrangler d1 migrations apply DB --remote')
  expect(output).toContain('with new secrets: ADMIN_API_KEY, ENCRYPTION_KEY')
  expect(api.calls).toEqual([])
})

test('who is not logged in is told how to', async () => {
  const { code, output } = await deploy({ CLOUDFLARE_API_BASE_URL: api.url })
  expect(code).toBe(1)
  expect(output).toContain('run `npx wrangler login`, or set CLOUDFLARE_API_TOKEN')
})

test('who has several accounts is told to name one', async () => {
  api.accounts.push({ id: 'f'.repeat(32), name: 'Another account' })
  const { code, output } = await deploy({ CLOUDFLARE_API_BASE_URL: api.url, CLOUDFLARE_API_TOKEN: 'token' })
  expect(code).toBe(1)
  expect(output).toContain('Set CLOUDFLARE_ACCOUNT_ID to the account to deploy to:')
  expect(output).toContain(`${'f'.repeat(32)}  Another account`)
  expect(api.changes()).toEqual([])
})

test('a Cloudflare that cannot be reached is told from a login that is missing', async () => {
  const { code, output } = await deploy({
    ...loggedIn(),
    CLOUDFLARE_API_BASE_URL: 'http://127.0.0.1:1/client/v4',
  })
  expect(code).toBe(1)
  expect(output).toContain('Cloudflare could not be reached')
  expect(output).not.toContain('not logged in')
})

test('a trial that comes to nothing is cleared away and told', async () => {
  const told = await verify(inject('url'), KEY, { sample: false, model: 'openai/gpt-4o-mini' })
  expect(told).toContain(
    'It is deployed and healthy, but the trial question failed: POST /conversations/models',
  )
  const left = await fetch(`${inject('url')}/collections`, { headers: { 'x-typesense-api-key': KEY } })
  expect(await left.text()).not.toContain('parley_deploy_check')
})
