/**
 * Checks a document: its id, the types of its fields, and the handling of wrong values by `dirty_values`. Messages
 * are Typesense's (src/validator.cpp), grammar included.
 */
import { ApiError } from '../../errors'
import { parseExact } from '../../lib/exact-json'
import { requireShallow } from '../../lib/json-depth'
import { describeFault } from '../../lib/json-fault'
import type { FieldPlan, Plan } from '../schema/plan'
import { isObject, type Leaf, leaves, replace } from '../schema/values'
import type { DirtyValues } from '../types'
import { checked, coerced, INVALID, OVERFLOW } from './coerce'

/** A parsed document, before it has an id. Whole numbers that a double cannot hold are BigInt (exact-json.ts). */
export type Draft = Record<string, unknown>

/**
 * The fault of a field in a document. `needs` is the type that its value should have had; absent: any value at all.
 */
export class FieldFault extends ApiError {
  constructor(
    message: string,
    readonly field: string,
    readonly needs?: string,
  ) {
    super(400, message)
  }
}

function refuse(message: string): never {
  throw new ApiError(400, message)
}

function refuseValue({ name }: FieldPlan, needs: string): never {
  throw new FieldFault(`Field \`${name}\` must be ${needs}.`, name, needs)
}

/** @throws ApiError 400 */
export function parseDocument(json: string): Draft {
  let parsed: unknown
  requireShallow(json)
  try {
    parsed = parseExact(json)
  } catch (error) {
    refuse(`Bad JSON: ${describeFault(json) ?? (error as Error).message}`)
  }
  if (!isObject(parsed)) refuse('Bad JSON: not a properly formed document.')
  return parsed
}

/** The document's own id, if it has one. @throws ApiError 400 */
export function idOf(draft: Draft): string | undefined {
  if (!Object.hasOwn(draft, 'id')) return undefined
  if (draft.id === '') refuse('The `id` should not be empty.')
  if (typeof draft.id !== 'string') refuse("Document's `id` field should be a string.")
  // SQLite stores UTF-8, where a lone surrogate would come back as another character.
  return draft.id.toWellFormed()
}

const ARTICLES: Record<string, [one: string, many: string]> = {
  string: ['a', 'an array of'],
  int32: ['an', 'an array of'],
  int64: ['an', 'an array of'],
  float: ['a', 'a array of'],
  bool: ['a', 'a array of'],
  geopoint: ['a', 'an array of'],
}

/**
 * Checks the types of a document's fields, and corrects in place what may be corrected. Fields without a definition
 * are left alone.
 * @param partial an update: fields may be missing, and null removes a field
 * @throws ApiError 400
 */
export function coerceDocument(
  plan: Plan,
  draft: Draft,
  dirty: DirtyValues,
  partial: boolean,
  defaultSortingField = '',
): void {
  if (!partial && defaultSortingField !== '' && !Object.hasOwn(draft, defaultSortingField)) {
    refuse(
      `Field \`${defaultSortingField}\` has been declared as a default sorting field, but is not found in the document.`,
    )
  }
  for (const field of plan.fields) {
    // embedding-text.ts checks embedding fields together with their sources.
    if (field.field.embed !== undefined) continue
    if (field.kind === 'object') coerceObject(field, draft, partial)
    else if (field.kind !== 'image') {
      // If an unstored source is missing, the error is that no embedding can be made (embedding-text.ts).
      const lenient = partial || (!field.field.store && plan.sources.has(field.name))
      coerceField(field, draft, dirty, partial, lenient)
    }
  }
}

function coerceObject(plan: FieldPlan, draft: Draft, partial: boolean): void {
  const found = leaves(draft, plan.name, plan.path)
  if (found.length === 0) {
    if (!plan.field.optional && !partial && plan.field.store) missing(plan)
    return
  }
  for (const leaf of found) {
    if (leaf.value === null && plan.field.optional) {
      if (!partial) replace(leaf, undefined)
      continue
    }
    const values = Array.isArray(leaf.value) ? leaf.value : [leaf.value]
    const wrong = plan.array ? !Array.isArray(leaf.value) && !leaf.inArray : Array.isArray(leaf.value)
    if (wrong || !values.every(isObject)) refuse(`Field \`${plan.name}\` has an incorrect type.`)
  }
}

function missing(plan: FieldPlan): never {
  const message = `Field \`${plan.name}\` has been declared in the schema, but is not found in the document.`
  throw new FieldFault(message, plan.name)
}

