/** Each file of a project is run by one of its shards. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { shardOf } from '../../scripts/testing/shards.mjs'

const NAMES = ['deploy', 'deploy-places', 'matrix/matrix', 'start', 'kill', 'a', 'b', 'c', 'd', 'e', 'f']
const files = fc
  .uniqueArray(fc.oneof(fc.constantFrom(...NAMES), fc.string()))
  .map((names) => names.map((name) => ({ moduleId: `/test/clients/${name}.test.ts` })))

test('every file is in one shard, in whatever order they are given', () => {
  fc.assert(
    fc.property(files, fc.integer({ min: 1, max: 4 }), (all, count) => {
      const shards = Array.from({ length: count }, (_, at) => shardOf(all, at + 1, count))
      expect(new Set(shards.flat())).toEqual(new Set(all))
      expect(shards.flat()).toHaveLength(all.length)
      expect(Array.from({ length: count }, (_, at) => shardOf(all.toReversed(), at + 1, count))).toEqual(
        shards,
      )
    }),
  )
})

test('long files are dealt out', () => {
  const named = (...names: string[]) => names.map((name) => ({ moduleId: `/test/clients/${name}.test.ts` }))
  const all = named('deploy-places', 'deploy-accounts', 'deploy-destroy', 'deploy', 'start', 'moving')
  expect(shardOf(all, 1, 2)).toEqual(named('deploy-accounts', 'deploy', 'start'))
  expect(shardOf(all, 2, 2)).toEqual(named('deploy-places', 'deploy-destroy', 'moving'))
})
