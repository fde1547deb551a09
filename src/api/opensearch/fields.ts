/** Maps names in a query to fields of the collection, and says what can be asked of them. */
import { isDynamic } from '../../search/schema/field'
import {
  hasValues,
  isArray,
  isBool,
  isGeopoint,
  isNumber,
  isString,
  isVector,
} from '../../search/schema/layout'
import type { CollectionSchema, Field } from '../../search/types'
import { unsupported } from './errors'
import { areKeywords, keptOf, propertyAt } from './mapping'
import { shownName, starPattern, storedName } from './source'

export interface Target {
  /** its name in the collection */
  name: string
  field: Field
  kind: 'text' | 'keyword' | 'number' | 'boolean' | 'vector' | 'other'
  /** whether it was mapped as a date and is stored as text */
  isDate: boolean
  /** whether whole values are stored, so that it can be sorted, counted and compared */
  hasValues: boolean
  isArray: boolean
}

/** The fields of a collection, by their names in OpenSearch's queries. */
export class Fields {
  #byName: Map<string, Field>
  #properties: Record<string, unknown>
  /** whether strings that the mapping does not name are whole values */
  #keywords: boolean

  constructor(readonly schema: CollectionSchema) {
    const known = schema.fields.filter((field) => !isDynamic(field))
    this.#byName = new Map(known.map((field) => [field.name, field]))
    const { properties, templates = [] } = keptOf(schema)
    this.#properties = properties
    this.#keywords = areKeywords(templates)
  }

  /**
   * Returns undefined for a name that no document has had yet; OpenSearch does not treat that as an error.
   * @throws ApiError 400 for a field that is only stored
   */
  find(name: string): Target | undefined {
    const field = this.#byName.get(storedName(name))
    if (field !== undefined) {
      if (!field.index) throw unsupported(`A query of [${name}], which is not indexed,`)
      return this.#target(name, field, false)
    }
    for (const { index, type, name: stored } of this.#byName.values()) {
      if (!index && type === 'object' && name.startsWith(`${shownName(stored)}.`))
        throw unsupported(
          `A query of [${name}], inside of a [flat_object]: map it as an [object]; as it is, it`,
        )
    }
    if (!name.endsWith('.keyword')) return undefined
    const whole = name.slice(0, -'.keyword'.length)
    const parent = this.#byName.get(storedName(whole))
    const isKeyword = parent !== undefined && isString(parent) && hasValues(parent)
    return isKeyword ? this.#target(whole, parent, true) : undefined
  }

  #target(name: string, field: Field, asKeyword: boolean): Target {
    const mapped = propertyAt(this.#properties, name)
    const type = mapped === undefined && this.#keywords && hasValues(field) ? 'keyword' : mapped?.type
    const isDate = type === 'date' && isString(field)
    return {
      name: field.name,
      field,
      kind: kindOf(field, asKeyword || isDate || type === 'keyword'),
      isDate,
      hasValues: hasValues(field) && !isGeopoint(field),
      isArray: isArray(field),
    }
  }

  /** The fields that match a name, which may contain stars. */
  matching(pattern: string): Target[] {
    if (!pattern.includes('*')) {
      const target = this.find(pattern)
      return target === undefined ? [] : [target]
    }
    const expression = starPattern(pattern)
    return this.#indexed()
      .filter((name) => expression.test(name))
      .map((name) => this.find(name)!)
  }

  #indexed(): string[] {
    return [...this.#byName.values()].filter(({ index }) => index).map(({ name }) => shownName(name))
  }

  /** The fields below an object. */
  below(name: string): Target[] {
    return this.#indexed()
      .filter((each) => each.startsWith(`${name}.`))
      .map((each) => this.find(each)!)
  }

  /** Names of fields whose vectors were computed here: no source contained them. */
  embedded(): string[] {
    return this.schema.fields.filter(({ embed }) => embed !== undefined).map(({ name }) => name)
  }
}

function kindOf(field: Field, asKeyword: boolean): Target['kind'] {
  if (isVector(field)) return 'vector'
  if (isNumber(field)) return 'number'
  if (isBool(field)) return 'boolean'
  if (isString(field)) return asKeyword ? 'keyword' : 'text'
  return 'other'
}
