/**
 * Makes the classes of Durable Objects count for how long Cloudflare would bill them. It is bundled before the Worker (seconds.mjs).
 *
 * An object is billed from the beginning of an event until it could hibernate: while an event runs, while a promise was handed to
 * `waitUntil`, while a `fetch` is under way or its reply is being read, and while a timer waits
 * (https://developers.cloudflare.com/durable-objects/concepts/durable-object-lifecycle/).
 */
import { AsyncLocalStorage } from 'node:async_hooks'

const running = new AsyncLocalStorage()
/** by class and id, one for each object that ran since it was asked */
const objects = new Map()

class Awake {
  events = {}
  seconds = 0
  /** of these: nothing but a timer */
  timerSeconds = 0
  #busy = 0
  #timers = 0
  #since = 0

  constructor(kind, name) {
    this.kind = kind
    this.name = name
  }

  #turn() {
    const now = Date.now()
    if (this.#busy + this.#timers > 0) this.seconds += (now - this.#since) / 1000
    if (this.#busy === 0 && this.#timers > 0) this.timerSeconds += (now - this.#since) / 1000
    this.#since = now
  }

  /** Begins something. @returns ends it, once */
  begin(what = 'busy') {
    const add = (n) => {
      this.#turn()
      if (what === 'timer') this.#timers += n
      else this.#busy += n
    }
    add(1)
    let ended = false
    return () => {
      if (!ended) add(-1)
      ended = true
    }
  }
}

const ending = (promise, end) => Promise.resolve(promise).then(end, end)

const { fetch, setTimeout, clearTimeout, setInterval, clearInterval } = globalThis
const timers = new Map()
globalThis.setTimeout = (work, ms, ...args) => {
  const end = running.getStore()?.begin('timer')
  const timer = setTimeout(() => {
    timers.delete(timer)
    try {
      work(...args)
    } finally {
      end?.()
    }
  }, ms)
  if (end) timers.set(timer, end)
  return timer
}
globalThis.setInterval = (...args) => {
  const timer = setInterval(...args)
  const end = running.getStore()?.begin('timer')
  if (end) timers.set(timer, end)
  return timer
}
const clear = (original) => (timer) => {
  timers.get(timer)?.()
  timers.delete(timer)
  original(timer)
}
globalThis.clearTimeout = clear(clearTimeout)
globalThis.clearInterval = clear(clearInterval)

/** The same body. Calls `end` when it was read, or is not wanted. */
function watched(body, end) {
  const reader = body.getReader()
  return new ReadableStream({
    async pull(controller) {
      const { value, done } = await reader.read().catch((error) => {
        end()
        throw error
      })
      if (!done) return controller.enqueue(value)
      end()
      controller.close()
    },
    cancel(reason) {
      end()
      return reader.cancel(reason)
    },
  })
}
globalThis.fetch = async (...args) => {
  const end = running.getStore()?.begin()
  if (!end) return fetch(...args)
  const response = await fetch(...args).catch((error) => {
    end()
    throw error
  })
  if (response.body) return new Response(watched(response.body, end), response)
  end()
  return response
}

/** The state of an object, which tells what is handed to `waitUntil`. */
function told(kind, ctx) {
  const key = `${kind} ${ctx.id}`
  const awake = objects.get(key) ?? new Awake(kind, ctx.id.name)
  objects.set(key, awake)
  const { waitUntil } = ctx
  ctx.waitUntil = (promise) => {
    void ending(promise, awake.begin())
    waitUntil.call(ctx, promise)
  }
  return ctx
}

/** A class of Durable Objects that counts. */
export function counting(kind, Class) {
  class Counting extends Class {
    constructor(ctx, env) {
      super(told(kind, ctx), env)
      this.awake = objects.get(`${kind} ${ctx.id}`)
    }
  }
  const names = new Set()
  for (
    let at = Class.prototype;
    at?.constructor.name !== 'DurableObject' && at !== Object.prototype;
    at = Object.getPrototypeOf(at)
  )
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(at)))
      if (typeof value === 'function' && name !== 'constructor') names.add(name)
  for (const name of names)
    Counting.prototype[name] = function (...args) {
      const { awake } = this
      const work = () => Class.prototype[name].apply(this, args)
      // A method that calls another one is one event.
      if (running.getStore() === awake) return work()
      awake.events[name] = (awake.events[name] ?? 0) + 1
      const end = awake.begin()
      try {
        const result = running.run(awake, work)
        if (typeof result?.then === 'function') void ending(result, end)
        else end()
        return result
      } catch (error) {
        end()
        throw error
      }
    }
  return Counting
}

/** What was counted since the last call. */
export function counted() {
  const all = [...objects.values()].map((awake) => {
    awake.begin()()
    const { kind, name, seconds, timerSeconds, events } = awake
    Object.assign(awake, { seconds: 0, timerSeconds: 0, events: {} })
    return { kind, name, seconds, timerSeconds, events }
  })
  return Response.json(all.filter(({ seconds, events }) => seconds > 0 || Object.keys(events).length > 0))
}
