#!/usr/bin/env node
/** Starts the command line, once the packages are known to be there. An older Node hands it to the project's own. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const own = fileURLToPath(new URL('../../node_modules/node/bin/node', import.meta.url))
if (Number(process.versions.node.split('.')[0]) < 22 && existsSync(own)) {
  const { status } = spawnSync(own, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    stdio: 'inherit',
  })
  process.exit(status ?? 1)
}
await import('../installed.mjs')
await import('./cli.mjs')
