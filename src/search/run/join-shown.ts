/**
 * Decides which related documents a page shows: those matched by the branch of the filter that the document itself
 * has passed.
 */

import { Filter } from '../filter/filter'
import type { FilterNode } from '../filter/parse'
import { readAll } from '../fragment'
import { BLOCK } from '../schema/block'
import { atOnce } from '../steps'
import type { JoinPlace } from '../types'
import type { SearchContext } from './context'
import type { SearchJoins } from './join-port'
import { bracketed } from './joins'
import { setOf } from './match-set'

/** By sequence number, the condition on related documents; '' for all of them. */
type Shown = Map<number, string>

/**
 * The documents of a page in groups, each with the condition on their related documents.
 * @returns documents that show none are in no group
 */
export function shownOf(
  context: SearchContext,
  joins: SearchJoins,
  place: JoinPlace,
  seqs: readonly number[],
): Map<string, number[]> {
  const shown = joins.filter && conditions(context, joins, place, joins.filter, seqs)
  const groups = new Map<string, number[]>()
  for (const seq of seqs) {
    const condition = shown === undefined ? '' : shown.get(seq)
    if (condition !== undefined) groups.set(condition, [...(groups.get(condition) ?? []), seq])
  }
  return groups
}

/** @returns undefined if this part of the filter does not join the collection */
function conditions(
  context: SearchContext,
  joins: SearchJoins,
  place: JoinPlace,
  node: FilterNode,
  seqs: readonly number[],
): Shown | undefined {
  if (node.kind === 'clause' || node.kind === 'object') return undefined
  if (node.kind === 'join') {
    if (!joins.isWith(node, place)) return undefined
    // A document that passes a negated join has no related document that meets the condition, so show all of them.
    return new Map(seqs.map((seq) => [seq, node.negated ? '' : node.filter]))
  }
  const parts = node.children.flatMap((child) => {
    const passing = node.kind === 'or' ? passed(context, joins, child, seqs) : seqs
    return conditions(context, joins, place, child, passing) ?? []
  })
  if (parts.length === 0) return undefined
  const shown: Shown = new Map()
  for (const part of parts) {
    for (const [seq, condition] of part) {
      const before = shown.get(seq)
      shown.set(seq, before === undefined ? condition : combined(node.kind, before, condition))
    }
  }
  return shown
}

function combined(kind: 'and' | 'or', a: string, b: string): string {
  if (a === b) return a
  if (kind === 'or') return a === '' || b === '' ? '' : bracketed([a, b], ' || ')
  return bracketed([a, b], ' && ')
}

function passed(
  { sql, schema, columns }: SearchContext,
  joins: SearchJoins,
  node: FilterNode,
  seqs: readonly number[],
): number[] {
  const filter = new Filter(schema, node, joins.documents)
  const source = { sql, columns, read: readAll }
  return [...setOf(seqs)].flatMap(([number, offsets]) =>
    Array.from(atOnce(filter.among(source, number, offsets)), (at) => number * BLOCK + at),
  )
}
