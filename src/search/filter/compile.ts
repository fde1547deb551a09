/**
 * Compiles a filter's tree to a boolean SQL expression over `d.seq`, a document's sequence number.
 *
 * Each clause is an EXISTS over the typed columns and never NULL, so negation is the plain complement: a document
 * that lacks the field fails `:=x` and passes `:!=x`.
 *
 * SQLite limits a statement to 100 bound values, 100 KB of text and expressions 100 deep. Runs of one operator become
 * balanced trees. If a group is still too large, its operands run here, as statements of their own, and enter the
 * expression as a list of sequence numbers, one bound value.
 */
import { ApiError } from '../../errors'
import { parseExact } from '../../exact-json'
import { balanced, fragment, not, oneOf, type SqlFragment } from '../fragment'
import { EVERYWHERE, type Range } from '../range'
import { findField } from '../schema/find-field'
import {
  hasValues,
  isBool,
  isGeopoint,
  isGeopolygon,
  isNumber,
  isString,
  isVector,
  type StoredSchema,
} from '../schema/layout'
import type { Field } from '../types'
import { someValue } from './columns'
import { type FilterContext, filterError, type JoinedDocuments, type OnRead } from './context'
import { geopointClause, geopolygonClause } from './geopoint'
import { boolClause, numberClause } from './number'
import { clauseTest, impliedBy, objectsAt, objectTest } from './object'
import {
  type FilterClause,
  type FilterJoin,
  type FilterNode,
  type FilterObject,
  isNegated,
  isPresence,
  parseFilter,
} from './parse'
import { joinKey } from './print'
import { anyString, stringClause } from './string'

// The search around a filter also needs bindings, text and depth. So a filter gets only part of each limit.
const MAX_BINDINGS = 40
const MAX_LENGTH = 24_000
const MAX_DEPTH = 40

interface Compiled extends SqlFragment {
  depth: number
}

/**
 * Compiles filter_by for `SELECT d.seq FROM documents d WHERE <where>`. A blank filter becomes `1`.
 * @param range the documents that the filter will run on; operands that run here look at no others
 * @param joins the results of the filter's joins; without them a join is refused
 * @param onRead called with the number of documents that operands read when they run here
 * @throws ApiError 400 with Typesense's messages
 */
export function compileFilter(
  sql: SqlStorage,
  schema: StoredSchema,
  filterBy: string,
  range: Range = EVERYWHERE,
  joins?: JoinedDocuments,
  onRead?: OnRead,
): { where: string; bindings: SqlStorageValue[] } {
  const tree = parseFilter(filterBy)
  if (tree === undefined) return { where: '1', bindings: [] }
  const compiled = compileTree({ sql, schema, range, joins, onRead }, tree)
  return { where: compiled.sql, bindings: compiled.bindings }
}

/** Compiles a parsed filter, or a part of one. @throws ApiError 400 */
export const compileTree = (context: FilterContext, tree: FilterNode): SqlFragment =>
  compileNode(context, tree)

function compileNode(context: FilterContext, node: FilterNode): Compiled {
  if (node.kind === 'clause') return { ...compileClause(context, node), depth: 8 }
  if (node.kind === 'join') return { ...compileJoin(context, node), depth: 8 }
  if (node.kind === 'object') return compileObject(context, node)
  const children = node.children.map((child) => compileNode(context, child))
  const operator = node.kind === 'and' ? 'AND' : 'OR'
  if (fits(children)) return group(children, operator)
  return materialize(context, children, operator)
}

const depthOf = (children: Compiled[]): number =>
  Math.max(...children.map((child) => child.depth)) + Math.ceil(Math.log2(children.length))

const group = (children: Compiled[], operator: 'AND' | 'OR'): Compiled => ({
  ...balanced(children, operator),
  depth: depthOf(children),
})

function fits(children: Compiled[]): boolean {
  let bindings = 0
  let length = 0
  for (const child of children) {
    bindings += child.bindings.length
    length += child.sql.length + 8
  }
  return bindings <= MAX_BINDINGS && length <= MAX_LENGTH && depthOf(children) <= MAX_DEPTH
}

/** Runs the children in as few statements as the limits allow, and combines the results. */
function materialize(context: FilterContext, children: Compiled[], operator: 'AND' | 'OR'): Compiled {
  let result: Set<number> | undefined
  for (let start = 0; start < children.length; ) {
    let end = start + 1
    while (end < children.length && fits(children.slice(start, end + 1))) end++
    const { sql, bindings } = group(children.slice(start, end), operator)
    const seqs = context.sql.exec<{ seq: number }>(
      `SELECT d.seq FROM documents d WHERE d.seq BETWEEN ? AND ? AND ${sql}`,
      context.range.low,
      context.range.high,
      ...bindings,
    )
    const found = new Set<number>()
    for (const { seq } of seqs) found.add(seq)
    context.onRead?.(0)
    if (result === undefined) result = found
    else if (operator === 'OR') for (const seq of found) result.add(seq)
    else result = new Set([...result].filter((seq) => found.has(seq)))
    start = end
  }
  const found = oneOf([...result!])
  return { ...found, depth: 3 + Math.ceil(Math.log2(found.bindings.length)) }
}

