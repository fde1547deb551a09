import fc from 'fast-check'
import { expect, test } from 'vitest'
import { inEnvironment, wanted } from '../../../scripts/deploy/names.mjs'
import { readDeployOptions } from '../../../scripts/deploy/options.mjs'
import { action, type Found, NOTHING, plan } from '../../../scripts/deploy/plan.mjs'
import { JURISDICTIONS, REGIONS, settle } from '../../../scripts/deploy/settings.mjs'

const NONE = { region: undefined, jurisdiction: undefined, plan: 'paid' as const }
const goal = wanted()
/** A deployment that has been made, with what it recorded. */
const deployed = (...records: Found['records']): Found => ({
  ...NOTHING,
  database: true,
  owner: goal.worker,
  deployed: true,
  records,
})

test.each([undefined, 'staging'])(
  'traces are off, and no call goes past the front door of its zone: %s',
  (name) => {
    const { config } = wanted(name)
    expect(config.compatibility_flags).toEqual(['enable_request_signal', 'global_fetch_strictly_public'])
    const off = { traces: { enabled: false }, logs: { invocation_logs: false } }
    expect(config.observability).toMatchObject(off)
    const own = { ...config, env: { staging: { observability: { head_sampling_rate: 0.5 } } } }
    expect(inEnvironment(own, 'staging').observability).toMatchObject({ ...off, head_sampling_rate: 0.5 })
  },
)

const region = fc.option(fc.constantFrom(...Object.keys(REGIONS)), { nil: undefined })
const jurisdiction = fc.option(fc.constantFrom(...Object.keys(JURISDICTIONS)), { nil: undefined })

test('the place of a first deployment stays, whether or not it is named again', () => {
  fc.assert(
    fc.property(region, jurisdiction, (near, within) => {
      const wish = { ...NONE, region: within === undefined ? near : undefined, jurisdiction: within }
      const first = settle(goal, NOTHING, wish).goal
      const steps = plan(first, NOTHING)
      const records = steps.flatMap((step) => (step.do === 'mark' ? step.records : []))
      expect(first.config.vars).toMatchObject({ JURISDICTION: within ?? '', REGION: wish.region ?? '' })
      const [create] = steps
      expect(action(create!)).toEqual({
        path: '/d1/database',
        body: {
          name: goal.database.name,
          ...(within !== undefined && { jurisdiction: within }),
          ...(wish.region !== undefined && { primary_location_hint: wish.region }),
        },
      })
      for (const again of [NONE, { ...NONE, jurisdiction: within }]) {
        const later = settle(goal, deployed(...records), again).goal
        expect(later.config).toEqual(first.config)
        expect(plan(later, deployed(...records))[0]!.do).not.toBe('record')
      }
    }),
  )
})

test('another jurisdiction is refused, also after a deployment that recorded none', () => {
  fc.assert(
    fc.property(jurisdiction, jurisdiction, (before, after) => {
      fc.pre(after !== undefined && before !== after)
      const records = before === undefined ? [] : [{ kind: 'jurisdiction' as const, name: before }]
      expect(() => settle(goal, deployed(...records), { ...NONE, jurisdiction: after })).toThrow(
        'its objects would be others, without their data',
      )
    }),
  )
})

test('a database that is there already has to be in the jurisdiction', () => {
  const there = { ...NOTHING, database: true, blank: true }
  const wish = { ...NONE, jurisdiction: 'eu' }
  expect(() => settle(goal, there, wish)).toThrow('is there already, without a jurisdiction')
  expect(() => settle(goal, { ...there, jurisdiction: 'us' }, wish)).toThrow('in the jurisdiction us')
  expect(settle(goal, { ...there, jurisdiction: 'eu' }, wish).goal.place).toEqual({
    jurisdiction: 'eu',
    region: undefined,
  })
})

test('a region can be changed and taken back, and stands beside no jurisdiction', () => {
  const before = deployed({ kind: 'region', name: 'weur' })
  const moved = settle(goal, before, { ...NONE, region: 'oc' }).goal
  expect(moved.config.vars.REGION).toBe('oc')
  expect(plan(moved, before)[0]).toMatchObject({
    do: 'record',
    records: [
      { kind: 'region', name: 'oc' },
      { kind: 'plan', name: 'paid' },
    ],
  })
  const back = settle(goal, before, { ...NONE, region: 'none' }).goal
  expect(back.config.vars.REGION).toBe('')
  expect(back.config).not.toHaveProperty('placement')
  expect(() => settle(goal, NOTHING, { ...NONE, region: 'oc', jurisdiction: 'eu' })).toThrow(
    'leave out --region',
  )
})

test('the Free plan gets what it allows, and the Paid plan time for imports', () => {
  const free = settle(goal, NOTHING, { ...NONE, plan: 'free' })
  expect(free.goal.indexes).toEqual([])
  expect(free.goal.config).not.toHaveProperty('limits')
  expect(free.goal.config).not.toHaveProperty('vectorize')
  expect(free.goal.config.vars.VECTORS).toBe('embedded')
  expect(free.notes.join(' ')).toContain('docs/free-plan.md')

  const paid = settle(goal, NOTHING, NONE)
  expect(paid.goal.config.limits).toEqual({ cpu_ms: 300_000 })
  expect(paid.goal.indexes).toEqual(goal.indexes)
  expect(paid.notes).toEqual([])

  const unknown = settle(goal, NOTHING, { ...NONE, plan: undefined })
  expect(unknown.goal.config).not.toHaveProperty('limits')
  expect(unknown.goal.indexes).toEqual(goal.indexes)
  expect(unknown.notes.join(' ')).toContain('--plan paid or --plan free')
  // Once said, it is known.
  const told = settle(goal, deployed({ kind: 'plan', name: 'free' }), { ...NONE, plan: undefined })
  expect(told.goal.config.vars.VECTORS).toBe('embedded')
})

test('a deployment that has an index keeps it when its account is on the Free plan', () => {
  const found = { ...deployed(), indexNames: goal.indexes.map(({ name }) => name) }
  const kept = settle(goal, found, { ...NONE, plan: 'free' }).goal
  expect(kept.config.vars.VECTORS).toBe('vectorize')
  expect(kept.indexes).toEqual(goal.indexes)
})

test('a limit that the Free plan refuses is refused before anything is made', () => {
  const limited = { ...goal, config: { ...goal.config, limits: { cpu_ms: 10 } } }
  expect(() => settle(limited, NOTHING, { ...NONE, plan: 'free' })).toThrow('[limits] cpu_ms')
  expect(settle(limited, NOTHING, NONE).goal.config.limits).toEqual({ cpu_ms: 10 })
})

test('the options', () => {
  expect(readDeployOptions(['--region', 'weur', '--plan', 'free'])).toMatchObject({
    region: 'weur',
    plan: 'free',
  })
  expect(() => readDeployOptions(['--region', 'europe'])).toThrow('--region is one of weur, ')
  expect(() => readDeployOptions(['--jurisdiction', 'ch'])).toThrow('--jurisdiction is one of eu, us, ')
  expect(readDeployOptions(['--temporary'])).toMatchObject({ temporary: true, model: 'local/extractive' })
  for (const other of [
    ['--env', 'staging'],
    ['--region', 'weur'],
    ['--jurisdiction', 'eu'],
    ['--plan', 'free'],
  ]) {
    expect(() => readDeployOptions(['--temporary', ...other])).toThrow(`It takes no ${other[0]}.`)
  }
  expect(() => readDeployOptions(['--plan', 'pro'])).toThrow('--plan is one of free, paid')
})
