/** Writes filters: the other way round than parse.ts. */
import type { FilterJoin, FilterNode } from './parse'

/** A tree as a filter that parses to the same tree. */
export function printFilter(node: FilterNode): string {
  if (node.kind === 'join') return `${node.negated ? '!' : ''}$${node.collection}(${node.filter})`
  if (node.kind === 'clause') {
    const values = node.values.map(({ text, quoted }) => (quoted ? `\`${text}\`` : text)).join(', ')
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

/** Identifies a join whether it is negated or not. */
export const joinKey = (join: FilterJoin): string => printFilter({ ...join, negated: false })
