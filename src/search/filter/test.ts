/**
 * Tests of a field's values, in blocks (clause.ts) and in documents (filter.ts). Everything that
 * depends on the clause alone is done once: however many values a clause has, a document is looked up in them.
 */

import { timeOf } from '../../lib/dates'
import type { Words } from '../schema/block'
import { isBool, isGeopoint, isGeopolygon, isNumber, isString, type StoredSchema } from '../schema/layout'
import { normalForm } from '../text/compared'
import { rulesOf } from '../text/rules'
import type { TokenRules } from '../text/words'
import type { Field } from '../types'
import { filterError } from './context'
import { areaTests, contains, pointsOf } from './geopoint'
import { boolValues, type Numeric, numberTests } from './number'
import { type FilterClause, isNegated, isPresence } from './parse'
import {
  comparedForm,
  comparesWhole,
  exactTexts,
  isUseful,
  matches,
  type Pattern,
  patternsOf,
} from './string'

/** Whether a field's values in one document meet a clause. */
export type ValuesTest = (values: readonly unknown[]) => boolean

/** The form of a text that filters compare. */
export type FormOf = (text: string) => string

/** Forms that are remembered, since values repeat and a filter asks for the same one in each clause. */
const MOST_FORMS = 1_000
/** Characters of a text whose form is remembered. */
const LONGEST = 10_000

/** The forms of a field's texts, made once for all clauses. */
export function formsOf(schema: StoredSchema, field: Field): FormOf {
  const rules = rulesOf(schema, field)
  const make: (text: string, rules: TokenRules) => string =
    rules.stem === undefined ? normalForm : comparedForm
  const known = new Map<string, string>()
  let last: { text: string; form: string } | undefined
  return (text) => {
    if (last?.text === text) return last.form
    let form = known.get(text)
    if (form === undefined) {
      form = make(text, rules)
      if (known.size >= MOST_FORMS) known.clear()
      if (text.length <= LONGEST) known.set(text, form)
    }
    last = { text, form }
    return form
  }
}

/**
 * @param formOf of the field's texts
 * @throws ApiError 400 for a value that the field cannot have
 */
export function clauseTest(
  schema: StoredSchema,
  field: Field,
  clause: FilterClause,
  formOf: FormOf,
): ValuesTest {
  const negated = isNegated(clause)
  if (clause.values.length === 0) return () => negated
  const some = isPresence(clause) ? isPresent : textOrValuesTest(schema, field, clause, formOf)
  return negated ? (values) => !some(values) : some
}

const isPresent: ValuesTest = (values) => values.length > 0

const textOrValuesTest = (
  schema: StoredSchema,
  field: Field,
  clause: FilterClause,
  formOf: FormOf,
): ValuesTest => {
  if (!isString(field)) return valuesTest(field, clause)
  const passes = textTest(schema, field, clause)
  return (values) =>
    values.some(
      (value) =>
        typeof value === 'string' &&
        passes(
          () => value,
          () => formOf(value),
        ),
    )
}

/** @param clause not about whether there are values, and not negated, or as if it were not */
export function valuesTest(field: Field, clause: FilterClause): ValuesTest {
  if (isNumber(field)) return numbersTest(field, clause)
  if (isBool(field)) {
    const wanted = boolValues(field, clause)
    return (values) => values.some((value) => wanted.includes(Number(value)))
  }
  if (isGeopoint(field)) {
    const areas = areaTests(field, clause)
    return (values) => {
      // A point is a pair of numbers. The values of a document's field may arrive as pairs or one by one.
      const numbers = values.flat()
      for (let at = 0; at + 1 < numbers.length; at += 2) {
        const [latitude, longitude] = [Number(numbers[at]), Number(numbers[at + 1])]
        if (areas.some((isInside) => isInside(latitude, longitude))) return true
      }
      return false
    }
  }
  if (isGeopolygon(field)) {
    const points = pointsOf(field, clause)
    return (values) =>
      values.some((value) => {
        const isInside = contains(value as readonly number[])
        return points.some(([latitude, longitude]) => isInside(latitude, longitude))
      })
  }
  throw filterError(field.name, 'Unidentified field data type, see docs for supported data types.')
}

function numbersTest(field: Field, clause: FilterClause): ValuesTest {
  const { equal, unequal, ranges, compared } = numberTests(field, clause)
  const wanted = new Set(equal)
  const intervals = merged([
    ...ranges,
    ...compared.filter(({ sign }) => sign === '>=').map(({ bound }): Interval => [bound, Infinity]),
    ...compared.filter(({ sign }) => sign === '<=').map(({ bound }): Interval => [-Infinity, bound]),
  ])
  /** The widest of the bounds with a sign. */
  const bound = (wanted: string, none: number): Numeric =>
    compared
      .filter(({ sign }) => sign === wanted)
      .map(({ bound }) => bound)
      .reduce((a, b) => ((wanted === '>') === b < a ? b : a), none as Numeric)
  const [above, below] = [bound('>', Infinity), bound('<', -Infinity)]
  const differing = [...new Set(unequal)]
  const passes = (value: Numeric) =>
    wanted.has(value) || value > above || value < below || isWithin(intervals, value)
  const isNumeric = (value: unknown): value is Numeric =>
    typeof value === 'number' || typeof value === 'bigint'
  return (values) => {
    for (const value of values) if (isNumeric(value) && passes(value)) return true
    if (differing.length === 0) return false
    const present = new Set<Numeric>(values.filter(isNumeric))
    return differing.length > present.size || differing.some((other) => !present.has(other))
  }
}

