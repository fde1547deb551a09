import { applyD1Migrations } from 'cloudflare:test'
import { env } from 'cloudflare:workers'

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

keepOneProxy()
await applyD1Migrations(env.DB, env.TEST_MIGRATIONS)
