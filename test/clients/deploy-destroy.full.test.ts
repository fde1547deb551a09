/** What a removal leaves alone. `npm run test:all` runs it. */
import { expect, test } from 'vitest'
import { api, asAdmin, deploy, deployedIndex, destroy, HERE, stageDeployments } from './deploy-stage'

stageDeployments()

const names = () => ({
  workers: [...api.workers.keys()].sort(),
  databases: [...api.databases.keys()].sort(),
  indexes: [...api.indexes.keys()].sort(),
})
const PRODUCTION = { workers: ['parley'], databases: ['parley'], indexes: ['parley-1024'] }

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
