/**
 * Labels: values of its document that a vector carries, so that Vectorize can filter by them.
 *
 * Metadata indexes belong to a whole Vectorize index. There are ten at most, and each ignores vectors that are older
 * than itself. So the deployment creates ten with neutral names before there is any vector: five strings and five
 * numbers. Each collection decides which of its fields uses which. Every vector has all ten, so if a metadata index
 * works for one vector it works for all.
 *
 * The choice is stored in `meta` and changes only with the schema. If a property gets another field, all vectors are
 * sent again. Until Vectorize shows them, they are candidates of every filtered search.
 */
import * as v from 'valibot'
import { once } from '../lib/once'
import { type Condition, intersection, type Range } from '../search/filter/filter'
import { readMeta, writeMeta } from '../search/meta'
import {
  columnsTable,
  hasValues,
  isArray,
  isBool,
  isNumber,
  isString,
  type StoredSchema,
  scalarColumn,
} from '../search/schema/layout'
import { rulesOf } from '../search/text/query'
import { normalForm } from '../search/text/terms'
import type { Field } from '../search/types'

/** Properties with a metadata index, as `npm run deploy` creates them (scripts/deploy/names.mjs). */
export const STRINGS = ['s0', 's1', 's2', 's3', 's4'] as const
export const NUMBERS = ['n0', 'n1', 'n2', 'n3', 'n4'] as const
export const PROPERTIES = [...STRINGS, ...NUMBERS]
type Property = (typeof PROPERTIES)[number]

export type Labels = Record<Property, string | number>

/** The slot of the field in each property. */
const Slots = once(() => v.partial(v.object(v.entriesFromList(PROPERTIES, v.number()))))

export type Labelling = v.InferOutput<ReturnType<typeof Slots>>

/** A metadata index holds this many bytes of a string and ignores the rest. */
const STRING_BYTES = 64
/** For a missing value, or one without words: the documentation does not say whether an empty string is indexed. */
const NO_STRING = '-'
const NO_NUMBER = 0

const META_KEY = 'vector_labels'

/** A string's normal form as a label: its first bytes, cut between characters. */
function stringLabel(norm: string): string {
  if (norm === '') return NO_STRING
  if (norm.length * 3 <= STRING_BYTES) return norm
  const bytes = new Uint8Array(STRING_BYTES)
  const { read } = new TextEncoder().encodeInto(norm, bytes)
  return norm.slice(0, read)
}

const isStringProperty = (property: Property): boolean => property.startsWith('s')

const isLabelled = (schema: StoredSchema, field: Field): boolean =>
  Object.hasOwn(schema.slots, field.name) &&
  hasValues(field) &&
  !isArray(field) &&
  (isString(field) || isNumber(field) || isBool(field))

/**
 * Assigns fields to properties, facets first. A field keeps its property as long as it exists.
 * @param old the assignment so far
 */
export function chooseLabels(schema: StoredSchema, old: Labelling): Labelling {
  const fields = schema.fields.filter((field) => isLabelled(schema, field))
  const inOrder = [...fields.filter(({ facet }) => facet), ...fields.filter(({ facet }) => !facet)]
  const slots = new Map(inOrder.map((field) => [schema.slots[field.name]!.slot, isString(field)]))
  const labelling: Labelling = {}
  for (const property of PROPERTIES) {
    const slot = old[property]
    if (slot === undefined || !slots.delete(slot)) continue
    labelling[property] = slot
  }
  for (const [slot, isText] of slots) {
    const free = (isText ? STRINGS : NUMBERS).find((property) => labelling[property] === undefined)
    if (free !== undefined) labelling[free] = slot
  }
  return labelling
}

export const sameLabels = (a: Partial<Labels>, b: Partial<Labels>): boolean =>
  PROPERTIES.every((property) => a[property] === b[property])

export const readLabelling = (sql: SqlStorage): Labelling => readMeta(sql, META_KEY, Slots()) ?? {}

export const writeLabelling = (sql: SqlStorage, labelling: Labelling): void =>
  writeMeta(sql, META_KEY, labelling)

/**
 * Documents' labels, by sequence number.
 * @returns nothing for a collection without fields to filter by
 */
