/** What `npm test` runs in short: never what guards a file that has changed. */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { changedFiles, PARTS, shortEnv, shortParts } from '../../scripts/short-runs.mjs'

const root = join(import.meta.dirname, '../..')
const names = (changed: string[] | undefined, env = {}) => shortParts(changed, env).map(({ name }) => name)
const ALL = PARTS.map(({ name }) => name)
const [ANSWERING, STARTING, DEPLOYING, PROVIDERS, SITES] = ALL as [string, string, string, string, string]

test('a change of what a part guards runs that part whole', () => {
  expect(names(['README.md', 'ui/console/src/app.tsx'])).toEqual(ALL)
  expect(names(['src/conversation/turn-run.ts'])).toEqual([STARTING, DEPLOYING, SITES])
  expect(names(['src/conversation/expiry.ts'])).toEqual([STARTING, DEPLOYING, PROVIDERS, SITES])
  expect(names(['docs/deploy.md', 'scripts/deploy/plan.mjs'])).toEqual([
    ANSWERING,
    STARTING,
    PROVIDERS,
    SITES,
  ])
  expect(names(['src/db/owner.ts'])).not.toContain(DEPLOYING)
  expect(names(['src/db/messages.ts'])).toContain(DEPLOYING)
  expect(names(['src/models/egress.ts'])).toEqual([ANSWERING, STARTING, DEPLOYING, SITES])
  expect(names(['scripts/start.mjs'])).toEqual([ANSWERING, DEPLOYING, PROVIDERS, SITES])
  expect(names(['ui/widget/src/chat.ts'])).toEqual([ANSWERING, STARTING, DEPLOYING, PROVIDERS])
  expect(names(['examples/starlight.config.mjs'])).not.toContain(SITES)
  expect(names(['migrations/0009_more.sql'])).toEqual([PROVIDERS, SITES])
  expect(names(['package-lock.json'])).toEqual([])
  for (const { name, left = [] } of PARTS) for (const file of left) expect(names([file])).not.toContain(name)
})

test('what of conversations calls models is guarded by the providers', () => {
  const folder = 'src/conversation'
  const calling = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .map((file) => `${folder}/${file}`)
    .filter((file) => file.endsWith('.ts'))
    .filter((file) => /\bfrom '[^']*\/models\//.test(readFileSync(join(root, file), 'utf8')))
  expect(calling).not.toEqual([])
  for (const file of calling) expect(names([file])).not.toContain(PROVIDERS)
})

test('without git everything runs whole', () => {
  expect(names(undefined)).toEqual([])
})

test("the caller's own numbers stand", () => {
  expect(names([], { KILLS: '50' })).toEqual([STARTING, DEPLOYING, PROVIDERS, SITES])
})

test('every guarded folder and every file left out is there', () => {
  const starts = PARTS.flatMap(({ guarded, left = [], script }) => [
    ...guarded,
    ...left,
    ...(script === undefined ? [] : [`scripts/${script}`]),
  ])
  // The beginning of names, or a whole name.
  const isThere = (start: string) =>
    ['', '.mjs', '.test.ts', 'parley.ts'].some((end) => existsSync(join(root, start + end)))
  expect(starts.filter((start) => !isThere(start))).toEqual([])
})

test('changed files are told from the root of the project', () => {
  for (const file of changedFiles() ?? []) expect(file).not.toMatch(/^(\/|\.\.)/)
})

test('a short run leaves out the files that it says, and no others', { timeout: 120_000 }, () => {
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  const listed = (env: Record<string, string>) =>
    execFileSync(
      process.execPath,
      [vitest, 'list', '--filesOnly', '--project=commands', '--project=clients'],
      {
        cwd: root,
        env: { ...process.env, LEFT_OUT: undefined, ...env },
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      },
    ).match(/test\/clients\/\S+\.test\.ts/g)
  const all = readdirSync(join(root, 'test/clients'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => `test/clients/${file}`)
  const left = PARTS.flatMap(({ left = [] }) => left)
  expect(listed(shortEnv(PARTS))?.sort()).toEqual(all.filter((file) => !left.includes(file)).sort())
  expect(listed({})?.sort()).toEqual(all.sort())
})
