/** Regions, jurisdictions, the Free plan and a trial without an account. `npm run test:all` runs them. */
import { expect, inject, test } from 'vitest'
import { CLAIM_URL } from './cloudflare-temporary'
import { ADMIN, api, asAdmin, deploy, deployedIndex, HERE, stageDeployments } from './deploy-stage'

stageDeployments()

const variables = (worker: string) =>
  Object.fromEntries(
    api.workers
      .get(worker)!
      .bindings.filter(({ type }) => type === 'plain_text')
      .map(({ name, text }) => [name, text]),
  )
const bound = (worker: string) => api.workers.get(worker)!.bindings.map(({ type }) => type)

test('a jurisdiction is chosen once, and a plan is found out before anything is made', {
  timeout: 1_800_000,
}, async () => {
  api.plan = 'free'
  const env = asAdmin()
  const args = HERE()
  const first = await deploy(env, '--jurisdiction', 'eu', ...args)
  expect(first.output).toContain('The account is on the Workers Free plan.')
  expect(first.output).toContain('Create the D1 database parley in the jurisdiction eu')
  expect(first.code).toBe(0)
  const database = api.databases.get('parley')!
  expect(database).toMatchObject({ jurisdiction: 'eu', location: undefined })
  expect(variables('parley')).toMatchObject({ JURISDICTION: 'eu', REGION: '', VECTORS: 'embedded' })
  expect(api.indexes.size).toBe(0)
  expect(bound('parley')).not.toContain('vectorize')
  const worker = () => api.workers.get('parley')!
  expect(worker().limits).toBeUndefined()
  expect(JSON.stringify(worker().placement)).toContain('aws:eu-central-1')

  for (const [options, why] of [
    [['--jurisdiction', 'us'], 'has the jurisdiction eu'],
    [['--region', 'apac'], 'decides where the data is'],
  ] as const) {
    api.calls.length = 0
    const refused = await deploy(env, ...options, ...args)
    expect(refused.code).toBe(1)
    expect(refused.output).toContain(why)
    expect(api.changes().filter((call) => !/\/query$/.test(call))).toEqual([])
  }

  // An upgrade to the Paid plan: the place stays without being named, and the index is made.
  api.plan = 'paid'
  const upgraded = await deploy(env, ...args)
  expect(upgraded.output).not.toContain('Free plan')
  expect(upgraded.code).toBe(0)
  expect(variables('parley')).toMatchObject({ JURISDICTION: 'eu', VECTORS: 'vectorize' })
  expect(worker().limits).toEqual({ cpu_ms: 300_000 })
  expect([...api.indexes.keys()]).toEqual(['parley-1024'])
  expect(api.databases.get('parley')).toBe(database)
})

test('a region and a plan are remembered', { timeout: 1_800_000 }, async () => {
  api.plan = 'free'
  const env = asAdmin()
  const args = HERE()
  expect((await deploy(env, '--region', 'oc', ...args)).code).toBe(0)
  expect(api.databases.get('parley')).toMatchObject({ location: 'oc', jurisdiction: undefined })
  api.plan = undefined
  const second = await deploy(env, ...args)
  expect(second.output).toContain('The account is on the Workers Free plan.')
  expect(second.code).toBe(0)
  expect(variables('parley')).toMatchObject({ JURISDICTION: '', REGION: 'oc', VECTORS: 'embedded' })
  expect(api.indexes.size).toBe(0)
})

test('who has no account gets a trial on a temporary one, and where to claim it', {
  timeout: 1_800_000,
}, async () => {
  const env = { CLOUDFLARE_API_BASE_URL: api.url, ADMIN_API_KEY: ADMIN }
  const args = ['--temporary', '--url', inject('url')]
  const first = await deploy(env, ...args)
  expect(first.output).toContain('https://www.cloudflare.com/terms/')
  expect(first.output).toContain('A temporary account has neither Workers AI nor Vectorize')
  expect(first.output).toMatch(/answered .*goose named Ada/)
  expect(first.output).toContain(`claim     ${CLAIM_URL}`)
  expect(first.code).toBe(0)
  expect(variables('parley')).toMatchObject({ AI_BACKEND: 'local', VECTORS: 'embedded', CONSOLE: 'on' })
  expect([...api.databases.keys()]).toEqual(['parley'])
  expect(api.indexes.size).toBe(0)
  for (const type of ['ai', 'vectorize']) expect(bound('parley')).not.toContain(type)
  expect(bound('parley')).toContain('durable_object_namespace')

  // The account is kept until it expires: what is there stays.
  const opened = (call: string) => call === 'POST /provisioning/previews'
  expect(api.calls.filter(opened)).toHaveLength(1)
  const second = await deploy(env, ...args)
  expect(second.output).toMatch(/1\/2 {2}Deploy the Worker parley; its secrets stay as they are/)
  expect(second.output).toContain(CLAIM_URL)
  expect(second.code).toBe(0)
  expect(api.calls.filter(opened)).toHaveLength(1)

  // Who is logged in has an account.
  const loggedInAlready = await deploy(asAdmin(), ...args)
  expect(loggedInAlready.code).toBe(1)
  expect(loggedInAlready.output).toContain(
    "already authenticated with Cloudflare, so `--temporary` can't be used",
  )
  // Whoever reads a build's log could take the account.
  const logged = await deploy({ ...env, CI: 'true' }, ...args)
  expect(logged.output).not.toContain(CLAIM_URL)
})

test('a limit that Cloudflare refuses tells which plan the account has', { timeout: 1_800_000 }, async () => {
  api.plan = undefined
  api.indexes.set('parley-1024', deployedIndex())
  const refused = await deploy(asAdmin(), '--plan', 'paid')
  expect(refused.code).toBe(1)
  expect(refused.output).toContain('100328')
  expect(refused.output).toContain('npm run deploy -- --plan free')
})
