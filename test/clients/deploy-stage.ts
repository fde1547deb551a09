/** `npm run deploy` with the real wrangler, against a counterpart of Cloudflare's API: what its tests share. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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
export const METADATA_INDEX = /^POST \/vectorize\/v2\/indexes\/[^/]+\/metadata_index\/create$/
export const MIGRATION = /^POST \/d1\/database\/[^/]+\/query$/
