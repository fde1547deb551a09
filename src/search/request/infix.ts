/** The grammar of `infix`: whether a part of a word finds it, for each field of query_by. */
import { ApiError } from '../../errors'
import { splitOutside } from '../fragment'
import type { Field, SearchParameters } from '../types'

export interface InfixRequest {
  /** fields searched by parts of words in any case */
  always: Field[]
  /** the same, but only if nothing is found otherwise */
  fallback: Field[]
  /** characters of a word that may come before and after the part */
  extra: { before: number; after: number }
}

const MODES = ['off', 'always', 'fallback'] as const
/** Typesense's default of max_extra_prefix and max_extra_suffix. */
const MOST_EXTRA = 32_767

/**
 * @param queryBy the names as given
 * @param fields the string fields that they stand for
 * @throws ApiError 400
 */
export function parseInfix(params: SearchParameters, queryBy: string[], fields: Field[]): InfixRequest {
  const modes = splitOutside(params.infix || 'off', ',').map((text) => {
    const mode = MODES.find((name) => name === text)
    if (mode === undefined) {
      throw new ApiError(400, 'Parameter `infix` must be `off`, `always` or `fallback`.')
    }
    return mode
  })
  if (queryBy.length > 0 && modes.length !== 1 && modes.length !== queryBy.length) {
    throw new ApiError(400, 'Number of infix values in `infix` does not match number of `query_by` fields.')
  }
  const modeOf = ({ name }: Field): (typeof MODES)[number] => {
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
    extra: { before: extra(params, 'max_extra_prefix'), after: extra(params, 'max_extra_suffix') },
  }
}

function extra(params: SearchParameters, name: string): number {
  const text = params[name]
  if (text === undefined || text === '') return MOST_EXTRA
  if (!/^\d{1,9}$/.test(text)) throw new ApiError(400, `Parameter \`${name}\` must be an unsigned integer.`)
  return Number(text)
}
