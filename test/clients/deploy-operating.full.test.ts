/** The commands of docs/staging.md, run with the real wrangler against a counterpart of Cloudflare's API. `npm run test:all` runs them. */
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import { beforeEach, expect, test } from 'vitest'
import { wanted } from '../../scripts/deploy/names.mjs'
import { markOwner, plan } from '../../scripts/deploy/plan.mjs'
import { api, folder, loggedIn, stageDeployments } from './deploy-stage'

const ROOT = join(import.meta.dirname, '../..')
const NODE = join(ROOT, 'node_modules/node/bin/node')
const WRANGLER = join(ROOT, 'node_modules/wrangler/wrangler-dist/cli.js')
const TIMEOUT = { timeout: 600_000 }

stageDeployments()

/** wrangler's commands in a section of the page. */
function commandsOf(title: string): string[] {
  const page = readFileSync(join(ROOT, 'docs/staging.md'), 'utf8')
  const section = page.split(/^## /m).find((each) => each.startsWith(title))
  expect(section).toBeDefined()
  const commands = [...section!.matchAll(/```sh\n(.*?)```/gs)].flatMap(([, code]) => code!.trim().split('\n'))
  expect(commands.length).toBeGreaterThan(0)
  return commands
}

/** Runs a line of the page, as a shell takes it apart. */
async function run(command: string): Promise<string> {
  const [npx, wrangler, ...args] = [...command.matchAll(/"([^"]*)"|(\S+)/g)].map(
    ([, quoted, word]) => quoted ?? word!,
  )
  expect([npx, wrangler]).toEqual(['npx', 'wrangler'])
  const env = { PATH: process.env.PATH, HOME: folder, CI: 'true', ...loggedIn() }
  const { stdout, stderr } = await promisify(execFile)(NODE, ['--no-warnings', WRANGLER, ...args], {
    cwd: ROOT,
    env: { ...env, WRANGLER_SEND_METRICS: 'false', CLOUDFLARE_CF_FETCH_ENABLED: 'false' } as never,
  })
  return stdout + stderr
}

const ids = [1, 2, 3].map((n) => `${n}0000000-0000-4000-8000-000000000000`)
let sqlite: DatabaseSync

/** A deployment whose second version brought a migration of objects, and which has had a third since. */
beforeEach(() => {
  sqlite = new DatabaseSync(':memory:')
  for (const name of readdirSync(join(ROOT, 'migrations'))
    .filter((each) => each.endsWith('.sql'))
    .sort()) {
    sqlite.exec(readFileSync(join(ROOT, 'migrations', name), 'utf8'))
  }
  sqlite.exec(markOwner('parley', [{ kind: 'd1', name: 'parley' }]))
  api.databases.set('parley', { uuid: crypto.randomUUID(), sqlite })
  api.workers.set('parley', {
    secrets: new Map([['ADMIN_API_KEY', 'x']]),
    bindings: [],
    crons: [],
    uploads: 3,
    versions: ids.map((id, at) => ({ id, tag: at === 0 ? 'v1' : 'v2' })),
    active: ids[2]!,
  })
})

test('going back activates a version, but none from before a migration of objects', TIMEOUT, async () => {
  const [list, rollback] = commandsOf('How do I update, and how do I go back?')
  for (const id of ids) expect(await run(list!)).toContain(id)
  await run(rollback!.replace('VERSION_ID', ids[1]!))
  expect(api.workers.get('parley')!.active).toBe(ids[1])
  await expect(run(rollback!.replace('VERSION_ID', ids[0]!))).rejects.toThrow('Durable Object migration')
  expect(api.workers.get('parley')!.active).toBe(ids[1])
})

test('the database is restored to an earlier state, and cannot be exported', TIMEOUT, async () => {
  const keys = () => sqlite.prepare('SELECT count(*) AS n FROM owner').get()
  const [info, restore] = commandsOf('How do I restore the database?')
  expect(await run(info!)).toContain('bookmark-0')
  sqlite.exec('DELETE FROM owner')
  expect(keys()).toEqual({ n: 0 })
  expect(await run(restore!)).toContain('restored back to bookmark')
  expect(keys()).toEqual({ n: 1 })
  await expect(run('npx wrangler d1 export parley --remote --output=parley.sql')).rejects.toThrow(
    'Virtual Tables',
  )
})

test('a renamed Worker is refused its database until the mark says so', TIMEOUT, async () => {
  const goal = { ...wanted(), worker: 'shop' }
  const owner = () => sqlite.prepare('SELECT worker FROM owner').get()!.worker as string
  const state = () => ({
    database: true,
    owner: owner(),
    records: [],
    blank: false,
    deployed: true,
    base: false,
    migrations: goal.migrations,
    indexes: [],
    indexNames: [],
    secrets: goal.secrets,
  })
  expect(() => plan(goal, state())).toThrow('belongs to the Worker parley')
  const [mark] = commandsOf('How do I rename a deployment?')
  await run(mark!.replace('NEW-NAME', 'shop'))
  expect(owner()).toBe('shop')
  expect(plan(goal, state()).map((step) => step.do)).toContain('deploy')
})
