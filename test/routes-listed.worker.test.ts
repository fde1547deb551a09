/** The API reference lists what is served: every route of every protocol, and no other. */
import { expect, test } from 'vitest'
import { operations } from '../src/api/parley/operations'
import { app } from '../src/app'
import { wires } from './wires'

/** Routes that answer with a refusal: methods that a path does not take, and addresses that are none. */
const isRefusal = (method: string, path: string): boolean =>
  path === '/*' || path === '/v1/*' || method === 'ALL'

const honoPath = (path: string): string => path.replace(/\{(\w+)\}/g, ':$1')

test('every registered route is in the reference, and every route of the reference is registered', () => {
  const listed = [
    ...Object.values(operations).map(({ method, path }) => `${method} ${honoPath(path)}`),
    ...wires.flatMap(({ groups }) =>
      groups.flatMap(({ routes }) =>
        routes.flatMap(({ method, path }) => method.split(', ').map((each) => `${each} ${path}`)),
      ),
    ),
  ]
  // The AI Chat Protocol registers all methods, to refuse the wrong ones in its own words.
  const words = /\/(chat|chat\/stream)$/
  const registered = app.routes.flatMap(({ method, path }) => {
    if (method === 'ALL' && words.test(path)) return [`POST ${path}`]
    if (method === 'ALL' && path.includes('/content/:label')) return [`GET ${path}`]
    return isRefusal(method, path) ? [] : [`${method} ${path}`]
  })
  expect(registered.length).toBeGreaterThan(120)
  expect([...new Set(registered)].filter((route) => !listed.includes(route))).toEqual([])
  expect(listed.filter((route) => !registered.includes(route))).toEqual([])
  expect(listed.filter((route, at) => listed.indexOf(route) !== at)).toEqual([])
})
