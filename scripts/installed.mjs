/**
 * Runs before the project's programs: says to run `npm ci` where that was forgotten. It imports no package. Programs
 * cannot check by themselves, because Node resolves all of their imports before it runs their first line.
 */
import { existsSync, readFileSync } from 'node:fs'

const folder = new URL('../', import.meta.url)
const { dependencies, devDependencies } = JSON.parse(readFileSync(new URL('package.json', folder), 'utf8'))
const missing = Object.keys({ ...dependencies, ...devDependencies }).filter(
  (name) => !existsSync(new URL(`node_modules/${name}/package.json`, folder)),
)
if (missing.length > 0) {
  const what = existsSync(new URL('node_modules', folder))
    ? `These packages are not installed: ${missing.slice(0, 5).join(', ')}${missing.length > 5 ? ' and others' : ''}.`
    : 'The packages that Parley needs are not installed.'
  console.error(`${what} Run \`npm ci\` in ${decodeURIComponent(folder.pathname)}, and then this again.`)
  process.exit(1)
}
