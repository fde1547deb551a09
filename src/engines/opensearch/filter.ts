/** filter_by as OpenSearch's query DSL. What it has no form for is refused by name. */
import { ApiError } from '../../errors'
import { readArea } from '../../search/filter/area'
import { boolValues, numberTests } from '../../search/filter/number'
import {
  type FilterClause,
  type FilterNode,
  isNegated,
  isPresence,
  parseFilter,
} from '../../search/filter/parse'
import { isBool, isGeopoint, isNumber, isVector } from '../../search/schema/layout'
import type { Field } from '../../search/types'
import type { IndexField, IndexSchema } from './mapping'

export type Query = Record<string, unknown>

const anyOf = (queries: Query[]): Query =>
  queries.length === 1 ? queries[0]! : { bool: { should: queries, minimum_should_match: 1 } }

const noneOf = (query: Query): Query => ({ bool: { must_not: [query] } })

/** @returns undefined for a blank filter @throws ApiError 400, 404 */
export function filterQuery(filterBy: string, index: IndexSchema): Query | undefined {
  const tree = parseFilter(filterBy)
  return tree && nodeQuery(tree, index, '')
}

/** @param around the nested object that names in the node are relative to, with a dot; '' for none */
function nodeQuery(node: FilterNode, index: IndexSchema, around: string): Query {
  if (node.kind === 'join') throw new ApiError(400, 'Joins are not available for a collection in a cluster.')
  if (node.kind === 'object') {
    const path = around + node.field
    if (!index.nested.has(path)) {
      throw new ApiError(
        400,
        `\`${path}\` is no nested field of the index, so \`${path}.{...}\` has no meaning.`,
      )
    }
    return { nested: { path, query: nodeQuery(node.child, index, `${path}.`) } }
  }
  if (node.kind === 'clause') return clauseQuery(node, index, around)
  const children = node.children.map((child) => nodeQuery(child, index, around))
  return node.kind === 'and' ? { bool: { filter: children } } : anyOf(children)
}

function clauseQuery(clause: FilterClause, index: IndexSchema, around: string): Query {
  const name = around + clause.field
  if (name === 'id') return idQuery(clause)
  const found = index.fields.get(name)
  if (!found?.field.index || isVector(found.field)) {
    throw new ApiError(404, `Could not find a filter field named \`${name}\` in the schema.`)
  }
  const { nested } = found
  const positive = isPresence(clause) ? { exists: { field: name } } : valueQuery(found, clause)
  const outside = nested !== undefined && around !== `${nested}.`
  const whole = outside ? { nested: { path: nested, query: positive } } : positive
  return isNegated(clause) ? noneOf(whole) : whole
}

function idQuery(clause: FilterClause): Query {
  const ids = { ids: { values: clause.values.map(({ text }) => text) } }
  const query = isPresence(clause) ? { match_all: {} } : ids
  return isNegated(clause) ? noneOf(query) : query
}

function valueQuery(found: IndexField, clause: FilterClause): Query {
  const { field } = found
  if (isNumber(field)) return numberQuery(field, clause)
  if (isBool(field)) return { terms: { [field.name]: boolValues(field, clause).map(Boolean) } }
  if (isGeopoint(field)) return anyOf(clause.values.map(({ text }) => areaQuery(field, text)))
  return anyOf(clause.values.map((value) => stringQuery(found, clause, value)))
}

const SIGNS: Readonly<Record<string, string>> = { '>': 'gt', '>=': 'gte', '<': 'lt', '<=': 'lte' }

function numberQuery(field: Field, clause: FilterClause): Query {
  const { name } = field
  const { equal, unequal, ranges, compared } = numberTests(field, clause)
  return anyOf([
    ...(equal.length > 0 ? [{ terms: { [name]: equal } }] : []),
    ...unequal.map((value) => noneOf({ term: { [name]: value } })),
    ...ranges.map(([gte, lte]) => ({ range: { [name]: { gte, lte } } })),
    ...compared.map(({ sign, bound }) => ({ range: { [name]: { [SIGNS[sign]!]: bound } } })),
  ])
}

function areaQuery(field: Field, text: string): Query {
  const area = readArea(field, text)
  if ('meters' in area) {
    const { latitude: lat, longitude: lon, meters } = area
    return { geo_distance: { distance: `${meters}m`, [field.name]: { lat, lon } } }
  }
  const { corners } = area
  const points = corners.flatMap((lat, at) => (at % 2 === 0 ? [{ lat, lon: corners[at + 1]! }] : []))
  return { geo_polygon: { [field.name]: { points } } }
}

const COMPARISON = /^(>=|<=|>|<)\s*(.*)$/s
const RANGE = /^(.+?)(?<!\s)\s*\.\.\s*(.+)$/s

function stringQuery(
  { field: { name }, exact, analysed, date }: IndexField,
  { operator }: FilterClause,
  { text, quoted, phrase }: FilterClause['values'][number],
): Query {
  if (date && !quoted) {
    const [, sign, bound] = COMPARISON.exec(text) ?? []
    if (sign) return { range: { [name]: { [SIGNS[sign]!]: bound } } }
    const [, gte, lte] = RANGE.exec(text) ?? []
    if (gte) return { range: { [name]: { gte, lte } } }
    return { term: { [name]: text } }
  }
  const isPrefix = !quoted && !phrase && text.endsWith('*')
  const words = phrase ? text.slice(1, -1) : isPrefix ? text.slice(0, -1) : text
  const whole = operator === ':=' || operator === ':!='
  if (exact !== undefined && (whole || !analysed) && !phrase) {
    const value = { value: words, case_insensitive: true }
    return isPrefix ? { prefix: { [exact]: value } } : { term: { [exact]: value } }
  }
  if (phrase) return { match_phrase: { [name]: words } }
  // A phrase would also find longer values, which the filter of a key may be there to hide.
  if (whole) {
    throw new ApiError(
      400,
      `\`${name}\` has no \`keyword\` field in the index, so its whole values cannot be compared: use \`:\` for words.`,
    )
  }
  return isPrefix
    ? { match_bool_prefix: { [name]: { query: words, operator: 'and' } } }
    : { match: { [name]: { query: words, operator: 'and' } } }
}
