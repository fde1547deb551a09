/** From the conditions of a filter to a filter of Vectorize, which lets at least the same documents through. */
import { type Condition, intersection, type Range } from '../../filter/conditions'
import { isStringProperty, type Labelling, PROPERTIES, stringLabel } from './labels'

export type LabelFilter = VectorizeVectorMetadataFilter

/** A filter as compact JSON has fewer bytes than this. */
const MAX_BYTES = 2_048

const bytesOf = (filter: LabelFilter): number => new TextEncoder().encode(JSON.stringify(filter)).byteLength

/**
 * What can be said of these conditions with a collection's labels.
 * @returns undefined where that is nothing
 */
export function labelFilter(labelling: Labelling, conditions: readonly Condition[]): LabelFilter | undefined {
  let filter: LabelFilter = {}
  for (const property of PROPERTIES) {
    const own = conditions.filter(({ slot }) => slot === labelling[property])
    const tests = isStringProperty(property) ? stringTests(own) : numberTests(own)
    // The first that fits: a list of numbers that is too long is said as a range, one of strings not at all.
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
  // No document holds an infinite number, and JSON none at all.
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

/** Of several lists for one field the shortest: Vectorize takes one test of each property, and a superset will do. */
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
