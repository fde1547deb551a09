/**
 * Filters, evaluated over blocks of documents (schema/column.ts).
 *
 * A clause on a field with values tests the block's values (clause.ts). One on words of another field, and one on objects, read
 * the documents that are left: those that word_index finds, where it can. A document that lacks the field fails `:=x` and
 * passes `:!=x`.
 */
import { firstPlace } from '../../lib/first-items'
import { parseExact } from '../../lib/json'
import { readStoredObject } from '../../lib/stored-json'
import { fragment, type Read, ROWID_IN_RANGE } from '../fragment'
import { BLOCK, type Block, type Offsets } from '../schema/column'
import type { ColumnMemory } from '../schema/column-memory'
import { hasValues, isGeopoint, isGeopolygon, isString, type StoredSchema } from '../schema/layout'
import { findField } from '../schema/schema'
import { stringsAt } from '../schema/values'
import type { Steps } from '../steps'
import { rulesOf } from '../text/query'
import type { Field } from '../types'
import { checkNotEmpty, chosen, clauseSelect, filterField, isAnyId } from './clause'
import {
  type FilterClause,
  type FilterGroup,
  type FilterJoin,
  type FilterNode,
  filterError,
  isNegated,
  type JoinedDocuments,
  joinedBy,
  parseFilter,
} from './parse'
import {
  clauseTest,
  type FormOf,
  formsOf,
  impliedBy,
  indexedWords,
  objectsAt,
  objectTest,
  preparePatterns,
  type ValuesTest,
} from './test'

/** Where the values of documents are. */
interface Source {
  sql: SqlStorage
  columns: ColumnMemory
  read: Read
}

/** Chooses the documents of a block that pass. */
type Select = (block: Evaluated, offsets: Offsets) => Offsets | Steps<Offsets>

function* passedBy(select: Select, block: Evaluated, offsets: Offsets): Steps<Offsets> {
  const passed = select(block, offsets)
  return passed instanceof Uint16Array ? passed : yield* passed
}

/** A block whose documents are tested. */
interface Evaluated {
  source: Source
  number: number
  blockOf: (field: Field, wanted: Offsets) => Block
  /** rows that SQLite reads in the time that was taken since the last yield */
  owed: number
}

/** A document as tests see it. */
interface Written {
  at: number
  /** as it is stored, with exact numbers */
  whole: () => unknown
  /** of a field, stored or not: read once for all clauses on it */
  texts: (field: Field) => readonly unknown[]
  /** by number: the documents that pass a part of the filter that reads none */
  masks: Uint8Array[]
}

type Test = (document: Written) => boolean

/** Rows that SQLite reads in the time of a step. */
const A_STEP = 20_000
/** To read and parse a document takes as long as so many rows. */
const ROWS_A_DOCUMENT = 50
/** To test the texts of a document, or of one object of it, against a clause takes as long as so many rows. */
const ROWS_A_TEXT_CLAUSE = 6
/** Documents that are read in a step at most. */
const AT_ONCE = 100

export class Filter {
  readonly #select: Select | undefined
  readonly #forms = new Map<string, FormOf>()
  /** clauses on strings */
  readonly #texts: { field: Field; clause: FilterClause }[] = []

  /**
   * @param filter a blank one passes every document
   * @param joins the results of the filter's joins; without them a join is refused
   * @throws ApiError 400 with Typesense's messages
   */
  constructor(
    private readonly schema: StoredSchema,
    filter: string | FilterNode,
    private readonly joins?: JoinedDocuments,
  ) {
    const tree = typeof filter === 'string' ? parseFilter(filter) : filter
    this.#select = tree && this.#of(tree)
  }

  /** Whether every document passes. */
  get isAll(): boolean {
    return this.#select === undefined
  }

