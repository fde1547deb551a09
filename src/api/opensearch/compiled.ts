/** The compiled form of a DSL query, and the search that it stands for. */

import { type Filter, filterBy } from '../../search/filter/write'
import { comparedTokens } from '../../search/text/terms'
import type { SearchParameters } from '../../search/types'
import { illegalArgument, parsingError, requireOptions, suggestion, unsupported } from './errors'
import type { Fields, Target } from './fields'
import type { Sort } from './hits'
import { isObject, type Json, own } from './route'

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

/** Nesting depth of queries: as deep as a filter may be, because they become one. */
const DEEPEST = 30

/** The clause that a query is, and what a table has for its name. @throws ApiError 400 that names what is unknown */
export function clauseIn<Row>(
  query: unknown,
  table: Readonly<Record<string, Row>>,
  depth: number,
): [row: Row, clause: { name: string; body: Json }] {
  if (!isObject(query)) throw parsingError('[_na] query malformed, must start with start_object')
  const [[name, body] = [], ...others] = Object.entries(query)
  if (name === undefined) throw illegalArgument('query malformed, empty clause found')
  if (others.length > 0) {
    throw parsingError(`[${name}] malformed query, expected [END_OBJECT] but found [FIELD_NAME]`)
  }
  if (depth > DEEPEST) throw parsingError(`Queries may be ${DEEPEST} deep in each other`)
  const row = own(table, name)
  if (row === undefined)
    throw parsingError(`unknown query [${name}]${suggestion(name, Object.keys(table), '')}`)
  if (!isObject(body)) throw parsingError(`[${name}] query malformed, no start_object after query name`)
  return [row, { name, body }]
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

/** The field of a single-field query and its options. The field is undefined if no document has it. @throws ApiError 400 */
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

// =============================================================================
// The parameters of a collection's search that a compiled query stands for.

/** The filter besides words and vectors. */
export const setOf = ({ words, rest, vector, filter }: Compiled): Filter =>
  vector !== undefined ? vector.filter : words !== undefined ? rest!() : filter(false)

/** @param shown how many hits the search shows at most, counted from the first */
export function searchParameters(
  compiled: Compiled,
  sort: Sort | undefined,
  shown: number,
): SearchParameters {
  const { words, vector } = compiled
  const parameters: SearchParameters = {
    filter_by: filterBy(setOf(compiled)),
    // OpenSearch takes words as they are.
    prefix: 'false',
    num_typos: '0',
    typo_tokens_threshold: '0',
    ...(words !== undefined
      ? wordParameters(words)
      : vector !== undefined
        ? vectorParameters(vector, shown)
        : { q: '*' }),
  }
  if (sort !== undefined) parameters.sort_by = sort.by
  else if (words !== undefined) parameters.sort_by = '_text_match:desc,_seq_id:asc'
  else if (vector === undefined) parameters.sort_by = '_seq_id:asc'
  return parameters
}

/** Set so high that the search always drops words: any of them may match. */
const RELAXED = '4294967295'

function wordParameters({ fields, text, every, phrase, prefix, fuzziness }: Words): SearchParameters {
  const fraction = fields.some(({ weight }) => !Number.isInteger(weight))
  return {
    q: phrase ? `"${text}"` : text,
    query_by: fields.map(({ target }) => target.name).join(','),
    query_by_weights: fields.map(({ weight }) => Math.round(weight * (fraction ? 100 : 1))).join(','),
    drop_tokens_threshold: every ? '0' : RELAXED,
    ...(prefix && { prefix: 'true' }),
    ...(fuzziness !== 0 && typos(fuzziness)),
  }
}

const vectorParameters = (
  { target, vector = [], text, k }: VectorSearch,
  shown: number,
): SearchParameters => ({
  q: text ?? '*',
  ...(text !== undefined && { query_by: target.name }),
  vector_query: `${target.name}:([${vector.join(',')}], k: ${k ?? Math.max(1, shown)})`,
})

/** Similar words count however many documents have the word itself. */
const typos = (fuzziness: Fuzziness): SearchParameters => ({
  num_typos: fuzziness === 'AUTO' ? '2' : String(fuzziness),
  min_len_1typo: fuzziness === 'AUTO' ? '3' : '1',
  min_len_2typo: fuzziness === 'AUTO' ? '6' : '1',
  typo_tokens_threshold: RELAXED,
})
