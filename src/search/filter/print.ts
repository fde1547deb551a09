/** Writes filters: the inverse of parse.ts. */
import { EXACT, TIMES } from '../fragment'
import { EXACT_BACKTICK, type FilterJoin, type FilterNode, type FilterValue } from './parse'

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
