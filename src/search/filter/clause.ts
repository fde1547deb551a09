/** Clauses on the values of a field, evaluated over a block (schema/column.ts), and the fields that clauses name. */
import { ApiError } from '../../errors'
import { readColumn } from '../../lib/stored-json'
import { BLOCK, type Block, type Offsets, placeAt, valuesAt } from '../schema/column'
import { isGeopolygon, isString, isVector, type StoredSchema } from '../schema/layout'
import { findField } from '../schema/schema'
import type { Field } from '../types'
import { type FilterClause, filterError, isNegated, isPresence } from './parse'
import { type ValuesTest, valuesTest, valueTest, type WordTest, wordTest } from './test'

/** @throws ApiError 400 for a field that cannot be filtered on, and for an empty value */
export function filterField(schema: StoredSchema, name: string, clause: FilterClause): Field {
  const field = findField(schema, name)
  if (field === undefined) {
    throw new ApiError(400, `Could not find a filter field named \`${name}\` in the schema.`)
  }
  if (!field.index) throw new ApiError(400, `Cannot filter on non-indexed field \`${field.name}\`.`)
  if (isVector(field)) throw new ApiError(400, `Cannot filter on vector field \`${field.name}\`.`)
  checkNotEmpty(name, clause)
  return field
}

/** Whether a clause on `id` asks for any. */
export const isAnyId = ({ values }: FilterClause): boolean =>
  values.some(({ text, quoted }) => text === '*' && !quoted)

/** An empty list is allowed. It matches no value. @throws ApiError 400 */
export function checkNotEmpty(name: string, { values }: FilterClause): void {
  if (values.some(({ text, exact }) => text === '' && !exact))
    throw filterError(name, 'Filter value cannot be empty.')
}

/** Chooses the documents of a block that meet a clause. @param field with values @throws ApiError 400 */
export function clauseSelect(schema: StoredSchema, field: Field, clause: FilterClause): Selecting {
  const negated = isNegated(clause)
  if (clause.values.length === 0) return (offsets) => (negated ? offsets : offsets.subarray(0, 0))
  return isPresence(clause)
    ? ofPresent(negated)
    : isString(field)
      ? ofStrings(wordTest(schema, field, clause), negated)
      : isGeopolygon(field)
        ? ofStrings(polygonTest(field, clause), negated)
        : ofValues(valuesTest(field, clause), valueTest(field, clause), negated)
}

/**
 * A reused buffer for the documents that pass a filter, until their number is known. It holds nothing between calls.
 */
let scratch: Uint16Array | undefined

export function chosen(offsets: Offsets, passes: (at: number) => boolean): Offsets {
  scratch ??= new Uint16Array(BLOCK)
  let count = 0
  for (let index = 0; index < offsets.length; index++) {
    const at = offsets[index]!
    if (passes(at)) scratch[count++] = at
  }
  return count === offsets.length ? offsets : scratch.slice(0, count)
}

/** A polygon is the JSON of its corners. */
function polygonTest(field: Field, clause: FilterClause): WordTest {
  const passes = valuesTest(field, clause)
  return (words, id) => passes([readColumn<number>(words.text(id))])
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
    return chosen(offsets, (at) => {
      const end = starts === undefined ? at + 1 : starts[at + 1]!
      for (let place = starts === undefined ? at : starts[at]!; place < end; place++) {
        const id = values[place] as number
        if (known[id] === 0) known[id] = passes(words!, id) ? succeeds : fails
        if (known[id] === succeeds) return !negated
      }
      return negated
    })
  }

/** Documents whose values pass. @param passes for documents with one value, if it alone decides */
const ofValues =
  (some: ValuesTest, passes: ReturnType<typeof valueTest>, negated: boolean): Selecting =>
  (offsets, block) => {
    const { values, starts } = block
    return passes !== undefined && starts === undefined
      ? chosen(offsets, (at) => passes(values[at]!) !== negated)
      : chosen(offsets, (at) => some(valuesAt(block, at)) !== negated)
  }
