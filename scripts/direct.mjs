/**
 * A socket of workerd's own for a Worker, past the Worker of Miniflare that takes all requests otherwise. That one believes what its
 * headers (`MF-Original-URL`) say of the address that was asked, so nobody's requests may pass by it.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The Worker's entrypoint behind that socket. */
const ENTRYPOINT = 'Direct'
/** Its module, beside the bundle's. */
const MODULE = 'direct.mjs'
/** The binding to Miniflare's two Workers that look for a file first, and ask the Worker if there is none. */
const FILES = 'FILES_FIRST'

/** The reader of sources, a module that the bundle loads (reader.mjs). */
const READER = 'reader.mjs'

/** The header by which the server in front of the socket shows that it is the one who asks. */
export const PASS = 'x-parley-front'

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
 * @param {string | undefined} cron the path that fires the cron trigger, at the time of the parameter `time` if there is one
 * @param {string | undefined} pass see directOptions
 */
const source = (main, first, cron, pass) => `
import worker from './${main}'
export * from './${main}'
export default worker
const first = ${first}
export const ${ENTRYPOINT} = {
  async fetch(request, env, context) {
    ${pass === undefined ? '' : `if (request.headers.get('${PASS}') !== '${pass}') return new Response('Not found', { status: 404 })`}
    const { pathname, searchParams } = new URL(request.url)
    if (pathname === ${JSON.stringify(cron)}) {
      const scheduledTime = Number(searchParams.get('time') ?? Date.now())
      await worker.scheduled({ scheduledTime, cron: '', noRetry() {} }, env, context)
      return new Response('ok')
    }
    return first.test(pathname) ? worker.fetch(request, env, context) : env.${FILES}.fetch(request)
  },
}
`

/**
 * The modules of a bundle, for Miniflare: it finds no WebAssembly by itself, nor a module that is loaded by a name.
 * @param {string} bundle its folder
 * @param {string} main the name of the bundle's module
 */
export const modulesOf = (bundle, main) =>
  [main, ...readdirSync(bundle).filter((name) => name === READER || name.endsWith('.wasm'))].map((name) => {
    const path = join(bundle, name)
    return name.endsWith('.wasm')
      ? { type: /** @type {const} */ ('CompiledWasm'), path, contents: readFileSync(path) }
      : { type: /** @type {const} */ ('ESModule'), path, contents: readFileSync(path, 'utf8') }
  })

/**
 * Options of Miniflare for a Worker with a socket of its own, over those that it has otherwise. The Worker sees a request there as
 * it was sent, and its reply is not compressed.
 * @param {object} worker
 * @param {string} worker.name
 * @param {string} worker.bundle the folder of its bundle
 * @param {string} worker.main the bundle's module
 * @param {{ run_worker_first?: string[] | boolean } | undefined} worker.assets of the configuration
 * @param {Record<string, unknown> | undefined} [worker.serviceBindings] its own
 * @param {string} worker.host where to listen
 * @param {number} worker.port 0 for a free one
 * @param {string} [worker.cron] a path that nobody guesses, which fires the cron trigger
 * @param {string} [worker.pass] what the header PASS must say; without it everybody is answered who reaches the socket
 */
export const directOptions = ({ name, bundle, main, assets, serviceBindings, host, port, cron, pass }) => ({
  modulesRoot: bundle,
  modules: [
    {
      type: /** @type {const} */ ('ESModule'),
      path: join(bundle, MODULE),
      contents: source(main, workerFirst(assets), cron, pass),
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
