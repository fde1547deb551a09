/** Infix search: a part of a word finds it, in fields with `infix: true`. */
import { ApiError } from '../../errors'
import type { SearchRequest } from '../request/request'
import { wordsAround } from '../schema/infix-index'
import type { ParsedQuery } from '../text/query'
import type { Field } from '../types'
import type { SearchContext } from './context'

/** Words that one word of a query may stand for. */
const MAX_WORDS = 500

/**
 * The query with the words around each of its words, as further words to search for.
 * @param fields whose words are looked at
 * @throws ApiError 400 for a field without an infix index
 */
export function withInfix(
  { sql, schema }: SearchContext,
  { infix: { extra } }: SearchRequest,
  query: ParsedQuery,
  fields: Field[],
): ParsedQuery {
  if (fields.length === 0) return query
  const slots = fields.map(({ name }) => {
    const slot = schema.slots[name]
    if (slot?.infix) return slot
    throw new ApiError(
      400,
      `Could not find \`${name}\` in the infix index. Make sure to enable infix search by specifying \`infix: true\` in the schema.`,
    )
  })
  const terms = query.terms.map((term) => {
    const [part, ...more] = term.tokens
    if (part === undefined || more.length > 0) return term
    const words = slots.flatMap((slot) => wordsAround(sql, slot, part, extra, MAX_WORDS))
    const others = [...new Set(words)].filter((word) => word !== part).slice(0, MAX_WORDS)
    return { ...term, corrections: [...term.corrections, ...others] }
  })
  return { ...query, terms }
}
