/** What a filter costs for each document, as the number of rows that SQLite reads in that time. */
import { findField } from '../schema/find-field'
import { hasValues, isArray, isGeopoint, isGeopolygon, isString, type StoredSchema } from '../schema/layout'
import { type FilterClause, type FilterNode, isPresence } from './parse'
import { comparesWhole, hasForms } from './string'

/** To read and parse a document, and to make the form of a text. */
const DOCUMENT = 50
/** To find a document's row in a table. */
const ROW = 1
/** To call the test of a clause. */
const TEST = 0.5
/** To make the forms of a list of texts, which may be long. */
const LIST = 500
/** To compare a place with an area. */
const AREA = 3
/** To compare a place with an edge of a polygon. */
const CORNER = 0.02
/** To compare a value with one of a list. */
const COMPARISON = 1

/** Values that SQLite looks up in a list. A statement reads the list anew, whatever its range. */
const MOST_LISTED = 500
/** Values that SQLite compares one by one. */
const MOST_COMPARED = 8

/**
 * Whether a value must be compared with each value instead of looked up: a prefix, a phrase, a range, a bound or a
 * number beyond 2^53.
 */
export const isCompared = ({ text, phrase }: FilterClause['values'][number]): boolean =>
  phrase === true || /\*$|\.\.|^[<>!]|^-?\d{16,}$/.test(text)

const comparisonsIn = (schema: StoredSchema, clause: FilterClause): number => {
  const field = findField(schema, clause.field)
  const isWhole = field === undefined || !isString(field) || comparesWhole(clause)
  return isWhole ? clause.values.filter(isCompared).length : clause.values.length
}

/** Whether SQL evaluates a clause, rather than evaluate.ts. */
export function isLight(schema: StoredSchema, clause: FilterClause): boolean {
  const { values } = clause
  const field = clause.field === 'id' ? undefined : findField(schema, clause.field)
  if (field === undefined) return values.length <= MOST_LISTED
  if (isString(field) && !hasForms(schema, field)) return values.length === 0
  if (isPresence(clause)) return true
  if (isGeopoint(field)) return values.every(({ text }) => cornersIn(text) <= 1)
  if (isGeopolygon(field)) return false
  return values.length <= MOST_LISTED && comparisonsIn(schema, clause) <= MOST_COMPARED
}

/** Corners of a polygon; 1 for a circle, which has at most three commas. */
const cornersIn = (area: string): number => {
  const numbers = area.split(',').length
  return numbers <= 4 ? 1 : numbers / 2
}

export function costOf(schema: StoredSchema, tree: FilterNode | undefined): number {
  let reads = false
  const costOfNode = (node: FilterNode): number => {
    if (node.kind === 'join') return ROW
    if (node.kind === 'object') {
      reads = true
      return costOfNode(node.child)
    }
    if (node.kind !== 'clause') return node.children.reduce((sum, child) => sum + costOfNode(child), 0)
    const field = findField(schema, node.field)
    if (field !== undefined && (isGeopoint(field) || isGeopolygon(field))) {
      return node.values.reduce((sum, { text }) => sum + AREA + CORNER * cornersIn(text), 0)
    }
    if (isLight(schema, node)) return ROW + COMPARISON * comparisonsIn(schema, node)
    if (field === undefined || !isString(field) || hasForms(schema, field)) return TEST
    reads = true
    return hasValues(field) && isArray(field) ? LIST : TEST
  }
  const cost = tree === undefined ? 0 : costOfNode(tree)
  return cost + (reads ? DOCUMENT : 0)
}
