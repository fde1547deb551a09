/**
 * Evaluates parts of a filter over the documents of a range, where SQL cannot or takes too long: words of fields without
 * columns, polygons, objects, long lists, many clauses. Each document is read once for all of them, and each clause is
 * prepared once for all ranges (test.ts).
 */
import { parseExact } from '../../exact-json'
import { readStoredObject } from '../../stored-json'
import { balanced, fragment, oneOf, type SqlFragment } from '../fragment'
import { ROWID_IN_RANGE } from '../range'
import { hasValues, isArray, isGeopoint, isGeopolygon, isString, type StoredSchema } from '../schema/layout'
import { stringsAt } from '../schema/values'
import type { Field } from '../types'
import { checkNotEmpty, clauseSql, filterField, isAnyId } from './clause'
import { storedValues } from './columns'
import { type Evaluation, type FilterContext, filterError, joinedBy, type Read } from './context'
import { costOf, isLight } from './cost'
import { impliedBy, objectsAt, objectTest } from './object'
import { type FilterClause, type FilterJoin, type FilterNode, type FilterObject, isNegated } from './parse'
import { indexedWords } from './string'
import { clauseTest, type FormOf, formsOf, type ValuesTest } from './test'

/** To read and parse a document takes as long as so many rows. */
const ROWS_A_DOCUMENT = 50

type Test = Evaluation['passes']

/** @throws ApiError 400 */
function evaluationOf(context: FilterContext, node: FilterNode): Evaluation {
  const known = context.evaluations.get(node)
  if (known !== undefined) return known
  const making = new Making(context)
  const passes = making.test(node)
  const { fields, reads } = making
  const evaluation = { fields, reads, passes, cost: costOf(context.schema, node) }
  context.evaluations.set(node, evaluation)
  return evaluation
}

class Making {
  readonly fields: Field[] = []
  reads = false
  readonly #context: FilterContext
  readonly #forms = new Map<string, FormOf>()

  constructor(context: FilterContext) {
    this.#context = context
  }

  test(node: FilterNode): Test {
    if (node.kind === 'clause') return this.#clause(node)
    if (node.kind === 'object') return this.#object(node)
    if (node.kind === 'join') return this.#join(node)
    const tests = node.children.map((child) => this.test(child))
    return node.kind === 'and'
      ? (document) => tests.every((passes) => passes(document))
      : (document) => tests.some((passes) => passes(document))
  }

  #clause(clause: FilterClause): Test {
    if (clause.field === 'id') return idTest(clause)
    const field = filterField(this.#context.schema, clause.field, clause)
    const passes = this.#values(field, clause)
    if (!hasColumns(field) && field.store) this.reads = true
    let place = this.fields.indexOf(field)
    if (place < 0) place = this.fields.push(field) - 1
    return (document) => passes(document.values(place))
  }

