/**
 * Cold starts: what the runtime takes from nothing to a Worker's first answer, with the database and the Durable
 * Objects that a deployment is bound to, or with nothing.
 *
 * Taken is CPU time, where the system tells it (Linux): the wall clock of a start triples on a busy machine, and its
 * CPU time hardly moves. Elsewhere it is the wall clock.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { convertV4MiniflareOptions, Miniflare } from 'miniflare'

/** Whether times are CPU time. */
export const counted = existsSync('/proc/self/schedstat')

/** CPU milliseconds of all threads of this process's children: of the runtime. */
function runtimeCpu() {
  let nanoseconds = 0
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      const [, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      if (Number(parent) !== process.pid) continue
      for (const thread of readdirSync(`/proc/${pid}/task`)) {
        nanoseconds += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0])
      }
    } catch {
      // ended meanwhile
    }
  }
  return nanoseconds / 1e6
}

/** What a deployment is bound to. */
const BINDINGS = {
  d1Databases: { DB: 'parley' },
  durableObjects: {
    CONVERSATION: { className: 'Conversation', useSQLite: true },
    COLLECTION: { className: 'Collection', useSQLite: true },
  },
}

/**
 * One cold start, until `GET /health` was answered.
 * @param {string} script
 * @param {string} compatibilityDate
 * @param {boolean} bound whether with the bindings of a deployment
 * @returns {Promise<number>} milliseconds
 * @throws Error when the Worker does not serve
 */
async function coldStart(script, compatibilityDate, bound) {
  const started = performance.now()
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      modules: true,
      modulesRoot: dirname(script),
      scriptPath: script,
      compatibilityDate,
      bindings: { RATE_LIMITS: 'off', LOG_REQUESTS: 'off' },
      ...(bound && BINDINGS),
    }),
  )
  try {
    const { origin } = await miniflare.ready
    const response = await fetch(`${origin}/health`)
    const text = await response.text()
    if (!response.ok) throw new Error(`/health answered ${response.status}: ${text}`)
    return counted ? runtimeCpu() : performance.now() - started
  } finally {
    await miniflare.dispose()
  }
}

/** @param {number[]} times */
const median = (times) => times.toSorted((a, b) => a - b)[times.length >> 1] ?? Number.NaN

/**
 * Cold starts of several Workers in turn, so that a busy moment of the machine meets all of them.
 * @param {string[]} scripts bundles
 * @param {string} compatibilityDate
 * @param {number} rounds
 * @param {boolean} bound whether with the bindings of a deployment
 * @returns {Promise<number[]>} medians in milliseconds, in the order of the scripts
 */
export async function coldStarts(scripts, compatibilityDate, rounds, bound) {
  const times = scripts.map(() => /** @type {number[]} */ ([]))
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, script] of scripts.entries()) {
      times[index]?.push(await coldStart(script, compatibilityDate, bound))
    }
  }
  return times.map(median)
}
