/**
 * Serves the bundled Worker on this machine: in Miniflare, which is what `wrangler dev` serves with, but without the
 * proxy that wrangler puts before it. That proxy is for reloading edited sources, costs every request a second hop, and
 * ends the server when a connection between the two is lost.
 *
 * Callers of this machine also pass by Miniflare's own entry. Where others can reach the port, all requests go through that entry,
 * because it tells the Worker their addresses.
 */
import { join } from 'node:path'
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare } from 'miniflare'
import { unstable_getMiniflareWorkerOptions, unstable_readConfig } from 'wrangler'
import { directOptions, modulesOf } from './direct.mjs'
import { isLoopback } from './options.mjs'
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
 * @returns {Promise<{ entry: string, tick(): Promise<void>, stop(): Promise<void> }>} when it answers. `entry`: where
 *   Miniflare itself answers. `tick` does what the cron trigger of wrangler.toml does when deployed
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
  const isDirect = isLoopback(host)
  const main = 'index.js'
  const { assets } = config
  const serviceBindings = /** @type {Record<string, unknown> | undefined} */ (worker.serviceBindings)
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      ...(isDirect ? { host: '127.0.0.1', port: 0 } : { host, port }),
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
          ...(isDirect
            ? directOptions({ name: 'parley', bundle, main, assets, serviceBindings, host, port })
            : {
                routes: workerRoutes(assets),
                modulesRoot: bundle,
                modules: modulesOf(bundle, main),
              }),
          bindings: { ...config.vars, ...vars },
        },
      ],
    }),
  )
  const entry = (await miniflare.ready).origin
  return {
    entry,
    tick: async () => {
      await fetch(`${entry}/cdn-cgi/local/scheduled`)
    },
    stop: () => miniflare.dispose(),
  }
}
