/** Deployments beside others in one account. `npm run test:all` runs them. */
import { expect, test } from 'vitest'
import { ADMIN, api, asAdmin, deploy, deployed, HERE, stageDeployments } from './deploy-stage'

stageDeployments()

const ratelimits = (worker: string) =>
  api.workers
    .get(worker)!
    .bindings.filter(({ type }) => type === 'ratelimit')
    .map((binding) => String(binding.namespace_id))

test('a second Worker of the account has a database, an index and limits of its own', {
  timeout: 1_800_000,
}, async () => {
  const env = asAdmin()
  const args = HERE()
  await deployed()
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
  expect(ratelimits('parley')).toEqual(['1001', '1002', '1003', '1004'])
  // The last counts what the account as a whole may ask of Workers AI.
  expect(ratelimits('parley-two').at(-1)).toBe('1004')
  expect(new Set([...ratelimits('parley'), ...ratelimits('parley-two')]).size).toBe(7)
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
  timeout: 1_800_000,
}, async () => {
  const env = asAdmin()
  const args = HERE()
  await deployed()
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
