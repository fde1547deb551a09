/**
 * Filters over values in memory (schema/column-memory.ts). They find what the SQL of compile.ts finds; filters on
 * words of the full-text index, places, ids, objects and other collections are left to SQL.
 */

import { BLOCK, type Block, type Offsets } from '../schema/block'
import { type Column, isKept } from '../schema/column'
import { findField } from '../schema/find-field'
import { isBool, type StoredSchema } from '../schema/layout'
import { rulesOf } from '../text/rules'
import type { Field } from '../types'
import { isCompared } from './cost'
import { boolValues, type NumberTests, numberTests, passesNumber } from './number'
import { type FilterClause, type FilterNode, fieldsOf, isNegated, isPresence } from './parse'
import { comparedForm, comparesWhole, exactTexts, isUseful, matches, patternsOf } from './string'

/** Chooses the documents of a block that pass. @param blockOf the values of a column in this block */
export type Select = (offsets: Offsets, blockOf: (column: Column) => Block) => Offsets

/** Comparisons that one document may take. Within a block of documents no other request gets a turn. */
const MOST_TESTS = 64

/**
 * The fields of a filter that can be evaluated in memory; undefined if it cannot, or if it compares each value with too
 * many others.
 */
export function fieldsInMemory(schema: StoredSchema, tree: FilterNode): Field[] | undefined {
  if (!isEvaluable(tree) || testsIn(tree) > MOST_TESTS) return undefined
  const fields = new Set<Field>()
  for (const name of fieldsOf(tree)) {
    const field = name === 'id' ? undefined : findField(schema, name)
    if (field === undefined || !field.index || !isKept(field)) return undefined
    fields.add(field)
  }
  return [...fields]
}

const isEvaluable = (node: FilterNode): boolean =>
  node.kind === 'clause' || ((node.kind === 'and' || node.kind === 'or') && node.children.every(isEvaluable))

/**
 * How many comparisons a filter makes for a document. Values that must be equal are looked up together and count as
 * one.
 */
function testsIn(node: FilterNode): number {
  if (node.kind === 'and' || node.kind === 'or') {
    return node.children.reduce((sum, child) => sum + testsIn(child), 0)
  }
  if (node.kind !== 'clause') return Number.POSITIVE_INFINITY
  const isEquality =
    comparesWhole(node) || node.values.every(({ text }) => Number.isSafeInteger(Number(text)))
  return isEquality ? 1 + node.values.filter(isCompared).length : node.values.length
}

/**
 * @param tree a filter that compiles, with fields in memory alone
 * @param columnOf the column of a field
 */
export function selectOf(tree: FilterNode, schema: StoredSchema, columnOf: (field: Field) => Column): Select {
  if (tree.kind === 'clause') {
    const field = findField(schema, tree.field)!
    return clauseSelect(schema, columnOf(field), tree)
  }
  if (tree.kind !== 'and' && tree.kind !== 'or') throw new Error('Such a filter is not evaluated in memory.')
  const children = tree.children.map((child) => selectOf(child, schema, columnOf))
  if (tree.kind === 'and') {
    return (offsets, blockOf) => children.reduce((left, child) => child(left, blockOf), offsets)
  }
  return (offsets, blockOf) => {
    const passed = new Uint8Array(BLOCK)
    let left = offsets
    for (const child of children) {
      for (const at of child(left, blockOf)) passed[at] = 1
      left = chosen(left, (at) => passed[at] === 0)
    }
    return chosen(offsets, (at) => passed[at] === 1)
  }
}

function clauseSelect(schema: StoredSchema, column: Column, clause: FilterClause): Select {
  const negated = isNegated(clause)
  if (clause.values.length === 0) return (offsets) => (negated ? offsets : offsets.subarray(0, 0))
  const { some, interval, unequal } = testsOf(schema, column, clause)
  if (!column.isList && unequal.length === 0) {
    const select = column.isText ? ofStrings(column, some, negated) : interval && ofNumbers(interval, negated)
    if (select !== undefined) return (offsets, blockOf) => select(offsets, blockOf(column).values)
  }
  return (offsets, blockOf) => {
    const { values, starts } = blockOf(column)
    return chosen(offsets, (at) => {
      const from = starts === undefined ? at : starts[at]!
      const to = starts === undefined ? at + 1 : starts[at + 1]!
      for (let place = from; place < to; place++) if (some(values[place]!)) return !negated
      for (const other of unequal) if (!values.subarray(from, to).includes(other)) return !negated
      return negated
    })
  }
}

/**
 * A reused buffer for the documents that pass a filter, until their number is known. It holds nothing between calls.
 */
let scratch: Uint16Array | undefined

const copied = (offsets: Offsets, count: number): Offsets =>
  count === offsets.length ? offsets : scratch!.slice(0, count)

function chosen(offsets: Offsets, passes: (at: number) => boolean): Offsets {
  scratch ??= new Uint16Array(BLOCK)
  let count = 0
  for (let index = 0; index < offsets.length; index++) {
    const at = offsets[index]!
    if (passes(at)) scratch[count++] = at
  }
  return copied(offsets, count)
}

// The loops of the next two functions call nothing, so a million documents take a few milliseconds.

/** Documents with a number between two others, both included. NaN, which stands for no value, is not. */
const ofNumbers =
  ([low, high]: Interval, negated: boolean) =>
  (offsets: Offsets, values: Block['values']): Offsets => {
    scratch ??= new Uint16Array(BLOCK)
    const into = scratch
    let count = 0
    for (let index = 0; index < offsets.length; index++) {
      const at = offsets[index]!
      const value = values[at]!
      into[count] = at
      if ((value >= low && value <= high) !== negated) count++
    }
    return copied(offsets, count)
  }

