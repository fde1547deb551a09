#!/usr/bin/env node
/** Starts the command line, once the packages are known to be there. An older Node hands it to the project's own. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { basename, delimiter, dirname, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

/** What to type for another command like this one. */
function typed() {
  const { npm_lifecycle_event: script, npm_command: npm, PATH = '' } = process.env
  if (script === 'parley') return 'npm run parley --'
  if (npm === 'exec') return 'npx parley'
  const [, program = ''] = process.argv
  const isLinked = basename(program) === 'parley' && PATH.split(delimiter).includes(dirname(program))
  const path = relative(process.cwd(), program)
  return isLinked ? 'parley' : `node ${/\s/.test(path) ? JSON.stringify(path) : path}`
}

process.env.PARLEY_COMMAND ??= typed()
const own = fileURLToPath(new URL('../../node_modules/node/bin/node', import.meta.url))
if (Number(process.versions.node.split('.')[0]) < 22 && existsSync(own)) {
  const { status } = spawnSync(own, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    stdio: 'inherit',
  })
  process.exit(status ?? 1)
}
await import('../installed.mjs')
await import('./cli.mjs')
