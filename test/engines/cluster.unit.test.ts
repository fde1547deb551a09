/** Which node is asked, and for how long one that failed is left alone. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Cluster, type ClusterRequest, forgetFailures } from '../../src/engines/cluster'

const TIMEOUT_MS = 1_000
const ONE = 'http://one.test'
const TWO = 'http://two.test'

type Behaviour = 'answers' | 'unreachable' | 'stalls' | 'starts'
let behaviour: Record<string, Behaviour>
let asked: string[]

beforeEach(() => {
  vi.useFakeTimers()
  forgetFailures()
  behaviour = {}
  asked = []
  vi.stubGlobal('fetch', (url: URL, { signal }: { signal: AbortSignal }) => {
    asked.push(url.origin)
    if (behaviour[url.origin] === 'unreachable') return Promise.reject(new TypeError('refused'))
    if (behaviour[url.origin] === 'starts') return Promise.resolve(new Response('{}', { status: 503 }))
    if (behaviour[url.origin] !== 'stalls') return Promise.resolve(new Response('{}'))
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  })
})

afterEach(() => {
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

const cluster = (nodes: string[], collection = '/books') =>
  new Cluster({
    label: 'The cluster',
    nodes,
    collection,
    headers: {},
    rights: 'a key',
    secrets: [],
    timeoutMs: TIMEOUT_MS,
    env: { ALLOWED_HOSTS: 'one.test, two.test' } as never,
  })

const SEARCH: ClusterRequest = { method: 'POST', path: '/books/_search', repeatable: true }

/** Asks, and has the clock go on until there is an outcome. */
async function outcomeOf(of: Cluster, request = SEARCH): Promise<string> {
  const outcome = of.fetch(request).then(
    () => 'answered',
    ({ message }: Error) => message,
  )
  await vi.advanceTimersByTimeAsync(TIMEOUT_MS * 2)
  return outcome
}

describe('a node that cannot be reached', () => {
  it('is left alone for all collections, and longer each time', async () => {
    behaviour[ONE] = 'unreachable'
    expect(await outcomeOf(cluster([ONE]))).toContain('could not be reached')
    forgetFailures()
    const failing = cluster([ONE])
      .fetch(SEARCH)
      .catch(() => {})
    await vi.advanceTimersByTimeAsync(0)
    await failing
    const before = asked.length
    await expect(cluster([ONE], '/other').fetch(SEARCH)).rejects.toThrow('lately')
    expect(asked.length).toBe(before)
  })

  it('is asked by one call only after its rest, and by all once that was answered', async () => {
    behaviour[ONE] = 'unreachable'
    await outcomeOf(cluster([ONE]))
    await vi.advanceTimersByTimeAsync(60_000)
    behaviour[ONE] = 'stalls'
    asked = []
    const trials = Array.from({ length: 20 }, () => cluster([ONE, TWO]).fetch(SEARCH))
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS)
    await Promise.all(trials)
    expect(asked.filter((node) => node === ONE)).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(60_000)
    behaviour[ONE] = 'answers'
    await cluster([ONE]).fetch(SEARCH)
    asked = []
    await Promise.all(Array.from({ length: 5 }, () => cluster([ONE]).fetch(SEARCH)))
    expect(asked).toHaveLength(5)
  })
})

it('a node that can be reached again, and is not ready yet, is left alone only for what it refused', async () => {
  behaviour[ONE] = 'unreachable'
  await outcomeOf(cluster([ONE]))
  await vi.advanceTimersByTimeAsync(60_000)
  behaviour[ONE] = 'starts'
  await expect(cluster([ONE]).fetch(SEARCH)).rejects.toThrow('503')
  behaviour[ONE] = 'answers'
  await expect(cluster([ONE]).fetch(SEARCH)).rejects.toThrow('lately')
  expect((await cluster([ONE], '/other').fetch(SEARCH)).status).toBe(200)
})

describe('a node that is slow', () => {
  it('is left alone after three calls in a row, and only for the like', async () => {
    behaviour[ONE] = 'stalls'
    for (let times = 0; times < 3; times++) expect(await outcomeOf(cluster([ONE]))).toContain('1000 ms')
    expect(await outcomeOf(cluster([ONE]))).toContain('lately')
    behaviour[ONE] = 'answers'
    expect(await outcomeOf(cluster([ONE], '/other'))).toBe('answered')
    expect(
      await outcomeOf(cluster([ONE]), { method: 'GET', path: '/books/_mapping', repeatable: true }),
    ).toBe('answered')
  })

  it('is not left alone for a burst of calls that are late together', async () => {
    behaviour[ONE] = 'stalls'
    const burst = Array.from({ length: 50 }, () =>
      cluster([ONE])
        .fetch(SEARCH)
        .catch(() => {}),
    )
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS * 2)
    await Promise.all(burst)
    behaviour[ONE] = 'answers'
    expect(await outcomeOf(cluster([ONE]))).toBe('answered')
  })
})
