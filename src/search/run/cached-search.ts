/** A search whose reply may be cached (context.ts). */
import * as v from 'valibot'
import { once } from '../../lib/once'
import { readStored } from '../../lib/stored-json'
import { changesOf } from '../changes'
import type { SearchParameters, SearchResult, SearchScope } from '../types'
import type { SearchContext } from './context'
import { isInEffect } from './curate'
import { hasJoins } from './joins'
import { executeSearch, readNamedSets, type Sharing } from './search'

/** A reply, and its JSON text if that is known. */
interface Reply {
  text?: string
  readonly result: SearchResult
}

const anyResult = once(() => v.custom<SearchResult>((value) => typeof value === 'object' && value !== null))

const cached = (text: string): Reply => ({
  text,
  get result() {
    return readStored(anyResult(), text)
  },
})

/**
 * `executeSearch`, or the reply that it gave to the same key's filter and parameters, as it was. Replies that depend on chance
 * or on other collections are not cached, nor those that lack something because of a failure or a time limit.
 */
export async function search(
  context: SearchContext,
  params: SearchParameters,
  scope: SearchScope,
  sharing: Sharing,
): Promise<Reply> {
  const { replies, sql } = context
  const seconds = scope.cacheSeconds
  if (!seconds || replies === undefined || hasJoins(params)) {
    return { result: await executeSearch(context, params, scope, sharing) }
  }
  context.requireOpen()
  const { synonyms, curations, dictionaries } = await readNamedSets(context, params)
  const on = [context.schema, ...synonyms, ...curations.filter(isInEffect), ...dictionaries.values()]
  const key = JSON.stringify([scope.cacheMark, scope.history, scope.filter, Object.entries(params).sort()])
  const known = replies.find(sql, key, on, seconds)
  if (known !== undefined) return cached(known)
  const changes = changesOf(sql)
  let passes = false
  const passing = () => {
    passes = true
  }
  const result = await executeSearch(context, params, scope, { ...sharing, passing })
  if (passes || result.search_cutoff || result.rerank?.error !== undefined) return { result }
  const text = JSON.stringify(result)
  replies.keep(sql, key, changes, { text, on, seconds })
  return { result, text }
}
