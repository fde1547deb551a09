import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readDeployOptions, readDestroyOptions } from '../../../scripts/deploy/options.mjs'
import { type Found, NOTHING, type Wanted } from '../../../scripts/deploy/plan.mjs'
import { planRemoval } from '../../../scripts/deploy/removal.mjs'

const INDEXES = ['parley-384', 'parley-768', 'parley-1024', 'parley-1536', 'theirs']

const state = fc.record({
  chosen: fc.boolean(),
  deployed: fc.boolean(),
  database: fc.boolean(), // recorded
  wanted: fc.subarray(INDEXES),
  present: fc.subarray(INDEXES),
  recorded: fc.subarray(INDEXES),
})

function account({
  chosen,
  deployed,
  database,
  wanted,
  present,
  recorded,
}: typeof state extends fc.Arbitrary<infer T> ? T : never) {
  const goal: Wanted = {
    worker: 'parley',
    database: { binding: 'DB', name: 'parley', chosen },
    migrations: [],
    indexes: wanted.map((name) => ({ name, dimensions: 1024, metric: 'cosine' })),
    secrets: [],
  }
  const found: Found = {
    ...NOTHING,
    database: true,
    owner: 'parley',
    deployed,
    indexNames: present,
    records: [
      ...(database ? [{ kind: 'd1' as const, name: 'parley' }] : []),
      ...recorded.map((name) => ({ kind: 'vectorize' as const, name })),
    ],
  }
  return { goal, found }
}

test('only what was recorded is removed, and what is there besides is told', () => {
  fc.assert(
    fc.property(state, (drawn) => {
      const { goal, found } = account(drawn)
      const { steps, left } = planRemoval(goal, found)
      const indexes = steps.flatMap((step) => (step.do === 'delete-index' ? [step.name] : []))
      expect(indexes.sort()).toEqual(drawn.recorded.filter((name) => drawn.present.includes(name)).sort())
      expect(steps.some((step) => step.do === 'delete-database')).toBe(drawn.database && !drawn.chosen)
      expect(steps.some((step) => step.do === 'delete-worker')).toBe(drawn.deployed)
      const unrecorded = drawn.wanted.filter(
        (name) => drawn.present.includes(name) && !drawn.recorded.includes(name),
      )
      for (const name of unrecorded) expect(left.join('\n')).toContain(`wrangler vectorize delete ${name}`)
      expect(left.length).toBe(unrecorded.length + (drawn.database && !drawn.chosen ? 0 : 1))
    }),
  )
})

test('the Worker goes first, and the database with the records last', () => {
  fc.assert(
    fc.property(state, (drawn) => {
      const { goal, found } = account(drawn)
      const steps = planRemoval(goal, found).steps.map((step) => step.do)
      if (steps.includes('delete-worker')) expect(steps[0]).toBe('delete-worker')
      if (steps.includes('delete-database')) expect(steps.at(-1)).toBe('delete-database')
    }),
  )
})

test('without the mark of this Worker nothing is removed', () => {
  fc.assert(
    fc.property(state, (drawn) => {
      const { goal, found } = account(drawn)
      expect(() => planRemoval(goal, { ...found, owner: 'shop' })).toThrow('belongs to the Worker shop')
      expect(() => planRemoval(goal, { ...found, owner: undefined })).toThrow('has no mark of a deployment')
      expect(() => planRemoval(goal, { ...found, database: false })).toThrow('There is no D1 database parley')
    }),
  )
})

test('the options', () => {
  expect(readDestroyOptions(['--env', 'staging', '--yes'])).toMatchObject({
    environment: 'staging',
    yes: true,
    dryRun: false,
  })
  expect(readDeployOptions(['--env', 'staging']).environment).toBe('staging')
  for (const read of [readDestroyOptions, readDeployOptions]) {
    expect(() => read(['--env', 'Staging 2'])).toThrow('--env takes a name of lower-case letters')
  }
})
