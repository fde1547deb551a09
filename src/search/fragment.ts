/** A piece of SQL with the values bound in it, so that queries can be put together from parts. */
export interface SqlFragment {
  sql: string
  bindings: SqlStorageValue[]
}

export const fragment = (sql: string, ...bindings: SqlStorageValue[]): SqlFragment => ({ sql, bindings })

/**
 * A value as SqlStorage binds it, which takes no BigInt: its digits. Where they meet a column of whole numbers, to be
 * stored or to be compared, SQLite reads all 64 bits of them.
 */
export const bindable = <Value>(value: Value): Exclude<Value, bigint> | string =>
  typeof value === 'bigint' ? String(value) : (value as Exclude<Value, bigint>)

/** The fragments side by side, their bindings in the same order. */
export const join = (fragments: SqlFragment[], separator: string): SqlFragment => ({
  sql: fragments.map((part) => part.sql).join(separator),
  bindings: fragments.flatMap((part) => part.bindings),
})

/**
 * Operands joined pairwise rather than in a row: SQLite allows expressions 100 deep, and `a AND b AND c` is
 * two deep.
 */
export function balanced(operands: SqlFragment[], operator: 'AND' | 'OR'): SqlFragment {
  if (operands.length === 1) return operands[0]!
  const middle = operands.length >> 1
  const left = balanced(operands.slice(0, middle), operator)
  const right = balanced(operands.slice(middle), operator)
  return {
    sql: `(${left.sql} ${operator} ${right.sql})`,
    bindings: [...left.bindings, ...right.bindings],
  }
}

/** Numbers that one bound value holds: SQLite takes none above 2 MB. */
const SEQS_A_BINDING = 150_000

/** The documents with these numbers. */
export function oneOf(seqs: number[]): SqlFragment {
  const parts: SqlFragment[] = []
  for (let start = 0; start === 0 || start < seqs.length; start += SEQS_A_BINDING) {
    const part = JSON.stringify(seqs.slice(start, start + SEQS_A_BINDING))
    parts.push(fragment('d.seq IN (SELECT value FROM json_each(?))', part))
  }
  return balanced(parts, 'OR')
}

export const not = ({ sql, bindings }: SqlFragment): SqlFragment => ({ sql: `NOT ${sql}`, bindings })

/** Split at `separator` where no bracket and no backtick is open; parts are trimmed, empty ones kept. */
export function splitOutside(text: string, separator: string): string[] {
  const parts: string[] = []
  let depth = 0
  let quoted = false
  let part = ''
  for (const character of text) {
    if (character === '`') quoted = !quoted
    else if (!quoted && '([{'.includes(character)) depth++
    else if (!quoted && ')]}'.includes(character)) depth--
    if (character === separator && depth === 0 && !quoted) {
      parts.push(part.trim())
      part = ''
    } else {
      part += character
    }
  }
  parts.push(part.trim())
  return parts
}
