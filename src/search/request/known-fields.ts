/** `validate_field_names=false`: a search ignores fields that the schema lacks, instead of refusing them. */
import { withoutUnknown } from '../filter/parse'
import { findField } from '../schema/find-field'
import type { StoredSchema } from '../schema/layout'
import type { SearchParameters } from '../types'
import { list, parameter } from './parameters'

/** Parameters that have one value for each field of query_by. */
const BY_FIELD = ['query_by_weights', 'prefix', 'num_typos', 'infix']

/** The filter that no document passes. */
const NOTHING = 'id:[]'

/**
 * The parameters without the names of unknown fields. As in Typesense, a filter on an unknown field matches nothing. A
 * search that has no field left to search or to group by finds nothing. sort_by is always checked.
 */
export function withKnownFields(params: SearchParameters, schema: StoredSchema): SearchParameters {
  if (parameter(params, 'validate_field_names')) return params
  const isKnown = (name: string): boolean =>
    name === 'id' ||
    name.startsWith('$') ||
    findField(schema, name) !== undefined ||
    (name.endsWith('*') && schema.fields.some((field) => field.name.startsWith(name.slice(0, -1))))
  const known: SearchParameters = { ...params, filter_by: withoutUnknown(params.filter_by ?? '', isKnown) }
  const queryBy = list(params.query_by)
  for (const name of BY_FIELD) {
    const values = list(params[name])
    if (values.length !== queryBy.length || values.length === 1) continue
    known[name] = values.filter((_, index) => isKnown(queryBy[index]!)).join(',')
  }
  for (const name of ['query_by', 'group_by']) {
    const given = list(params[name])
    const kept = given.filter(isKnown)
    if (given.length > 0) known[name] = kept.join(',')
    if (given.length > 0 && kept.length === 0) known.filter_by = NOTHING
  }
  if (params.query_by && !known.query_by) known.q = '*'
  const facets = list(params.facet_by)
  known.facet_by = facets.filter((facet) => isKnown(/^[^(]*/.exec(facet)![0].trim())).join(',')
  return known
}
