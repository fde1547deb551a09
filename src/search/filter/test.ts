/**
 * Tests of a field's values, in blocks (clause.ts) and in documents (filter.ts). Everything that
 * depends on the clause alone is done once: however many values a clause has, a document is looked up in them.
 */

import { ApiError, unlessRefused } from '../../errors'
import { timeOf } from '../../lib/dates'
import { firstPlace } from '../../lib/first-items'
import { integer, isInt64 } from '../../lib/json'
import type { Words } from '../schema/column'
import { isBool, isGeopoint, isGeopolygon, isNumber, isString, type StoredSchema } from '../schema/layout'
import { textCode, textColumn } from '../schema/tables'
import { isObject, partsOf, valuesAt, walk } from '../schema/values'
import type { Steps } from '../steps'
import { analyzerOf, type TokenRules, WORDS } from '../text/analyzer'
import { rulesOf } from '../text/query'
import { comparedWords, normalForm, spaced } from '../text/terms'
import type { Field } from '../types'
import { areaTests, contains, pointsOf } from './area'
import { type FilterClause, type FilterNode, filterError, isNegated, isPresence } from './parse'

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
  const some: ValuesTest = isPresence(clause)
    ? (values) => values.length > 0
    : textOrValuesTest(schema, field, clause, formOf)
  return negated ? (values) => !some(values) : some
}

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
    const passes = valueTest(field, clause)!
    return (values) => values.some((value) => passes(Number(value)))
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
  const tests = numberTests(field, clause)
  const passes = numberTest(tests)
  const differing = [...new Set(tests.unequal)]
  const isNumeric = (value: unknown): value is Numeric =>
    typeof value === 'number' || typeof value === 'bigint'
  return (values) => {
    for (const value of values) if (isNumeric(value) && passes(value)) return true
    if (differing.length === 0) return false
    const present = new Set<Numeric>(values.filter(isNumeric))
    return differing.length > present.size || differing.some((other) => !present.has(other))
  }
}

/**
 * Whether one value of a document meets a clause: a number, or 1 or 0 for a boolean. NaN does not.
 * @param clause as `valuesTest` takes it
 * @returns undefined for other fields, and for a clause that is about all values of a document
 */
export function valueTest(field: Field, clause: FilterClause): ((value: Numeric) => boolean) | undefined {
  if (isBool(field)) {
    const wanted: Numeric[] = boolValues(field, clause)
    return (value) => wanted.includes(value)
  }
  if (!isNumber(field)) return undefined
  const tests = numberTests(field, clause)
  return tests.unequal.length > 0 ? undefined : numberTest(tests)
}

function numberTest({
  equal,
  ranges,
  compared,
}: ReturnType<typeof numberTests>): (value: Numeric) => boolean {
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
  return (value) =>
    value > above ||
    value < below ||
    (wanted.size > 0 && wanted.has(value)) ||
    (intervals.length > 0 && isWithin(intervals, value))
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
  const at = firstPlace(intervals.length, (place) => intervals[place]![1] >= value)
  return at < intervals.length && intervals[at]![0] <= value
}

/** Whether a string meets a clause. @param form of the string, as filters compare it */
type TextTest = (text: () => string, form: () => string) => boolean

/** The test is made when it is first needed: of a long list, it takes a while, and a filter may only be checked. */
function textTest(schema: StoredSchema, field: Field, clause: FilterClause): TextTest {
  let made: TextTest | undefined
  return (text, form) => {
    made ??= madeTextTest(schema, field, clause)
    return made(text, form)
  }
}

