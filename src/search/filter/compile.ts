/**
 * Compiles a filter's tree to a boolean SQL expression over `d.seq`, a document's sequence number.
 *
 * Each clause is an EXISTS over the typed columns and never NULL, so negation is the plain complement: a document
 * that lacks the field fails `:=x` and passes `:!=x`.
 *
 * SQLite limits a statement to 100 bound values, 100 KB of text and expressions 100 deep, and nothing interrupts it. Runs of
 * one operator become balanced trees. What is too large, takes too long or needs the documents themselves is evaluated here
 * (evaluate.ts), for the documents of the range. It enters the expression as a list of sequence numbers, one bound value.
 */
import { balanced, not, oneOf, type SqlFragment } from '../fragment'
import { EVERYWHERE, type Range } from '../range'
import { findField } from '../schema/find-field'
import { isString, type StoredSchema } from '../schema/layout'
import { rulesOf } from '../text/rules'
import { clauseSql } from './clause'
import { type FilterContext, type JoinedDocuments, joinedBy, type OnRead } from './context'
import { isLight } from './cost'
import { evaluated } from './evaluate'
import { type FilterGroup, type FilterJoin, type FilterNode, parseFilter } from './parse'
import { preparePatterns } from './string'

// The search around a filter also needs bindings, text and depth. So a filter gets only part of each limit.
const MAX_BINDINGS = 40
const MAX_LENGTH = 24_000
const MAX_DEPTH = 40
/** Rows that SQLite finds for each document. More are read together, before the documents are looked at. */
const MAX_ROWS = 32

interface Compiled extends SqlFragment {
  depth: number
  rows: number
}

/** A condition for `SELECT d.seq FROM documents d WHERE <where>`. */
interface Condition {
  where: string
  bindings: SqlStorageValue[]
}

/**
 * Compiles filter_by. A blank filter becomes `1`.
 * @param range the documents that the filter will run on; operands that run here look at no others
 * @param joins the results of the filter's joins; without them a join is refused
 * @param onRead called with the number of documents that operands read when they run here
 * @throws ApiError 400 with Typesense's messages
 */
export const compileFilter = (
  sql: SqlStorage,
  schema: StoredSchema,
  filterBy: string,
  range: Range = EVERYWHERE,
  joins?: JoinedDocuments,
  onRead?: OnRead,
): Condition => rangedFilter(sql, schema, filterBy, joins, onRead)(range)

/** The same for one range after another. What depends on the filter alone is done once for all of them. */
export function rangedFilter(
  sql: SqlStorage,
  schema: StoredSchema,
  filterBy: string,
  joins?: JoinedDocuments,
  onRead?: OnRead,
): (range: Range) => Condition {
  const parsed = parseFilter(filterBy)
  if (parsed === undefined) return () => ({ where: '1', bindings: [] })
  const tree = gathered(schema, parsed)
  const evaluations: FilterContext['evaluations'] = new Map()
  return (range) => {
    const compiled = compileNode({ sql, schema, range, joins, onRead, evaluations }, tree)
    return { where: compiled.sql, bindings: compiled.bindings }
  }
}

/**
 * Prepares the long lists of filters in small steps, for `rangedFilter`, which cannot rest.
 * @param rest lets others be served, after so many values
 * @throws ApiError 400 for a filter that does not parse, and what `rest` throws
 */
export async function prepareFilters(
  schema: StoredSchema,
  filters: readonly string[],
  rest: (values: number) => Promise<unknown>,
): Promise<void> {
  const prepare = async (node: FilterNode, within = ''): Promise<void> => {
    if (node.kind === 'object') return prepare(node.child, `${within}${node.field}.`)
    if (node.kind === 'and' || node.kind === 'or') {
      for (const child of node.children) await prepare(child, within)
    } else if (node.kind === 'clause') {
      const field = findField(schema, within + node.field)
      if (field !== undefined && isString(field))
        await preparePatterns(node, rulesOf(schema, field), field.locale, rest)
    }
  }
  for (const filter of filters) {
    const tree = parseFilter(filter)
    if (tree !== undefined) await prepare(tree)
  }
}

