/**
 * Serves the bundled Worker on this machine: in Miniflare, which is what `wrangler dev` serves with, but without the
 * proxy that wrangler puts before it. That proxy is for reloading edited sources, costs every request a second hop, and
 * ends the server when a connection between the two is lost.
 */
import { join } from 'node:path'
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare } from 'miniflare'
import { unstable_getMiniflareWorkerOptions, unstable_readConfig } from 'wrangler'
import { workerRoutes } from './routes.mjs'
import { root } from './wrangler.mjs'

/**
 * @param {object} options
 * @param {string} options.bundle the folder with what wrangler bundled
 * @param {string} options.folder where data is kept: where `wrangler d1 ... --local --persist-to` looks for it
 * @param {string} options.host the address to listen on
 * @param {number} options.port
 * @param {Record<string, string>} options.vars over those of wrangler.toml, secrets included
 * @param {boolean} options.log whether to print what the Worker logs; errors are printed in any case
 * @returns {Promise<{ tick(): Promise<void>, stop(): Promise<void> }>} when it answers. `tick` does what the cron
 *   trigger of wrangler.toml does when deployed
 * @throws Error when the server cannot be started
 */
export async function serve({ bundle, folder, host, port, vars, log }) {
  const config = unstable_readConfig({ config: join(root, 'wrangler.toml') }, { hideWarnings: true })
  // Left out are bindings that need an account, and the rate limits, whose local stand-in loses connections while
  // the machine is busy.
  const { workerOptions } = unstable_getMiniflareWorkerOptions({
    ...config,
    ai: undefined,
    vectorize: [],
    ratelimits: [],
  })
  const { modulesRules: _, ...worker } = workerOptions
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      host,
      port,
      // Where in the world the caller is: a look-up that needs the network.
      cf: false,
      log: new Log(log ? LogLevel.WARN : LogLevel.ERROR),
      logRequests: false,
      handleStructuredLogs: ({ level, message }) => {
        if (level === 'error' || level === 'warn') console.error(message)
        else if (log) console.log(message)
      },
      unsafeTriggerHandlers: true,
      resourcePersistencePath: join(folder, 'v3'),
      workers: [
        {
          ...worker,
          name: 'parley',
          routes: workerRoutes(config.assets),
          modules: true,
          modulesRoot: bundle,
          scriptPath: join(bundle, 'index.js'),
          bindings: { ...config.vars, ...vars },
        },
      ],
    }),
  )
  const url = (await miniflare.ready).origin
  return {
    tick: async () => {
      await fetch(`${url}/cdn-cgi/local/scheduled`)
    },
    stop: () => miniflare.dispose(),
  }
}