function coerceField(
  plan: FieldPlan,
  draft: Draft,
  dirty: DirtyValues,
  partial: boolean,
  mayBeMissing: boolean,
): void {
  const found = leaves(draft, plan.name, plan.path)
  // Nulls in the objects of an array are not values. One other value among them is enough for the field to exist.
  const none = found.every(({ value, inArray }) => inArray && value === null)
  if (none && !plan.field.optional && !mayBeMissing) missing(plan)
  for (const leaf of found) {
    if (leaf.value === null && plan.field.optional) {
      // An update keeps the null, because merging then removes the field.
      if (!partial) replace(leaf, undefined)
    } else if (plan.kind === 'vector') {
      coerceVector(plan, leaf, dirty)
    } else if (plan.array) {
      coerceList(plan, leaf, dirty, leaf.parent !== draft)
    } else {
      if (leaf.inArray) {
        refuse(
          `Field \`${plan.name}\` has an incorrect type. Hint: field inside an array of objects must be an array type as well.`,
        )
      }
      if (checked(plan.kind, leaf.value) !== leaf.value) {
        replace(leaf, corrected(plan, leaf.value, dirty, false))
      }
    }
  }
}

const drops = (plan: FieldPlan, dirty: DirtyValues): boolean =>
  plan.field.optional && (dirty === 'drop' || dirty === 'coerce_or_drop')

/** Corrects a wrong value. @returns undefined to drop it @throws ApiError 400 */
function corrected(plan: FieldPlan, value: unknown, dirty: DirtyValues, inList: boolean): unknown {
  let result = checked(plan.kind, value)
  if (result === INVALID && (dirty === 'coerce_or_reject' || dirty === 'coerce_or_drop')) {
    result = coerced(plan.kind, value)
  }
  if (result !== INVALID && result !== OVERFLOW) return result
  if (plan.kind === 'geopoint' && (!Array.isArray(value) || value.length !== 2)) {
    if (!inList) refuseValue(plan, 'a 2 element array: [lat, lng]')
    refuse(`Field \`${plan.name}\` must contain 2 element arrays: [ [lat, lng],... ].`)
  }
  if (drops(plan, dirty)) return undefined
  if (plan.kind === 'geopolygon') {
    refuseValue(plan, 'a list of three or more latitudes and longitudes: [lat, lng, lat, lng, ...]')
  }
  if (result === OVERFLOW) refuse(`Field \`${plan.name}\` exceeds maximum value of int32.`)
  const articles = ARTICLES[plan.kind] ?? ['a', 'an array of']
  refuseValue(plan, `${articles[inList ? 1 : 0]} ${plan.kind}`)
}

/** @param isNested the value is in an object of the document */
function coerceList(plan: FieldPlan, leaf: Leaf, dirty: DirtyValues, isNested: boolean): void {
  const { value } = leaf
  if (value === null) {
    replace(leaf, [])
    return
  }
  // Inside an array of objects, each object has one value or a list of its own. As in Typesense, an object may have
  // one point for a list of them.
  const single =
    plan.kind === 'geopoint'
      ? isNested && checked('geopoint', value) === value
      : leaf.inArray && !Array.isArray(value)
  if (single) {
    if (checked(plan.kind, value) !== value) replace(leaf, corrected(plan, value, dirty, true))
    return
  }
  if (!Array.isArray(value)) {
    if (!drops(plan, dirty)) refuseValue(plan, 'an array')
    replace(leaf, undefined)
    return
  }
  if (value.every((element) => checked(plan.kind, element) === element)) return
  replace(
    leaf,
    value
      .map((element) =>
        checked(plan.kind, element) === element ? element : corrected(plan, element, dirty, true),
      )
      .filter((element) => element !== undefined),
  )
}

function coerceVector(plan: FieldPlan, leaf: Leaf, dirty: DirtyValues): void {
  if (!Array.isArray(leaf.value)) {
    if (!drops(plan, dirty)) refuseValue(plan, 'an array')
    replace(leaf, undefined)
    return
  }
  const dimensions = plan.field.num_dim
  if (leaf.value.length !== dimensions) refuse(`Field \`${plan.name}\` must have ${dimensions} dimensions.`)
  if (leaf.value.every((element) => checked('float', element) === element)) return
  const element = { ...plan, kind: 'float' as const }
  const vector = leaf.value.map((value) => corrected(element, value, dirty, true))
  // Without an element, a vector has the wrong dimension, so drop it as a whole.
  replace(leaf, vector.includes(undefined) ? undefined : vector)
}