/** Documents with a string that passes. Each different string is compared once. */
function ofStrings({ words }: Column, passes: (id: number) => boolean, negated: boolean) {
  // By id: 0 as long as it has not been compared.
  const [fails, succeeds] = [1, 2]
  let known = new Uint8Array(0)
  const wanted = negated ? fails : succeeds
  return (offsets: Offsets, values: Block['values']): Offsets => {
    if (known.length < words.length) {
      const before = known
      known = new Uint8Array(words.length)
      known.set(before)
    }
    scratch ??= new Uint16Array(BLOCK)
    const [into, results] = [scratch, known]
    let count = 0
    for (let index = 0; index < offsets.length; index++) {
      const at = offsets[index]!
      const id = values[at]!
      if (results[id] === 0) results[id] = passes(id) ? succeeds : fails
      into[count] = at
      if (results[id] === wanted) count++
    }
    return copied(offsets, count)
  }
}

/** Both ends included. */
type Interval = readonly [low: number, high: number]

/**
 * Tests of values in memory. A document passes if `some` holds for one of its values, or if it lacks one of
 * `unequal`.
 */
interface Tests {
  some: (value: number) => boolean
  /** for numbers: all values that pass lie in this interval */
  interval?: Interval | undefined
  unequal: readonly number[]
}

function testsOf(schema: StoredSchema, column: Column, clause: FilterClause): Tests {
  const { field, isText } = column
  const unequal: number[] = []
  if (isPresence(clause)) {
    const interval: Interval = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]
    return { some: isText ? (id) => id !== 0 : (value) => !Number.isNaN(value), interval, unequal }
  }
  if (isText) return { some: stringTest(schema, column, clause), unequal }
  if (isBool(field)) {
    const wanted = new Set(boolValues(field, clause))
    return { some: (value) => wanted.has(value), interval: intervalOf([...wanted]), unequal }
  }
  const tests = numberTests(field, clause)
  // A number that a double cannot hold is in no block.
  return {
    some: numberTest(tests),
    interval: intervalOfTests(tests),
    unequal: tests.unequal.map(Number),
  }
}

/** The interval of a single number, or from 0 to 1. */
const intervalOf = (wanted: readonly number[]): Interval | undefined =>
  wanted.length === 1 || (wanted.includes(0) && wanted.includes(1) && wanted.length === 2)
    ? [Math.min(...wanted), Math.max(...wanted)]
    : undefined

/** @returns undefined for several intervals, and for numbers that a double cannot hold */
function intervalOfTests({ equal, ranges, compared }: NumberTests): Interval | undefined {
  if (equal.length + ranges.length + compared.length !== 1) return undefined
  const [low, high] = ranges[0] ?? [equal[0], equal[0]]
  if (typeof low === 'number' && typeof high === 'number') return [low, high]
  const [comparison] = compared
  if (comparison === undefined || typeof comparison.bound !== 'number') return undefined
  const { sign, bound } = comparison
  if (sign === '>=') return [bound, Number.POSITIVE_INFINITY]
  if (sign === '<=') return [Number.NEGATIVE_INFINITY, bound]
  return sign === '>' ? [after(bound), Number.POSITIVE_INFINITY] : [Number.NEGATIVE_INFINITY, -after(-bound)]
}

/** The next larger double; NaN after infinity. */
function after(number: number): number {
  if (number === Number.POSITIVE_INFINITY) return Number.NaN
  const view = new DataView(new ArrayBuffer(8))
  // Adding 0 turns -0 into 0.
  view.setFloat64(0, number + 0)
  const bits = view.getBigInt64(0)
  view.setBigInt64(0, number === 0 ? 1n : bits + (number > 0 ? 1n : -1n))
  return view.getFloat64(0)
}

function numberTest(tests: NumberTests): (value: number) => boolean {
  const { equal, ranges, compared } = tests
  if (ranges.length + compared.length === 0 && !equal.some((value) => typeof value === 'bigint')) {
    const wanted = new Set(equal as number[])
    return (value) => wanted.has(value)
  }
  return (value) => !Number.isNaN(value) && passesNumber(tests, value)
}

function stringTest(schema: StoredSchema, column: Column, clause: FilterClause): (id: number) => boolean {
  const exact = exactTexts(clause)
  if (exact !== undefined) {
    const wanted = new Set(exact)
    return (id) => id !== 0 && wanted.has(column.words[id]!)
  }
  const whole = comparesWhole(clause)
  const rules = rulesOf(schema, column.field)
  const patterns = patternsOf(clause, rules, column.field.locale).filter((pattern) =>
    isUseful(pattern, whole),
  )
  const isPlain = ({ prefix, phrase }: (typeof patterns)[number]) => whole && !prefix && !phrase
  const equal = new Set(patterns.filter(isPlain).map(({ form }) => form))
  const others = patterns.filter((pattern) => !isPlain(pattern))
  const known: boolean[] = [false]
  return (id) => {
    const before = known[id]
    if (before !== undefined) return before
    const norm = rules.stem === undefined ? column.norm(id) : comparedForm(column.words[id]!, rules)
    const passes = equal.has(norm) || others.some((pattern) => matches(norm, pattern, whole))
    known[id] = passes
    return passes
  }
}
