/**
 * Wrangler as the scripts call it: the project's own copy, on a Node that it accepts, asking nothing and
 * reporting nothing.
 */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parse } from 'smol-toml'

export const root = fileURLToPath(new URL('..', import.meta.url))

/**
 * A configuration as it is written. Wrangler's own reader comes with all of wrangler, which takes two seconds to load.
 * @param {string} [file]
 * @returns {Record<string, any>}
 * @throws Error when it is no TOML
 */
export const readConfig = (file = fileURLToPath(new URL('../wrangler.toml', import.meta.url))) =>
  parse(readFileSync(file, 'utf8'))

// wrangler wants Node 22. npm scripts find the project's Node 24 first; this is for `node scripts/...` by hand.
const ownNode = fileURLToPath(new URL('../node_modules/node/bin/node', import.meta.url))
const node = Number(process.versions.node.split('.')[0]) >= 22 ? process.execPath : ownNode

// Not its bin/wrangler.js, which starts this in a process of its own: that one goes on when its parent is killed.
const cli = fileURLToPath(new URL('../node_modules/wrangler/wrangler-dist/cli.js', import.meta.url))

const compiled = fileURLToPath(new URL('../node_modules/.cache/compiled', import.meta.url))

/**
 * Starts wrangler in the project's folder.
 * @param {string[]} args
 * @param {import('node:child_process').SpawnOptions} [options]
 */
export const wrangler = (args, options = {}) =>
  spawn(node, ['--no-warnings', cli, ...args], {
    cwd: root,
    ...options,
    env: {
      ...process.env,
      WRANGLER_SEND_METRICS: 'false',
      WRANGLER_HIDE_BANNER: 'true',
      CI: 'true', // wrangler then asks no questions
      NO_UPDATE_NOTIFIER: '1',
      // Reading 20 MB of program is most of what a short command costs. Node keeps what it made of them.
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE || compiled,
      CLOUDFLARE_CF_FETCH_ENABLED: 'false', // where in the world the caller is: a look-up that needs the network
      ...options.env,
    },
  })

/**
 * Runs wrangler to its end.
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} [env] on top of this process's
 * @returns {Promise<string>} what it printed, warnings left out
 * @throws Error with all of its output when it fails
 */
export async function runWrangler(args, env = {}) {
  const child = wrangler(args, { stdio: ['ignore', 'pipe', 'pipe'], env })
  let printed = ''
  let output = ''
  child.stdout?.setEncoding('utf8').on('data', (data) => {
    printed += data
    output += data
  })
  child.stderr?.setEncoding('utf8').on('data', (data) => {
    output += data
  })
  const code = await new Promise((resolve, reject) => child.on('error', reject).on('close', resolve))
  if (code !== 0) throw new Error(`wrangler ${args.slice(0, 3).join(' ')} failed:\n${output}`)
  return printed
}
