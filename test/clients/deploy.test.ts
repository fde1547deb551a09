/**
 * `npm run deploy` with the real wrangler, against a counterpart of Cloudflare's API. The deployment that it tries out
 * afterwards is the Parley of these tests: an upload to the counterpart serves nothing.
 */
import { expect, inject, test } from 'vitest'
import { verify } from '../../scripts/deploy/verify.mjs'
import { wanted } from '../../scripts/deploy/wanted.mjs'
import { NUMBERS, STRINGS } from '../../src/search/vectors/vectorize/labels'
import {
  ADMIN,
  api,
  asAdmin,
  deploy,
  HERE,
  keepDeployment,
  loggedIn,
  METADATA_INDEX,
  MIGRATION,
  place,
  stageDeployments,
  tables,
  UPLOAD,
} from './deploy-stage'
import { KEY } from './harness'

const goal = wanted()
/** A few runs of wrangler take seconds, and many where other tests take the machine. */
const SOME_RUNS = { timeout: 180_000 }

stageDeployments()

test('the first run makes everything and asks a question, the second makes nothing', {
  timeout: 1_800_000,
}, async () => {
  const env = asAdmin()
  const args = HERE()
  const first = await deploy(env, ...args)
  expect(first.output).toContain(`Parley is deployed at ${inject('url')}`)
  expect(first.code).toBe(0)
  keepDeployment()
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
  expect(await left.text()).not.toContain('parley_deploy_check')
})
