/**
 * Filters over values in memory (schema/column-memory.ts). They find what the SQL of compile.ts finds; filters on
 * words of the full-text index, places, ids, objects and other collections are left to SQL.
 */

import { BLOCK, type Block, type Offsets, placeAt, valuesAt } from '../schema/block'
import { findField } from '../schema/find-field'
import {
  hasValues,
  isBool,
  isGeopoint,
  isGeopolygon,
  isNumber,
  isString,
  type StoredSchema,
} from '../schema/layout'
import type { Field } from '../types'
import { isCompared } from './cost'
import { boolValues, numberTests } from './number'
import { type FilterClause, type FilterNode, fieldsOf, isNegated, isPresence } from './parse'
import { comparesWhole } from './string'
import { type ValuesTest, valuesTest, type WordTest, wordTest } from './test'

/** Chooses the documents of a block that pass. @param blockOf the values of a field in this block */
export type Select = (offsets: Offsets, blockOf: (field: Field) => Block) => Offsets

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
    if (field === undefined || !hasValues(field) || isGeopoint(field) || isGeopolygon(field)) return undefined
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

/** @param tree a filter that compiles, with fields in memory alone */
export function selectOf(tree: FilterNode, schema: StoredSchema): Select {
  if (tree.kind === 'clause') return clauseSelect(schema, findField(schema, tree.field)!, tree)
  if (tree.kind !== 'and' && tree.kind !== 'or') throw new Error('Such a filter is not evaluated in memory.')
  const children = tree.children.map((child) => selectOf(child, schema))
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

function clauseSelect(schema: StoredSchema, field: Field, clause: FilterClause): Select {
  const negated = isNegated(clause)
  if (clause.values.length === 0) return (offsets) => (negated ? offsets : offsets.subarray(0, 0))
  const select = isPresence(clause)
    ? ofPresent(negated)
    : isString(field)
      ? ofStrings(wordTest(schema, field, clause), negated)
      : ofValues(valuesTest(field, clause), intervalOf(field, clause), negated)
  return (offsets, blockOf) => select(offsets, blockOf(field))
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

type Selecting = (offsets: Offsets, block: Block) => Offsets

/** Documents with any value. */
const ofPresent =
  (negated: boolean): Selecting =>
  (offsets, block) =>
    chosen(offsets, (at) => (placeAt(block, at) !== -1) !== negated)

/** Documents with a string that passes. Each different string of a block is compared once. */
const ofStrings =
  (passes: WordTest, negated: boolean): Selecting =>
  (offsets, { values, starts, words }) => {
    // By id: 0 as long as it has not been compared.
    const [fails, succeeds] = [1, 2]
    const known = new Uint8Array(words!.size)
    known[0] = fails
    if (starts !== undefined) {
      return chosen(offsets, (at) => {
        for (let place = starts[at]!; place < starts[at + 1]!; place++) {
          const id = Number(values[place])
          if (known[id] === 0) known[id] = passes(words!, id) ? succeeds : fails
          if (known[id] === succeeds) return !negated
        }
        return negated
      })
    }
    const wanted = negated ? fails : succeeds
    scratch ??= new Uint16Array(BLOCK)
    let count = 0
    for (let index = 0; index < offsets.length; index++) {
      const at = offsets[index]!
      const id = values[at] as number
      if (known[id] === 0) known[id] = passes(words!, id) ? succeeds : fails
      scratch[count] = at
      if (known[id] === wanted) count++
    }
    return copied(offsets, count)
  }

/** Documents whose values pass. @param interval of a single number that passes, if the test is just that */
const ofValues = (passes: ValuesTest, interval: Interval | undefined, negated: boolean): Selecting => {
  const between = interval && ofNumbers(interval, negated)
  return (offsets, block) => {
    if (between !== undefined && block.starts === undefined) return between(offsets, block.values)
    return chosen(offsets, (at) => passes(valuesAt(block, at)) !== negated)
  }
}

/** Both ends included. */
type Interval = readonly [low: number, high: number]

/** @returns undefined for several intervals, and for numbers that a double cannot hold */
function intervalOf(field: Field, clause: FilterClause): Interval | undefined {
  if (isBool(field)) {
    const wanted = boolValues(field, clause)
    return [Math.min(...wanted), Math.max(...wanted)]
  }
  if (!isNumber(field)) return undefined
  const { equal, unequal, ranges, compared } = numberTests(field, clause)
  if (unequal.length > 0 || equal.length + ranges.length + compared.length !== 1) return undefined
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
