/**
 * Before each file of worker tests. All files share one workerd, since to load the program takes longer than most files
 * do. So each begins as in a workerd of its own: D1 is empty, no object is in memory, no cache of rows holds any, and
 * the bindings are those of the configuration.
 */
import { applyD1Migrations, reset } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { vi } from 'vitest'
import { RowCache } from '../src/db/client'

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

/** What all files share: the bindings as configured, and all caches of rows that were used. */
interface Shared {
  bindings: Record<string, unknown>
  caches: Set<RowCache<unknown>>
}

/** Notes each cache that is used. @returns the bindings and the caches, which are no caches yet */
function shareOnce(): Shared {
  keepOneProxy()
  const caches = new Set<RowCache<unknown>>()
  const { isFresh, reading } = RowCache.prototype
  RowCache.prototype.isFresh = function (key) {
    caches.add(this)
    return isFresh.call(this, key)
  }
  RowCache.prototype.reading = function () {
    caches.add(this)
    return reading.call(this)
  }
  return { bindings: { ...env }, caches }
}

/** Drops all tables of D1: some tests change the schema too. A virtual table takes those of its own with it. */
async function dropTables(): Promise<void> {
  const { results } = await env.DB.prepare(
    `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE '\\_cf_%' ESCAPE '\\'
      ORDER BY sql LIKE 'CREATE VIRTUAL%' DESC`,
  ).all<{ name: string }>()
  if (results.length === 0) return
  await env.DB.batch([
    env.DB.prepare('PRAGMA defer_foreign_keys = on'),
    ...results.map(({ name }) => env.DB.prepare(`DROP TABLE IF EXISTS "${name}"`)),
  ])
}

const here = globalThis as { shared?: Shared }
here.shared ??= shareOnce()
const { bindings, caches } = here.shared
vi.useRealTimers()
vi.unstubAllGlobals()
vi.restoreAllMocks()
for (const name of Object.keys(env)) if (!(name in bindings)) Reflect.deleteProperty(env, name)
Object.assign(env, bindings)
for (const cache of caches) cache.clear()
// Ends all objects and deletes their storage, so their alarms do not ring either. Only what is in memory is deleted:
// after `abortAllDurableObjects()` nothing would be.
await reset()
await dropTables()
await applyD1Migrations(env.DB, env.TEST_MIGRATIONS)
