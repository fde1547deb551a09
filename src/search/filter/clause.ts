/** Clauses as SQL, and the fields that they name. */
import { ApiError } from '../../errors'
import { fragment, not, type SqlFragment } from '../fragment'
import { findField } from '../schema/find-field'
import { isBool, isGeopoint, isNumber, isString, isVector, type StoredSchema } from '../schema/layout'
import type { Field } from '../types'
import { someValue } from './columns'
import { type FilterContext, filterError } from './context'
import { circlesClause } from './geopoint'
import { boolClause, numberClause } from './number'
import { type FilterClause, isNegated, isPresence } from './parse'
import { stringClause } from './string'

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

/** @param clause a light one (cost.ts) @throws ApiError 400 */
export function clauseSql(context: FilterContext, clause: FilterClause): SqlFragment {
  if (clause.field === 'id') return idClause(clause)
  const field = filterField(context.schema, clause.field, clause)
  if (clause.values.length === 0) return fragment(isNegated(clause) ? '1' : '0')
  const matched = isPresence(clause)
    ? someValue(context.schema, field, ({ value }) => fragment(`${value} IS NOT NULL`))
    : matcher(field)(context, field, clause)
  return isNegated(clause) ? not(matched) : matched
}

function matcher(field: Field) {
  if (isNumber(field)) return numberClause
  if (isBool(field)) return boolClause
  if (isGeopoint(field)) return circlesClause
  if (isString(field)) return stringClause
  return () => {
    throw filterError(field.name, 'Unidentified field data type, see docs for supported data types.')
  }
}

function idClause(clause: FilterClause): SqlFragment {
  checkNotEmpty('id', clause)
  if (isAnyId(clause)) return fragment(isNegated(clause) ? '0' : '1')
  const ids = JSON.stringify(clause.values.map(({ text }) => text))
  const matched = fragment(
    'd.seq IN (SELECT seq FROM documents WHERE id IN (SELECT value FROM json_each(?)))',
    ids,
  )
  return isNegated(clause) ? not(matched) : matched
}

/** Whether a clause on `id` asks for any. */
export const isAnyId = ({ values }: FilterClause): boolean =>
  values.some(({ text, quoted }) => text === '*' && !quoted)

/** An empty list is allowed. It matches no value. @throws ApiError 400 */
export function checkNotEmpty(name: string, { values }: FilterClause): void {
  if (values.some(({ text, exact }) => text === '' && !exact))
    throw filterError(name, 'Filter value cannot be empty.')
}
