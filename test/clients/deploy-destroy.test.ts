/** Staging beside production, and removing what a deployment made. `npm test` leaves them out of a short run. */
import { expect, test } from 'vitest'
import {
  api,
  asAdmin,
  deploy,
  deployed,
  deployedIndex,
  destroy,
  HERE,
  stageDeployments,
} from './deploy-stage'

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

test('staging stands beside production, and is removed without touching it', {
  timeout: 1_800_000,
}, async () => {
  const env = asAdmin()
  const args = HERE()
  await deployed()
  const staging = await deploy(env, '--env', 'staging', ...args)
  expect(staging.output).toContain('Deploy the Worker parley-staging')
  expect(staging.code).toBe(0)
  expect(names()).toEqual(BOTH)
  const bindings = (worker: string) => api.workers.get(worker)!.bindings
  const named = (worker: string, type: string) =>
    bindings(worker)
      .filter((binding) => binding.type === type)
      .map(({ name }) => name)
  for (const type of ['d1', 'plain_text', 'durable_object_namespace', 'vectorize', 'ratelimit', 'ai']) {
    expect([type, named('parley-staging', type)]).toEqual([type, named('parley', type)])
    expect(named('parley', type)).not.toEqual([])
  }

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
  expect(api.workers.get('parley')!.uploads).toBe(1)

  const again = await destroy(env, '--env', 'staging', '--yes')
  expect(again.code).toBe(1)
  expect(again.output).toContain('There is no D1 database parley-staging')
  expect(names()).toEqual(PRODUCTION)
})

test('what no deployment made is neither replaced nor removed', { timeout: 1_800_000 }, async () => {
  const env = asAdmin()
  const args = HERE()

  // A Worker of somebody else's that has the name.
  const foreign = { secrets: new Map([['THEIRS', 'x']]), bindings: [], crons: [], uploads: 1 }
  api.workers.set('parley', foreign)
  const refused = await deploy(env, ...args)
  expect(refused.code).toBe(1)
  expect(refused.output).toContain(
    'There is a Worker parley in the account that no deployment of Parley made.',
  )
  expect(api.changes()).toEqual([])
  api.workers.delete('parley')

  // An index that was there before, and a deployment that was cut off between the database and its mark.
  api.indexes.set('parley-1024', deployedIndex())
  api.refuseOnce(/^POST \/d1\/database\/[^/]+\/query$/, 500, 7500, 'Internal error')
  expect((await deploy(env, ...args)).code).toBe(1)
  expect((await deploy(env, ...args)).code).toBe(0)

  // Its database, once it is another Worker's.
  const mark = (worker: string) =>
    api.databases.get('parley')!.sqlite.exec(`UPDATE owner SET worker = '${worker}'`)
  mark('somebody-else')
  const kept = await destroy(env, '--yes')
  expect(kept.code).toBe(1)
  expect(kept.output).toContain('belongs to the Worker somebody-else')
  expect(names()).toEqual(PRODUCTION)
  mark('parley')

  const removed = await destroy(env, '--yes')
  expect(removed.output).toContain('Leave what no deployment made: the Vectorize index parley-1024')
  expect(removed.code).toBe(0)
  expect(names()).toEqual({ workers: [], databases: [], indexes: ['parley-1024'] })
})
