/**
 * `npm run deploy` with the real wrangler, against a counterpart of Cloudflare's API. The deployment that it tries out
 * afterwards is the Parley of these tests: an upload to the counterpart serves nothing.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, inject, test } from 'vitest'
import { wanted } from '../../scripts/deploy/names.mjs'
import { markOwner } from '../../scripts/deploy/plan.mjs'
import { verify } from '../../scripts/deploy/verify.mjs'
import {
  ADMIN,
  api,
  asAdmin,
  deploy,
  deployedIndex,
  destroy,
  folder,
  HERE,
  loggedIn,
  MIGRATION,
  place,
  stageDeployments,
  tables,
  UPLOAD,
} from './deploy-stage'
import { KEY } from './harness'

const ROOT = join(import.meta.dirname, '../..')
const goal = wanted()
/** A few runs of wrangler take seconds, and many where other tests take the machine. */
const SOME_RUNS = { timeout: 180_000 }

stageDeployments()

const names = () => ({
  workers: [...api.workers.keys()].sort(),
  databases: [...api.databases.keys()].sort(),
  indexes: [...api.indexes.keys()].sort(),
})
const BOTH = {
  workers: ['parley', 'parley-staging'],
  databases: ['parley', 'parley-staging'],
  indexes: ['parley-1024', 'parley-staging-1024'],
}
const PRODUCTION = { workers: ['parley'], databases: ['parley'], indexes: ['parley-1024'] }

test('a first deployment that breaks off goes on, is updated, and outlives the staging beside it', {
  timeout: 1_800_000,
}, async () => {
  const bindings = await firstDeployment()
  await again()
  await stagingUpdated(bindings)
  await stagingRemoved()
})

/** It breaks off at the upload, when all else is made. The next run goes on with the same secrets. */
async function firstDeployment() {
  api.refuseOnce(UPLOAD, 403, 10000, 'Authentication error')
  const atUpload = await deploy(loggedIn())
  expect(atUpload.code).toBe(1)
  expect(atUpload.output).toContain('Workers Scripts Edit')
  expect(atUpload.output).toContain('Run `npm run deploy` again')
  expect(api.workers.size).toBe(0)
  expect([...api.databases.keys()]).toEqual(['parley'])
  expect([...api.indexes.keys()]).toEqual(goal.indexes.map(({ name }) => name))
  expect(tables()).toEqual(
    expect.arrayContaining(['collections', 'conversation_models', 'messages', 'api_keys']),
  )
  // No version ever serves without its tables: they are there before the upload.
  expect(place(MIGRATION)).toBeGreaterThan(place(/^POST \/d1\/database$/))
  expect(place(UPLOAD)).toBeGreaterThan(place(MIGRATION))
  const file = readdirSync(join(folder, 'kept')).find((name) => name.endsWith('-parley.json'))
  const path = join(folder, 'kept', file!)
  const kept = JSON.parse(readFileSync(path, 'utf8'))
  expect(statSync(path).mode & 0o077).toBe(0)

  // As Workers Builds runs it: it wants to read what was deployed.
  const report = join(folder, 'report.json')
  const last = await deploy({ ...loggedIn(), WRANGLER_OUTPUT_FILE_PATH: report }, '--url', inject('url'))
  expect(readFileSync(report, 'utf8')).toContain('"targets":["https://parley.developer.workers.dev"')
  expect(last.code).toBe(0)
  expect(last.output).toMatch(/1\/2 {2}Deploy the Worker parley, with new secrets/)
  expect(last.output).not.toContain('Create the D1 database')
  const worker = api.workers.get('parley')!
  expect(worker.crons).toEqual(['* * * * *'])
  // The secrets came with the upload.
  expect(Object.fromEntries(worker.secrets)).toEqual(kept)
  expect(api.calls.filter((call) => /^(PUT|PATCH) .*secrets/.test(call))).toEqual([])
  for (const { output } of [atUpload, last]) expect(output).not.toContain(kept.ENCRYPTION_KEY)
  expect(last.output).toContain(`${kept.ADMIN_API_KEY}  (not shown again`)
  // This Parley does not know the key that was made: the deployment is reported all the same.
  expect(last.output).toContain('It is deployed and healthy, but the trial question failed')
  expect(last.output).toContain(`Parley is deployed at ${inject('url')}`)
  return worker.bindings
}

/** The next run makes nothing, and asks a question. */
async function again() {
  const { secrets } = api.workers.get('parley')!
  api.calls.length = 0
  const second = await deploy(asAdmin(), ...HERE())
  expect(second.code).toBe(0)
  expect(second.output).toMatch(/1\/2 {2}Deploy the Worker parley; its secrets stay as they are/)
  expect(second.output).toMatch(/answered .*goose named Ada/)
  expect(
    api.changes().filter((call) => !/\/(assets-upload-session|subdomain|schedules|query)$/.test(call)),
  ).toEqual(['PUT /workers/scripts/parley'])
  expect(api.workers.get('parley')!.uploads).toBe(2)
  expect(api.workers.get('parley')!.secrets).toEqual(secrets)
  const left = await fetch(`${inject('url')}/collections/parley-deploy-check`, {
    headers: { 'x-typesense-api-key': KEY },
  })
  expect(left.status).toBe(404)
}

