/**
 * The grammar of filter_by, from text to a tree. What a value means depends on its field's type, so values
 * stay text here; compile.ts reads them.
 *
 *     expression := operand (('&&' | '||') operand)*      equal precedence, from left to right
 *     operand    := '(' expression ')' | clause
 *     clause     := field ':' ['=' | '!=' | '!'] (value | '[' value (',' value)* ']')
 *     value      := '`' any text '`' | text up to && || , ] or an unmatched )
 */
import { ApiError } from '../../errors'

export type FilterOperator = ':' | ':=' | ':!=' | ':!'

export interface FilterValue {
  text: string
  /** it stood in backticks: `*`, `>` and `..` in it are ordinary characters */
  quoted: boolean
}

export interface FilterClause {
  kind: 'clause'
  field: string
  operator: FilterOperator
  /** the values stood in square brackets */
  list: boolean
  values: FilterValue[]
}

export interface FilterGroup {
  kind: 'and' | 'or'
  /** two or more; none of them of this group's kind when it is the first */
  children: FilterNode[]
}

export type FilterNode = FilterClause | FilterGroup

/** A filter with more clauses than this is refused; a list of values is one clause, however long it is. */
export const MAX_CLAUSES = 4000

/** How deep a tree may be: each pair of parentheses and each change between && and || is a level. */
export const MAX_DEPTH = 100

const MALFORMED = 'Could not parse the filter query.'
const TOO_DEEP = `The filter is nested too deeply: at most ${MAX_DEPTH} levels are allowed.`
const UNBALANCED = 'Could not parse the filter query: unbalanced parentheses.'

/**
 * The tree of a filter, undefined for a blank one.
 * @throws ApiError 400 with Typesense's messages
 */
export function parseFilter(text: string): FilterNode | undefined {
  if (text.trim() === '') return undefined
  return new FilterParser(text).parse()
}

interface Subtree {
  node: FilterNode
  depth: number
}

class FilterParser {
  #position = 0
  #clauses = 0

  constructor(readonly text: string) {}

  parse(): FilterNode {
    const { node } = this.#expression(0)
    if (this.#position < this.text.length) throw new ApiError(400, UNBALANCED)
    return node
  }

  /** @param level how many parentheses are open, so that the recursion is bounded before a tree exists */
  #expression(level: number): Subtree {
    if (level > MAX_DEPTH) throw new ApiError(400, TOO_DEEP)
    let { node, depth } = this.#operand(level)
    for (;;) {
      this.#skipSpace()
      const kind = this.#startsWith('&&') ? 'and' : this.#startsWith('||') ? 'or' : undefined
      if (kind === undefined) return { node, depth }
      this.#position += 2
      const right = this.#operand(level)
      // A run of one operator is one flat group; the first child is the only place where it can begin.
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
    if (this.text[this.#position] !== '(') return { node: this.#clause(), depth: 0 }
    this.#position++
    const inner = this.#expression(level + 1)
    this.#skipSpace()
    if (this.text[this.#position] !== ')') throw new ApiError(400, UNBALANCED)
    this.#position++
    return inner
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
    if (this.text[start] === '$') {
      throw new ApiError(400, 'Joins (`$collection(...)`) are not supported in `filter_by`.')
    }
    for (; this.#position < this.text.length; this.#position++) {
      const character = this.text[this.#position]
      if (character === ':') {
        const field = this.text.slice(start, this.#position).trim()
        if (field === '') break
        this.#position++
        return field
      }
      if (character === '(' || character === ')') {
        // `(a:1` and `a:1)` are told from a missing colon by what is left of the brackets.
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
      const end = this.text.indexOf('`', this.#position + 1)
      if (end === -1) throw new ApiError(400, MALFORMED)
      const text = this.text.slice(this.#position + 1, end)
      const next = end + 1 + /^\s*/.exec(this.text.slice(end + 1))![0].length
      if (this.#endsValue(next, inList)) {
        this.#position = next
        return { text, quoted: true }
      }
    }
    return { text: this.#plainValue(inList), quoted: false }
  }

  #plainValue(inList: boolean): string {
    let text = ''
    let open = 0
    while (this.#position < this.text.length && !(open === 0 && this.#endsValue(this.#position, inList))) {
      const character = this.text[this.#position]!
      if (character === '`') {
        // Backticks in the middle of a value shield what they enclose: pre`,`post.
        const end = this.text.indexOf('`', this.#position + 1)
        if (end === -1) throw new ApiError(400, MALFORMED)
        text += this.text.slice(this.#position + 1, end)
        this.#position = end + 1
        continue
      }
      if (character === '(') open++
      if (character === ')') open--
      text += character
      this.#position++
    }
    if (open > 0) throw new ApiError(400, UNBALANCED)
    return text.trim()
  }

  #endsValue(at: number, inList: boolean): boolean {
    const character = this.text[at]
    if (character === undefined) return true
    if (inList) return character === ',' || character === ']'
    return character === ')' || this.text.startsWith('&&', at) || this.text.startsWith('||', at)
  }

  #startsWith(sign: string): boolean {
    return this.text.startsWith(sign, this.#position)
  }

  #skipSpace(): void {
    while (/\s/.test(this.text[this.#position] ?? '')) this.#position++
  }
}

function isBalanced(text: string): boolean {
  let open = 0
  for (const character of text.replace(/`[^`]*`/g, '')) {
    if (character === '(') open++
    if (character === ')' && --open < 0) return false
  }
  return open === 0
}

/** A tree as a filter that parses to the same tree. */
export function printFilter(node: FilterNode): string {
  if (node.kind === 'clause') {
    const values = node.values.map(({ text, quoted }) => (quoted ? `\`${text}\`` : text)).join(', ')
    return `${node.field}${node.operator}${node.list ? `[${values}]` : values}`
  }
  const sign = node.kind === 'and' ? ' && ' : ' || '
  return node.children
    .map((child, index) =>
      // Left to right without precedence: only the first operand may be a group without parentheses.
      child.kind === 'clause' || (index === 0 && child.kind !== node.kind)
        ? printFilter(child)
        : `(${printFilter(child)})`,
    )
    .join(sign)
}

export const isNegated = ({ operator }: FilterClause): boolean => operator === ':!=' || operator === ':!'

/** `field:*`: any value will do. */
export const isPresence = ({ operator, values }: FilterClause): boolean =>
  (operator === ':' || operator === ':!') &&
  values.length === 1 &&
  values[0]!.text === '*' &&
  !values[0]!.quoted
