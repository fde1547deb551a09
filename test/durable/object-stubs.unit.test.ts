import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { nameOf, objectId, objectStubs } from '../../src/durable/objects'

/** A namespace that tells what it was asked for. */
function namespaceOf(jurisdiction = '') {
  const asked: unknown[] = []
  const namespace = {
    idFromName: (name: string) => ({ name, toString: () => `${jurisdiction}/${name}` }),
    get: (id: { toString(): string }, options?: unknown) => {
      asked.push([String(id), options])
      return { stub: asked.length }
    },
    jurisdiction: (of: string) => {
      const inner = namespaceOf(of)
      return { ...inner.namespace, get: (id: never, options: unknown) => namespace.get(id, options) }
    },
  }
  return { namespace: namespace as never as DurableObjectNamespace, asked }
}

const NOWHERE = { JURISDICTION: '', REGION: '' }

test('an object is asked for without options where nothing is said', () => {
  const { namespace, asked } = namespaceOf()
  const stubs = objectStubs<{ stub: number }>(namespace, NOWHERE, 'a')
  expect([stubs().stub, stubs().stub]).toEqual([1, 2])
  expect(asked).toEqual([
    ['/a', undefined],
    ['/a', undefined],
  ])
})

test('a region is a hint', () => {
  const { namespace, asked } = namespaceOf()
  objectStubs(namespace, { ...NOWHERE, REGION: 'weur' }, 'a')()
  expect(asked).toEqual([['/a', { locationHint: 'weur' }]])
})

test('a jurisdiction makes other ids, and leaves no choice of a place', () => {
  const { namespace, asked } = namespaceOf()
  const env = { JURISDICTION: 'eu', REGION: 'weur' }
  objectStubs(namespace, env, 'a')()
  expect(asked).toEqual([['eu/a', undefined]])
  expect(String(objectId(namespace, env, 'a'))).toBe('eu/a')
  expect(String(objectId(namespace, NOWHERE, 'a'))).toBe('/a')
})

test('nothing else asks a namespace for an object', () => {
  const source = join(import.meta.dirname, '../../src')
  const asking = /\.(?:idFromName|idFromString|newUniqueId|getByName|jurisdiction)\(/
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .filter((name) => asking.test(readFileSync(join(source, name), 'utf8')))
  expect(files).toEqual(['durable/objects.ts'])
})

test('an object without a name does not run under another', () => {
  expect(nameOf({ name: 'a' } as DurableObjectId)).toBe('a')
  expect(() => nameOf({} as DurableObjectId)).toThrow('This Durable Object was called without its name.')
})