  /** The documents of a block that pass. Yields rows that SQLite reads in the time that a step has taken. */
  *among(source: Source, number: number, offsets: Offsets): Steps<Offsets> {
    if (this.#select === undefined) return offsets
    yield* this.preparing()
    const blocks = source.columns.blocks(source.sql, this.schema, source.read)
    const blockOf = (field: Field, wanted: Offsets) => blocks(field, number, wanted)
    return yield* passedBy(this.#select, { source, number, blockOf, owed: 0 }, offsets)
  }

  /** Makes what takes long of a filter with long lists, which `among` would do. */
  *preparing(): Steps {
    for (const { field, clause } of this.#texts.splice(0)) {
      yield* preparePatterns(clause, rulesOf(this.schema, field), field.locale)
    }
  }

  #of(node: FilterNode): Select {
    if (node.kind === 'join') return paced(this.#join(node), costOf(this.schema, node))
    if (node.kind === 'object') return this.#reading('and', [node])
    if (node.kind === 'clause') {
      if (node.field === 'id') return idSelect(node)
      const field = filterField(this.schema, node.field, node)
      if (!hasValues(field)) return this.#reading('and', [node])
      if (isString(field)) this.#texts.push({ field, clause: node })
      const select = clauseSelect(this.schema, field, node)
      return paced(
        (block, offsets) => select(offsets, block.blockOf(field, offsets)),
        costOf(this.schema, node),
      )
    }
    const [reading, children]: [FilterNode[], Select[]] = [[], []]
    for (const child of node.children) {
      if (this.#reads(child)) reading.push(child)
      else children.push(this.#of(child))
    }
    if (reading.length > 0) children.push(this.#reading(node.kind, reading))
    return node.kind === 'and' ? every(children) : some(children)
  }

  /** Whether a part of the filter needs the documents themselves. */
  #reads(node: FilterNode): boolean {
    if (node.kind === 'and' || node.kind === 'or') return node.children.some((child) => this.#reads(child))
    if (node.kind !== 'clause') return node.kind === 'object'
    const field = node.field === 'id' ? undefined : findField(this.schema, node.field)
    return field !== undefined && !hasValues(field)
  }

  #join(join: FilterJoin): Select {
    const seqs = joinedBy(this.joins, join)
    return ({ number }, offsets) => {
      const joined = new Uint8Array(BLOCK)
      const low = number * BLOCK
      const first = firstPlace(seqs.length, (place) => seqs[place]! >= low)
      for (let at = first; at < seqs.length && seqs[at]! < low + BLOCK; at++) joined[seqs[at]! - low] = 1
      return chosen(offsets, (at) => (joined[at] === 1) !== join.negated)
    }
  }

  /** Parts of a filter that read documents: each is read once for all of them. */
  #reading(kind: FilterGroup['kind'], nodes: readonly FilterNode[]): Select {
    const selects: Select[] = []
    const tests = nodes.map((node) => this.#test(node, selects))
    const passes: Test =
      kind === 'and'
        ? (document) => tests.every((test) => test(document))
        : (document) => tests.some((test) => test(document))
    const group: FilterNode = nodes.length === 1 ? nodes[0]! : { kind, children: [...nodes] }
    const narrow = this.#narrowing(group)
    const cost = ROWS_A_DOCUMENT + ROWS_A_TEXT_CLAUSE * clausesIn(group)
    const step = Math.max(1, Math.min(AT_ONCE, Math.floor(A_STEP / cost)))
    return function* (block, offsets) {
      const left = narrow === undefined ? offsets : yield* passedBy(narrow, block, offsets)
      const masks: Uint8Array[] = []
      for (const select of selects) {
        const mask = new Uint8Array(BLOCK)
        for (const at of yield* passedBy(select, block, left)) mask[at] = 1
        masks.push(mask)
      }
      const passed: number[] = []
      for (let from = 0; from < left.length; from += step) {
        const some = left.subarray(from, from + step)
        for (const document of documentsOf(block, some, masks)) if (passes(document)) passed.push(document.at)
        yield some.length * cost
      }
      return Uint16Array.from(passed)
    }
  }

  /** @param selects gets the parts that read no documents */
  #test(node: FilterNode, selects: Select[]): Test {
    if (!this.#reads(node)) {
      const place = selects.push(this.#of(node)) - 1
      return ({ masks, at }) => masks[place]![at] === 1
    }
    if (node.kind === 'and' || node.kind === 'or') {
      const tests = node.children.map((child) => this.#test(child, selects))
      return node.kind === 'and'
        ? (document) => tests.every((test) => test(document))
        : (document) => tests.some((test) => test(document))
    }
    if (node.kind === 'object') {
      const { field: path, child } = node
      const passes = objectTest(child, (clause) => this.#objectClause(path, clause))
      return ({ whole }) => objectsAt(whole(), path).some(passes)
    }
    const clause = node as FilterClause
    const field = filterField(this.schema, clause.field, clause)
    const passes = this.#values(field, clause)
    return (document) => passes(document.texts(field))
  }

  #objectClause(path: string, clause: FilterClause): ValuesTest {
    const field = filterField(this.schema, `${path}.${clause.field}`, clause)
    // The values of such fields are in one list for the whole document, not by object.
    if (!field.store) {
      throw filterError(field.name, 'A field with `store: false` cannot be filtered inside of an object.')
    }
    if (isGeopolygon(field)) {
      throw filterError(field.name, 'This type of field cannot be filtered inside of an object.')
    }
    return this.#values(field, clause)
  }

  #values(field: Field, clause: FilterClause): ValuesTest {
    if (isString(field)) this.#texts.push({ field, clause })
    const formOf = this.#forms.get(field.name) ?? formsOf(this.schema, field)
    this.#forms.set(field.name, formOf)
    return clauseTest(this.schema, field, clause, formOf)
  }

  /** What every document that passes meets, and takes less time than to read the documents; undefined if there is nothing. */
  #narrowing(node: FilterNode): Select | undefined {
    if (!this.#reads(node)) return this.#of(node)
    if (node.kind === 'object') {
      const implied = impliedBy(node.child, node.field)
      return implied && this.#narrowing(implied)
    }
    if (node.kind === 'clause') {
      if (node.values.length > MOST_VALUES) return undefined
      const field = filterField(this.schema, node.field, node)
      const match = isString(field) ? indexedWords(this.schema, field, node) : undefined
      return match === undefined ? undefined : matching(match)
    }
    if (node.kind === 'join' || node.children.length > MOST_NARROWING) return undefined
    const all = node.children.map((child) => this.#narrowing(child))
    const known = all.filter((select) => select !== undefined)
    if (known.length === 0 || (node.kind === 'or' && known.length < all.length)) return undefined
    return node.kind === 'and' ? every(known) : some(known)
  }
}

/** Clauses that narrow what is read, and values of each. */
const [MOST_NARROWING, MOST_VALUES] = [8, 200]

/**
 * A condition in steps that take about as long as A_STEP rows. It is tested over as much of a block as a step bears, and not all
 * conditions over a few documents: of thousands of them, to begin each takes longer than to test it.
 * @param cost of a document, in rows
 */
const paced = (select: Select, cost: number): Select =>
  function* (block, offsets) {
    const step = Math.max(16, Math.floor(A_STEP / cost))
    const passed: number[] = []
    for (let from = 0; from < offsets.length; from += step) {
      const some = offsets.length <= step ? offsets : offsets.subarray(from, from + step)
      const left = yield* passedBy(select, block, some)
      block.owed += some.length * cost
      if (block.owed >= A_STEP) {
        yield block.owed
        block.owed = 0
      }
      if (some === offsets) return left
      for (const at of left) passed.push(at)
    }
    return Uint16Array.from(passed)
  }

const every = (children: readonly Select[]): Select =>
  function* (block, offsets) {
    let left = offsets
    for (const child of children) {
      if (left.length === 0) break
      left = yield* passedBy(child, block, left)
    }
    return left
  }

const some = (children: readonly Select[]): Select =>
  function* (block, offsets) {
    const passed = new Uint8Array(BLOCK)
    let left = offsets
    for (const child of children) {
      for (const at of yield* passedBy(child, block, left)) passed[at] = 1
      left = chosen(left, (at) => passed[at] === 0)
    }
    return chosen(offsets, (at) => passed[at] === 1)
  }

function idSelect(clause: FilterClause): Select {
  checkNotEmpty('id', clause)
  const negated = isNegated(clause)
  const isAny = isAnyId(clause)
  const ids = JSON.stringify(clause.values.map(({ text }) => text))
  let wanted: ReadonlySet<number> | undefined
  return ({ source: { sql, read }, number }, offsets) => {
    if (isAny) return negated ? offsets.subarray(0, 0) : offsets
    wanted ??= new Set(
      read<{ seq: number }>(
        sql,
        fragment('SELECT seq FROM documents WHERE id IN (SELECT value FROM json_each(?))', ids),
      ).map(({ seq }) => seq),
    )
    const seqs = wanted
    return chosen(offsets, (at) => seqs.has(number * BLOCK + at) !== negated)
  }
}

/** Documents that an expression of word_index matches. */
const matching =
  (match: string): Select =>
  ({ source: { sql, read }, number }, offsets) => {
    if (offsets.length === 0) return offsets
    const low = number * BLOCK
    const found = new Uint8Array(BLOCK)
    const rows = read<{ seq: number }>(
      sql,
      fragment(
        `SELECT rowid AS seq FROM word_index WHERE word_index MATCH ? AND ${ROWID_IN_RANGE}`,
        match,
        low + offsets[0]!,
        low + offsets.at(-1)!,
      ),
    )
    for (const { seq } of rows) found[seq - low] = 1
    return chosen(offsets, (at) => found[at] === 1)
  }

/** Reads documents one after the other: only one of them is in memory. */
export function* documentsOf(
  { source: { sql }, number }: Pick<Evaluated, 'source' | 'number'>,
  offsets: Offsets,
  masks: Uint8Array[],
): Generator<Written> {
  const seqs = JSON.stringify(Array.from(offsets, (at) => number * BLOCK + at))
  const rows = sql.exec<{ seq: number; body: string }>(
    'SELECT seq, body FROM documents WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY seq',
    seqs,
  )
  for (const { seq, body } of rows) {
    let [object, whole, hidden]: [Record<string, unknown>?, unknown?, Record<string, unknown>?] = []
    const texts = new Map<Field, readonly unknown[]>()
    const stored = () => (object ??= readStoredObject(body))
    const unstored = () => (hidden ??= hiddenOf(sql, seq))
    const readTexts = (field: Field) => {
      const read = stringsAt(field.store ? stored() : unstored(), field.name)
      texts.set(field, read)
      return read
    }
    yield {
      at: seq - number * BLOCK,
      texts: (field) => texts.get(field) ?? readTexts(field),
      whole: () => (whole ??= parseExact(body)),
      masks,
    }
  }
}

function hiddenOf(sql: SqlStorage, seq: number): Record<string, unknown> {
  const [row] = sql.exec<{ body: string }>('SELECT body FROM unstored WHERE seq = ?', seq).toArray()
  return row === undefined ? {} : readStoredObject(row.body)
}

// =============================================================================
// What a filter costs for each document, as the number of rows that SQLite reads in that time.

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
function costOf(schema: StoredSchema, node: FilterNode): number {
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
function clausesIn(node: FilterNode): number {
  if (node.kind === 'object') return clausesIn(node.child)
  if (node.kind !== 'and' && node.kind !== 'or') return 1
  return node.children.reduce((sum, child) => sum + clausesIn(child), 0)
}
