import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

if (Number(process.versions.node.split('.')[0]) < 22) {
  console.error(
    `This is Node ${process.versions.node}, and the tests want 22 or newer. Run them with npm (npm test -- PATH), or with node_modules/.bin/node.`,
  )
  process.exit(1)
}

// Six kinds of test, each where its subject really runs, or where that takes least:
//   unit      pure functions, in Node
//   console   the console's pages, in a DOM without a browser, against a fake server whose replies are checked
//   worker    Durable Objects, D1 and routes, inside workerd
//   clients   the real clients over real sockets against `npm start`
//   commands  the same, of the commands and of servers that a test starts, kills or deploys itself
//   browser   pages in a real browser, against another `npm start`

/**
 * Random cases are the same in each run, but where RANDOM_SEED says otherwise; empty: new ones each time. They are a quarter of those
 * that a property asks for, but with FULL, or where FUZZ_CASES says how many.
 */
const provide = {
  randomSeed: process.env.RANDOM_SEED ?? '20261122',
  randomShare: process.env.FULL || process.env.FUZZ_CASES ? 1 : 1 / 4,
}
const resolve = {
  alias: [{ find: /^fast-check$/, replacement: join(import.meta.dirname, 'test/fast-check.ts') }],
}

/** The tests of clients that start commands or servers of their own: `npm test` runs them apart. */
const COMMANDS =
  'test/clients/{backup,command-line,deploy,examples,first-account,guides,interrupted,kill,landed,moving,pages,start,tutorials,vectorize}*.test.ts'

/** An event that is waited for may come late on a busy machine: a second, which Vitest gives it, says nothing. */
const patient = { poll: { timeout: 15_000 } }

/** Gives Node a WebAssembly file as a bundler of Workers does: as a compiled module. */
const wasm = {
  name: 'wasm',
  enforce: 'pre' as const,
  load: (id: string) =>
    id.endsWith('.wasm')
      ? `export default new WebAssembly.Module(Buffer.from('${readFileSync(id, 'base64')}', 'base64'))`
      : undefined,
}

/**
 * `npm run test:all` sets FULL. Without it, files named `*.full.*` are left out, and tests that repeat one thing many times (random
 * cases, kills, wires of providers) take a small, fixed draw.
 */
const FULL = process.env.FULL ?? ''
const LEFT_OUT = FULL ? [] : ['test/**/*.full.*']

/** `npm run test:all` runs the worker tests once more, with the newest workerd and its date (scripts/testing/newest-runtime.mjs). */
const { COMPATIBILITY_DATE } = process.env

/** `npm run test:unit` is for between two edits: it leaves out what takes long, which is half of the time. */
const QUICK =
  process.env.npm_lifecycle_event === 'test:unit'
    ? ['test/fuzz/**', 'test/scripts/**', 'test/regular-expressions.unit.test.ts']
    : []

/** The projects that a run names, all of them if it names none. A pattern may name any. */
const NAMED = process.argv.flatMap((argument, at) => {
  if (argument === '--project') return [process.argv[at + 1] ?? '']
  return argument.startsWith('--project=') ? [argument.slice('--project='.length)] : []
})
const isNamed = (project: string) =>
  NAMED.length === 0 || NAMED.some((name) => name === project || /[*!]/.test(name))

/** A project whose tests share a Parley that was started as a user starts it. */
const served = (name: string, include: string, exclude: string[] = []) => ({
  resolve,
  test: {
    name,
    provide,
    include: [include],
    exclude: [...exclude, ...LEFT_OUT],
    environment: 'node' as const,
    // To load Vitest and the official clients anew for each file takes a second. Commands change what is of their process.
    isolate: name === 'commands',
    expect: patient,
    // Tests that run at once wait for silent providers most of their time.
    maxConcurrency: 12,
    globalSetup: ['./test/clients/global-setup.ts'],
    setupFiles: ['./test/clients/connections.ts'],
    testTimeout: 30_000,
    hookTimeout: 120_000,
  },
})