export function readLabels(sql: SqlStorage, schema: StoredSchema, seqs: number[]): Map<number, Labels> {
  const labelling = readLabelling(sql)
  const chosen = PROPERTIES.filter((property) => labelling[property] !== undefined)
  if (chosen.length === 0) return new Map()
  const columns = chosen.map((property) => {
    const slot = { slot: labelling[property]! }
    return `(SELECT ${scalarColumn(slot)} FROM ${columnsTable(slot)} WHERE seq = j.value) AS ${property}`
  })
  const rows = sql.exec<{ seq: number } & Record<string, string | number | null>>(
    `SELECT j.value AS seq, ${columns.join(', ')} FROM json_each(?) j`,
    JSON.stringify(seqs),
  )
  const fieldOf = (property: Property) =>
    schema.fields.find(({ name }) => schema.slots[name]?.slot === labelling[property])
  const rules = new Map(chosen.map((property) => [property, rulesOf(schema, fieldOf(property))]))
  const labels = new Map<number, Labels>()
  for (const row of rows) {
    const values = PROPERTIES.map((property) => {
      const value = row[property] ?? null
      if (!isStringProperty(property)) return [property, value ?? NO_NUMBER]
      return [property, stringLabel(value === null ? '' : normalForm(String(value), rules.get(property)!))]
    })
    labels.set(row.seq, Object.fromEntries(values) as Labels)
  }
  return labels
}

// =============================================================================
// Turns conditions into a Vectorize filter that passes at least the same documents.

export type LabelFilter = VectorizeVectorMetadataFilter

/** The most bytes of a filter as compact JSON. */
const MAX_BYTES = 2_048

const bytesOf = (filter: LabelFilter): number => new TextEncoder().encode(JSON.stringify(filter)).byteLength

/**
 * The filter for these conditions, in terms of a collection's labels.
 * @returns undefined when the labels cannot express any of them
 */
export function labelFilter(labelling: Labelling, conditions: readonly Condition[]): LabelFilter | undefined {
  let filter: LabelFilter = {}
  for (const property of PROPERTIES) {
    const own = conditions.filter(({ slot }) => slot === labelling[property])
    const tests = isStringProperty(property) ? stringTests(own) : numberTests(own)
    // The first test that fits. A list of numbers that is too long becomes a range, one of strings is dropped.
    const longer = tests.map((test) => ({ ...filter, [property]: test }))
    filter = longer.find((candidate) => bytesOf(candidate) < MAX_BYTES) ?? filter
  }
  return Object.keys(filter).length === 0 ? undefined : filter
}

type Test = LabelFilter[string]

function stringTests(conditions: Condition[]): Test[] {
  const list = shortest(conditions)
  return list === undefined ? [] : [oneOf(list.map((norm) => stringLabel(String(norm))))]
}

function numberTests(conditions: Condition[]): Test[] {
  const tests: Test[] = []
  // No document holds an infinite number, and JSON cannot express one.
  const list = shortest(conditions)?.filter((value) => Number.isFinite(value)) as number[] | undefined
  const ranges = conditions.flatMap((condition) => ('within' in condition ? condition.within : []))
  if (list !== undefined && list.length > 0) {
    tests.push(oneOf(list))
    const [least, most] = [list.reduce((a, b) => Math.min(a, b)), list.reduce((a, b) => Math.max(a, b))]
    ranges.push({ from: { value: least, open: false }, to: { value: most, open: false } })
  }
  const range = rangeTest(ranges.reduce(intersection, {}))
  return range === undefined ? tests : [...tests, range]
}

/**
 * The shortest of several lists for one field. Vectorize takes one test of each property, and a superset is enough.
 */
function shortest(conditions: Condition[]): (string | number)[] | undefined {
  const lists = conditions.flatMap((condition) => ('among' in condition ? [[...condition.among]] : []))
  return lists.toSorted((a, b) => a.length - b.length)[0]
}

function oneOf(values: (string | number)[]): Test {
  const distinct = [...new Set(values)]
  return distinct.length === 1 ? { $eq: distinct[0]! } : { $in: distinct }
}

function rangeTest({ from, to }: Range): Test | undefined {
  const test = {
    ...(from && Number.isFinite(from.value) && { [from.open ? '$gt' : '$gte']: from.value }),
    ...(to && Number.isFinite(to.value) && { [to.open ? '$lt' : '$lte']: to.value }),
  }
  return Object.keys(test).length === 0 ? undefined : test
}
