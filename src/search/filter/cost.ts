/** What a filter costs for each document, as the number of rows that SQLite reads in that time. */
import { findField } from '../schema/find-field'
import { hasValues, isGeopoint, isGeopolygon, isString, type StoredSchema } from '../schema/layout'
import { rulesOf } from '../text/rules'
import type { FilterNode } from './parse'

/** To call the test of a clause. */
const TEST = 0.5
/** To make the stems of a text. */
const STEMS = 20
/** To compare a place with an area. */
const AREA = 3
/** To compare a place with an edge of a polygon. */
const CORNER = 0.15

/** Corners of a polygon; 1 for a circle, which has at most three commas. */
const cornersIn = (area: string): number => {
  const numbers = area.split(',').length
  return numbers <= 4 ? 1 : numbers / 2
}

/** Without the reading of documents, which is counted as it is done. */
export function costOf(schema: StoredSchema, node: FilterNode): number {
  if (node.kind === 'join') return TEST
  if (node.kind === 'object') return costOf(schema, node.child)
  if (node.kind !== 'clause') return node.children.reduce((sum, child) => sum + costOf(schema, child), 0)
  const field = findField(schema, node.field)
  if (field !== undefined && (isGeopoint(field) || isGeopolygon(field)))
    return node.values.reduce((sum, { text }) => sum + AREA + CORNER * cornersIn(text), 0)
  const isStemmed = field !== undefined && isString(field) && hasValues(field) && rulesOf(schema, field).stem
  return isStemmed ? STEMS : TEST
}

/** The clauses of a filter that each document is tested against. */
export function clausesIn(node: FilterNode): number {
  if (node.kind === 'object') return clausesIn(node.child)
  if (node.kind !== 'and' && node.kind !== 'or') return 1
  return node.children.reduce((sum, child) => sum + clausesIn(child), 0)
}
