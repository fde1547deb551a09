/**
 * Runs before the project's programs: says to run `npm ci` where that was forgotten, and says so of a Node that is too old. It imports no
 * package. It is the first import of each program, for those who start one by hand; npm scripts have it before the program, because Node
 * looks for all packages before it runs the first import.
 */
import { existsSync, readFileSync } from 'node:fs'
import module from 'node:module'
import { fileURLToPath } from 'node:url'

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
// npm finds the project's own Node first; whoever runs a program by hand may have another.
if (Number(process.versions.node.split('.')[0]) < 22) {
  console.error(
    `This is Node ${process.versions.node}, and Parley's programs want 22 or newer. Run them with npm (\`npm start\`, \`npm test\`), or with node_modules/.bin/node.`,
  )
  process.exit(1)
}
// Reading a program's packages is most of what a short command costs. Node keeps what it made of them, and so does each Node that
// this one starts.
const compiled = fileURLToPath(new URL('node_modules/.cache/compiled', folder))
process.env.NODE_COMPILE_CACHE ||= compiled
module.enableCompileCache(process.env.NODE_COMPILE_CACHE)
