/**
 * Serves the bundled Worker on this machine: in Miniflare, which is what `wrangler dev` serves with, but without the
 * proxy that wrangler puts before it. That proxy is for reloading edited sources, costs every request a second hop, and
 * ends the server when a connection between the two is lost.
 *
 * All requests come by the server in front of it (front.mjs), and from there by a socket of the Worker's own, which answers nothing
 * to anybody else. Miniflare also opens its entry, on a free port of this machine, and cannot be kept from it: behind that is a
 * Worker that answers nothing.
 */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare } from 'miniflare'
import { directOptions, directUrl, PASS } from './direct.mjs'
import { front } from './front.mjs'
import { localDatabases } from './migrations.mjs'
import { DEFAULT_HOST, isLoopback, urlOf } from './options.mjs'
import { readConfig, root } from './wrangler.mjs'

/** The Worker behind Miniflare's entry. */
const NOTHING = "export default { fetch: () => new Response('Not found', { status: 404 }) }"

/**
 * What the Worker is bound to on this machine. Left out are bindings that need an account, and the rate limits, whose local stand-in
 * loses connections while the machine is busy.
 * @param {Record<string, any>} config wrangler.toml
 */
const boundBy = ({ compatibility_date, compatibility_flags, assets, ...config }) => ({
  compatibilityDate: compatibility_date,
  compatibilityFlags: compatibility_flags,
  versionMetadata: config.version_metadata.binding,
  d1Databases: localDatabases(config),
  // Where `wrangler r2 object put NAME/KEY --local --persist-to FOLDER` puts objects.
  r2Buckets: Object.fromEntries(
    (config.r2_buckets ?? []).map((/** @type {{ binding: string, bucket_name: string }} */ bound) => [
      bound.binding,
      bound.bucket_name,
    ]),
  ),
  durableObjects: Object.fromEntries(
    config.durable_objects.bindings.map((/** @type {{ name: string, class_name: string }} */ bound) => [
      bound.name,
      { className: bound.class_name, useSQLite: true },
    ]),
  ),
  assets: {
    directory: join(root, assets.directory),
    binding: assets.binding,
    routerConfig: {
      has_user_worker: true,
      static_routing: { user_worker: assets.run_worker_first, asset_worker: [] },
    },
    assetConfig: { compatibility_date, compatibility_flags },
  },
})

/**
 * @param {object} options
 * @param {string} options.bundle the folder with what wrangler bundled
 * @param {string} options.folder where data is kept: where `wrangler d1 ... --local --persist-to` looks for it
 * @param {string} options.host the address to listen on
 * @param {number} options.port
 * @param {Record<string, string>} options.vars over those of wrangler.toml, secrets included
 * @param {boolean} options.log whether to print what the Worker logs; errors are printed in any case
 * @returns {Promise<{ entry: string, tick(): Promise<void>, stop(): Promise<void> }>} when it answers. `entry`: an
 *   address that nobody guesses; `/cdn-cgi/local/scheduled` below it fires the cron trigger. `tick` does what the cron trigger of
 *   wrangler.toml does when deployed
 * @throws Error when the server cannot be started
 */
export async function serve({ bundle, folder, host, port, vars, log }) {
  const config = readConfig()
  const secret = `/cdn-cgi/${randomUUID()}`
  const pass = randomUUID()
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      host: '127.0.0.1',
      port: 0,
      // Where in the world the caller is: a look-up that needs the network.
      cf: false,
      log: new Log(log ? LogLevel.WARN : LogLevel.ERROR),
      logRequests: false,
      handleStructuredLogs: ({ level, message }) => {
        if (level === 'error' || level === 'warn') console.error(message)
        else if (log) console.log(message)
      },
      resourcePersistencePath: join(folder, 'v3'),
      workers: [
        { name: 'nothing', modules: true, script: NOTHING },
        {
          ...boundBy(config),
          name: 'parley',
          ...directOptions({
            name: 'parley',
            bundle,
            main: 'index.js',
            assets: config.assets,
            host: '127.0.0.1',
            port: 0,
            cron: `${secret}/cdn-cgi/local/scheduled`,
            pass,
          }),
          bindings: { ...config.vars, ...vars },
        },
      ],
    }),
  )
  await miniflare.ready
  const endFront = await front({
    addresses: host === DEFAULT_HOST ? ['127.0.0.1', '::1'] : [host],
    port,
    worker: new URL(await directUrl(miniflare, 'parley')),
    headers: { [PASS]: pass },
    tellsAddresses: !isLoopback(host),
  })
  const entry = `${urlOf(host, port)}${secret}`
  return {
    entry,
    tick: async () => {
      await fetch(`${entry}/cdn-cgi/local/scheduled`)
    },
    stop: () => {
      endFront()
      return miniflare.dispose()
    },
  }
}
