/** Turns conditions into a Vectorize filter that passes at least the same documents. */
import { type Condition, intersection, type Range } from '../search/filter/conditions'
import { isStringProperty, type Labelling, PROPERTIES, stringLabel } from './labels'

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
