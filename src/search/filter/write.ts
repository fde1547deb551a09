/** Builds filters in the grammar of `filter_by` (parse.ts). Nothing in a value can act as syntax. */
import { during, exactly, quoted } from './parse'

/** A `filter_by`; `true` matches all documents, `false` none. */
export type Filter = string | boolean

/** Matches no document. */
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

/** @param whole true to match the whole value, false to match any of its words */
export const equals = (field: string, values: readonly string[], negated: boolean, whole = true): Filter => {
  if (values.length === 0) return negated
  return `${field}${sign(negated, whole)}[${values.map(quoted).join(',')}]`
}

/** Values as they are written, letter by letter. */
export const same = (field: string, values: readonly string[], negated: boolean): Filter =>
  values.length === 0 ? negated : `${field}${sign(negated, true)}[${values.map(exactly).join(',')}]`

/** Values, or single words of them, that begin with a text. */
export const begins = (field: string, text: string, negated: boolean, whole: boolean): Filter =>
  `${field}${sign(negated, whole)}${quoted(text)}*`

/** Texts with words that follow each other. @param open whether the last one is a prefix */
export const adjacent = (field: string, words: string, negated: boolean, open: boolean): Filter =>
  `${field}${sign(negated, false)}"${words}"${open ? '*' : ''}`

/** Dates that are kept as text, from one time to another, both included. */
export const dated = (field: string, from: number, to: number, negated: boolean): Filter =>
  `${field}${sign(negated, true)}${during(from, to)}`

/** Numbers, number ranges or booleans, as the grammar writes them. */
export const plain = (field: string, value: string, negated: boolean): Filter =>
  `${field}${sign(negated, true)}${value}`

/** Documents that have a value. */
export const present = (field: string, negated: boolean): Filter => `${field}${negated ? ':!' : ':'}*`

const sign = (negated: boolean, whole: boolean): string =>
  whole ? (negated ? ':!=' : ':=') : negated ? ':!' : ':'
