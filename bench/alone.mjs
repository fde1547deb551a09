/**
 * The Worker alone in a process of workerd. Its objects and D1 are in another one: on Cloudflare they do not count for the Worker's
 * CPU. So the CPU of the process is the Worker's and its sockets', without a profiler.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { build } from 'esbuild'

/** The program that Miniflare runs. */
const workerd = createRequire(import.meta.resolve('miniflare'))('workerd').default

/** The name of the Worker that objects and D1 are reached through, and the host of its RPC: Miniflare's sockets know that one. */
export const DOOR = 'door'
const RPC_HOST = 'miniflare-unsafe-internal-capnp-connect'
/** For what a request leaves to be done, in milliseconds. */
const SETTLES = 60

/** The Worker in the process of the objects that calls them. */
const DOOR_SOURCE = `
import { WorkerEntrypoint } from 'cloudflare:workers'
export default class extends WorkerEntrypoint {
  /** What the D1 binding of the other process asks. */
  fetch(request) {
    const { pathname, search } = new URL(request.url)
    return this.env.DB.fetcher.fetch('http://d1' + pathname + search, request)
  }
  call(namespace, name, method, given) {
    const objects = this.env[namespace]
    return objects.get(objects.idFromName(name))[method](...given)
  }
}
`

/** Options of the door, for Miniflare. @param {object} bindings those of the objects and D1 */
export const doorOf = (bindings) => ({ name: DOOR, script: DOOR_SOURCE, ...bindings })

/** The Worker with namespaces whose objects are called through the door. */
const ALONE = `
import worker from './worker.js'
export * from './worker.js'
// The only id that is more than a way to its object is that of the database's owner (src/db/owner.ts).
const objectsOf = (env, name) => ({
  idFromName: (id) => ({ name: id, toString: () => env.OWNER }),
  get: ({ name: id }) =>
    new Proxy({}, { get: (_, method) => (...given) => env.${DOOR}.call(name, id, method, given) }),
})
const apart = new WeakMap()
const bound = (env) => {
  if (!apart.has(env))
    apart.set(env, { ...env, CONVERSATION: objectsOf(env, 'CONVERSATION'), COLLECTION: objectsOf(env, 'COLLECTION') })
  return apart.get(env)
}
export default { fetch: (request, env, context) => worker.fetch(request, bound(env), context) }
`

/** What a bare Hono Worker does: it answers, or copies a model's stream. */
const BARE = `
import { Hono } from 'hono'
export default new Hono()
  .get('/health', (context) => context.json({ ok: true }))
  .post('/relay', ({ env, req }) =>
    env.MODEL.fetch('http://model/v1/chat/completions' + new URL(req.url).search, { method: 'POST', body: '{"stream":true}' }))
`

const quoted = (text) => JSON.stringify(String(text))

/** The configuration of workerd (workerd.capnp). */
function configOf({ isolates, bindings, compatibilityDate, compatibilityFlags, door, model, bundle }) {
  const modules = readdirSync(bundle).filter((name) => name.endsWith('.wasm'))
  const parley = `(
    modules = [
      (name = "alone.mjs", esModule = embed "alone.mjs"),
      (name = "worker.js", esModule = embed "worker.js"),
      ${modules.map((name) => `(name = ${quoted(`./${name}`)}, wasm = embed ${quoted(name)}),`).join('\n      ')}
    ],
    compatibilityDate = ${quoted(compatibilityDate)},
    compatibilityFlags = [${compatibilityFlags.map(quoted).join(', ')}],
    bindings = [
      ${Object.entries(bindings)
        .map(([name, text]) => `(name = "${name}", text = ${quoted(text)}),`)
        .join('\n      ')}
      (name = "${DOOR}", service = "${DOOR}"),
      (name = "DB", wrapped = (moduleName = "cloudflare-internal:d1-api",
        innerBindings = [(name = "fetcher", service = "${DOOR}")])),
    ],
  )`
  const bare = `(
    modules = [(name = "bare.mjs", esModule = embed "bare.mjs")],
    compatibilityDate = ${quoted(compatibilityDate)},
    bindings = [(name = "MODEL", service = "model")],
  )`
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "${DOOR}", external = (address = ${quoted(door)}, http = (capnpConnectHost = "${RPC_HOST}"))),
    (name = "model", external = (address = ${quoted(model)}, http = ())),
    ${isolates.map(({ name, isBare }) => `(name = "${name}", worker = ${isBare ? '.bare' : '.parley'}),`).join('\n    ')}
  ],
  sockets = [
    ${isolates.map(({ name }) => `(name = "${name}", address = "127.0.0.1:0", http = (), service = "${name}"),`).join('\n    ')}
  ],
);
const parley :Workerd.Worker = ${parley};
const bare :Workerd.Worker = ${bare};
`
}

/** Milliseconds of CPU that all threads of a process have used. */
const cpuOf = (pid) =>
  readdirSync(`/proc/${pid}/task`).reduce(
    (sum, thread) =>
      sum + Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]) / 1e6,
    0,
  )

/**
 * Starts a process with isolates of the Worker and of a bare Hono Worker. workerd makes all of them at the start.
 * @param server of objects and D1, started with a door (server.mjs), that has served a request
 * @param upstream the model that the bare Worker copies from `/relay`
 * @param {{ name: string, isBare?: boolean }[]} isolates
 * @returns addresses by the isolates' names, what work costs in milliseconds of the process's CPU, and the end
 */
export async function startAlone(server, upstream, isolates) {
  const scratch = mkdtempSync(join(tmpdir(), 'parley-alone-'))
  // Embedded files are found beside the configuration.
  cpSync(server.options.bundle, scratch, { recursive: true })
  writeFileSync(join(scratch, 'alone.mjs'), ALONE)
  await build({
    stdin: { contents: BARE, resolveDir: import.meta.dirname },
    outfile: join(scratch, 'bare.mjs'),
    bundle: true,
    format: 'esm',
    minify: true,
  })
  const door = new URL(await server.other(DOOR)).host
  const model = new URL(upstream.url).host
  // A version of before the mark has no such table.
  const owner = await server.db
    .prepare('SELECT namespace FROM owner')
    .first()
    .catch(() => null)
  const bindings = { ...server.options.bindings, OWNER: owner?.namespace ?? '' }
  writeFileSync(
    join(scratch, 'config.capnp'),
    configOf({ ...server.options, bindings, isolates, door, model }),
  )
  const child = spawn(workerd, ['serve', '--experimental', '--control-fd=3', join(scratch, 'config.capnp')], {
    stdio: ['ignore', 'inherit', 'inherit', 'pipe'],
  })
  const close = async () => {
    child.kill()
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    rmSync(scratch, { recursive: true, force: true })
  }
  const urls = {}
  for await (const line of createInterface({ input: child.stdio[3] })) {
    const { event, socket, port } = JSON.parse(line)
    if (event === 'listen') urls[socket] = `http://127.0.0.1:${port}`
    if (Object.keys(urls).length === isolates.length) break
  }
  if (Object.keys(urls).length < isolates.length) {
    await close()
    throw new Error('workerd did not start')
  }
  return {
    urls,
    cpuOf: async (work) => {
      await setTimeout(SETTLES)
      const before = cpuOf(child.pid)
      await work()
      await setTimeout(SETTLES)
      return cpuOf(child.pid) - before
    },
    close,
  }
}
