/** The parameters that every way of writing documents shares. */
import { ApiError } from '../../errors'
import { insteadOf, passes, type Refused, refused } from '../../search/refused'
import type { DirtyValues, SearchParameters, WriteAction, WriteOptions } from '../../search/types'

const ACTIONS = new Set<string>(['create', 'update', 'upsert', 'emplace'] satisfies WriteAction[])
const DIRTY_VALUES = new Set<string>([
  'coerce_or_reject',
  'coerce_or_drop',
  'drop',
  'reject',
] satisfies DirtyValues[])

/** Parameters that are refused for changing, deleting and exporting documents. */
export const REFUSED_OF_DOCUMENTS: Readonly<Record<string, Refused>> = {
  validate_field_names: refused('A filter names fields of the schema alone.', '', 'true'),
}

/** @throws ApiError 400 for a filter whose unknown fields are to be passed over */
export function requireKnownFields(query: SearchParameters): void {
  for (const [name, refusal] of Object.entries(REFUSED_OF_DOCUMENTS)) {
    const value = query[name]
    if (value === undefined || passes(refusal, value)) continue
    throw new ApiError(400, `Parameter \`${name}\` is not supported here. ${insteadOf(refusal)}`)
  }
}

/** @throws ApiError 400 for an unknown action */
export function writeOptions(query: SearchParameters): WriteOptions {
  const action = query.action ?? 'create'
  if (!ACTIONS.has(action)) {
    throw new ApiError(400, 'Parameter `action` must be a create|update|upsert.')
  }
  return { action: action as WriteAction, ...dirtyValues(query) }
}

/** An unknown value means the default, which depends on the schema. */
export function dirtyValues(query: SearchParameters): { dirtyValues?: DirtyValues } {
  const value = query.dirty_values?.toLowerCase() ?? ''
  return DIRTY_VALUES.has(value) ? { dirtyValues: value as DirtyValues } : {}
}