function madeTextTest(schema: StoredSchema, field: Field, clause: FilterClause): TextTest {
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
  if (clause.values.every(({ exact }) => exact)) {
    const wanted = new Set(clause.values.map(({ text }) => text))
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

// =============================================================================
// Filters on strings. They compare normal forms (text/terms.ts): case, accents and signs do not count.
//
//     field: a b    every word is in the value         field:=a b    the value is these words, in order
//     field: a pre* the last one is a prefix           field:=a pre* the value begins like this
//     field:"a b"   the words follow each other; other values of a list with a phrase are compared whole
//
// Of fields without values, only word_index has the words. It gives a superset, and the documents themselves decide (filter.ts).
//
// A field with `stem` or `stem_dictionary` is filtered by the stems that word_index has, as in Typesense.

interface Pattern {
  /** what was asked for, as it was written */
  text: string
  /** its words; none if values are compared as a whole */
  tokens: readonly string[]
  /** its normal form */
  form: string
  /** the last token matches every word that begins with it */
  prefix: boolean
  /** the tokens follow each other in the value */
  phrase?: boolean
}

// More words would hardly shrink the superset, only lengthen the query.
const MAX_INDEX_WORDS = 16
/** Beginnings of words that the index is asked for: for each one FTS5 reads all words that begin so, whatever the range. */
const MOST_BEGINNINGS = 2

/** The values of a clause, as words. @param locale of the field. Where it has one, runs of a script without spaces are parted */
export function patternsOf(clause: FilterClause, rules: TokenRules, locale: string): readonly Pattern[] {
  const known = PREPARED.get(clause)
  if (known?.rules === rules && known.locale === locale) return known.patterns
  return clause.values.map(patternOf(comparesWhole(clause), rules, locale))
}

/** Values whose patterns are made in a step, and that a clause has at least if they are made beforehand. */
const AT_ONCE = 2_000
/** To make the pattern of a value takes as long as so many rows. */
const ROWS_A_VALUE = 16
/** Patterns that are kept, over all clauses. */
const MOST_PREPARED = 100_000

/** The latest clauses of many values: a search asks for their patterns several times, and to make them takes long. */
const PREPARED = new Map<FilterClause, { rules: TokenRules; locale: string; patterns: Pattern[] }>()

/** Makes the patterns of a clause in steps, so that `patternsOf` finds those of many values. */
export function* preparePatterns(clause: FilterClause, rules: TokenRules, locale: string): Steps {
  const { values } = clause
  if (values.length <= AT_ONCE || PREPARED.has(clause)) return
  const patterns: Pattern[] = []
  const make = patternOf(comparesWhole(clause), rules, locale)
  for (const value of values) {
    if (patterns.push(make(value)) % AT_ONCE === 0) yield AT_ONCE * ROWS_A_VALUE
  }
  PREPARED.set(clause, { rules, locale, patterns })
  let kept = 0
  for (const { patterns } of PREPARED.values()) kept += patterns.length
  for (const [oldest, { patterns }] of PREPARED) {
    if (kept <= MOST_PREPARED || oldest === clause) break
    PREPARED.delete(oldest)
    kept -= patterns.length
  }
}

const patternOf =
  (isWhole: boolean, rules: TokenRules, locale: string) =>
  ({ text: given, quoted, phrase, open: isOpen, times }: FilterClause['values'][number]): Pattern => {
    // Any text may be a date: each is read (test.ts).
    if (times !== undefined) return { text: '', tokens: [], form: '', prefix: true }
    const open = isOpen ?? (!quoted && !phrase && given.endsWith('*'))
    const bare = phrase ? given.slice(1, -1) : open ? given.slice(0, -1) : given
    const whole = isWhole && !phrase
    const text = locale === '' || whole || phrase ? bare : spaced(bare).trim()
    const { words, begins } = wordsOf(text, rules, whole)
    const tokens = whole ? [] : (words ?? comparedWords(text, rules))
    const form = words?.join(' ') ?? (whole ? normalForm(text, rules) : tokens.join(' '))
    const prefix = form !== '' && (open || begins)
    return {
      text,
      tokens,
      form,
      prefix,
      ...(phrase && { phrase }),
    }
  }

/**
 * The words of a value as word_index has them, for a field with stems.
 * @param whole compared with all words of a value
 */
function wordsOf(text: string, rules: TokenRules, whole: boolean) {
  if (rules.stem === undefined) return { words: undefined, begins: false }
  const analyzer = analyzerOf(WORDS, rules)
  if (whole) return { words: analyzer.tokenize(text).map((word) => word.text), begins: false }
  return analyzer.phrase(text)
}

/** The form in which filters compare a value: its words, as the index has them. */
export const comparedForm = (text: string, rules: TokenRules): string =>
  wordsOf(text, rules, true).words?.join(' ') ?? normalForm(text, rules)

/** A value of signs has no words. `:` matches nothing by it; `:=` matches other values of signs. */
const isUseful = ({ form, phrase }: Pattern, whole: boolean): boolean => form !== '' || (whole && !phrase)

/** Whether values are compared as a whole. As in Typesense, a phrase in a list turns `:` into `:=` for the others. */
const comparesWhole = ({ operator, values, list }: FilterClause): boolean =>
  operator === ':=' || operator === ':!=' || (list && values.some(({ phrase }) => phrase))

/**
 * An FTS5 expression of word_index that every document with a clause's words meets, and further ones.
 * @returns undefined if it would find no fewer documents than there are, or takes longer than to read them
 */
export function indexedWords(schema: StoredSchema, field: Field, clause: FilterClause): string | undefined {
  if (isNegated(clause) || isPresence(clause)) return undefined
  const rules = rulesOf(schema, field)
  const slot = schema.slots[field.name]!
  const patterns = patternsOf(clause, rules, field.locale).filter((pattern) =>
    isUseful(pattern, comparesWhole(clause)),
  )
  const asked = patterns.map((pattern) => wordsAsked(pattern, rules, textCode(slot)))
  const beginnings = asked.flat().filter((word) => word.endsWith('*'))
  if (asked.length === 0 || asked.some((words) => words.length === 0) || beginnings.length > MOST_BEGINNINGS)
    return undefined
  return `({${textColumn(slot)}} : (${asked.map((words) => `(${words.join(' AND ')})`).join(' OR ')}))`
}

/** @param code begins each word in the column that fields share */
function wordsAsked({ text, prefix }: Pattern, rules: TokenRules, code: string): string[] {
  const analyzer = analyzerOf(WORDS, rules)
  const pieces = analyzer.pieces(text)
  return pieces.slice(0, MAX_INDEX_WORDS).map((piece, index) => {
    const { words, begins } = analyzer.phrase(piece)
    const asked = words.map((word) => code + word).join(' ')
    const isOpen = begins || (prefix && index === pieces.length - 1)
    return `"${asked.replaceAll('"', '""')}"${isOpen ? '*' : ''}`
  })
}

/** Whether a value's normal form matches. @param whole the value is compared as a whole, unless it is a phrase */
function matches(norm: string, { tokens, form, prefix, phrase }: Pattern, whole: boolean): boolean {
  if (phrase) return form !== '' && ` ${norm} `.includes(prefix ? ` ${form}` : ` ${form} `)
  if (whole) return prefix ? norm.startsWith(form) : norm === form
  const padded = ` ${norm} `
  return tokens.every((token, index) =>
    padded.includes(prefix && index === tokens.length - 1 ? ` ${token}` : ` ${token} `),
  )
}

// =============================================================================
// Filters on numbers and booleans: `5`, `>5`, `1..5`, and lists of them.

const INTEGER = /^[+-]?\d{1,308}$/
const DECIMAL = /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/
const RANGE = /^(.+?)(?<!\s)\s*\.\.\s*(.+)$/s
const COMPARISON = /^(>=|<=|>|<)\s*(.*)$/s
const UNEQUAL = /^!=\s*(.*)$/s

/** A BigInt is a 64-bit whole number that a double cannot hold. */
export type Numeric = number | bigint

/**
 * The tests of a clause on numbers. A document passes if it meets any of them.
 * @throws ApiError 400 for a value that is not a number of the field's type
 */
export function numberTests(field: Field, clause: FilterClause) {
  const equal: Numeric[] = []
  /** `!=5` in a list: none of the document's values is 5 */
  const unequal: Numeric[] = []
  /** both ends included */
  const ranges: [Numeric, Numeric][] = []
  const compared: { sign: string; bound: Numeric }[] = []
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

// =============================================================================
// Filters on the objects of an array: `ingredients.{name: cheese && share:<50}`.

type Json = Record<string, unknown>

/** The objects at a dotted name, those of arrays one by one. */
export function objectsAt(document: unknown, name: string): Json[] {
  const found: Json[] = []
  if (!isObject(document)) return found
  const collect = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(collect)
    else if (isObject(value)) found.push(value)
  }
  walk(
    document,
    name,
    partsOf(name),
    undefined,
    () => undefined,
    ({ value }) => collect(value),
  )
  return found
}

/** Whether an object meets a filter. @param test makes the test of a clause from the values of its field */
export function objectTest(
  node: FilterNode,
  test: (clause: FilterClause) => (values: unknown[]) => boolean,
): (object: Json) => boolean {
  // The parser finds no joins in objects.
  if (node.kind === 'object' || node.kind === 'join') {
    throw new ApiError(400, 'Object filters cannot be nested.')
  }
  if (node.kind === 'clause') {
    const passes = test(node)
    return (object) => passes(valuesAt(object, node.field))
  }
  const tests = node.children.map((child) => objectTest(child, test))
  return node.kind === 'and'
    ? (object) => tests.every((passes) => passes(object))
    : (object) => tests.some((passes) => passes(object))
}

/**
 * The filter that a filter on objects implies for the whole document: its positive clauses, met by any of the
 * objects.
 * @returns undefined if it implies nothing
 */
export function impliedBy(node: FilterNode, path: string): FilterNode | undefined {
  if (node.kind === 'object' || node.kind === 'join') return undefined
  if (node.kind === 'clause') {
    // A value like `!=5` in a list is about the numbers of one object. Another object of the document may have a 5.
    const isUnequal = node.list && node.values.some(({ text }) => text.startsWith('!'))
    return isNegated(node) || isUnequal ? undefined : { ...node, field: `${path}.${node.field}` }
  }
  const implied = node.children.map((child) => impliedBy(child, path))
  const known = implied.filter((child) => child !== undefined)
  if (known.length === 0 || (node.kind === 'or' && known.length < implied.length)) return undefined
  return known.length === 1 ? known[0] : { kind: node.kind, children: known }
}
