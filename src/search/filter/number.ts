/** Filters on numbers and booleans: `5`, `>5`, `1..5`, and lists of them. */
import { ApiError, unlessRefused } from '../../errors'
import { integer, isInt64 } from '../../lib/exact-json'
import type { Field } from '../types'
import { filterError } from './context'
import type { FilterClause } from './parse'

const INTEGER = /^[+-]?\d{1,308}$/
const DECIMAL = /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/
const RANGE = /^(.+?)(?<!\s)\s*\.\.\s*(.+)$/s
const COMPARISON = /^(>=|<=|>|<)\s*(.*)$/s
const UNEQUAL = /^!=\s*(.*)$/s

/** A BigInt is a 64-bit whole number that a double cannot hold. */
export type Numeric = number | bigint

/** The tests of a clause on numbers. A document passes if it meets any of them. */
export interface NumberTests {
  equal: Numeric[]
  /** `!=5` in a list: none of the document's values is 5 */
  unequal: Numeric[]
  /** both ends included */
  ranges: [Numeric, Numeric][]
  compared: { sign: string; bound: Numeric }[]
}

/** @throws ApiError 400 for a value that is not a number of the field's type */
export function numberTests(field: Field, clause: FilterClause): NumberTests {
  const { equal, unequal, ranges, compared }: NumberTests = {
    equal: [],
    unequal: [],
    ranges: [],
    compared: [],
  }
  for (const { text } of clause.values) {
    const range = RANGE.exec(text)
    const comparison = COMPARISON.exec(text)
    const differs = clause.list ? UNEQUAL.exec(text) : null
    if (differs) unequal.push(toNumber(field, differs[1]!))
    else if (range) ranges.push([toNumber(field, range[1]!), toNumber(field, range[2]!)])
    else if (comparison) compared.push({ sign: comparison[1]!, bound: toNumber(field, comparison[2]!) })
    else if (DECIMAL.test(text.trim())) equal.push(toNumber(field, text))
    else throw filterError(field.name, 'Numerical field has an invalid comparator.')
  }
  return { equal, unequal, ranges, compared }
}

/** A text as a value of a field of numbers; undefined for another text. */
export const asNumber = (field: Field, text: string): Numeric | undefined =>
  DECIMAL.test(text) ? unlessRefused(() => toNumber(field, text)) : undefined

function toNumber(field: Field, text: string): Numeric {
  const type = field.type.replace('[]', '')
  const trimmed = text.trim()
  if (trimmed === '') throw filterError(field.name, 'Filter value cannot be empty.')
  if (type === 'float') {
    if (!DECIMAL.test(trimmed)) throw filterError(field.name, 'Not a float.')
    return Number(trimmed)
  }
  const value = INTEGER.test(trimmed) ? integer(trimmed) : Number.NaN
  if (!isInt64(value) || (type === 'int32' && (value > 2147483647 || value < -2147483648))) {
    const isWhole = type === 'int32' && INTEGER.test(trimmed)
    throw filterError(
      field.name,
      isWhole ? `\`${trimmed}\` exceeds the range of an int32.` : `Not an ${type}.`,
    )
  }
  return value
}

/** The distinct values that a clause on booleans allows. @throws ApiError 400 */
export function boolValues(field: Field, clause: FilterClause): number[] {
  const wanted = clause.values.map(({ text }) => {
    if (text === 'true') return 1
    if (text === 'false') return 0
    throw new ApiError(400, `Value of filter field \`${field.name}\` must be \`true\` or \`false\`.`)
  })
  return [...new Set(wanted)]
}
