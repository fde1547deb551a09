/** The app's router: Hono's trie, built on demand for the routes that a kind of request can match. */
import type { Result, Router } from 'hono/router'
import { TrieRouter } from 'hono/router/trie-router'
import type { App } from './route'

/** Represents all first words that no route begins with. */
const OTHER = ''

/** Whether a segment of a route's path matches any word. */
const isOpen = (word: string): boolean => /[:*{]/.test(word)

/** Whether a route's path may match paths with a different number of segments. */
const isElastic = (path: string): boolean => /[*{?]/.test(path)

/** The first word of a path. */
function firstWord(path: string): string {
  const start = path.startsWith('/') ? 1 : 0
  const end = path.indexOf('/', start)
  return end < 0 ? path.slice(start) : path.slice(start, end)
}

const countWords = (path: string): number => path.split('/').length

/** Paths whose routes are kept, and their characters: clients that search ask for the same path again and again. */
const MOST_PATHS = 100
const LONGEST_PATH = 200

/** A route as it was added. */
interface Added<T> {
  method: string
  path: string
  handler: T
}

/** The properties of a request that decide which routes it can match. */
interface Outline {
  method: string
  word: string
  count: number
}

/**
 * Matches as Hono's `TrieRouter` does.
 *
 * Inserting a path into a trie takes several regular expressions. For all routes at once that was a third of the time
 * that the modules ran when they were loaded. So `add` only notes a route. The first request with a certain method, first word and number of words builds
 * a trie of the routes that such requests can match. Methods and words that no route has share a trie, so there are
 * not many.
 */
export class LazyRouter<T> implements Router<T> {
  readonly name = 'LazyRouter'
  readonly #routes: Added<T>[] = []
  readonly #tries = new Map<string, TrieRouter<T>>()
  readonly #matched = new Map<string, Result<T>>()
  #known: { methods: Set<string>; words: Set<string>; longest: number } | undefined

  add(method: string, path: string, handler: T): void {
    this.#routes.push({ method, path, handler })
    if (!this.#known) return
    this.#known = undefined
    this.#tries.clear()
    this.#matched.clear()
  }

  match(method: string, path: string): Result<T> {
    const request = `${method} ${path}`
    const known = this.#matched.get(request)
    if (known !== undefined) return known
    const result = this.#match(method, path)
    if (path.length > LONGEST_PATH) return result
    if (this.#matched.size >= MOST_PATHS) this.#matched.clear()
    this.#matched.set(request, result)
    return result
  }

  #match(method: string, path: string): Result<T> {
    this.#known ??= {
      methods: new Set(this.#routes.map((route) => route.method)),
      words: new Set(this.#routes.map((route) => firstWord(route.path)).filter((word) => !isOpen(word))),
      longest: Math.max(0, ...this.#routes.map((route) => countWords(route.path))),
    }
    const { methods, words, longest } = this.#known
    const word = firstWord(path)
    const outline = {
      method: methods.has(method) ? method : 'ALL',
      word: words.has(word) ? word : OTHER,
      count: Math.min(countWords(path), longest + 1),
    }
    const key = `${outline.method} ${outline.count} ${outline.word}`
    let trie = this.#tries.get(key)
    if (!trie) {
      trie = this.#trieOf(outline)
      this.#tries.set(key, trie)
    }
    return trie.match(method, path)
  }

  #trieOf({ method, word, count }: Outline): TrieRouter<T> {
    const trie = new TrieRouter<T>()
    for (const route of this.#routes) {
      if (route.method !== method && route.method !== 'ALL') continue
      const first = firstWord(route.path)
      if (first !== word && !isOpen(first)) continue
      if (countWords(route.path) !== count && !isElastic(route.path)) continue
      trie.add(route.method, route.path, route.handler)
    }
    return trie
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
