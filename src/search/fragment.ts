/** A piece of SQL and the values bound in it. Queries are put together from these. */
export interface SqlFragment {
  sql: string
  bindings: SqlStorageValue[]
}

/** Runs a query. */
export type Read = <Row extends object>(sql: SqlStorage, query: SqlFragment) => Row[]

/** Reads all rows of a query. */
export const readAll: Read = <Row extends object>(sql: SqlStorage, { sql: text, bindings }: SqlFragment) =>
  sql.exec<Row & Record<string, SqlStorageValue>>(text, ...bindings).toArray()

/** The values of a statement's first column. */
export const columnOf = <Value extends SqlStorageValue>(
  sql: SqlStorage,
  query: string,
  ...bindings: SqlStorageValue[]
): Value[] => Array.from(sql.exec(query, ...bindings).raw<[Value]>(), ([value]) => value)

/** Whether a statement has any rows. */
export const hasRows = (sql: SqlStorage, query: string, ...bindings: SqlStorageValue[]): boolean =>
  sql.exec(query, ...bindings).toArray().length > 0

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
export const join = (fragments: SqlFragment[], separator = ''): SqlFragment => ({
  sql: fragments.map((part) => part.sql).join(separator),
  bindings: fragments.flatMap((part) => part.bindings),
})

/** Numbers in one bound value: SQLite takes none above 2 MB. */
const SEQS_A_BINDING = 150_000

/** Characters of JSON in one bound value. Each is three bytes of UTF-8 at most. */
const TEXT_A_BINDING = 600_000

/** JSON texts as lists in JSON, each of which SQLite takes as one value. @param most texts in a list */
export function jsonLists(texts: Iterable<string>, most = Number.POSITIVE_INFINITY): string[] {
  const lists: string[] = []
  let some: string[] = []
  let length = 0
  for (const text of texts) {
    if (some.length === most || (some.length > 0 && length + text.length > TEXT_A_BINDING)) {
      lists.push(`[${some.join(',')}]`)
      some = []
      length = 0
    }
    some.push(text)
    length += text.length + 1
  }
  return [...lists, `[${some.join(',')}]`]
}

/** Matches the documents with these sequence numbers. */
export function oneOf(seqs: number[]): SqlFragment {
  const parts: SqlFragment[] = []
  for (let start = 0; start === 0 || start < seqs.length; start += SEQS_A_BINDING) {
    const part = JSON.stringify(seqs.slice(start, start + SEQS_A_BINDING))
    parts.push(fragment('d.seq IN (SELECT value FROM json_each(?))', part))
  }
  const { sql, bindings } = join(parts, ' OR ')
  return { sql: `(${sql})`, bindings }
}

export const not = ({ sql, bindings }: SqlFragment): SqlFragment => ({ sql: `NOT ${sql}`, bindings })

/**
 * Begins a value in backticks that is compared letter by letter; filter/parse.ts writes it. Other engines' words are the same
 * with this sign. Nothing is escaped in it.
 */
export const EXACT = '\ue001'

/** After EXACT: the value is a range of times, as milliseconds since 1970. */
export const TIMES = '\ue003'

/** Whether a value in backticks begins here. A backtick after a backslash is one of the text. */
export const opensQuoted = (text: string, at: number): boolean => text[at] === '`' && text[at - 1] !== '\\'

/** Where a value in backticks ends. @param at its beginning @returns -1 if it does not end */
export function endOfQuoted(text: string, at: number): number {
  let end = text.indexOf('`', at + 1)
  if (text.startsWith(EXACT, at + 1)) return end
  while (end !== -1 && text[end - 1] === '\\') end = text.indexOf('`', end + 1)
  return end
}

/** A text without its values in backticks. */
export function withoutQuoted(text: string): string {
  let left = ''
  for (let at = 0; at < text.length; at++) {
    const end = opensQuoted(text, at) ? endOfQuoted(text, at) : -1
    if (end === -1) left += text[at]
    else at = end
  }
  return left
}

/** Splits at commas outside of brackets and backticks. Parts are trimmed; empty ones are kept. */
export function splitOutside(text: string): string[] {
  const parts: string[] = []
  let depth = 0
  let part = ''
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!
    if (opensQuoted(text, at)) {
      const end = endOfQuoted(text, at)
      const past = end === -1 ? text.length : end + 1
      part += text.slice(at, past)
      at = past - 1
      continue
    }
    if ('([{'.includes(character)) depth++
    else if (')]}'.includes(character)) depth--
    if (character === ',' && depth === 0) {
      parts.push(part.trim())
      part = ''
    } else {
      part += character
    }
  }
  parts.push(part.trim())
  return parts
}

/** Sequence numbers of documents, both ends included. */
export interface Range {
  low: number
  high: number
}

/** Every document. */
export const EVERYWHERE: Range = { low: 0, high: Number.MAX_SAFE_INTEGER }

/**
 * Limits what FTS5 reads to a range; bind its ends.
 *
 * SqlStorage binds every number as a double, and FTS5 takes limits from whole numbers only. Given doubles it reads the
 * whole index, and SQLite drops the rows that are not wanted: a range of 16,384 documents then costs as much as a million.
 */
export const ROWID_IN_RANGE = 'rowid BETWEEN CAST(? AS INTEGER) AND CAST(? AS INTEGER)'
