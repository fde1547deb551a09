/** The compiled form of a DSL query. */
import { comparedTokens } from '../../search/text/terms'
import { parsingError, requireOptions, unsupported } from './errors'
import type { Fields, Target } from './fields'
import type { Filter } from './filter'
import { isObject, type Json } from './route'

/** Words to search for and to rank by. */
export interface Words {
  fields: { target: Target; weight: number }[]
  /** words separated by spaces, without any syntax */
  text: string
  /** true: every word must match; false: one of them */
  every: boolean
  phrase: boolean
  /** whether the last word is a prefix */
  prefix: boolean
  /** letters by which a word may differ */
  fuzziness: Fuzziness
}

/** `AUTO` allows 1 from three letters on, and 2 from six. */
export type Fuzziness = 0 | 1 | 2 | 'AUTO'

/** @throws ApiError 400 */
export function fuzzinessOf(given: unknown = 0): Fuzziness {
  const text = String(given).toUpperCase()
  if (text === 'AUTO' || text === 'AUTO:3,6') return 'AUTO'
  const edits = ([0, 1, 2] as const).find((known) => String(known) === text)
  if (edits === undefined)
    throw unsupported(`[fuzziness: ${String(given)}], which is none of 0, 1, 2 and AUTO,`)
  return edits
}

export interface VectorSearch {
  target: Target
  /** the query's own vector, or a text to embed */
  vector?: number[]
  text?: string
  /** undefined: as many as the page shows, as a script scores all documents */
  k: number | undefined
  filter: Filter
}

export interface Compiled {
  /** the documents that match, or all others if negated. @throws ApiError 400 if a filter cannot express it */
  filter(negated: boolean): Filter
  words?: Words | undefined
  /** the conditions besides the words */
  rest?: () => Filter
  vector?: VectorSearch
}

/** A query to compile. */
export interface Clause {
  name: string
  body: Json
  fields: Fields
  depth: number
}

export const constant = (all: boolean, _options: Json = {}): Compiled => ({
  filter: (negated) => all !== negated,
})
export const NONE: Compiled = constant(false)

/** The words of a text, as written but for quotes, which would part them in a search. */
export const wordsOf = (text: string, { schema }: Fields): string[] =>
  comparedTokens(text, schema).map(({ start, end }) => text.slice(start, end).replaceAll('"', ''))

/** The body without its boost. The boost may only be 1, because only one query ranks. @throws ApiError 400 */
export function checkBoost(body: Json): Json {
  if (body.boost !== undefined && body.boost !== 1) throw unsupported('[boost] of a query')
  return body
}

/** The options of `bool`. */
export const BOOL_OPTIONS = 'must filter should must_not minimum_should_match'

/** The options of a query that has no field of its own. @throws ApiError 400 */
export function options({ name, body }: Clause, known = ''): Json {
  requireOptions(name, checkBoost(body), `boost ${known}`)
  return body
}

export const lookUp = (fields: Fields, name: string): Target | undefined =>
  name === '_id' ? ID : fields.find(name)

const ID = { name: 'id', kind: 'keyword', hasValues: false, isArray: false, isDate: false } as Target

/**
 * The field of a single-field query and its options. The field is undefined if no document has it. @throws ApiError
 * 400
 */
export function single(
  { name, body, fields }: Clause,
  short?: string,
  known = '',
): [Target | undefined, Json] {
  const [[field, given] = [], ...others] = Object.entries(body)
  if (field === undefined) throw parsingError(`[${name}] query takes the name of a field`)
  if (others.length > 0) {
    throw parsingError(
      `[${name}] query doesn't support multiple fields, found [${field}] and [${others[0]![0]}]`,
    )
  }
  if (!isObject(given)) {
    if (short === undefined || given === null || Array.isArray(given)) {
      throw parsingError(`[${name}] query malformed at [${field}]`)
    }
    return [lookUp(fields, field), { [short]: given }]
  }
  requireOptions(name, checkBoost(given), `boost ${short ?? ''} ${known}`)
  return [lookUp(fields, field), given]
}
