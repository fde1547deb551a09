/**
 * filter_by as the metadata filter of AI Search: conditions on fields, all of which hold. There is no `||`.
 * https://developers.cloudflare.com/vectorize/reference/metadata-filtering
 */
import { ApiError } from '../../errors'
import { type FilterClause, type FilterNode, parseFilter } from '../../search/filter/parse'

type Value = string | number | boolean
type Condition = Record<string, Value | Value[]>
export type MetadataFilter = Record<string, Condition>

const refuse = (what: string): ApiError =>
  new ApiError(
    400,
    `A filter of an AI Search collection joins \`field:value\` by \`&&\`: ${what} is not available.`,
  )

/** @param filters all of them hold; blank ones do not count @throws ApiError 400 */
export function metadataFilter(...filters: string[]): MetadataFilter | undefined {
  const all = new Map<string, Condition>()
  for (const filter of filters) {
    const tree = parseFilter(filter)
    for (const clause of tree ? clausesOf(tree) : []) {
      const known = all.get(clause.field) ?? {}
      for (const [operator, value] of Object.entries(conditionOf(clause))) {
        if (Object.hasOwn(known, operator))
          throw refuse(`a second condition of the same kind on \`${clause.field}\``)
        known[operator] = value
      }
      all.set(clause.field, known)
    }
  }
  // From entries, so that a field may have any name: `__proto__` is one.
  return all.size > 0 ? Object.fromEntries(all) : undefined
}

function clausesOf(node: FilterNode): FilterClause[] {
  if (node.kind === 'clause') return [node]
  if (node.kind === 'and') return node.children.flatMap(clausesOf)
  throw refuse(node.kind === 'or' ? '`||`' : node.kind === 'join' ? 'a join' : 'a condition on an object')
}

const OPERATORS: Readonly<Record<string, string>> = { '>': '$gt', '>=': '$gte', '<': '$lt', '<=': '$lte' }
const COMPARISON = /^(>=|<=|>|<)\s*(.+)$/s
const RANGE = /^(.+?)(?<!\s)\s*\.\.\s*(.+)$/s

function conditionOf({ operator, values }: FilterClause): Condition {
  const negated = operator === ':!=' || operator === ':!'
  if (values.length === 1) {
    const [{ text, quoted }] = values as [FilterClause['values'][number]]
    const compared = quoted ? null : COMPARISON.exec(text)
    const range = quoted ? null : RANGE.exec(text)
    if ((compared || range) && negated) throw refuse('a negated comparison')
    if (compared) return { [OPERATORS[compared[1]!]!]: typedValue(compared[2]!, false) }
    if (range) return { $gte: typedValue(range[1]!, false), $lte: typedValue(range[2]!, false) }
    if (!quoted && text.endsWith('*')) throw refuse('a prefix')
    return { [negated ? '$ne' : '$eq']: typedValue(text, quoted) }
  }
  if (values.some(({ text, quoted }) => !quoted && (COMPARISON.test(text) || RANGE.test(text)))) {
    throw refuse('a list of ranges')
  }
  return { [negated ? '$nin' : '$in']: values.map(({ text, quoted }) => typedValue(text, quoted)) }
}

/** Metadata has types, but the instance does not tell them: numbers and booleans are read as such unless quoted. */
function typedValue(text: string, quoted: boolean): Value {
  if (quoted) return text
  if (text === 'true' || text === 'false') return text === 'true'
  const number = Number(text)
  return text.trim() !== '' && Number.isFinite(number) ? number : text
}