/** Compiles a parsed filter, or a part of one. @throws ApiError 400 */
export const compileTree = (context: Omit<FilterContext, 'evaluations'>, tree: FilterNode): SqlFragment =>
  compileNode({ ...context, evaluations: new Map() }, gathered(context.schema, tree))

/** Whether SQL evaluates all of a filter, if that is not too much for a statement. */
function isSql(schema: StoredSchema, node: FilterNode): boolean {
  if (node.kind === 'clause') return isLight(schema, node)
  return (
    node.kind === 'join' || (node.kind !== 'object' && node.children.every((child) => isSql(schema, child)))
  )
}

/** The same filter, with the operands of a group that SQL does not evaluate in a group of their own: they share what they read. */
function gathered(schema: StoredSchema, node: FilterNode): FilterNode {
  if (node.kind !== 'and' && node.kind !== 'or') return node
  const isOther = (child: FilterNode) => !isSql(schema, child)
  const others = node.children.filter(isOther)
  if (others.length < 2 || others.length === node.children.length) return node
  const group: FilterGroup = { kind: node.kind, children: others }
  return { kind: node.kind, children: [...node.children.filter((child) => !isOther(child)), group] }
}

function compileNode(context: FilterContext, node: FilterNode): Compiled {
  // Known from an earlier range. To find it out again would take longer than a short range.
  if (context.evaluations.has(node)) return listed(evaluated(context, node))
  if (node.kind === 'join') return { ...compileJoin(context, node), depth: 8, rows: 1 }
  if (node.kind === 'object' || (node.kind === 'clause' && !isLight(context.schema, node))) {
    return listed(evaluated(context, node))
  }
  if (node.kind === 'clause') return { ...clauseSql(context, node), depth: 8, rows: 1 }
  const [light, others] = [[] as Compiled[], [] as FilterNode[]]
  for (const child of node.children) {
    if (isSql(context.schema, child)) light.push(compileNode(context, child))
    else others.push(child)
  }
  if (light.length === 0 || !fits(light)) return listed(evaluated(context, node))
  const operator = node.kind === 'and' ? 'AND' : 'OR'
  const [other] = others
  if (other === undefined) return group(light, operator)
  // Documents that fail already need not be read.
  if (node.kind === 'and') return listed(evaluated(context, other, group(light, 'AND')))
  return group([...light, listed(evaluated(context, other))], 'OR')
}

const listed = (found: SqlFragment): Compiled => ({
  ...found,
  depth: 3 + Math.ceil(Math.log2(found.bindings.length)),
  rows: 1,
})

const depthOf = (children: Compiled[]): number =>
  Math.max(...children.map((child) => child.depth)) + Math.ceil(Math.log2(children.length))

const sumOf = (children: Compiled[], of: (child: Compiled) => number): number =>
  children.reduce((sum, child) => sum + of(child), 0)

const group = (children: Compiled[], operator: 'AND' | 'OR'): Compiled => ({
  ...balanced(children, operator),
  depth: depthOf(children),
  rows: sumOf(children, ({ rows }) => rows),
})

const fits = (children: Compiled[]): boolean =>
  sumOf(children, ({ bindings }) => bindings.length) < MAX_BINDINGS &&
  sumOf(children, ({ sql }) => sql.length + 8) <= MAX_LENGTH &&
  sumOf(children, ({ rows }) => rows) <= MAX_ROWS &&
  depthOf(children) < MAX_DEPTH

function compileJoin(context: FilterContext, join: FilterJoin): SqlFragment {
  const seqs = joinedBy(context, join)
  const { low, high } = context.range
  const within: number[] = []
  for (let at = firstFrom(seqs, low); at < seqs.length && seqs[at]! <= high; at++) within.push(seqs[at]!)
  const matched = oneOf(within)
  return join.negated ? not({ ...matched, sql: `(${matched.sql})` }) : matched
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
