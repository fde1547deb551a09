/** The grammar of `infix`: whether a part of a word finds it, for each field of query_by. */
import type { Field, SearchParameters } from '../types'
import { parameter, requireOneForEach, type ValueOf } from './parameters'

export interface InfixRequest {
  /** fields searched by parts of words in any case */
  always: Field[]
  /** the same, but only if nothing is found otherwise */
  fallback: Field[]
  /** characters of a word that may come before and after the part */
  extra: { before: number; after: number }
}

/**
 * @param queryBy the names as given
 * @param fields the string fields that they stand for
 * @throws ApiError 400
 */
export function parseInfix(params: SearchParameters, queryBy: string[], fields: Field[]): InfixRequest {
  const modes = parameter(params, 'infix')
  requireOneForEach('infix values', 'infix', modes, queryBy, 1)
  const modeOf = ({ name }: Field): ValueOf<'infix'>[number] => {
    if (modes.length === 1) return modes[0]!
    // A star, or the name of an object, stands for the fields below it.
    const at = queryBy.findIndex(
      (given) => given === name || name.startsWith(given.endsWith('*') ? given.slice(0, -1) : `${given}.`),
    )
    return modes[at] ?? 'off'
  }
  return {
    always: fields.filter((field) => modeOf(field) === 'always'),
    fallback: fields.filter((field) => modeOf(field) === 'fallback'),
    extra: { before: parameter(params, 'max_extra_prefix'), after: parameter(params, 'max_extra_suffix') },
  }
}
