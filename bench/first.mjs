/**
 * CPU of the Worker, without its objects: for a request to a new isolate, and to one that has served it before.
 *
 * Each round starts a process (alone.mjs) with a new isolate for each kind of request, and one more that all of them warm up. The
 * first request of a process meets cold caches of the machine, so that one comes before anything is measured.
 */
import { startAlone } from './alone.mjs'
import { median } from './report.mjs'

/** Requests to the warm isolate before one of a kind is measured. */
const WARMING = 2

/** What a bare Hono Worker is asked: for a reply, and to copy a short answer of a model. */
const BARE = {
  'bare Hono, a reply': async (url) => void (await (await fetch(`${url}/health`)).text()),
  'bare Hono, a stream copied': async (url) =>
    void (await (await fetch(`${url}/relay?chunks=5&gap=10&wait=50`, { method: 'POST' })).text()),
}

/** The median, the lowest and the highest. */
const spreadOf = (all) => ({ middle: median(all), low: Math.min(...all), high: Math.max(...all) })

/**
 * @param server of objects and D1, with a door (server.mjs)
 * @param upstream the model
 * @param {Record<string, () => Promise<(url: string) => Promise<unknown>>>} asks by kind: prepares a request, and returns what sends it
 * @param {number} rounds
 * @returns {Promise<Record<string, { cold: ReturnType<typeof spreadOf>, warm: ReturnType<typeof spreadOf> }>>} milliseconds by kind
 */
export async function firstAndLater(server, upstream, asks, rounds) {
  const bare = Object.fromEntries(Object.entries(BARE).map(([name, ask]) => [name, async () => ask]))
  const kinds = { ...bare, ...asks }
  const names = Object.keys(kinds)
  const spent = Object.fromEntries(names.map((name) => [name, { cold: [], warm: [] }]))
  const isBare = (name) => name in bare
  for (let round = 0; round < rounds; round++) {
    const alone = await startAlone(server, upstream, [
      { name: 'warm' },
      { name: 'warm, bare', isBare: true },
      ...names.map((name) => ({ name, isBare: isBare(name) })),
    ])
    try {
      const warm = (name) => alone.urls[isBare(name) ? 'warm, bare' : 'warm']
      for (let n = 0; n < WARMING; n++) for (const name of names) await (await kinds[name]())(warm(name))
      for (const name of names) {
        for (const [temperature, url] of [
          ['warm', warm(name)],
          ['cold', alone.urls[name]],
        ]) {
          const send = await kinds[name]()
          spent[name][temperature].push(await alone.cpuOf(() => send(url)))
        }
      }
    } finally {
      await alone.close()
    }
  }
  return Object.fromEntries(
    names.map((name) => [name, { cold: spreadOf(spent[name].cold), warm: spreadOf(spent[name].warm) }]),
  )
}