/** @throws ApiError 400 if joins are not supported here */
function compileJoin({ joins, range }: FilterContext, join: FilterJoin): SqlFragment {
  const seqs = joins?.get(joinKey(join))
  if (seqs === undefined)
    throw new ApiError(400, `The join \`$${join.collection}(...)\` is not possible here.`)
  const within: number[] = []
  for (let at = firstFrom(seqs, range.low); at < seqs.length && seqs[at]! <= range.high; at++)
    within.push(seqs[at]!)
  const matched = oneOf(within)
  return join.negated ? not(fragment(`(${matched.sql})`, ...matched.bindings)) : matched
}

/** The position of the first number that is not below `least`. */
function firstFrom(rising: ArrayLike<number>, least: number): number {
  let [low, high] = [0, rising.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (rising[middle]! < least) low = middle + 1
    else high = middle
  }
  return low
}

/** @throws ApiError 400 for a field that cannot be filtered on, and for an empty value */
function filterField(schema: StoredSchema, name: string, clause: FilterClause): Field {
  const field = findField(schema, name)
  if (field === undefined) {
    throw new ApiError(400, `Could not find a filter field named \`${name}\` in the schema.`)
  }
  if (!field.index) throw new ApiError(400, `Cannot filter on non-indexed field \`${field.name}\`.`)
  if (isVector(field)) throw new ApiError(400, `Cannot filter on vector field \`${field.name}\`.`)
  checkNotEmpty(name, clause)
  return field
}

function compileClause(context: FilterContext, clause: FilterClause): SqlFragment {
  if (clause.field === 'id') return idClause(clause)
  const field = filterField(context.schema, clause.field, clause)
  if (clause.values.length === 0) return fragment(isNegated(clause) ? '1' : '0')
  const matched = isPresence(clause) ? present(context, field) : matcher(field)(context, field, clause)
  return isNegated(clause) ? not(matched) : matched
}

/** Finds documents by what the filter implies for all of their objects, then compares the objects. */
function compileObject(context: FilterContext, { field, child }: FilterObject): Compiled {
  const path = field
  const passes = objectTest(child, (clause) => {
    const name = `${path}.${clause.field}`
    return clauseTest(context, filterField(context.schema, name, clause), clause)
  })
  const implied = impliedBy(child, path)
  const { sql, bindings } = implied ? compileNode(context, implied) : fragment('1')
  const rows = context.sql.exec<{ seq: number; body: string }>(
    `SELECT d.seq, d.body FROM documents d WHERE d.seq BETWEEN ? AND ? AND (${sql})`,
    context.range.low,
    context.range.high,
    ...bindings,
  )
  const seqs: number[] = []
  let read = 0
  for (const { seq, body } of rows) {
    read++
    if (objectsAt(parseExact(body), path).some(passes)) seqs.push(seq)
  }
  context.onRead?.(read)
  const found = oneOf(seqs)
  return { ...found, depth: 3 + Math.ceil(Math.log2(found.bindings.length)) }
}

function present(context: FilterContext, field: Field): SqlFragment {
  return hasValues(field)
    ? someValue(context.schema, field, ({ value }) => fragment(`${value} IS NOT NULL`))
    : anyString(context, field)
}

function matcher(field: Field) {
  if (isNumber(field)) return numberClause
  if (isBool(field)) return boolClause
  if (isGeopoint(field)) return geopointClause
  if (isGeopolygon(field)) return geopolygonClause
  if (isString(field)) return stringClause
  return () => {
    throw filterError(field.name, 'Unidentified field data type, see docs for supported data types.')
  }
}

function idClause(clause: FilterClause): SqlFragment {
  checkNotEmpty('id', clause)
  if (clause.values.some(({ text, quoted }) => text === '*' && !quoted)) {
    return fragment(isNegated(clause) ? '0' : '1')
  }
  const ids = JSON.stringify(clause.values.map(({ text }) => text))
  const matched = fragment(
    'd.seq IN (SELECT seq FROM documents WHERE id IN (SELECT value FROM json_each(?)))',
    ids,
  )
  return isNegated(clause) ? not(matched) : matched
}

/** An empty list is allowed. It matches no value. */
function checkNotEmpty(name: string, { values }: FilterClause): void {
  if (values.some(({ text, exact }) => text === '' && !exact))
    throw filterError(name, 'Filter value cannot be empty.')
}
