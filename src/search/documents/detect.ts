/** Detects fields that a schema allows without naming them: by a pattern, by `.*`, or as children of an object. */
import { ApiError } from '../../errors'
import { isInt64 } from '../../lib/exact-json'
import { isFallback } from '../schema/field'
import type { Plan } from '../schema/plan'
import { isObject, leaves } from '../schema/values'
import type { DirtyValues, Field, FieldType } from '../types'
import type { Draft } from './document'

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
