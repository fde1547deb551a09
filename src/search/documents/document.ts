/**
 * Checks a document: its id, the types of its fields, and the handling of wrong values by `dirty_values`. Messages
 * are Typesense's (src/validator.cpp), grammar included.
 */

import { ApiError } from '../../errors'
import { describeFault, integer, isInt64, parseExact, requireShallow } from '../../lib/json'
import { refuse } from '../refused'
import { isFallback } from '../schema/field'
import type { FieldPlan, Kind, Plan } from '../schema/plan'
import { isObject, type Leaf, leaves, replace } from '../schema/values'
import type { DirtyValues, Field, FieldType } from '../types'

/** A parsed document, before it has an id. Whole numbers that a double cannot hold are BigInt (lib/json.ts). */
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
    // join-keys.ts checks embedding fields together with their sources.
    if (field.field.embed !== undefined) continue
    if (field.kind === 'object') coerceObject(field, draft, partial)
    else if (field.kind !== 'image') {
      // If an unstored source is missing, the error is that no embedding can be made (join-keys.ts).
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

// =============================================================================
// Checks and coerces single values, by Typesense's rules.

/** The value cannot be coerced to the type. */
export const INVALID = Symbol('invalid')
/** A whole number outside the type's range. */
export const OVERFLOW = Symbol('overflow')

const INT32_MAX = 2 ** 31 - 1
const INT32_MIN = -(2 ** 31)

const isNumber = (value: unknown): value is number | bigint =>
  typeof value === 'bigint' || (typeof value === 'number' && Number.isFinite(value))

const isPair = (value: unknown): value is [unknown, unknown] => Array.isArray(value) && value.length === 2

/** @returns the value as it is, OVERFLOW, or INVALID */
export function checked(kind: Kind, value: unknown): unknown {
  switch (kind) {
    case 'string':
      return typeof value === 'string' ? value : INVALID
    case 'int32':
      if (typeof value === 'bigint') return OVERFLOW
      if (!Number.isInteger(value)) return INVALID
      return (value as number) > INT32_MAX || (value as number) < INT32_MIN ? OVERFLOW : value
    case 'int64':
      return isInt64(value) ? value : INVALID
    case 'float':
      return isNumber(value) ? value : INVALID
    case 'bool':
      return typeof value === 'boolean' ? value : INVALID
    case 'geopoint':
      return isPair(value) && isNumber(value[0]) && isNumber(value[1]) ? value : INVALID
    case 'geopolygon':
      return Array.isArray(value) && value.length >= 6 && value.length % 2 === 0 && value.every(isNumber)
        ? value
        : INVALID
    default:
      return value
  }
}

/** @returns a value of the type, OVERFLOW, or INVALID */
export function coerced(kind: Kind, value: unknown): unknown {
  switch (kind) {
    case 'string':
      return isNumber(value) || typeof value === 'boolean' ? String(value) : INVALID
    case 'int32':
    case 'int64':
      return checked(kind, wholeNumber(value))
    case 'float':
      return floatNumber(value)
    case 'bool':
      return truth(value)
    case 'geopoint': {
      if (!isPair(value)) return INVALID
      const point = value.map((part) => (isNumber(part) ? part : floatNumber(part)))
      return point.every(isNumber) ? point : INVALID
    }
    case 'geopolygon':
      if (!Array.isArray(value)) return INVALID
      return checked(
        'geopolygon',
        value.map((part) => (isNumber(part) ? part : floatNumber(part))),
      )
    default:
      return INVALID
  }
}

function wholeNumber(value: unknown): unknown {
  if (typeof value === 'bigint') return value
  if (isNumber(value)) return Math.trunc(Number(value))
  if (typeof value === 'boolean') return value ? 1 : 0
  return typeof value === 'string' && /^[+-]?\d{1,308}$/.test(value) ? integer(value) : INVALID
}

function floatNumber(value: unknown): unknown {
  if (typeof value === 'boolean') return value ? 1 : 0
  if (typeof value !== 'string' || !/^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/.test(value)) return INVALID
  const number = Number(value)
  return Number.isFinite(number) ? number : INVALID
}

function truth(value: unknown): unknown {
  if (value === 1 || value === 0) return value === 1
  if (typeof value !== 'string') return INVALID
  const word = value.toLowerCase()
  if (word === 'true') return true
  return word === 'false' ? false : INVALID
}

// =============================================================================
// Detects fields that a schema allows without naming them: by a pattern, by `.*`, or as children of an object.

/** The fields of a document that its collection does not have yet. @throws ApiError 400 */
export function detectFields(plan: Plan, draft: Draft, nestedFields: boolean, dirty: DirtyValues): Field[] {
  if (plan.dynamic.length === 0 && plan.objects.length === 0) return []
  const known = new Set(plan.fields.map(({ name }) => name))
  const found: Field[] = []
  if (plan.dynamic.length > 0) {
    for (const [name, value] of Object.entries(draft)) {
      if (known.has(name) || name === 'id' || name === '__proto__') continue
      const field = detectField(plan, name, value, nestedFields, dirty)
      if (field === 'drop') delete draft[name]
      else if (field !== undefined) found.push(field)
    }
  }
  if (nestedFields) {
    const objects = [
      ...plan.objects.map(({ field, path }) => ({ field, path })),
      ...found.filter(({ type }) => type.startsWith('object')).map((field) => ({ field, path: undefined })),
    ]
    for (const { field, path } of objects) {
      if (!field.index) continue
      const children = new Map<string, FieldType>()
      for (const leaf of leaves(draft, field.name, path))
        describe(leaf.value, field.name, leaf.inArray, children)
      for (const [name, type] of children) {
        if (known.has(name) || found.some((other) => other.name === name)) continue
        const pattern = matching(plan.dynamic, name)
        found.push({
          ...concrete(pattern ?? field, name, pattern && isExplicit(pattern.type) ? pattern.type : type),
          nested: true,
        })
      }
    }
  }
  return found
}

const isExplicit = (type: FieldType): boolean => type !== 'auto' && type !== 'string*'

/** Matches a name against a pattern, in which `.*` stands for anything and everything else is literal. */
export function matches(pattern: string, name: string): boolean {
  const [first = '', ...parts] = pattern.split('.*')
  const last = parts.pop()
  if (last === undefined) return name === first
  if (!name.startsWith(first)) return false
  // Matching each part at its earliest place leaves the most text for the others, so there is no backtracking.
  let at = first.length
  for (const part of parts) {
    const found = name.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return name.length - last.length >= at && name.endsWith(last)
}

const matching = (dynamic: Field[], name: string): Field | undefined =>
  dynamic.find((field) => !isFallback(field) && matches(field.name, name))

function detectField(
  plan: Plan,
  name: string,
  value: unknown,
  nestedFields: boolean,
  dirty: DirtyValues,
): Field | 'drop' | undefined {
  if (name.includes('.*')) return undefined
  const definition = matching(plan.dynamic, name) ?? plan.dynamic.find(isFallback)
  if (definition === undefined || !definition.index) return undefined
  if (value === null) return 'drop'
  if (isExplicit(definition.type)) {
    // `price.*` of type float means the values inside the object `price`.
    return isObject(value) && !definition.type.startsWith('object')
      ? objectOrNothing(definition, name, 'object', nestedFields)
      : concrete(definition, name, definition.type)
  }
  const type = typeOf(value)
  if (type === undefined) {
    if (Array.isArray(value) && value.length === 0) return undefined
    if (dirty === 'drop' || dirty === 'coerce_or_drop') return 'drop'
    throw new ApiError(400, `Type of field \`${name}\` is invalid.`)
  }
  if (type.startsWith('object')) return objectOrNothing(definition, name, type, nestedFields)
  if (definition.type === 'string*')
    return concrete(definition, name, Array.isArray(value) ? 'string[]' : 'string')
  return concrete(definition, name, type)
}

const objectOrNothing = (definition: Field, name: string, type: FieldType, nestedFields: boolean) =>
  nestedFields ? { ...concrete(definition, name, type), nested: true } : undefined

/** The concrete field that a pattern creates. */
function concrete(definition: Field, name: string, type: FieldType): Field {
  const numeric = /^(int32|int64|float|bool|geopoint)$/.test(type)
  const { num_dim: _dimensions, embed: _embed, nested: _nested, ...rest } = definition
  return {
    ...rest,
    name,
    type,
    optional: true,
    sort: numeric || (definition.sort && type === 'string'),
    facet: definition.facet && !type.startsWith('object'),
    stem: definition.stem && type.startsWith('string'),
    detected: true,
  }
}

function scalarType(value: unknown): 'string' | 'int64' | 'float' | 'bool' | 'object' | undefined {
  if (typeof value === 'string') return 'string'
  if (typeof value === 'boolean') return 'bool'
  if (typeof value === 'number' || typeof value === 'bigint') return isInt64(value) ? 'int64' : 'float'
  return isObject(value) ? 'object' : undefined
}

function typeOf(value: unknown): FieldType | undefined {
  if (!Array.isArray(value)) return scalarType(value)
  const type = scalarType(value[0])
  if (type === undefined) return undefined
  // A list that begins with a whole number may continue with fractions.
  const fractions = type === 'int64' && value.some((element) => scalarType(element) === 'float')
  return fractions ? 'float[]' : `${type}[]`
}

/** Collects the names and types of all values inside an object. */
function describe(value: unknown, name: string, inArray: boolean, found: Map<string, FieldType>): void {
  if (Array.isArray(value)) {
    for (const element of value) describe(element, name, true, found)
  } else if (isObject(value)) {
    for (const [key, child] of Object.entries(value)) {
      if (key !== '__proto__') describe(child, `${name}.${key}`, inArray, found)
    }
  } else {
    const type = scalarType(value)
    if (type === undefined || type === 'object') return
    const seen = found.get(name)
    if (seen === undefined || (seen.startsWith('int64') && type === 'float')) {
      found.set(name, inArray ? `${type}[]` : type)
    }
  }
}
