/** Six calls of an object at once, four of them in the background, whatever they are for. */
import { afterEach, expect, it, vi } from 'vitest'
import { counting, inBackground } from '../../src/lib/waiting'
import { ProviderCall, wording } from '../../src/models/call'
import { aiBinding } from '../../src/models/egress'
import { vectorizeFor } from '../../src/vectorize/vectorize-index'

afterEach(() => vi.unstubAllGlobals())

/** Bindings that count their calls. Each call lasts until it is ended. */
function bindings() {
  const open: (() => void)[] = []
  let most = 0
  const call = async (reply?: unknown): Promise<unknown> => {
    await new Promise<void>((resolve) => {
      most = Math.max(most, open.push(resolve))
    })
    return reply
  }
  const env = counting({
    AI: { run: () => call({}) },
    VECTORS: 'vectorize',
    VECTORIZE_1024: { query: () => call(), upsert: () => call(), describe: () => call() },
    ALLOWED_HOSTS: '*',
  } as unknown as Cloudflare.Env)
  vi.stubGlobal('fetch', () => call(new Response('{}')))
  return { env, open, most: () => most }
}

it('counts fetches, calls of Workers AI and of Vectorize together', async () => {
  const { env, open, most } = bindings()
  const index = vectorizeFor(env, 1024)!
  const fetched = () =>
    new ProviderCall({ wording: wording('Test'), silence: 60, timeoutStatus: 408, env }).fetch(
      'https://llm.example.com/',
      {},
    )
  const calls = Array.from({ length: 5 }, () => [
    fetched(),
    aiBinding(env).run('m', {}),
    index.query([1], {}),
    index.upsert([]),
    aiBinding(inBackground(env)).run('m', {}),
  ]).flat()
  await vi.waitFor(() => expect(open.length).toBe(6))
  for (let left = calls.length; left > 0; left -= 1) {
    await vi.waitFor(() => expect(open.length).toBeGreaterThan(0))
    open.shift()!()
  }
  await Promise.all(calls)
  expect(most()).toBe(6)
})

it('makes four calls in the background, and lets others go ahead of those that wait', async () => {
  const { env, open } = bindings()
  const order: string[] = []
  const run = (name: string, of: Cloudflare.Env) =>
    aiBinding(of)
      .run(name, {})
      .then(() => void order.push(name))
  const background = Array.from({ length: 6 }, (_, n) => run(`background ${n}`, inBackground(env)))
  await vi.waitFor(() => expect(open.length).toBe(4))
  const others = ['a', 'b', 'c'].map((name) => run(name, env))
  await vi.waitFor(() => expect(open.length).toBe(6))
  open.shift()!()
  await Promise.race(background)
  // The place goes to the third of the others.
  await vi.waitFor(() => expect(open.length).toBe(6))
  for (const end of open.splice(1)) end()
  await Promise.all(others)
  expect(order).toEqual(expect.arrayContaining(['a', 'b', 'c']))
  open.splice(0).forEach((end) => {
    end()
  })
  await vi.waitFor(() => {
    open.splice(0).forEach((end) => {
      end()
    })
    expect(order.length).toBe(9)
  })
  await Promise.all(background)
})

it('never makes a call that is given up while it waits, and keeps no place for it', async () => {
  const { env, open } = bindings()
  const running = Array.from({ length: 6 }, (_, n) => aiBinding(env).run(`running ${n}`, {}))
  await vi.waitFor(() => expect(open.length).toBe(6))
  const stop = new AbortController()
  const stopped = new Error('stopped')
  const { signal } = stop
  const options = { wording: wording('Test'), silence: 60, timeoutStatus: 408, env }
  const given = [
    aiBinding(env).run('m', {}, { signal }),
    aiBinding(inBackground(env)).run('m', {}, { signal }),
    new ProviderCall(options, signal).fetch('https://llm.example.com/', {}),
  ]
  const outcomes = Promise.allSettled(given)
  // All of them are in line.
  await new Promise((resolve) => setTimeout(resolve))
  stop.abort(stopped)
  // Nothing has ended yet, so whoever gives up does not wait for a place.
  expect(await outcomes).toEqual(given.map(() => ({ status: 'rejected', reason: stopped })))
  const others = Array.from({ length: 6 }, (_, n) => aiBinding(inBackground(env)).run(`other ${n}`, {}))
  for (let ended = 0; ended < 12; ended += 1) {
    await vi.waitFor(() => expect(open.length).toBeGreaterThan(0))
    open.shift()!()
  }
  await Promise.all([...running, ...others])
  expect(open).toEqual([])
})
