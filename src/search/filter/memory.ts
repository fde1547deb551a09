/**
 * Filters over values in memory (schema/column-memory.ts). They find what the SQL of compile.ts finds; filters on words
 * of the full-text index, places, ids, objects and other collections are left to it.
 */

import { type Block, type Column, isKept, type Offsets } from '../schema/column-memory'
import { findField } from '../schema/find-field'
import { isBool, type StoredSchema } from '../schema/layout'
import { rulesOf } from '../text/rules'
import type { Field } from '../types'
import { boolValues, type NumberTests, numberTests, passesNumber } from './number'
import { type FilterClause, type FilterNode, fieldsOf, isNegated, isPresence } from './parse'
import { comparesWhole, matches, patternsOf } from './string'

/** Chooses the documents of a block that pass. @param blockOf the values of a column in this block */
export type Select = (offsets: Offsets, blockOf: (column: Column) => Block) => Offsets

/** Comparisons that one document may take. Nobody else has a turn within a block of documents. */
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

/** How often a filter compares a document's value. Values that have to be equal are looked up together. */
function testsIn(node: FilterNode): number {
  if (node.kind === 'and' || node.kind === 'or') {
    return node.children.reduce((sum, child) => sum + testsIn(child), 0)
  }
  if (node.kind !== 'clause') return Number.POSITIVE_INFINITY
  const isEquality =
    comparesWhole(node) || node.values.every(({ text }) => Number.isSafeInteger(Number(text)))
  return isEquality ? 1 + node.values.filter(isCompared).length : node.values.length
}

/** Whether a value is a beginning, a phrase, a range, a bound or a number beyond 2^53, so that it is not looked up. */
const isCompared = ({ text, phrase }: FilterClause['values'][number]): boolean =>
  phrase === true || /\*$|\.\.|^[<>!]|^-?\d{16,}$/.test(text)

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
    const passed = new Set<number>()
    let left = offsets
    for (const child of children) {
      for (const at of child(left, blockOf)) passed.add(at)
      left = offsets.filter((at) => !passed.has(at))
    }
    return offsets.filter((at) => passed.has(at))
  }
}

function clauseSelect(schema: StoredSchema, column: Column, clause: FilterClause): Select {
  const negated = isNegated(clause)
  if (clause.values.length === 0) return (offsets) => (negated ? offsets : offsets.subarray(0, 0))
  const { some, unequal } = testsOf(schema, column, clause)
  return (offsets, blockOf) => {
    const { values, starts } = blockOf(column)
    const chosen = new Uint16Array(offsets.length)
    let count = 0
    for (const at of offsets) {
      const from = starts === undefined ? at : starts[at]!
      const to = starts === undefined ? at + 1 : starts[at + 1]!
      let passes = false
      for (let place = from; place < to && !passes; place++) passes = some(values[place]!)
      for (let index = 0; index < unequal.length && !passes; index++) {
        passes = !values.subarray(from, to).includes(unequal[index]!)
      }
      if (passes !== negated) chosen[count++] = at
    }
    return count === offsets.length ? offsets : chosen.slice(0, count)
  }
}

/** Tests of values as they are kept: a document passes if `some` holds for one, or if it lacks one of `unequal`. */
interface Tests {
  some: (value: number) => boolean
  unequal: readonly number[]
}

function testsOf(schema: StoredSchema, column: Column, clause: FilterClause): Tests {
  const { field, isText } = column
  const unequal: number[] = []
  if (isPresence(clause)) {
    return { some: isText ? (id) => id !== 0 : (value) => !Number.isNaN(value), unequal }
  }
  if (isText) return { some: stringTest(schema, column, clause), unequal }
  if (isBool(field)) {
    const wanted = new Set(boolValues(field, clause))
    return { some: (value) => wanted.has(value), unequal }
  }
  const tests = numberTests(field, clause)
  // A number that a double cannot hold is in no block.
  return { some: numberTest(tests), unequal: tests.unequal.map(Number) }
}

function numberTest(tests: NumberTests): (value: number) => boolean {
  const { equal, ranges, compared } = tests
  if (equal.length + ranges.length === 0 && compared.length === 1) {
    const { sign, bound } = compared[0]!
    if (sign === '>') return (value) => value > bound
    if (sign === '<') return (value) => value < bound
    return sign === '>=' ? (value) => value >= bound : (value) => value <= bound
  }
  if (ranges.length + compared.length === 0 && !equal.some((value) => typeof value === 'bigint')) {
    const wanted = new Set(equal as number[])
    return (value) => wanted.has(value)
  }
  return (value) => !Number.isNaN(value) && passesNumber(tests, value)
}

/** Each different string is compared once. */
function stringTest(schema: StoredSchema, column: Column, clause: FilterClause): (id: number) => boolean {
  const whole = comparesWhole(clause)
  const patterns = patternsOf(clause, rulesOf(schema, column.field)).filter(
    ({ tokens, phrase }) => tokens.length > 0 || (whole && !phrase),
  )
  const isPlain = ({ prefix, phrase }: (typeof patterns)[number]) => whole && !prefix && !phrase
  const equal = new Set(patterns.filter(isPlain).map(({ tokens }) => tokens.join(' ')))
  const others = patterns.filter((pattern) => !isPlain(pattern))
  const known: boolean[] = [false]
  return (id) => {
    const before = known[id]
    if (before !== undefined) return before
    const norm = column.norm(id)
    const passes = equal.has(norm) || others.some((pattern) => matches(norm, pattern, whole))
    known[id] = passes
    return passes
  }
}
