/** A socket of workerd's own for a Worker, past the Worker of Miniflare that takes all requests otherwise. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The Worker's entrypoint behind that socket. */
const ENTRYPOINT = 'Direct'
/** Its module, beside the bundle's. */
const MODULE = 'direct.mjs'
/** The binding to Miniflare's two Workers that look for a file first, and ask the Worker if there is none. */
const FILES = 'FILES_FIRST'

/**
 * What of `run_worker_first` in wrangler.toml comes to the Worker first, as a regular expression over paths.
 * @param {{ run_worker_first?: string[] | boolean } | undefined} assets of the configuration
 * @returns {RegExp}
 */
export function workerFirst(assets) {
  const rules = assets?.run_worker_first
  const patterns = (Array.isArray(rules) ? rules : [])
    .filter((rule) => !rule.startsWith('!'))
    .map((rule) => rule.replace(/[\\^$.+?()[\]{}|]/g, '\\$&').replaceAll('*', '.*'))
  return new RegExp(`^(?:${patterns.join('|') || '(?!)'})$`)
}

/**
 * The Worker with one entrypoint more: the same handler, called at once for what `run_worker_first` names. All other requests
 * look for a file first. Miniflare's entry would do the same in a Worker of its own, which costs each request a millisecond.
 * @param {string} main the name of the bundle's module
 * @param {RegExp} first
 */
const source = (main, first) => `
import worker from './${main}'
export * from './${main}'
export default worker
const first = ${first}
export const ${ENTRYPOINT} = {
  fetch(request, env, context) {
    const { pathname } = new URL(request.url)
    return first.test(pathname) ? worker.fetch(request, env, context) : env.${FILES}.fetch(request)
  },
}
`

/**
 * The modules of a bundle, for Miniflare: it finds no WebAssembly by itself.
 * @param {string} bundle its folder
 * @param {string} main the name of the bundle's module
 */
export const modulesOf = (bundle, main) => [
  {
    type: /** @type {const} */ ('ESModule'),
    path: join(bundle, main),
    contents: readFileSync(join(bundle, main), 'utf8'),
  },
  ...readdirSync(bundle)
    .filter((name) => name.endsWith('.wasm'))
    .map((name) => ({
      type: /** @type {const} */ ('CompiledWasm'),
      path: join(bundle, name),
      contents: readFileSync(join(bundle, name)),
    })),
]

/**
 * Options of Miniflare for a Worker with a socket of its own, over those that it has otherwise. The Worker sees a request there as
 * it was sent: without the header CF-Connecting-IP, which tells callers apart, and without compression of the reply. So this is
 * for callers on the same machine.
 * @param {object} worker
 * @param {string} worker.name
 * @param {string} worker.bundle the folder of its bundle
 * @param {string} worker.main the bundle's module
 * @param {{ run_worker_first?: string[] | boolean } | undefined} worker.assets of the configuration
 * @param {Record<string, unknown> | undefined} [worker.serviceBindings] its own
 * @param {string} worker.host where to listen
 * @param {number} worker.port 0 for a free one
 */
export const directOptions = ({ name, bundle, main, assets, serviceBindings, host, port }) => ({
  modulesRoot: bundle,
  modules: [
    {
      type: /** @type {const} */ ('ESModule'),
      path: join(bundle, MODULE),
      contents: source(main, workerFirst(assets)),
    },
    ...modulesOf(bundle, main),
  ],
  serviceBindings: { ...serviceBindings, [FILES]: name },
  unsafeDirectSockets: [{ host, port, entrypoint: ENTRYPOINT }],
})

/**
 * Where a Worker answers by its socket.
 * @param {import('miniflare').Miniflare} miniflare
 * @param {string} name of the Worker
 */
export const directUrl = async (miniflare, name) =>
  (await miniflare.unsafeGetDirectURL(name, ENTRYPOINT)).origin
