/** Which methods a path takes: for `OPTIONS`, and for the answer to any other method. */
import type { App } from './route'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/**
 * The methods of the routes that match a path. Patterns that take every method, or any first word, do not count: they
 * answer wrong methods themselves.
 */
export function methodsOf(app: App, path: string): string[] {
  return METHODS.filter((method) =>
    app.router.match(method, path)[0].some(([[, route]]) => {
      const pattern = route.path
      return route.method === method && !pattern.startsWith('/:') && !pattern.endsWith('/*')
    }),
  )
}

/** Answers `OPTIONS` outside a preflight. @param allowed not empty */
export const options = (allowed: string): Response =>
  new Response(null, { status: 204, headers: { allow: `${allowed}, OPTIONS` } })
