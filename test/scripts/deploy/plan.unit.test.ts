import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, describe as group, test } from 'vitest'
import { inEnvironment, namedFor } from '../../../scripts/deploy/names.mjs'
import { advice, readDeployOptions } from '../../../scripts/deploy/options.mjs'
import {
  action,
  addRecords,
  CREATE_OWNER,
  describe,
  type Found,
  markOwner,
  NOTHING,
  plan,
  type Record,
  type Step,
  type Wanted,
} from '../../../scripts/deploy/plan.mjs'
import { address } from '../../../scripts/deploy/upload.mjs'
import { report } from '../../../scripts/deploy/verify.mjs'

const DIMENSIONS = [384, 768, 1024, 1536]
const MIGRATIONS = ['0000_a.sql', '0001_b.sql', '0002_c.sql']
const SECRETS = ['ADMIN_API_KEY', 'ENCRYPTION_KEY']

const index = fc.record({
  dimensions: fc.constantFrom(...DIMENSIONS),
  metric: fc.constant('cosine' as const),
})

const wanted: fc.Arbitrary<Wanted> = fc.record({
  worker: fc.constant('parley'),
  database: fc.record({ binding: fc.constant('DB'), name: fc.constant('parley'), chosen: fc.boolean() }),
  migrations: fc.integer({ min: 0, max: MIGRATIONS.length }).map((count) => MIGRATIONS.slice(0, count)),
  indexes: fc
    .uniqueArray(index, { selector: ({ dimensions }) => dimensions })
    .map((indexes) => indexes.map((each) => ({ name: `parley-${each.dimensions}`, ...each }))),
  secrets: fc.constant(SECRETS),
})

/** An account at any point on the way: Vectorize's indexes fit, since another size is an error of its own. */
const found: fc.Arbitrary<Found> = fc.record({
  database: fc.boolean(),
  owner: fc.constantFrom(undefined, 'parley'),
  records: fc.constant([]),
  blank: fc.constant(false),
  deployed: fc.constant(false),
  indexNames: fc.constant([]),
  base: fc.constant(false),
  migrations: fc.subarray(MIGRATIONS),
  indexes: fc.option(
    fc.subarray(DIMENSIONS).chain((sizes) =>
      fc.tuple(
        ...sizes.map((dimensions) =>
          fc.record({
            name: fc.constant(`parley-${dimensions}`),
            dimensions: fc.constant(dimensions),
          }),
        ),
      ),
    ),
    { nil: undefined },
  ),
  secrets: fc.subarray(SECRETS),
})

/** What an account has after a step. */
function after(state: Found, step: Step): Found {
  switch (step.do) {
    case 'create-database':
      return { ...state, database: true }
    case 'mark':
      return { ...state, owner: step.worker, records: [...state.records, ...step.records] }
    case 'record':
      return { ...state, records: [...state.records, ...step.records] }
    case 'create-index':
      return { ...state, indexes: [...(state.indexes ?? []), step] }
    case 'migrate':
      return { ...state, migrations: [...state.migrations, ...step.migrations] }
    case 'deploy':
      return { ...state, secrets: [...state.secrets, ...step.secrets] }
    case 'verify':
      return state
  }
}

const kinds = (steps: Step[]) => steps.map((step) => step.do)

