/** The app's router: Hono's trie, built on demand for the routes that a kind of request can match. */
import type { Result, Router } from 'hono/router'
import { TrieRouter } from 'hono/router/trie-router'
import type { App } from './route'

/** Represents all first words that no route begins with. */
const OTHER = ''

/** Whether the first word of a route's path matches any word. */
const isOpen = (word: string): boolean => /[:*{]/.test(word)

/** The first word of a path. */
const firstWord = (path: string): string => path.split('/', 2)[1] ?? ''

/**
 * Matches as Hono's `TrieRouter` does.
 *
 * Inserting a path into a trie takes several regular expressions: two milliseconds for all routes when an isolate starts. So `add`
 * only notes a route, and the first request with a certain first word builds a trie of the routes that such requests can match.
 * Words that no route has share a trie, so there are not many.
 */
export class LazyRouter<T> implements Router<T> {
  readonly name = 'LazyRouter'
  readonly #routes: [method: string, path: string, handler: T][] = []
  readonly #words = new Set<string>()
  readonly #tries = new Map<string, TrieRouter<T>>()

  add(method: string, path: string, handler: T): void {
    this.#routes.push([method, path, handler])
    this.#words.add(firstWord(path))
    this.#tries.clear()
  }

  match(method: string, path: string): Result<T> {
    const first = firstWord(path)
    const word = this.#words.has(first) && !isOpen(first) ? first : OTHER
    let trie = this.#tries.get(word)
    if (!trie) {
      trie = new TrieRouter<T>()
      for (const route of this.#routes) {
        const own = firstWord(route[1])
        if (own === word || isOpen(own)) trie.add(...route)
      }
      this.#tries.set(word, trie)
    }
    return trie.match(method, path)
  }
}

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

/**
 * OpenAI's routes at a base address without `/v1`. Some programs append `/v1` to the address that they are given, and some
 * do not.
 *
 * `/conversations` is Parley's own. `/models` may be an index, so it means OpenAI's list only with a Bearer token, which
 * OpenAI's clients send and OpenSearch's do not.
 */
const POSTED = /^\/(?:chat\/completions|completions|responses|embeddings|vector_stores\/[^/]+\/search)$/
const RESPONSE = /^\/responses\/resp_[^/]+(?:\/input_items)?$/
const CANCELLED = /^\/responses\/resp_[^/]+\/cancel$/
const MODELS = /^\/models(?:\/[^/]+)?$/

/** The path that a request means. @param path of its address */
export function meantPath(path: string, { method, headers }: Pick<Request, 'method' | 'headers'>): string {
  const isPosted = method === 'POST' && (POSTED.test(path) || CANCELLED.test(path))
  const isOfResponse = (method === 'GET' || method === 'DELETE') && RESPONSE.test(path)
  const isModels =
    method === 'GET' && MODELS.test(path) && /^Bearer /i.test(headers.get('authorization') ?? '')
  return isPosted || isOfResponse || isModels ? `/v1${path}` : path
}
