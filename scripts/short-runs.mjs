/**
 * What `npm test` runs in short. Some tests repeat one thing many times (kills), or run tools that take most of a minute
 * each (wrangler's deployments). They run whole when what they guard has changed, and with `npm run test:all`.
 */
import { execFileSync } from 'node:child_process'
import { root } from './wrangler.mjs'

/**
 * @typedef {object} Part a part of the tests that can be run in short
 * @property {string} name
 * @property {string} short what a short run has
 * @property {string[]} guarded files and folders; a change of one makes the run whole
 * @property {Record<string, string>} [env] what a short run is told
 * @property {string[]} [left] files of tests that a short run leaves out
 * @property {string} [script] in scripts/, by itself after the tests; a short run leaves it out
 */

const ANY = [
  'package-lock.json',
  'scripts/short-runs.mjs',
  'vitest.config.ts',
  'test/clients/global-setup.ts',
]
const STORED = ['src/conversation', 'src/db', 'src/registry', 'migrations', 'wrangler.toml']

/** @type {Part[]} */
export const PARTS = [
  {
    name: 'kills of a server that answers and imports',
    short: '2 of 5, and 2 of 4 while vectors are made',
    env: { KILLS: '2' },
    guarded: [...STORED, 'src/search', 'src/turn', 'test/clients/kill', 'test/clients/own-'],
  },
  {
    name: 'kills of npm start',
    short: '4 of 10',
    env: { START_KILLS: '4' },
    guarded: [
      'scripts/start.mjs',
      'scripts/serve.mjs',
      'scripts/bundle.mjs',
      'scripts/migrations.mjs',
      'scripts/folder.mjs',
      'scripts/leftovers.mjs',
      'scripts/wrangler.mjs',
      'scripts/options.mjs',
      'src/db',
      'migrations',
      'wrangler.toml',
      'test/clients/start',
    ],
  },
  {
    name: 'deployments',
    short:
      'one Worker, deployed twice, and refusals; not several Workers in an account, failures midway, nor removing',
    left: [
      'test/clients/deploy-accounts.test.ts',
      'test/clients/deploy-destroy.test.ts',
      'test/clients/deploy-operating.test.ts',
      'test/clients/deploy-places.test.ts',
    ],
    guarded: [
      'scripts/deploy',
      'scripts/destroy.mjs',
      'docs/staging.md',
      'scripts/wrangler.mjs',
      // Their tests read these two. Of the rest of the Worker a deployment knows its bundle only.
      'src/db/owner.ts',
      'src/search/vectors/vectorize/labels.ts',
      'migrations',
      'wrangler.toml',
      'test/clients/deploy',
      'test/clients/cloudflare-api.ts',
    ],
  },
  {
    name: 'providers',
    short: '3 of 11 ways to ask a model, in all that can happen to an answer',
    env: { PROVIDER_WIRES: '3' },
    guarded: [
      // What of conversations calls models. The rest sees no difference between providers, and three always run.
      'src/conversation/once.ts',
      'src/conversation/rewrite-once.ts',
      'src/conversation/turn-models.ts',
      'src/conversation/turn-run.ts',
      'src/models',
      'src/turn',
      'docs/models.md',
      'test/clients/counterpart.ts',
      'test/clients/providers',
      'test/models/workers-ai',
    ],
  },
  {
    name: 'the examples of the site generators',
    short: 'not built',
    script: 'frameworks.mjs',
    guarded: [
      'examples/vitepress.config.js',
      'examples/docusaurus.config.js',
      'examples/starlight.config.mjs',
      'ui/widget/src',
      'ui/shared',
      'scripts/frameworks.mjs',
      'scripts/own-server.mjs',
      'scripts/widget.mjs',
    ],
  },
]

/** @param {string[]} args @returns {string[]} the lines that git prints @throws when it cannot */
const git = (...args) =>
  execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    .split('\n')
    .filter((line) => line !== '')

/** @param {string} revision @returns {string | undefined} its commit, if there is such a revision */
function commitOf(revision) {
  try {
    return git('rev-parse', '--verify', '--quiet', `${revision}^{commit}`)[0]
  } catch {
    return undefined
  }
}

/**
 * Files that differ from the commit where this branch left main, or, on main, from the last commit of a day ago: several
 * commits are often pushed at once.
 * @returns {string[] | undefined} undefined when git cannot tell: no repository, or a history of less than a day
 */
export function changedFiles() {
  try {
    const main = commitOf('main') ?? commitOf('origin/main')
    const left = main && git('merge-base', 'HEAD', main)[0]
    const [yesterday] = git('rev-list', '-1', '--before=1 day ago', 'HEAD')
    const base = left !== undefined && left !== commitOf('HEAD') ? left : yesterday
    if (base === undefined) return undefined
    return [
      ...git('diff', '--name-only', '--no-renames', '--relative', base),
      ...git('ls-files', '--others', '--exclude-standard'),
    ]
  } catch {
    return undefined
  }
}

/**
 * Parts that run in short.
 * @param {string[] | undefined} changed undefined when nobody knows: then none does
 * @param {Record<string, string | undefined>} env of the caller, whose own numbers stand
 * @returns {Part[]}
 */
export function shortParts(changed, env) {
  if (changed === undefined) return []
  return PARTS.filter(({ guarded, env: told = {} }) => {
    if (Object.keys(told).some((name) => env[name] !== undefined)) return false
    return !changed.some((file) => [...ANY, ...guarded].some((start) => file.startsWith(start)))
  })
}

/**
 * What vitest is told for a short run.
 * @param {Part[]} parts those that run in short
 * @returns {Record<string, string>} variables of its environment; vitest.config.ts reads LEFT_OUT
 */
export function shortEnv(parts) {
  const left = parts.flatMap(({ left = [] }) => left)
  return Object.assign({}, left.length > 0 && { LEFT_OUT: left.join(',') }, ...parts.map(({ env }) => env))
}