group('the plan of a deployment', () => {
  test('a Worker that somebody else wrote is not replaced', () => {
    fc.assert(
      fc.property(wanted, found, (goal, state) => {
        const foreign = { ...state, deployed: true, owner: undefined, secrets: ['THEIRS'] }
        expect(() => plan(goal, foreign)).toThrow('that no deployment of Parley made')
        expect(() => plan(goal, { ...foreign, secrets: ['ADMIN_API_KEY'] })).not.toThrow()
        expect(() => plan(goal, { ...foreign, owner: 'parley' })).not.toThrow()
      }),
    )
  })

  test('once it was carried out, all that is left is to deploy and to verify', () => {
    fc.assert(
      fc.property(wanted, found, (goal, state) => {
        const done = plan(goal, state).reduce(after, state)
        const again = plan(goal, done)
        expect(kinds(again)).toEqual(['deploy', 'verify'])
        expect(again[0]).toMatchObject({ secrets: [] })
      }),
    )
  })

  test('cut off after any step, the next run does just the rest', () => {
    fc.assert(
      fc.property(wanted, found, fc.nat(), (goal, state, at) => {
        const steps = plan(goal, state)
        const cut = at % (steps.length - 1) // before the deployment, which is made every time
        const rest = plan(goal, steps.slice(0, cut).reduce(after, state))
        // What was made just before the cut is not recorded: whether it was made here cannot be known.
        const left = steps[cut - 1]?.do === 'create-index' ? cut + 1 : cut
        const unrecorded = (each: Step[]) =>
          each.map((step) => (step.do === 'mark' ? { ...step, records: [] } : step))
        expect(unrecorded(rest)).toEqual(unrecorded(steps.slice(left)))
      }),
    )
  })

  test('nothing is made twice, and tables and indexes are there before the Worker', () => {
    fc.assert(
      fc.property(wanted, found, (goal, state) => {
        const steps = plan(goal, state)
        const commands = steps.map((step) => JSON.stringify(action(step)))
        expect(new Set(commands).size).toBe(steps.length)
        expect(kinds(steps).slice(-2)).toEqual(['deploy', 'verify'])
        expect(kinds(steps).indexOf('deploy')).toBe(steps.length - 2)
        const migrate = kinds(steps).indexOf('migrate')
        if (migrate >= 0) expect(migrate).toBeGreaterThan(kinds(steps).indexOf('create-database'))
      }),
    )
  })

  test('a database is marked before anything is written to it', () => {
    fc.assert(
      fc.property(wanted, found, (goal, state) => {
        const steps = kinds(plan(goal, state))
        expect(steps.includes('mark')).toBe(state.owner === undefined)
        const writes = (['migrate', 'deploy'] as const).map((kind) => steps.indexOf(kind))
        for (const write of writes.filter((at) => at >= 0)) expect(steps.indexOf('mark')).toBeLessThan(write)
      }),
    )
  })

  test('a database of another Worker, or one that could be, is left alone', () => {
    fc.assert(
      fc.property(wanted, found, (goal, state) => {
        expect(() => plan(goal, { ...state, owner: 'shop' })).toThrow(
          'The D1 database parley belongs to the Worker shop, and parley would expire its history.',
        )
        const shop = { ...goal, worker: 'shop', database: { binding: 'DB', name: 'shop', chosen: false } }
        const before = { ...NOTHING, base: true, secrets: SECRETS }
        expect(() => plan(shop, before)).toThrow('it was deployed with the database parley')
        // A Worker that is new, or whose database was chosen, is no such case.
        expect(kinds(plan(shop, { ...before, secrets: [] }))[0]).toBe('create-database')
        const chosen = { ...shop, database: { binding: 'DB', name: 'parley', chosen: true } }
        expect(kinds(plan(chosen, { ...before, database: true }))[0]).toBe('mark')
      }),
    )
  })

  test('of a first deployment', () => {
    const goal: Wanted = {
      worker: 'parley',
      database: { binding: 'DB', name: 'parley', chosen: false },
      migrations: ['0000_a.sql'],
      indexes: [{ name: 'parley-1024', dimensions: 1024, metric: 'cosine' }],
      secrets: SECRETS,
    }
    const steps = plan(goal, NOTHING)
    const FIRST: Record[] = [
      { kind: 'd1', name: 'parley' },
      { kind: 'jurisdiction', name: 'none' },
    ]
    const query = '/d1/database/:database/query'
    expect(steps.map(action)).toEqual([
      { path: '/d1/database', body: { name: 'parley' } },
      { path: query, body: { sql: markOwner('parley', FIRST) } },
      {
        path: '/vectorize/v2/indexes',
        body: { name: 'parley-1024', config: { dimensions: 1024, metric: 'cosine' } },
      },
      { path: query, body: { sql: addRecords([{ kind: 'vectorize', name: 'parley-1024' }]) } },
      { wrangler: ['d1', 'migrations', 'apply', 'DB', '--remote'] },
      { wrangler: ['deploy', '--minify'] },
      undefined,
    ])
    expect(steps.map(describe)).toContain('Create the Vectorize index parley-1024 (1024 dimensions, cosine)')
    expect(() => plan(goal, { ...NOTHING, indexes: [{ name: 'parley-1024', dimensions: 768 }] })).toThrow(
      'parley-1024 has 768 dimensions, and Parley needs 1024',
    )
  })
})

