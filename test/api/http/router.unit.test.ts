import fc from 'fast-check'
import type { Router } from 'hono/router'
import { TrieRouter } from 'hono/router/trie-router'
import { expect, test } from 'vitest'
import { LazyRouter } from '../../../src/api/http/router'

const METHODS = ['GET', 'POST', 'ALL']
const method = fc.constantFrom(...METHODS)
const join = (words: string[]): string => `/${words.join('/')}`

/** Words of routes: fixed ones, which requests use too, parameters, and a wildcard as the last. */
const routePath = fc
  .tuple(
    fc.array(fc.constantFrom('a', 'b', '_x', ':one', ':two', ':three{[0-9]+}'), { maxLength: 3 }),
    fc.constantFrom([], ['*'], [':last?']),
  )
  .map(([words, last]) => join([...words, ...last]))

const requestPath = fc
  .array(fc.constantFrom('a', 'b', 'c', '_x', '12', '', ':one', '*'), { maxLength: 4 })
  .map(join)

/** The numbers of the matched routes with their parameters. */
const found = (router: Router<number>, [asked, path]: [string, string]) =>
  router.match(asked, path)[0].map(([route, parameters]) => [route, { ...parameters }])

test('matches as the trie of all routes does, in any order of requests', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(method, routePath), { maxLength: 12 }),
      fc.array(fc.tuple(fc.constantFrom('GET', 'POST', 'PUT', 'FETCH'), requestPath), {
        minLength: 1,
        maxLength: 12,
      }),
      (routes, requests) => {
        const lazy = new LazyRouter<number>()
        const whole = new TrieRouter<number>()
        for (const [index, [asked, path]] of routes.entries()) {
          lazy.add(asked, path, index)
          whole.add(asked, path, index)
        }
        for (const request of requests) expect(found(lazy, request)).toEqual(found(whole, request))
      },
    ),
    { numRuns: 2000 },
  )
})

test('a route that is added after a request is matched from then on', () => {
  const router = new LazyRouter<string>()
  router.add('GET', '/a', 'early')
  router.match('GET', '/a')
  router.add('GET', '/:any', 'late')
  expect(router.match('GET', '/a')[0].map(([route]) => route)).toEqual(['early', 'late'])
})
