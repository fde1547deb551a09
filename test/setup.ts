/**
 * Worker tests share one runtime, as starting one takes seconds. Each file of tests finds it as the first one did: its
 * modules not evaluated, its bindings as configured, nothing stored, no global replaced.
 */
import { applyD1Migrations, reset } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { vi } from 'vitest'

const BINDINGS = Symbol.for('parley.test.bindings')
const shared = globalThis as { [BINDINGS]?: object }

/**
 * The pool's wrapper of a class wraps its prototype in one more proxy for each instance, so that after some thousand
 * requests every property is looked up through as many proxies, and the stack overflows. One proxy is enough.
 */
function keepOneProxy(): void {
  const prototypes = new WeakMap<NewableFunction, object>()
  const construct = Reflect.construct
  Reflect.construct = ((target: NewableFunction, args: unknown[], type: NewableFunction = target) => {
    if (Object.getOwnPropertyDescriptor(type, 'prototype')?.writable) {
      const first = prototypes.get(type) ?? type.prototype
      prototypes.set(type, first)
      type.prototype = first
    }
    return construct(target, args, type)
  }) as typeof Reflect.construct
}

if (shared[BINDINGS] === undefined) {
  shared[BINDINGS] = { ...env }
  keepOneProxy()
}
for (const name of Object.keys(env)) {
  if (!(name in shared[BINDINGS])) Reflect.deleteProperty(env, name)
}
Object.assign(env, shared[BINDINGS])
vi.useRealTimers()
vi.unstubAllGlobals()
vi.resetModules()
// `reset()` misses an object that does not run, as D1's own after `abortAllDurableObjects()`.
await env.DB.prepare('SELECT 1').run()
await reset()
await applyD1Migrations(env.DB, env.TEST_MIGRATIONS)