/** Both ends included. */
type Interval = [from: Numeric, to: Numeric]

/** The same numbers in intervals that rise and do not overlap. */
function merged(intervals: Interval[]): Interval[] {
  const rising = intervals.filter(([from, to]) => from <= to).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  const result: Interval[] = []
  for (const [from, to] of rising) {
    const last = result.at(-1)
    if (last === undefined || from > last[1]) result.push([from, to])
    else if (to > last[1]) last[1] = to
  }
  return result
}

function isWithin(intervals: readonly Interval[], value: Numeric): boolean {
  let [low, high] = [0, intervals.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (intervals[middle]![1] < value) low = middle + 1
    else high = middle
  }
  return low < intervals.length && intervals[low]![0] <= value
}

/** Whether a string meets a clause. @param form of the string, as filters compare it */
type TextTest = (text: () => string, form: () => string) => boolean

function textTest(schema: StoredSchema, field: Field, clause: FilterClause): TextTest {
  const whole = comparesWhole(clause)
  const patterns = patternsOf(clause, rulesOf(schema, field), field.locale).filter((pattern) =>
    isUseful(pattern, whole),
  )
  if (patterns.length === 0) return () => false
  const { times } = clause.values[0]!
  if (times !== undefined) {
    return (text) => {
      const time = timeOf(text())
      return time >= times[0] && time <= times[1]
    }
  }
  const exact = exactTexts(clause)
  if (exact !== undefined) {
    const wanted = new Set(exact)
    return (text) => wanted.has(text())
  }
  const passes = patternsTest(patterns, whole)
  return (_, form) => passes(form())
}

/** Whether a string of a block meets a clause. */
export type WordTest = (words: Words, id: number) => boolean

/** @param clause as `valuesTest` takes it */
export function wordTest(schema: StoredSchema, field: Field, clause: FilterClause): WordTest {
  const rules = rulesOf(schema, field)
  const passes = textTest(schema, field, clause)
  return (words, id) =>
    passes(
      () => words.text(id),
      () => (rules.stem === undefined ? words.norm(id) : comparedForm(words.text(id), rules)),
    )
}

/** So many patterns are compared one by one. More are looked up. */
const FEW = 4

function patternsTest(patterns: readonly Pattern[], whole: boolean): (form: string) => boolean {
  if (patterns.length <= FEW) return (form) => patterns.some((pattern) => matches(form, pattern, whole))
  const isEqual = ({ prefix, phrase }: Pattern) => whole && !prefix && !phrase
  const equal = new Set(patterns.filter(isEqual).map(({ form }) => form))
  const others = patterns.filter((pattern) => !isEqual(pattern))
  const isBeginning = ({ prefix, phrase }: Pattern) => whole && prefix && !phrase
  const beginnings = new Beginnings(others.filter(isBeginning), ({ form }) => form)
  const within = others
    .filter((other) => !isBeginning(other))
    .map((pattern) => ({ pattern, words: wholeWords(pattern) }))
  const open = within.filter(({ words }) => words.length === 0).map(({ pattern }) => pattern)
  const openings = new Beginnings(open, ({ tokens }) => tokens[0]!)
  // A pattern of one word alone is found by it, and need not be compared.
  const isOne = ({ pattern, words }: (typeof within)[number]) => words.length === 1 && !pattern.prefix
  const single = new Set(within.filter(isOne).map(({ words }) => words[0]!))
  const inside = byRarest(within.filter((one) => one.words.length > 0 && !isOne(one)))
  return (form) => {
    if (equal.has(form) || beginnings.begin(form)) return true
    if (within.length === 0) return false
    return form.split(' ').some((word) => {
      const found = inside.get(word)
      if (single.has(word)) return true
      return openings.begin(word) || (found?.some((pattern) => matches(form, pattern, whole)) ?? false)
    })
  }
}

/** The words that a form must have to match; none if it has to begin a word with the pattern's only one. */
function wholeWords({ tokens, form, prefix, phrase }: Pattern): string[] {
  const words = (phrase ? form : tokens.join(' ')).split(' ')
  return prefix && !phrase ? words.slice(0, -1) : words
}

/** Patterns by the word of each that the fewest others have. */
function byRarest(patterns: readonly { pattern: Pattern; words: string[] }[]): Map<string, Pattern[]> {
  const counts = new Map<string, number>()
  for (const { words } of patterns) for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
  const found = new Map<string, Pattern[]>()
  for (const { pattern, words } of patterns) {
    const rarest = words.reduce((one, other) => (counts.get(other)! < counts.get(one)! ? other : one))
    const others = found.get(rarest)
    if (others === undefined) found.set(rarest, [pattern])
    else others.push(pattern)
  }
  return found
}

/** Beginnings of texts, which are looked up by their lengths. */
class Beginnings {
  readonly #texts: Set<string>
  readonly #lengths: number[]

  constructor(patterns: readonly Pattern[], textOf: (pattern: Pattern) => string) {
    this.#texts = new Set(patterns.map(textOf))
    this.#lengths = [...new Set([...this.#texts].map(({ length }) => length))]
  }

  /** Whether one of them begins a text. */
  begin(text: string): boolean {
    return this.#lengths.some((length) => length <= text.length && this.#texts.has(text.slice(0, length)))
  }
}
