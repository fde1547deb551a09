/** `npm run deploy` with the real wrangler, against a counterpart of Cloudflare's API: what its tests share. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { deserialize, serialize } from 'node:v8'
import { afterAll, afterEach, beforeAll, beforeEach, inject } from 'vitest'
import { ACCOUNT, type CloudflareApi, startCloudflareApi } from './cloudflare-api'
import { KEY } from './harness'

const SCRIPTS = join(import.meta.dirname, '../../scripts')
export const ADMIN = 'an admin key for the deployment test'
/** of the test that runs */
export let api: CloudflareApi
/** the home of whoever deploys in the test that runs */
export let folder: string
let keyId: number

/** Each test of the file has an account of its own. */
export function stageDeployments(): void {
  beforeAll(async () => {
    const response = await fetch(`${inject('url')}/keys`, {
      method: 'POST',
      headers: { 'x-typesense-api-key': KEY },
      body: JSON.stringify({ description: 'deployment', actions: ['*'], collections: ['*'], value: ADMIN }),
    })
    keyId = ((await response.json()) as { id: number }).id
  })

  afterAll(() =>
    fetch(`${inject('url')}/keys/${keyId}`, { method: 'DELETE', headers: { 'x-typesense-api-key': KEY } }),
  )

  beforeEach(async () => {
    api = await startCloudflareApi()
    folder = mkdtempSync(join(tmpdir(), 'parley-deploy-test-'))
  })

  afterEach(async () => {
    await api.close()
    rmSync(folder, { recursive: true, force: true })
  })
}

export const deploy = (env: Record<string, string>, ...args: string[]) => script('deploy', env, args)

export const destroy = (env: Record<string, string>, ...args: string[]) => script('destroy', env, args)

export const listModels = (env: Record<string, string>, ...args: string[]) => script('models', env, args)

/** What `deploy` is told by tests of what comes after the first deployment, and by the one of that. */
export const asAdmin = () => ({ ...loggedIn(), ADMIN_API_KEY: ADMIN })
export const HERE = () => ['--url', inject('url'), '--model', 'local/extractive']

type Database = CloudflareApi['databases'] extends Map<string, infer D> ? Omit<D, 'sqlite'> : never

/** What an account has after a deployment. */
interface Account {
  databases: Map<string, Database & { content: Uint8Array }>
  indexes: CloudflareApi['indexes']
  workers: CloudflareApi['workers']
}

/** The first deployment of this run of the tests: the account, and the home of whoever deployed. */
const kept = () => join(dirname(inject('bundle')), 'first-deployment')

/**
 * An account with one deployment, and nothing else. It is made once a run, since it takes half a minute
 * (deploy.test.ts tells what they do). Tests get a copy.
 */
export async function deployed(): Promise<void> {
  if (!existsSync(kept())) {
    const { code, output } = await deploy(asAdmin(), ...HERE())
    if (code !== 0) throw new Error(output)
    keepDeployment()
    return
  }
  const { databases, indexes, workers }: Account = deserialize(readFileSync(join(kept(), 'account')))
  for (const [name, { content, ...database }] of databases) {
    const sqlite = new DatabaseSync(':memory:')
    sqlite.deserialize(content)
    api.databases.set(name, { ...database, sqlite })
  }
  for (const [name, index] of indexes) api.indexes.set(name, index)
  for (const [name, worker] of workers) api.workers.set(name, worker)
  cpSync(join(kept(), 'home'), folder, { recursive: true })
}

/** Keeps the account as it is, for `deployed`. */
function keepDeployment(): void {
  const databases: Account['databases'] = new Map(
    [...api.databases].map(([name, { sqlite, ...rest }]) => [name, { ...rest, content: sqlite.serialize() }]),
  )
  const account: Account = { databases, indexes: api.indexes, workers: api.workers }
  if (existsSync(kept())) return
  const draft = `${kept()}-${process.pid}`
  mkdirSync(draft)
  writeFileSync(join(draft, 'account'), serialize(account))
  cpSync(folder, join(draft, 'home'), { recursive: true })
  renameSync(draft, kept())
}

/** An index as a deployment makes it. */
export const deployedIndex = () => ({ config: { dimensions: 1024, metric: 'cosine' } })

/** Runs a script as npm does, with a home of its own: nobody is logged in there. */
async function script(name: string, env: Record<string, string>, args: string[]) {
  const child = spawn(process.execPath, [join(SCRIPTS, `${name}.mjs`), ...args], {
    env: {
      PATH: process.env.PATH,
      HOME: folder,
      PARLEY_DEPLOY_FOLDER: join(folder, 'kept'),
      ...env,
    } as never,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (data) => {
      output += data
    })
  }
  const [code] = await once(child, 'close')
  return { code, output }
}

export const loggedIn = () => ({
  CLOUDFLARE_API_BASE_URL: api.url,
  CLOUDFLARE_API_TOKEN: 'token',
  CLOUDFLARE_ACCOUNT_ID: ACCOUNT,
})

export const tables = () =>
  [...api.databases.values()].flatMap(({ sqlite }) =>
    sqlite
      .prepare("SELECT name FROM sqlite_master WHERE type = 'table'")
      .all()
      .map(({ name }) => name),
  )

export const place = (call: RegExp) => api.calls.findIndex((made) => call.test(made))

export const UPLOAD = /^PUT \/workers\/scripts\/parley$/
export const MIGRATION = /^POST \/d1\/database\/[^/]+\/query$/
