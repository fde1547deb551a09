/**
 * `npm run check`: everything that can be said about the project without running it. Each step is one
 * command; a failing one shows its output, as does one with figures to tell, and the rest still run. Two run at a time. The last one,
 * which measures, has the machine to itself. `--first` does the first two only, which take seconds and fail most often, and `--rest`
 * the others: `npm test` begins with the one.
 */
import './installed.mjs'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { root } from './wrangler.mjs'

/** @typedef {{ ok: boolean, output: string }} Outcome */

/**
 * Runs a program of node_modules/.bin.
 * @param {string} program
 * @param {string[]} args
 * @returns {Promise<Outcome>}
 */
const run = (program, ...args) =>
  new Promise((resolve) => {
    const env = {
      ...process.env,
      PATH: `${join(root, 'node_modules/.bin')}:${process.env.PATH}`,
      WRANGLER_SEND_METRICS: 'false',
      WRANGLER_HIDE_BANNER: 'true',
      CI: 'true',
      NO_COLOR: '1',
      FORCE_COLOR: '0',
    }
    execFile(program, args, { cwd: root, env, maxBuffer: 64 << 20 }, (error, stdout, stderr) =>
      resolve({ ok: error === null, output: stdout + stderr }),
    )
  })

/**
 * Checks the types of a project. One checker, since each works out the types that files share anew: TypeScript's usual four take 13 s
 * of CPU for the tests, and one takes 9. What it found is kept in node_modules, and what has not changed is not checked again.
 * @param {string} [project] its folder
 */
const types = (project = '.') => {
  const kept = join('node_modules/.cache/types', `${project.replaceAll('/', '-')}.tsbuildinfo`)
  return run('tsc', '--noEmit', '-p', project, '--checkers', '1', '--incremental', '--tsBuildInfoFile', kept)
}

/** @type {[name: string, step: () => Promise<Outcome>, told?: 'told'][]} */
const steps = [
  ['format and lint', () => run('biome', 'ci', '--error-on-warnings', '--colors=off', '.')],
  ['layering', () => run('node', 'scripts/lint/rooms.mjs')],
  ['types of test', () => types('test')],
  ['types of src', () => types()],
  ['types of scripts and ui', () => types('scripts')],
  ['types of the widget', () => types('ui/widget')],
  ['types of the console', () => types('ui/console')],
  ['types of its tests', () => types('test/console')],
  ['the pages build and are within budget', () => run('node', 'scripts/pages.mjs'), 'told'],
  ['types of the bindings', () => run('npm', 'run', '--silent', 'types', '--', '--check')],
  ['ui/openapi.json matches the routes', () => run('node', 'scripts/openapi.mjs', '--check')],
  // It bundles as a deployment does, and measures: nothing runs beside it.
  [
    'the bundle builds, and is within budget with its start-up',
    () => run('node', 'scripts/budget.mjs'),
    'told',
  ],
]

/** Steps of `--first`. */
const FIRST = 2

const parts = process.argv.includes('--first')
  ? steps.slice(0, FIRST)
  : steps.slice(process.argv.includes('--rest') ? FIRST : 0)
const measuring = parts.at(-1) === steps.at(-1) ? parts.splice(-1) : []

let failures = 0

/**
 * Does one step after the other, until none waits, and says of each how it went.
 * @param {typeof steps} waiting
 */
async function lane(waiting) {
  for (let step = waiting.shift(); step !== undefined; step = waiting.shift()) {
    const [name, work, told] = step
    const { ok, output } = await work()
    console.log(`${ok ? 'ok  ' : 'FAIL'}  ${name}`)
    if (!ok || told) console.log(output.trim().replace(/^/gm, '      '))
    if (!ok) failures += 1
  }
}

await Promise.all([lane(parts), lane(parts)])
await lane(measuring)
process.exitCode = failures === 0 ? 0 : 1
