/** Which fields of the hits are highlighted, and how. */
import { isDynamic } from '../schema/field'
import { isString, type StoredSchema } from '../schema/layout'
import type { SearchParameters } from '../types'
import { parameter } from './parameters'

export interface HighlightOptions {
  /** undefined: the string fields of query_by */
  fields: string[] | undefined
  /** fields whose whole value is highlighted too */
  fullFields: string[]
  startTag: string
  endTag: string
  affixTokens: number
  snippetThreshold: number
  /** also return `highlights`, the old form */
  v1: boolean
}

/** @throws ApiError 400 */
export function parseHighlight(params: SearchParameters, schema: StoredSchema): HighlightOptions {
  const named = withStars(parameter(params, 'highlight_fields'), schema)
  const full = withStars(parameter(params, 'highlight_full_fields'), schema)
  return {
    fields: !params.highlight_fields ? undefined : named[0] === 'none' ? [] : named,
    fullFields: full[0] === 'none' ? [] : full,
    startTag: params.highlight_start_tag ?? '<mark>',
    endTag: params.highlight_end_tag ?? '</mark>',
    affixTokens: parameter(params, 'highlight_affix_num_tokens'),
    snippetThreshold: parameter(params, 'snippet_threshold'),
    v1: parameter(params, 'enable_highlight_v1'),
  }
}

/** Names of fields, where `user*` stands for all string fields that begin so. */
const withStars = (names: string[], schema: StoredSchema): string[] =>
  names.flatMap((name) =>
    name.endsWith('*')
      ? schema.fields
          .filter((field) => field.name.startsWith(name.slice(0, -1)) && isString(field) && !isDynamic(field))
          .map((field) => field.name)
      : [name],
  )
