/** The newest workerd that npm has, beside the one that Parley's version of wrangler brings (docs/decisions/0024-two-compatibility-dates.md). */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const CACHE = join(import.meta.dirname, '../../node_modules/.cache/workerd')

/** @param {string} command @param {string[]} args */
const run = (command, args) =>
  execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim()

/**
 * Installs it, once for each version.
 * @returns {{ MINIFLARE_WORKERD_PATH: string, COMPATIBILITY_DATE: string }} what miniflare and vitest.config.ts read: its program, and
 *   the newest date that it knows
 * @throws {Error} where npm's registry does not answer
 */
export function newestRuntime() {
  const version = run('npm', ['view', 'workerd', 'version'])
  const folder = join(CACHE, version)
  const program = join(
    folder,
    'node_modules/@cloudflare',
    `workerd-${process.platform}-${bits()}`,
    'bin/workerd',
  )
  if (!existsSync(program)) {
    run('npm', [
      'install',
      '--prefix',
      folder,
      '--no-audit',
      '--no-fund',
      '--ignore-scripts',
      `workerd@${version}`,
    ])
  }
  const [, date] = /(\d{4}-\d\d-\d\d)/.exec(run(program, ['--version'])) ?? []
  if (date === undefined) throw new Error(`${program} does not tell its date.`)
  return { MINIFLARE_WORKERD_PATH: program, COMPATIBILITY_DATE: date }
}

/** The package's word for a processor. */
const bits = () => (process.arch === 'x64' ? '64' : process.arch)
