/** The upload of the Worker. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runWrangler } from '../wrangler.mjs'

/** A workers.dev address, a custom domain, but no route with a wildcard. */
const ADDRESS = /^(?:https:\/\/)?([\w-]+(?:\.[\w-]+)+)(?: \(custom domain\))?$/

/**
 * The first of wrangler's targets that can be called.
 * @param {string[]} targets
 * @returns {string | undefined}
 */
export function address(targets) {
  const host = targets.map((target) => ADDRESS.exec(target)?.[1]).find((found) => found !== undefined)
  return host === undefined ? undefined : `https://${host}`
}

/**
 * Uploads the Worker and the secrets that it lacks in one version: `wrangler secret put` needs a Worker that exists,
 * and a first version would serve without them.
 * @param {string[]} args the command
 * @param {import('./names.mjs').Secrets} secrets
 * @returns {Promise<string | undefined>} where it answers, when it has an address of its own
 * @throws Error with wrangler's output
 */
export async function upload(args, secrets) {
  const scratch = mkdtempSync(join(tmpdir(), 'parley-deploy-'))
  try {
    const file = join(scratch, 'secrets.json')
    // Workers Builds names a place for wrangler's report, and reads there which version was deployed.
    const { WRANGLER_OUTPUT_FILE_PATH: place, WRANGLER_OUTPUT_FILE_DIRECTORY: folder } = process.env
    const output = place || join(folder || scratch, 'wrangler-output-deploy.json')
    const anew = Object.keys(secrets).length > 0
    if (anew) writeFileSync(file, JSON.stringify(secrets), { mode: 0o600 })
    await runWrangler([...args, ...(anew ? ['--secrets-file', file] : [])], {
      WRANGLER_OUTPUT_FILE_PATH: output,
    })
    const entries = readFileSync(output, 'utf8').trim().split('\n')
    return address(
      entries.map((line) => JSON.parse(line)).find(({ type }) => type === 'deploy')?.targets ?? [],
    )
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}
