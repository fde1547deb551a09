/**
 * Cold starts: what the runtime takes from nothing to a Worker's first answer, with the database and the Durable
 * Objects that a deployment is bound to, or with nothing.
 *
 * Taken is CPU time, where the system tells it (Linux): the wall clock of a start triples on a busy machine, and its
 * CPU time hardly moves. Elsewhere it is the wall clock.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { convertV4MiniflareOptions, Miniflare } from 'miniflare'
import { modulesOf } from '../direct.mjs'

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
    SOURCE: { className: 'Source', useSQLite: true },
    AGENT_SOCKET: { className: 'AgentSocket', useSQLite: true },
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
      modulesRoot: dirname(script),
      modules: modulesOf(dirname(script), basename(script)),
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

/** @param {number[]} numbers */
const median = (numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? Number.NaN

/** Rounds of one measurement, an odd number. In 40 rounds on a machine under load, medians of 11 differed by 2%. */
const ROUNDS = 11
/** Measurements before a ratio counts as too high. */
const MOST_MEASUREMENTS = 3

/**
 * How many times as long a Worker takes for a cold start as another one.
 *
 * Both start one after the other, so that a busy moment of the machine meets both. The result is the median of these
 * pairs' ratios: a pair that something came between does not count for more than any other. A ratio above the limit is measured
 * again, and all pairs count. So one bad minute fails nothing, but a Worker that is too slow stays too slow.
 * @param {string} script a bundle
 * @param {string} base the bundle that it is compared with
 * @param {string} compatibilityDate
 * @param {{ bound: boolean, limit: number }} options `bound`: whether with the bindings of a deployment
 * @returns {Promise<{ ratio: number, own: number, base: number, rounds: number }>} times: medians in milliseconds
 */
export async function compareStarts(script, base, compatibilityDate, { bound, limit }) {
  /** @type {{ own: number, base: number }[]} */
  const pairs = []
  const ratio = () => median(pairs.map((pair) => pair.own / pair.base))
  for (let measured = 0; measured < MOST_MEASUREMENTS && !(ratio() <= limit); measured += 1) {
    for (let round = 0; round < ROUNDS; round += 1) {
      pairs.push({
        own: await coldStart(script, compatibilityDate, bound),
        base: await coldStart(base, compatibilityDate, bound),
      })
    }
  }
  return {
    ratio: ratio(),
    own: median(pairs.map((pair) => pair.own)),
    base: median(pairs.map((pair) => pair.base)),
    rounds: pairs.length,
  }
}