/** Its plugin comes with all of wrangler, which takes seconds to load: other projects go without. */
async function worker() {
  const { cloudflareTest, readD1Migrations } = await import('@cloudflare/vitest-pool-workers')
  return {
    resolve: {
      alias: [
        ...resolve.alias,
        { find: /^\.\/load-reader$/, replacement: join(import.meta.dirname, 'test/load-reader.ts') },
      ],
    },
    plugins: [
      cloudflareTest({
        remoteBindings: false,
        wrangler: { configPath: './wrangler.toml' },
        miniflare: {
          ...(COMPATIBILITY_DATE && {
            compatibilityDate: COMPATIBILITY_DATE,
            // The pool asks for modules in the older registry's way (docs/decisions/0024-two-compatibility-dates.md).
            compatibilityFlags: ['global_fetch_strictly_public', 'legacy_module_registry'],
          }),
          r2Buckets: ['BUCKET_DOCS'],
          bindings: {
            TEST_MIGRATIONS: await readD1Migrations('./migrations'),
            AI_BACKEND: 'local',
            VECTORS: 'embedded',
            ALLOWED_HOSTS: '*, localhost, 127.0.0.1',
            LOG_REQUESTS: 'off',
            RATE_LIMITS: 'off',
            FUZZ_CASES: process.env.FUZZ_CASES ?? '',
            FULL,
            ADMIN_API_KEY: 'xyz',
            ENCRYPTION_KEY: 'a key for tests only',
          },
        },
      }),
    ],
    test: {
      name: 'worker',
      provide,
      include: ['test/**/*.worker.test.ts'],
      exclude: LEFT_OUT,
      // To load the program into a workerd takes longer than most files do.
      isolate: false,
      expect: patient,
      setupFiles: ['./test/setup.ts'],
      testTimeout: 30_000,
    },
  }
}

interface Thrown {
  message?: string
  stack?: string
}

/**
 * Each `fetch` of a test has a connection of its own (test/clients/connections.ts), which ends with its response. Where that end comes
 * while the response is paused, as a large one is, Node's parser throws this after all was read, and nothing can catch it. A
 * connection that is kept, as the commands have, does not end so.
 */
const isOfNodesParser = ({ message = '', stack = '' }: Thrown) =>
  message.includes('assert(!this.paused)') && /Parser\.finish .*node:internal\/deps\/undici/.test(stack)

export default defineConfig(async () => ({
  test: {
    onUnhandledError: (error: Thrown) => !isOfNodesParser(error),
    projects: [
      {
        plugins: [wasm],
        // Node has none of the runtime's modules.
        resolve: {
          alias: [
            ...resolve.alias,
            {
              find: /^cloudflare:workers$/,
              replacement: join(import.meta.dirname, 'test/workers-module.ts'),
            },
          ],
        },
        test: {
          name: 'unit',
          provide,
          include: ['test/**/*.unit.test.ts'],
          exclude: [...LEFT_OUT, ...QUICK],
          environment: 'node',
          setupFiles: ['./test/unit-setup.ts'],
          expect: patient,
          // To load Vitest and the program anew for each file takes longer than most files do.
          isolate: false,
          testTimeout: 30_000,
        },
      },
      {
        resolve: {
          alias: [
            ...resolve.alias,
            // The console's server has it; a preview of the widget wants a browser.
            {
              find: /^\/widget\/parley-chat\.js$/,
              replacement: join(import.meta.dirname, 'test/console/no-widget.ts'),
            },
          ],
        },
        test: {
          name: 'console',
          provide,
          include: ['test/console/**/*.test.ts'],
          exclude: LEFT_OUT,
          environment: 'happy-dom',
          environmentOptions: { happyDOM: { url: 'http://localhost:8108/' } },
          expect: patient,
          // Each tab loads the console's own modules anew (test/console/tab.ts).
          isolate: false,
          testTimeout: 30_000,
        },
      },
      ...(isNamed('worker') ? [await worker()] : []),
      served('clients', 'test/clients/**/*.test.ts', [COMMANDS]),
      served('commands', COMMANDS),
      served('browser', 'test/browser/**/*.test.ts'),
    ],
  },
}))