/** Beside it stands a database that lacks the newest migration: it is applied before the version that needs it. */
async function stagingUpdated(production: { name: string; type: string }[]) {
  const files = readdirSync(join(ROOT, 'migrations')).filter((name) => name.endsWith('.sql'))
  const [newest, ...older] = files.sort().reverse()
  const before = new DatabaseSync(':memory:')
  before.exec(
    'CREATE TABLE d1_migrations (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL)',
  )
  for (const name of older.reverse()) {
    before.exec(readFileSync(join(ROOT, 'migrations', name), 'utf8'))
    before.prepare('INSERT INTO d1_migrations (name) VALUES (?)').run(name)
  }
  before.exec(
    markOwner('parley-staging', [
      { kind: 'd1', name: 'parley-staging' },
      { kind: 'vectorize', name: 'parley-staging-1024' },
      { kind: 'jurisdiction', name: 'none' },
      { kind: 'plan', name: 'paid' },
    ]),
  )
  api.databases.set('parley-staging', { uuid: crypto.randomUUID(), sqlite: before })
  api.indexes.set('parley-staging-1024', deployedIndex())
  api.calls.length = 0
  const staging = await deploy(asAdmin(), '--env', 'staging', ...HERE())
  expect(staging.output).toContain(`Apply 1 migrations to the database: ${newest}`)
  expect(staging.output).not.toContain('Create the D1 database')
  expect(staging.output).toContain('Deploy the Worker parley-staging')
  expect(staging.code).toBe(0)
  const applied = before.prepare('SELECT name FROM d1_migrations ORDER BY name').all()
  expect(applied.map(({ name }) => name)).toEqual(files.sort())
  expect(place(/^PUT \/workers\/scripts\/parley-staging$/)).toBeGreaterThan(
    api.calls.findLastIndex((call) => MIGRATION.test(call)),
  )
  expect(Object.fromEntries(api.workers.get('parley-staging')!.secrets)).toEqual({
    ADMIN_API_KEY: ADMIN,
    ENCRYPTION_KEY: expect.stringMatching(/^[0-9a-f]{64}$/),
  })
  expect(names()).toEqual(BOTH)
  const own = api.workers.get('parley-staging')!.bindings
  const named = (bindings: typeof production, type: string) =>
    bindings.filter((binding) => binding.type === type).map(({ name }) => name)
  for (const type of ['d1', 'plain_text', 'durable_object_namespace', 'vectorize', 'ratelimit', 'ai']) {
    expect([type, named(own, type)]).toEqual([type, named(production, type)])
    expect(named(production, type)).not.toEqual([])
  }
}

/** It goes without production being touched. */
async function stagingRemoved() {
  const env = asAdmin()
  // Nobody is there to ask.
  api.calls.length = 0
  const unasked = await destroy(env, '--env', 'staging')
  expect(unasked.code).toBe(1)
  expect(unasked.output).toContain('To remove all of this, add --yes.')
  const dry = await destroy(env, '--env', 'staging', '--dry-run')
  expect(dry.code).toBe(0)
  expect(dry.output).toContain('Delete the D1 database parley-staging')
  expect(names()).toEqual(BOTH)
  expect(api.changes().filter((call) => !/\/query$/.test(call))).toEqual([])

  // Cut off in the middle, the next run goes on.
  api.refuseOnce(/^DELETE \/vectorize/, 500, 10000, 'Internal error')
  const cut = await destroy(env, '--env', 'staging', '--yes')
  expect(cut.code).toBe(1)
  expect(cut.output).toContain('Run `npm run destroy` again')
  expect(names()).toEqual({ ...BOTH, workers: ['parley'] })
  const rest = await destroy(env, '--env', 'staging', '--yes')
  expect(rest.output).toContain('The deployment parley-staging is removed.')
  expect(rest.code).toBe(0)
  expect(names()).toEqual(PRODUCTION)
  expect(api.workers.get('parley')!.uploads).toBe(2)

  const again = await destroy(env, '--env', 'staging', '--yes')
  expect(again.code).toBe(1)
  expect(again.output).toContain('There is no D1 database parley-staging')
  expect(names()).toEqual(PRODUCTION)
}

test('--dry-run tells the plan without an account or a call', SOME_RUNS, async () => {
  const { code, output } = await deploy({ CLOUDFLARE_API_BASE_URL: api.url }, '--dry-run')
  expect(code).toBe(0)
  expect(output).toContain('POST /d1/database {"name":"parley"}')
  expect(output).toContain('wrangler d1 migrations apply DB --remote')
  expect(output).toContain('with new secrets: ADMIN_API_KEY, ENCRYPTION_KEY')
  expect(api.calls).toEqual([])
})

test('who is not logged in is told how to', SOME_RUNS, async () => {
  const { code, output } = await deploy({ CLOUDFLARE_API_BASE_URL: api.url })
  expect(code).toBe(1)
  expect(output).toContain('run `npx wrangler login`, or set CLOUDFLARE_API_TOKEN')
})

test('who has several accounts is told to name one', SOME_RUNS, async () => {
  api.accounts.push({ id: 'f'.repeat(32), name: 'Another account' })
  const { code, output } = await deploy({ CLOUDFLARE_API_BASE_URL: api.url, CLOUDFLARE_API_TOKEN: 'token' })
  expect(code).toBe(1)
  expect(output).toContain('Set CLOUDFLARE_ACCOUNT_ID to the account to deploy to:')
  expect(output).toContain(`${'f'.repeat(32)}  Another account`)
  expect(api.changes()).toEqual([])
})

test('a Cloudflare that cannot be reached is told from a login that is missing', SOME_RUNS, async () => {
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
  expect(await left.text()).not.toContain('parley-deploy-check')
})
