/**
 * Parses filter_by into a tree. Values stay text: clause.ts reads them, since their meaning depends on the field's
 * type.
 *
 *     expression := operand (('&&' | '||') operand)*      equal precedence, from left to right
 *     operand    := '(' expression ')' | field '.{' expression '}' | join | clause
 *     join       := ['!'] '$' collection '(' expression ')'
 *     clause     := field ':' ['=' | '!=' | '!'] (value | '[' [value (',' value)*] ']')
 *     value      := '`' any text, a backtick as '\`' '`' | '"' phrase '"' ['*'] | text up to && || , ] or an unmatched ) or }
 *
 * `field.{...}` holds for a document if one object at the field meets the whole expression.
 */
import { ApiError } from '../../errors'
import { EXACT, endOfQuoted, opensQuoted, TIMES, withoutQuoted } from '../fragment'
import { MAX_JOIN_DEPTH } from '../limits'

type FilterOperator = ':' | ':=' | ':!=' | ':!'

export interface FilterValue {
  text: string
  /** it was in backticks: `*`, `>` and `..` are ordinary characters in it */
  quoted: boolean
  /** it was in double quotes, which `text` still has. In a string field its words must be adjacent and in order */
  phrase?: true
  /** a phrase before an asterisk: its last word is a prefix */
  open?: true
  /** it began with EXACT: a string has to equal it letter by letter, in a clause where all values have this */
  exact?: true
  /** it is a range of times, both ends included: a string has to be a date in it. Only with `:=` and `:!=` */
  times?: readonly [from: number, to: number]
}

/** Stands for a backtick in a value that begins with EXACT. */
const EXACT_BACKTICK = '\ue002'

export interface FilterClause {
  kind: 'clause'
  field: string
  operator: FilterOperator
  /** the values were in square brackets */
  list: boolean
  values: FilterValue[]
}

export interface FilterGroup {
  kind: 'and' | 'or'
  /** two or more; only the first can be a group of the same kind */
  children: FilterNode[]
}

/** A condition on related documents of another collection: one of them meets it, or none if it is negated. */
export interface FilterJoin {
  kind: 'join'
  negated: boolean
  collection: string
  /** a filter of the other collection's documents */
  filter: string
}

/** Conditions that one and the same object at `field` has to meet. Names in `child` are relative to it. */
interface FilterObject {
  kind: 'object'
  field: string
  child: FilterNode
}

export type FilterNode = FilterClause | FilterGroup | FilterObject | FilterJoin

/** A filter with more clauses is refused. A list of values is one clause, of any length. */
const MAX_CLAUSES = 4000

/** The parser looks for the head of an object filter within this many characters. */
const MAX_NAME = 1000

/** How deep a tree may be. Each pair of parentheses and each change between && and || adds a level. */
const MAX_DEPTH = 100

const MALFORMED = 'Could not parse the filter query.'
const TOO_DEEP = `The filter is nested too deeply: at most ${MAX_DEPTH} levels are allowed.`
const UNBALANCED = 'Could not parse the filter query: unbalanced parentheses.'
const OPEN_BRACE = 'Could not parse the object filter: unbalanced curly braces.'

/**
 * @returns the tree of a filter, which nobody may change; undefined for a blank one
 * @throws ApiError 400 with Typesense's messages
 */
export function parseFilter(text: string): FilterNode | undefined {
  if (text.trim() === '') return undefined
  if (text.length < LONG) return new FilterParser(text).parse()
  const known = LATEST.get(text)
  const tree = known ?? new FilterParser(text).parse()
  LATEST.delete(text)
  LATEST.set(text, tree)
  const [oldest] = LATEST.keys()
  if (LATEST.size > MOST_LATEST) LATEST.delete(oldest!)
  return tree
}

/** A search asks several times for the tree of its filter. That of a long one takes a while, so the latest are kept. */
const LATEST = new Map<string, FilterNode>()
const [LONG, MOST_LATEST] = [2_000, 4]

/**
 * A filter in which clauses on unknown fields match nothing.
 * @param isKnown whether there is a field of this name
 * @throws ApiError 400 for a filter that does not parse
 */
export function withoutUnknown(text: string, isKnown: (field: string) => boolean): string {
  if (text.trim() === '') return text
  let known = ''
  let end = 0
  new FilterParser(text, (node, from, to) => {
    if (fieldsOf(node).every(isKnown)) return
    known += `${text.slice(end, from)}${NOTHING}`
    end = to
  }).parse()
  return known + text.slice(end)
}

const NOTHING = 'id:[] '

/** The fields of a filter, without those of other collections. */
export const fieldsOf = (node: FilterNode): string[] => {
  if (node.kind === 'join') return []
  if (node.kind === 'clause') return [node.field]
  if (node.kind === 'object') return fieldsOf(node.child).map((name) => `${node.field}.${name}`)
  return node.children.flatMap(fieldsOf)
}

