/** A piece of SQL and the values bound in it. Queries are put together from these. */
export interface SqlFragment {
  sql: string
  bindings: SqlStorageValue[]
}

/** Runs a query. */
export type Read = <Row extends object>(sql: SqlStorage, query: SqlFragment) => Row[]

export const fragment = (sql: string, ...bindings: SqlStorageValue[]): SqlFragment => ({ sql, bindings })

/**
 * A value as SqlStorage can bind it. It takes no BigInt, so a BigInt becomes its digits: in an integer column, SQLite
 * reads all 64 bits of them.
 */
export const bindable = <Value>(value: Value): Exclude<Value, bigint> | string =>
  typeof value === 'bigint' ? String(value) : (value as Exclude<Value, bigint>)

/**
 * A limit that stands in the text of a statement. SQLite plans by it, so it prepares a statement again whenever a limit is
 * bound.
 */
export const limited = (limit: number): SqlFragment => fragment(` LIMIT ${Math.trunc(limit)}`)

/** Concatenates fragments and their bindings. */
export const join = (fragments: SqlFragment[], separator: string): SqlFragment => ({
  sql: fragments.map((part) => part.sql).join(separator),
  bindings: fragments.flatMap((part) => part.bindings),
})

/** Joins operands pairwise. SQLite allows expressions 100 deep, and each operand of `a AND b AND c` adds a level. */
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

/** Numbers in one bound value: SQLite takes none above 2 MB. */
const SEQS_A_BINDING = 150_000

/** Matches the documents with these sequence numbers. */
export function oneOf(seqs: number[]): SqlFragment {
  const parts: SqlFragment[] = []
  for (let start = 0; start === 0 || start < seqs.length; start += SEQS_A_BINDING) {
    const part = JSON.stringify(seqs.slice(start, start + SEQS_A_BINDING))
    parts.push(fragment('d.seq IN (SELECT value FROM json_each(?))', part))
  }
  return balanced(parts, 'OR')
}

export const not = ({ sql, bindings }: SqlFragment): SqlFragment => ({ sql: `NOT ${sql}`, bindings })

/** Splits at `separator` outside of brackets and backticks. Parts are trimmed; empty ones are kept. */
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
