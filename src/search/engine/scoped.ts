/** What a key fixes for a search that runs in a cluster. */
import { ApiError } from '../../errors'
import { parseFilter } from '../filter/parse'
import { printFilter } from '../filter/print'

/** `$other(...)`: the cluster would read another of its collections, of which the caller's key says nothing. */
const JOIN = /\$[^\s$()]+\s*\(/
/** @throws ApiError 400 if a parameter names a join */
export function requireNoJoin(text = ''): void {
  if (!JOIN.test(text)) return
  throw new ApiError(400, 'Joins are not available for a collection in a cluster.')
}

/**
 * Both filters, written anew from their trees: the cluster then reads them as they were checked here.
 * @throws ApiError 400 for a filter that does not parse
 */
export function scopedFilter(filterBy: string | undefined, scope: string): string {
  const [own, asked] = [parseFilter(scope)!, parseFilter(filterBy ?? '')]
  return asked ? `(${printFilter(own)}) && (${printFilter(asked)})` : printFilter(own)
}