  #values(field: Field, clause: FilterClause): ValuesTest {
    const { schema } = this.#context
    const formOf = this.#forms.get(field.name) ?? formsOf(schema, field)
    this.#forms.set(field.name, formOf)
    return clauseTest(schema, field, clause, formOf)
  }

  #object({ field: path, child }: FilterObject): Test {
    const passes = objectTest(child, (clause) => {
      const field = filterField(this.#context.schema, `${path}.${clause.field}`, clause)
      // The values of such fields are in one list for the whole document, not by object.
      if (!field.store) {
        throw filterError(field.name, 'A field with `store: false` cannot be filtered inside of an object.')
      }
      if (isGeopolygon(field)) {
        throw filterError(field.name, 'This type of field cannot be filtered inside of an object.')
      }
      return this.#values(field, clause)
    })
    this.reads = true
    return (document) => objectsAt(document.whole(), path).some(passes)
  }

  #join(join: FilterJoin): Test {
    const seqs = new Set(Array.from(joinedBy(this.#context, join)))
    return ({ seq }) => seqs.has(seq) !== join.negated
  }
}

function idTest(clause: FilterClause): Test {
  checkNotEmpty('id', clause)
  const negated = isNegated(clause)
  if (isAnyId(clause)) return () => !negated
  const wanted = new Set(clause.values.map(({ text }) => text))
  return ({ id }) => wanted.has(id) !== negated
}

/** Whether a field's values are in a table of their own. Those of others are in the document. */
const hasColumns = hasValues

/** Documents of a range are read in steps of so many, so that not all of their columns are in memory at once. */
const AT_ONCE = 16_384

/**
 * The documents of the range that pass.
 * @param beside a condition that they have to meet as well
 * @throws ApiError 400
 */
export function evaluated(
  context: FilterContext,
  node: FilterNode,
  beside: SqlFragment = fragment('1'),
): SqlFragment {
  const evaluation = evaluationOf(context, node)
  const { sql, range } = context
  const seqs: number[] = []
  let rows = 0
  const [ends] =
    range.low > range.high
      ? []
      : sql
          .exec<{ low: number | null; high: number | null }>(
            'SELECT min(seq) AS low, max(seq) AS high FROM documents WHERE seq BETWEEN ? AND ?',
            range.low,
            range.high,
          )
          .toArray()
  for (let low = ends?.low ?? 1; low <= (ends?.high ?? 0); low += AT_ONCE) {
    const step = { ...context, range: { low, high: Math.min(ends!.high!, low + AT_ONCE - 1) } }
    const narrowed = narrowing(step, node)
    const among = narrowed === undefined ? beside : balanced([beside, narrowed], 'AND')
    rows += eachDocument(step, evaluation, among, (document) => {
      if (evaluation.passes(document)) seqs.push(document.seq)
    })
  }
  context.onRead?.(rows / ROWS_A_DOCUMENT)
  return oneOf(seqs)
}

/** @returns the number of rows that SQLite reads in that time */
function eachDocument(
  { sql, schema, range: { low, high } }: FilterContext,
  { fields, reads, cost }: Evaluation,
  among: SqlFragment,
  visit: (document: Read) => void,
): number {
  const unstored = fields.filter((field) => !hasColumns(field) && !field.store)
  const hidden = unstored.length > 0 ? hiddenTexts(sql, unstored, low, high) : undefined
  const columns = fields.map((field) =>
    hasColumns(field) ? columnOf(sql, schema, field, low, high) : hidden?.get(field),
  )
  const documents = sql.exec<{ seq: number; id: string; body: string }>(
    `SELECT d.seq, d.id, ${reads ? 'd.body' : "''"} AS body FROM documents d WHERE d.seq BETWEEN ? AND ? AND ${among.sql}`,
    low,
    high,
    ...among.bindings,
  )
  let work = columns.reduce((sum, column) => sum + (column?.values ?? 0), 0)
  for (const { seq, id, body } of documents) {
    work += Math.max(1, cost)
    let whole: unknown
    let object: Record<string, unknown> | undefined
    const texts: (readonly unknown[] | undefined)[] = []
    visit({
      seq,
      id,
      values(place) {
        const column = columns[place]
        if (column !== undefined) return column.of.get(seq) ?? NONE
        object ??= readStoredObject(body)
        texts[place] ??= stringsAt(object, fields[place]!.name)
        return texts[place]
      },
      whole() {
        whole ??= parseExact(body)
        return whole
      },
    })
  }
  return work
}

const NONE: readonly unknown[] = []

interface ColumnValues {
  /** by the document's sequence number */
  of: Map<number, unknown[]>
  /** how many there are */
  values: number
}

/** A field's values in a range, by document. */
function columnOf(
  sql: SqlStorage,
  schema: StoredSchema,
  field: Field,
  low: number,
  high: number,
): ColumnValues {
  const { table, columns } = storedValues(schema, field)
  // SqlStorage gives 64-bit numbers as doubles.
  const isLong = field.type.startsWith('int64')
  const value = isLong ? `CAST(${columns.value} AS TEXT)` : columns.value
  const second = isGeopoint(field) ? columns.norm : 'NULL'
  const found: ColumnValues = { of: new Map(), values: 0 }
  const rows = sql
    .exec(
      `SELECT c.seq, ${value}, ${second} FROM ${table} c WHERE c.seq BETWEEN ? AND ? AND ${columns.value} IS NOT NULL`,
      low,
      high,
    )
    .raw<[seq: number, value: string | number, second: number | null]>()
  for (const [seq, given, longitude] of rows) {
    const stored = isLong || isGeopolygon(field) ? parseExact(given as string) : given
    const read = longitude === null ? stored : [stored, longitude]
    const list = isArray(field) ? found.of.get(seq) : undefined
    if (list === undefined) found.of.set(seq, [read])
    else list.push(read)
    found.values++
  }
  return found
}

/** The texts of fields that are indexed but not stored: they are in a table of their own. */
function hiddenTexts(
  sql: SqlStorage,
  fields: readonly Field[],
  low: number,
  high: number,
): Map<Field, ColumnValues> {
  const found = new Map(fields.map((field): [Field, ColumnValues] => [field, { of: new Map(), values: 0 }]))
  const rows = sql.exec<{ seq: number; body: string }>(
    'SELECT seq, body FROM unstored WHERE seq BETWEEN ? AND ?',
    low,
    high,
  )
  for (const { seq, body } of rows) {
    const object = readStoredObject(body)
    for (const field of fields) {
      const texts = stringsAt(object, field.name)
      const column = found.get(field)!
      column.of.set(seq, texts)
      column.values += texts.length
    }
  }
  return found
}

/** Clauses that narrow what is read, and values of each. */
const [MOST_NARROWING, MOST_VALUES] = [8, 200]

/**
 * A condition that every document that passes meets, and that takes less time than to read the documents.
 * @returns undefined if there is none
 */
function narrowing(context: FilterContext, node: FilterNode): SqlFragment | undefined {
  if (node.kind === 'join') return undefined
  if (node.kind === 'object') {
    const implied = impliedBy(node.child, node.field)
    return implied && narrowing(context, implied)
  }
  if (node.kind === 'clause') {
    if (node.values.length > MOST_VALUES) return undefined
    if (isLight(context.schema, node)) return clauseSql(context, node)
    const field = node.field === 'id' ? undefined : filterField(context.schema, node.field, node)
    const match =
      field && isString(field) && !hasColumns(field) ? indexedWords(context, field, node) : undefined
    if (match === undefined) return undefined
    const { low, high } = context.range
    return fragment(
      `d.seq IN (SELECT rowid FROM word_index WHERE word_index MATCH ? AND ${ROWID_IN_RANGE})`,
      match,
      low,
      high,
    )
  }
  if (node.children.length > MOST_NARROWING) return undefined
  const all = node.children.map((child) => narrowing(context, child))
  const known = all.filter((condition) => condition !== undefined)
  if (known.length === 0 || (node.kind === 'or' && known.length < all.length)) return undefined
  const narrowed = balanced(known, node.kind === 'and' ? 'AND' : 'OR')
  return narrowed.bindings.length <= MOST_BINDINGS ? narrowed : undefined
}

/** Bound values of such a condition. */
const MOST_BINDINGS = 40
