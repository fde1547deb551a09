/** Part of `npm ci`: the package of Node brings 67 MB of headers for those who compile addons. Nothing here is compiled. */
import './installed.mjs'
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('../node_modules/node/node_modules', import.meta.url))
for (const name of existsSync(folder) ? readdirSync(folder) : []) {
  rmSync(join(folder, name, 'include'), { recursive: true, force: true })
}
