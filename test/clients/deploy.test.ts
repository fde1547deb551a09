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
import { NUMBERS, STRINGS } from '../../src/search/vectorize/labels'
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
