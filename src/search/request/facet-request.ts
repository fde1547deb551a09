/** The grammar of facet_by, `field, field(label:[from, to], sort_by: _alpha:asc)`, and of facet_query. */
import { ApiError, detailed } from '../../errors'
import { exactNumber } from '../../lib/json'
import { readJoin } from '../filter/parse'
import { splitOutside, withoutQuoted } from '../fragment'
import { MAX_FACETS, requireAtMost } from '../limits'
import { isDynamic } from '../schema/field'
import { hasValues, isArray, isGeopoint, isGeopolygon, isNumber, type StoredSchema } from '../schema/layout'
import { findField } from '../schema/schema'
import type { Field } from '../types'

/** Facets need values in columns. Places have no order to count by. */
const isFacet = (field: Field): boolean =>
  field.facet && hasValues(field) && !isGeopoint(field) && !isGeopolygon(field) && !isDynamic(field)

export interface FacetRange {
  label: string
  /** undefined: unbounded */
  from: number | bigint | undefined
  /** exclusive */
  to: number | bigint | undefined
}

export interface FacetRequest {
  field: Field
  /** empty: the values themselves are counted */
  ranges: FacetRange[]
  /** count only the best hits */
  topK: boolean
  /** also return the object around each value */
  returnParent: boolean
  /** undefined: by count, highest first */
  order: { by: 'value' | Field; direction: 'ASC' | 'DESC' } | undefined
}

/** `$collection(facets)`: facets of related documents. */
export interface JoinedFacets {
  collection: string
  facetBy: string
  /** how many facets of this collection come before */
  at: number
}

export interface FacetQuery {
  field: string
  text: string
  /** typos allowed in a word if no value begins with it as typed */
  maxTypos: number
}

const unknownFacet = (name: string): ApiError =>
  new ApiError(404, `Could not find a facet field named \`${name}\` in the schema.`)

/**
 * @param returnParent names of fields, with stars: their facets also return the object around each value
 * @throws ApiError 404 for a field that is not a facet, 400 for a bad range or order
 */
