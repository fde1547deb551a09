/** Infix search: a part of a word finds it, in fields with `infix: true`. */
import { ApiError } from '../../errors'
import type { SearchRequest } from '../request/request'
import { wordsAround } from '../schema/infix-index'
import type { FieldSlot, StoredSchema } from '../schema/layout'
import { WORDS } from '../text/analyzer'
import type { ParsedQuery, Term } from '../text/query'
import { vocabularyOf } from '../text/typo'
import type { Field } from '../types'
import type { SearchContext } from './context'
import type { Pace } from './pace'

/**
 * The most words that all words of a query may expand to together. FTS5 counts the documents of each one for BM25 in every
 * statement, and meanwhile nobody else is served: 1,000 words take 50 ms, however few documents the statement reads.
 */
const MAX_WORDS = 320
/** Only the first words of a query, at most this many, are looked for inside other words. */
const MAX_TERMS = 8

/** @throws ApiError 400 for a field without an infix index */
export const requireInfix = (schema: StoredSchema, fields: Field[]): FieldSlot[] =>
  fields.map(({ name }) => {
    const slot = schema.slots[name]
    if (slot?.infix) return slot
    throw new ApiError(
      400,
      `Could not find \`${name}\` in the infix index. Make sure to enable infix search by specifying \`infix: true\` in the schema.`,
    )
  })

/**
 * The query with the words around each of its words, as further words to search for.
 * @param fields whose words are looked at
 * @throws ApiError 400 for a field without an infix index, and what `pace` throws
 */
export async function withInfix(
  context: SearchContext,
  { infix: { extra } }: SearchRequest,
  query: ParsedQuery,
  fields: Field[],
  pace: Pace,
): Promise<ParsedQuery> {
  if (fields.length === 0) return query
  const { sql, schema } = context
  const slots = requireInfix(schema, fields)
  const vocabulary = vocabularyOf(sql, WORDS)
  const parts = query.terms.filter(isPart).slice(0, MAX_TERMS)
  const limit = Math.floor(MAX_WORDS / Math.max(1, parts.length))
  const expanded = new Map<Term, Term>()
  for (const term of parts) {
    const part = term.tokens[0]!
    const words = new Set<string>()
    for (const slot of slots) {
      const rows = pace.query<{ word: string }>(sql, wordsAround(slot, part, extra, limit, vocabulary))
      for (const { word } of rows) if (word !== part && words.size < limit) words.add(word)
      await pace.rest()
    }
    expanded.set(term, { ...term, corrections: [...term.corrections, ...words] })
    if (pace.cutoff) break
  }
  return { ...query, terms: query.terms.map((term) => expanded.get(term) ?? term) }
}

const isPart = ({ tokens }: Term): boolean => tokens.length === 1