group('names', () => {
  const config = {
    name: 'shop',
    d1_databases: [{ binding: 'DB', database_name: 'parley' }],
    vectorize: [
      { binding: 'VECTORIZE_1024', index_name: 'parley-1024' },
      { binding: 'VECTORIZE_384', index_name: 'mine-384' },
    ],
    ratelimits: [
      { name: 'RATE_LIMIT', namespace_id: '1001' },
      { name: 'RATE_LIMIT_TURNS', namespace_id: '1002' },
      { name: 'OWN', namespace_id: '7' },
    ],
  }

  test('of a Worker called parley are those of wrangler.toml', () => {
    expect(namedFor(config, 'parley')).toBe(config)
  })

  test('of two Workers are never the same, unless somebody chose them', () => {
    const worker = fc.stringMatching(/^[a-z][a-z0-9-]{0,20}$/)
    fc.assert(
      fc.property(worker, worker, (one, other) => {
        fc.pre(one !== other && one !== 'parley' && other !== 'parley')
        const resources = (name: string) => {
          const { d1_databases, vectorize, ratelimits } = namedFor(config, name)
          const ids = ratelimits.slice(0, 2).map(({ namespace_id }) => namespace_id)
          for (const id of ids) expect(Number(id)).toBeLessThan(2 ** 31)
          expect([vectorize[1]!.index_name, ratelimits[2]!.namespace_id]).toEqual(['mine-384', '7'])
          expect([d1_databases[0]!.database_name, vectorize[0]!.index_name]).toEqual([name, `${name}-1024`])
          return ids
        }
        expect(new Set([...resources(one), ...resources(other), '1001', '1002']).size).toBe(6)
      }),
    )
  })

  test("of an environment are its own, and its variables are the deployment's and those that it changes", () => {
    const raw = { ...config, vars: { CONSOLE: 'off', VECTORS: 'vectorize' }, env: {} }
    const { env: _, ...base } = raw
    expect(inEnvironment(raw, undefined)).toEqual(base)
    expect(inEnvironment(raw, 'staging')).toEqual({ ...base, name: 'shop-staging' })
    const staging = { vars: { CONSOLE: 'on' }, d1_databases: [] }
    expect(inEnvironment({ ...raw, env: { staging } }, 'staging')).toEqual({
      ...base,
      name: 'shop-staging',
      vars: { CONSOLE: 'on', VECTORS: 'vectorize' },
      d1_databases: [],
    })
    expect(inEnvironment({ ...raw, env: { staging: { name: 'try' } } }, 'staging').name).toBe('try')
  })

  test('that go with a database_id are left as they are', () => {
    const chosen = { ...config, d1_databases: [{ ...config.d1_databases[0]!, database_id: 'id' }] }
    const { d1_databases, vectorize, ratelimits } = namedFor(chosen, 'shop')
    expect([d1_databases, vectorize]).toEqual([chosen.d1_databases, chosen.vectorize])
    expect(ratelimits[0]!.namespace_id).not.toBe('1001')
  })

  test('the mark is the one that the Worker looks for', () => {
    const source = readFileSync(join(import.meta.dirname, '../../../src/db/owner.ts'), 'utf8')
    expect(source).toContain(`'${CREATE_OWNER}'`)
  })
})

group('what is told', () => {
  const outcome = {
    url: 'https://parley.me.workers.dev',
    key: 'the key',
    given: false,
    file: 'kept.json',
    logged: false,
  }

  test('a key that was made is shown once, and never in a log', () => {
    const shown = report({ ...outcome, made: SECRETS })
    expect(shown).toContain('deployed at https://parley.me.workers.dev')
    expect(shown).toContain('the key  (not shown again; kept in kept.json)')
    expect(shown).toContain('Back it up')
    expect(report({ ...outcome, made: [] })).not.toContain('the key')
    expect(report({ ...outcome, made: [], given: true })).not.toContain('the key')
    expect(report({ ...outcome, made: [], key: undefined })).toContain('that was set before')
    const logged = report({ ...outcome, made: SECRETS, logged: true })
    expect(logged).not.toContain('the key')
    expect(logged).toContain('npx wrangler secret put ADMIN_API_KEY')
  })

  test.each([
    [['https://parley.me.workers.dev', 'schedule: * * * * *'], 'https://parley.me.workers.dev'],
    [['chat.example.com (custom domain)'], 'https://chat.example.com'],
    [['example.com/*', '*.example.com', 'schedule: * * * * *'], undefined],
  ])('the address of %j is %s', (targets, expected) => {
    expect(address(targets)).toBe(expected)
  })

  test.each([
    ['A request failed. Authentication error [code: 10000]', 'D1 Edit'],
    ['vectorize.not_entitled [code: 1005]', 'Workers Paid plan'],
    ['You need to register a workers.dev subdomain before publishing', 'workers/onboarding'],
    ['getaddrinfo ENOTFOUND api.cloudflare.com', 'could not be reached'],
  ])('%s has an advice', (output, expected) => {
    expect(advice(output)).toContain(expected)
  })

  test('an output that nothing is known about has none', () => {
    expect(advice('Build failed with 1 error')).toBeUndefined()
  })
})

test('the options', () => {
  expect(readDeployOptions(['--dry-run', '--url', 'https://chat.example.com/'])).toMatchObject({
    dryRun: true,
    sample: false,
    url: 'https://chat.example.com',
  })
  expect(() => readDeployOptions(['--url', 'chat.example.com'])).toThrow('--url takes an address')
  expect(() => readDeployOptions(['--simple'])).toThrow("Unknown option '--simple'")
})