export function parseFacets(
  facetBy: string,
  returnParent: string,
  schema: StoredSchema,
): { facets: FacetRequest[]; joinedFacets: JoinedFacets[] } {
  const parts = splitOutside(facetBy, ',').filter((part) => part !== '')
  const names = splitOutside(returnParent, ',')
  const hasParent = (name: string): boolean =>
    names.some((wanted) => wanted === name || (wanted.endsWith('*') && name.startsWith(wanted.slice(0, -1))))
  const facets: FacetRequest[] = []
  const joinedFacets: JoinedFacets[] = []
  for (const part of parts) {
    if (part.startsWith('$')) {
      const join = readJoin(part)
      if (join === undefined || join.end < part.length) {
        throw new ApiError(400, `Error parsing reference facet: \`${part}\`.`)
      }
      joinedFacets.push({ collection: join.collection, facetBy: join.inside, at: facets.length })
      continue
    }
    const match = /^([^(]*[^(\s])\s*(?:\((.*)\))?$/s.exec(part)
    if (!match) throw unknownFacet(part)
    const name = match[1]!
    if (name.endsWith('*') && match[2] === undefined) {
      facets.push(...wildcard(name, schema))
      continue
    }
    const field = findField(schema, name)
    if (field === undefined || !isFacet(field)) throw unknownFacet(name)
    facets.push(parseOptions(field, match[2] ?? '', schema))
  }
  for (const facet of facets) facet.returnParent ||= hasParent(facet.field.name)
  return { facets, joinedFacets }
}

function wildcard(name: string, schema: StoredSchema): FacetRequest[] {
  const fields = schema.fields.filter((field) => isFacet(field) && field.name.startsWith(name.slice(0, -1)))
  if (fields.length === 0) {
    throw new ApiError(404, `Could not find a facet field for \`${name}\` in the schema.`)
  }
  return fields.map((field) => plainFacet(field))
}

const plainFacet = (field: Field): FacetRequest => ({
  field,
  ranges: [],
  topK: false,
  returnParent: false,
  order: undefined,
})

function parseOptions(field: Field, text: string, schema: StoredSchema): FacetRequest {
  const request = plainFacet(field)
  for (const option of splitOutside(text, ',').filter((part) => part !== '')) {
    const sort = /^sort_by\s*:\s*([^:]*[^:\s])\s*:\s*(\w+)$/.exec(option)
    if (sort) {
      request.order = parseOrder(sort[1]!, sort[2]!, schema)
    } else if (!option.includes('[')) {
      const [, name = '', value = ''] = /^([\w-]+)\s*:\s*(.*)$/s.exec(option) ?? []
      if (name === '') throw new ApiError(400, 'Invalid facet format.')
      if (name === 'sort_by') throw new ApiError(400, 'Invalid sort format.')
      if (name !== 'top_k' && name !== 'return_parent') {
        throw new ApiError(400, `Invalid facet param \`${name}\`.`)
      }
      if (value !== 'true' && value !== 'false') {
        throw new ApiError(400, `${name} string format is invalid.`)
      }
      request[name === 'top_k' ? 'topK' : 'returnParent'] = value === 'true'
    } else {
      request.ranges.push(parseRange(field, option))
      requireAtMost('facet_by', request.ranges.length, MAX_FACETS)
    }
  }
  return request
}

function parseOrder(by: string, direction: string, schema: StoredSchema): FacetRequest['order'] {
  const upper = direction.toUpperCase()
  if (upper !== 'ASC' && upper !== 'DESC') {
    throw detailed(400, 'Invalid sort param.', 'The order of a facet must be `asc` or `desc`.')
  }
  if (by === '_alpha') return { by: 'value', direction: upper }
  const field = findField(schema, by)
  if (field === undefined || !field.sort || !hasValues(field) || isArray(field)) {
    throw new ApiError(404, `Could not find a field named \`${by}\` in the schema for sorting.`)
  }
  return { by: field, direction: upper }
}

function parseRange(field: Field, option: string): FacetRange {
  if (!isNumber(field)) {
    throw new ApiError(400, 'Range facet is restricted to only integer and float fields.')
  }
  // A comma is missing. Labels in backticks may have brackets.
  if (/\]\s*\S/.test(withoutQuoted(option))) throw new ApiError(400, 'Invalid facet format.')
  if (/:\s*\[([^,\]]*,[^,\]]*,|[^\]]*$)/.test(option)) {
    throw new ApiError(400, 'Error splitting the facet range values.')
  }
  const match = /^(.+?)(?<!\s)\s*:\s*\[([^,[\]]*),([^,[\]]*)\]$/s.exec(option)
  const label = match?.[1]?.trim().replace(/^`(.*)`$/s, '$1') ?? ''
  const [from, to] = [bound(match?.[2]), bound(match?.[3])]
  if (label === '' || [from, to].some((end) => Number.isNaN(end))) {
    throw new ApiError(400, 'Facet range value is not valid.')
  }
  return { label, from, to }
}

const bound = (text: string | undefined): number | bigint | undefined => {
  if (text === undefined) return Number.NaN
  return text.trim() === '' ? undefined : exactNumber(text.trim())
}

/** @throws ApiError 400 for a query without a colon, or on a field that is not among the facets */
export function parseFacetQuery(
  text: string,
  maxTypos: number,
  facets: FacetRequest[],
): FacetQuery | undefined {
  if (text.trim() === '') return undefined
  const colon = text.indexOf(':')
  if (colon === -1) {
    throw new ApiError(400, 'Facet query must be in the `facet_field: value` format.')
  }
  if (facets.length === 0) {
    throw new ApiError(400, 'The `facet_query` parameter is supplied without a `facet_by` parameter.')
  }
  const field = text.slice(0, colon).trim()
  const value = text.slice(colon + 1).trim()
  if (value === '') return undefined
  if (!facets.some((facet) => facet.field.name === field)) {
    throw new ApiError(
      400,
      `Facet query refers to a facet field \`${field}\` that is not part of \`facet_by\` parameter.`,
    )
  }
  return { field, text: value, maxTypos }
}
