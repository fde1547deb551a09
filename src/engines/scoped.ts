/** What a key fixes for a search that runs in a cluster. */
import { ApiError } from '../errors'
import { type FilterNode, parseFilter } from '../search/filter/parse'
import { printFilter } from '../search/filter/print'

/** A join, `$other(...)`. The cluster would read another collection, which the caller's key may not open. Its name may have spaces. */
const JOIN = /\$[^$():,&|`]*\(/
const NO_JOINS = 'Joins are not available for a collection in a cluster.'

/** @throws ApiError 400 if a parameter names a join */
export function requireNoJoin(text = ''): void {
  if (!JOIN.test(text)) return
  throw new ApiError(400, NO_JOINS)
}

/**
 * Both filters, written anew from their trees: the cluster then reads them as they were checked here.
 * @throws ApiError 400 for a filter that does not parse, or that Typesense could read in another way
 */
export function scopedFilter(filterBy: string | undefined, scope: string): string {
  const [own, asked] = [parseFilter(scope)!, parseFilter(filterBy ?? '')]
  if (asked) requireSameReading(asked)
  return asked ? `(${printFilter(own)}) && (${printFilter(asked)})` : printFilter(own)
}

/** What ends a clause in Typesense: it knows backticks in names too, and no double quotes. */
const ENDS = /[`()]|&&|\|\|/

/** @throws ApiError 400 */
function requireSameReading(node: FilterNode): void {
  if (node.kind === 'join') throw new ApiError(400, NO_JOINS)
  if (node.kind === 'object') requireSameReading(node.child)
  if (node.kind === 'and' || node.kind === 'or') for (const child of node.children) requireSameReading(child)
  const names = node.kind === 'clause' || node.kind === 'object' ? [node.field] : []
  const values = node.kind === 'clause' ? node.values : []
  const phrases = values.filter(({ phrase, exact, text }) => phrase || (!exact && text.includes('`')))
  const unsafe = [...names, ...phrases.map(({ text }) => text)].find((text) => ENDS.test(text))
  if (unsafe === undefined) return
  throw new ApiError(400, `Could not parse the filter query: signs in ${unsafe} are not in backticks.`)
}
