/** Filters in the grammar of filter_by (search/filter/parse.ts), put together so that nothing in a value is syntax. */

/** A filter_by; `true` for all documents, `false` for none. */
export type Filter = string | boolean

/** Passed by no document. */
const NOTHING = 'id:!=*'

export const filterBy = (filter: Filter): string =>
  filter === true ? '' : filter === false ? NOTHING : filter

export function and(filters: readonly Filter[]): Filter {
  if (filters.includes(false)) return false
  return joined(filters.filter((filter) => filter !== true) as string[], ' && ', true)
}

export function or(filters: readonly Filter[]): Filter {
  if (filters.includes(true)) return true
  return joined(filters.filter((filter) => filter !== false) as string[], ' || ', false)
}

function joined(filters: string[], sign: string, otherwise: boolean): Filter {
  const distinct = [...new Set(filters)]
  if (distinct.length === 0) return otherwise
  return distinct.length === 1 ? distinct[0]! : distinct.map((filter) => `(${filter})`).join(sign)
}

/** A value in backticks. A backtick is no letter of a word, so a space in its place changes nothing of words. */
export const quoted = (text: string): string => `\`${text.replaceAll('`', ' ')}\``

/** @param whole the value as a whole, or any of its words */
export const equals = (field: string, values: readonly string[], negated: boolean, whole = true): Filter => {
  if (values.length === 0) return negated
  return `${field}${sign(negated, whole)}[${values.map(quoted).join(',')}]`
}

/** Values, or one of their words, that begin with a text. */
export const begins = (field: string, text: string, negated: boolean, whole: boolean): Filter =>
  `${field}${sign(negated, whole)}${quoted(text)}*`

/** Numbers, ranges of them, or booleans, as the grammar writes them. */
export const plain = (field: string, value: string, negated: boolean): Filter =>
  `${field}${sign(negated, true)}${value}`

/** Documents that have a value. */
export const present = (field: string, negated: boolean): Filter => `${field}${negated ? ':!' : ':'}*`

const sign = (negated: boolean, whole: boolean): string =>
  whole ? (negated ? ':!=' : ':=') : negated ? ':!' : ':'