/** Characters of a value that end nothing and begin nothing. */
const PLAIN = /[^`(),\]{}&|\\]*/y

interface Subtree {
  node: FilterNode
  depth: number
}

class FilterParser {
  #position = 0
  #clauses = 0
  /** joins around this filter */
  #joins = 0
  /** open braces; inside them a value ends at `}` */
  #braces = 0

  /** @param operand is called for each clause and each object outside of objects, with its place in the text */
  constructor(
    readonly text: string,
    readonly operand?: (node: FilterNode, from: number, to: number) => void,
  ) {}

  parse(): FilterNode {
    const { node } = this.#expression(0)
    if (this.#position < this.text.length) throw new ApiError(400, UNBALANCED)
    return node
  }

  /** @param level open parentheses: bounds the recursion before there is a tree */
  #expression(level: number): Subtree {
    if (level > MAX_DEPTH) throw new ApiError(400, TOO_DEEP)
    let { node, depth } = this.#operand(level)
    for (;;) {
      this.#skipSpace()
      const kind = this.#startsWith('&&') ? 'and' : this.#startsWith('||') ? 'or' : undefined
      if (kind === undefined) return { node, depth }
      this.#position += 2
      const right = this.#operand(level)
      // A run of one operator becomes one flat group.
      if (node.kind === kind) {
        node.children.push(right.node)
        depth = Math.max(depth, right.depth + 1)
      } else {
        node = { kind, children: [node, right.node] }
        depth = Math.max(depth, right.depth) + 1
      }
      if (depth > MAX_DEPTH) throw new ApiError(400, TOO_DEEP)
    }
  }

  #operand(level: number): Subtree {
    this.#skipSpace()
    if (this.#braces === 0 && (this.#startsWith('$') || this.#startsWith('!$'))) {
      return { node: this.#join(), depth: 0 }
    }
    if (this.text[this.#position] !== '(') {
      const from = this.#position
      const subtree = this.#object(level) ?? { node: this.#clause(), depth: 0 }
      if (this.#braces === 0) this.operand?.(subtree.node, from, this.#position)
      return subtree
    }
    this.#position++
    const inner = this.#expression(level + 1)
    this.#skipSpace()
    if (this.text[this.#position] !== ')') throw new ApiError(400, UNBALANCED)
    this.#position++
    return inner
  }

  #join(): FilterJoin {
    const join = readJoin(this.text, this.#position)
    if (join === undefined) {
      const rest = this.text.slice(this.#position)
      throw new ApiError(400, `Could not parse the reference filter: \`${rest}\`.`)
    }
    this.#position = join.end
    // The other collection knows its fields. The syntax is checked here.
    const inner = new FilterParser(join.inside)
    inner.#joins = this.#joins + 1
    if (inner.#joins > MAX_JOIN_DEPTH) {
      throw new ApiError(400, `Joins are nested too deeply: at most ${MAX_JOIN_DEPTH} levels are allowed.`)
    }
    inner.#clauses = this.#clauses + 1
    inner.parse()
    this.#clauses = inner.#clauses
    return { kind: 'join', negated: join.negated, collection: join.collection, filter: join.inside.trim() }
  }

  /** `field.{...}`, or undefined if none begins here. */
  #object(level: number): Subtree | undefined {
    const head = /^([^:(){}&|`]+)\.\{/.exec(this.text.slice(this.#position, this.#position + MAX_NAME))
    if (!head) return undefined
    this.#position += head[0].length
    this.#braces++
    const { node, depth } = this.#expression(level + 1)
    this.#skipSpace()
    if (this.text[this.#position] !== '}') throw new ApiError(400, OPEN_BRACE)
    this.#position++
    this.#braces--
    return { node: { kind: 'object', field: head[1]!.trim(), child: node }, depth: depth + 1 }
  }

  #clause(): FilterClause {
    if (++this.#clauses > MAX_CLAUSES) {
      throw new ApiError(400, `The filter has too many clauses: at most ${MAX_CLAUSES} are allowed.`)
    }
    const field = this.#field()
    const operator = this.#operator()
    this.#skipSpace()
    const list = this.text[this.#position] === '['
    const values = list ? this.#list() : [this.#value(false)]
    return { kind: 'clause', field, operator, list, values }
  }

  #field(): string {
    const start = this.#position
    for (; this.#position < this.text.length; this.#position++) {
      const character = this.text[this.#position]
      if (character === ':') {
        const field = this.text.slice(start, this.#position).trim()
        if (field === '') break
        this.#position++
        return field
      }
      if (character === '(' || character === ')') {
        // Unbalanced brackets, as in `(a:1` and `a:1)`, have an error of their own, different from a missing colon.
        throw new ApiError(400, isBalanced(this.text) ? MALFORMED : UNBALANCED)
      }
      if (this.#startsWith('&&') || this.#startsWith('||')) break
    }
    throw new ApiError(400, isBalanced(this.text) ? MALFORMED : UNBALANCED)
  }

  #operator(): FilterOperator {
    const start = this.#position
    this.#skipSpace()
    for (const sign of ['!=', '!', '='] as const) {
      if (this.#startsWith(sign)) {
        this.#position += sign.length
        return `:${sign}`
      }
    }
    this.#position = start
    return ':'
  }

  #list(): FilterValue[] {
    this.#position++
    this.#skipSpace()
    if (this.text[this.#position] === ']') {
      this.#position++
      return []
    }
    const values: FilterValue[] = []
    for (;;) {
      values.push(this.#value(true))
      const character = this.text[this.#position]
      if (character !== ',' && character !== ']') throw new ApiError(400, MALFORMED)
      this.#position++
      if (character === ']') return values
    }
  }

  #value(inList: boolean): FilterValue {
    this.#skipSpace()
    if (this.text[this.#position] === '`') {
      const end = endOfQuoted(this.text, this.#position)
      if (end === -1) throw new ApiError(400, MALFORMED)
      const text = this.text.slice(this.#position + 1, end)
      const next = end + 1 + /^\s*/.exec(this.text.slice(end + 1))![0].length
      if (this.#endsValue(next, inList)) {
        this.#position = next
        if (!text.startsWith(EXACT)) return { text: unescaped(text), quoted: true }
        const [from, to] = text.startsWith(TIMES, 1) ? text.slice(2).split('..').map(Number) : []
        if (to !== undefined) return { text, quoted: true, times: [from!, to] }
        return { text: text.slice(1).replaceAll(EXACT_BACKTICK, '`'), quoted: true, exact: true }
      }
    }
    if (this.text[this.#position] === '"') {
      const end = this.text.indexOf('"', this.#position + 1)
      // Refuse an open quote. Filters are concatenated, so it would reach into the next one.
      if (end === -1) throw new ApiError(400, MALFORMED)
      const open = this.text[end + 1] === '*' && !inList
      const after = open ? end + 2 : end + 1
      const next = after + /^\s*/.exec(this.text.slice(after))![0].length
      if (end > this.#position + 1 && this.#endsValue(next, inList)) {
        const text = this.text.slice(this.#position, end + 1)
        this.#position = next
        return { text, quoted: false, phrase: true, ...(open && { open }) }
      }
    }
    return { text: this.#plainValue(inList), quoted: false }
  }

  #plainValue(inList: boolean): string {
    let text = ''
    let open = 0
    while (this.#position < this.text.length && !(open === 0 && this.#endsValue(this.#position, inList))) {
      const character = this.text[this.#position]!
      if (opensQuoted(this.text, this.#position)) {
        // Backticks inside a value quote a part of it: pre`,`post.
        const end = endOfQuoted(this.text, this.#position)
        if (end === -1) throw new ApiError(400, MALFORMED)
        text += this.text.slice(this.#position + 1, end)
        this.#position = end + 1
        continue
      }
      if (character === '(') open++
      if (character === ')') open--
      PLAIN.lastIndex = this.#position + 1
      const [further] = PLAIN.exec(this.text)!
      text += character + further
      this.#position += 1 + further.length
    }
    if (open > 0) throw new ApiError(400, UNBALANCED)
    return unescaped(text.trim())
  }

  #endsValue(at: number, inList: boolean): boolean {
    const character = this.text[at]
    if (character === undefined) return true
    if (inList) return character === ',' || character === ']'
    if (character === '}') return this.#braces > 0
    return character === ')' || this.text.startsWith('&&', at) || this.text.startsWith('||', at)
  }

  #startsWith(sign: string): boolean {
    return this.text.startsWith(sign, this.#position)
  }

  #skipSpace(): void {
    while (/\s/.test(this.text[this.#position] ?? '')) this.#position++
  }
}

/**
 * Reads `$collection(...)` at a position of a filter, an order or a list of fields.
 * @returns undefined when there is none, or when its parentheses do not close
 */
export function readJoin(
  text: string,
  at = 0,
): { negated: boolean; collection: string; inside: string; end: number } | undefined {
  const head = /(!?)\$([^\s$(){}[\]:,`&|]+)\s*\(/y
  head.lastIndex = at
  const match = head.exec(text)
  if (!match) return undefined
  const start = head.lastIndex
  let open = 1
  for (let end = start; end < text.length; end++) {
    if (opensQuoted(text, end)) {
      end = endOfQuoted(text, end)
      if (end < 0) return undefined
    } else if (text[end] === '(') open++
    else if (text[end] === ')' && --open === 0) {
      const inside = text.slice(start, end)
      return { negated: match[1] === '!', collection: match[2]!, inside, end: end + 1 }
    }
  }
  return undefined
}

function isBalanced(text: string): boolean {
  let open = 0
  for (const character of withoutQuoted(text)) {
    if (character === '(') open++
    if (character === ')' && --open < 0) return false
  }
  return open === 0
}

/** A value with its backticks as they are meant. */
const unescaped = (text: string): string => text.replaceAll('\\`', '`')

/** The joins of a filter, without those inside of other joins. */
export function joinsOf(node: FilterNode | undefined): FilterJoin[] {
  if (node === undefined || node.kind === 'clause' || node.kind === 'object') return []
  return node.kind === 'join' ? [node] : node.children.flatMap(joinsOf)
}

export const isNegated = ({ operator }: FilterClause): boolean => operator === ':!=' || operator === ':!'

/** `field:*`: the field has any value. */
export const isPresence = ({ operator, values }: FilterClause): boolean =>
  (operator === ':' || operator === ':!') &&
  values.length === 1 &&
  values[0]!.text === '*' &&
  !values[0]!.quoted

// =============================================================================
// Writes filters: the inverse of parse.ts.

/** A tree as a filter that parses to the same tree. */
export function printFilter(node: FilterNode): string {
  if (node.kind === 'join') return `${node.negated ? '!' : ''}$${node.collection}(${node.filter})`
  if (node.kind === 'clause') {
    const values = node.values.map(printValue).join(', ')
    return `${node.field}${node.operator}${node.list ? `[${values}]` : values}`
  }
  if (node.kind === 'object') return `${node.field}.{${printFilter(node.child)}}`
  const sign = node.kind === 'and' ? ' && ' : ' || '
  return node.children
    .map((child, index) =>
      // Left to right without precedence: only the first operand may be a group without parentheses.
      child.kind === 'clause' ||
      child.kind === 'join' ||
      child.kind === 'object' ||
      (index === 0 && child.kind !== node.kind)
        ? printFilter(child)
        : `(${printFilter(child)})`,
    )
    .join(sign)
}

/** Characters that end a value, or open a group or a quotation. */
const SIGNS = /["`(),[\]{}|&]/

/** A place or an area: numbers, a unit and the option for the radius. */
const PLACE = /^\([\s\d.,+-]*(?:(?:km|mi)[\s,]*)?(?:exact_filter_radius\s*:\s*(?:true|false)\s*)?\)$/i

/**
 * Part of a value can be in backticks. The tree does not say which part, so a value with signs is put into backticks as a
 * whole. Otherwise its text would end the clause, and with it the group around it.
 */
const printValue = ({ text, quoted, phrase, open, exact, times }: FilterValue): string =>
  times
    ? during(...times)
    : exact
      ? exactly(text)
      : open
        ? `${text}*`
        : phrase || (!quoted && (!SIGNS.test(text) || PLACE.test(text)))
          ? text
          : `\`${apart(text.replaceAll('`', '\\`'))}\``

/** A backslash at the end of a value would escape the backtick that ends it. Words are the same with a blank. */
const apart = (text: string): string => (text.endsWith('\\') ? `${text} ` : text)

/**
 * Any text as one value, in backticks. Backticks in it are left out: words are the same without them. A text of nothing
 * else is a blank, since a value may not be empty.
 */
export const quoted = (text: string): string => `\`${apart(text && (text.replaceAll('`', '') || ' '))}\``

/** Any text as a value that strings have to equal letter by letter, case and signs too. */
export const exactly = (text: string): string => `\`${EXACT}${text.replaceAll('`', EXACT_BACKTICK)}\``

/** Dates from one time to another, both included, in milliseconds since 1970. */
export const during = (from: number, to: number): string => `\`${EXACT}${TIMES}${from}..${to}\``

/** Identifies a join, whether or not it is negated. */
export const joinKey = (join: FilterJoin): string => printFilter({ ...join, negated: false })

// =============================================================================
// The joins of a filter, and the errors that it reports.

/**
 * The documents with a related one, in ascending order of sequence number, for every join of a filter. The key is the
 * printed join without its negation.
 */
export type JoinedDocuments = ReadonlyMap<string, ArrayLike<number>>

/** The documents with a related one. @throws ApiError 400 if joins are not supported here */
export function joinedBy(joins: JoinedDocuments | undefined, join: FilterJoin): ArrayLike<number> {
  const seqs = joins?.get(joinKey(join))
  if (seqs !== undefined) return seqs
  throw new ApiError(400, `The join \`$${join.collection}(...)\` is not possible here.`)
}

export const filterError = (field: string, what: string): ApiError =>
  new ApiError(400, `Error with filter field \`${field}\`: ${what}`)
