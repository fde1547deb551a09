/**
 * The rules by which a field's texts are split into words. The field's own options override those of its collection.
 */
import type { CollectionSchema, Field } from '../types'
import type { TokenRules } from './analyzer'

type Schema = Pick<CollectionSchema, 'token_separators' | 'symbols_to_index'>

const KNOWN = new WeakMap<Schema, Map<string, TokenRules>>()

/** The rules of a field; those of the collection if it is undefined. Equal rules of a schema are the same object. */
export function rulesOf(schema: Schema, field: Field | undefined): TokenRules {
  if (field === undefined || !hasOwnRules(field)) return schema
  const known = KNOWN.get(schema) ?? new Map<string, TokenRules>()
  KNOWN.set(schema, known)
  const own = ownRules(schema, field)
  const key = JSON.stringify(own)
  const rules = known.get(key) ?? own
  known.set(key, rules)
  return rules
}

const hasOwnRules = ({
  token_separators,
  symbols_to_index,
  truncate_len,
  stem,
  stem_words,
}: Field): boolean =>
  stem ||
  stem_words !== undefined ||
  truncate_len !== undefined ||
  (token_separators?.length ?? 0) > 0 ||
  (symbols_to_index?.length ?? 0) > 0

function ownRules(schema: Schema, field: Field): TokenRules {
  const { token_separators, symbols_to_index, truncate_len, stem, stem_words, locale } = field
  // As in Typesense, a dictionary replaces the stemmer.
  const stemmer = stem_words ?? (stem ? locale : undefined)
  return {
    token_separators: token_separators?.length ? token_separators : schema.token_separators,
    symbols_to_index: symbols_to_index?.length ? symbols_to_index : schema.symbols_to_index,
    ...(truncate_len !== undefined && { truncate_len }),
    ...(stemmer !== undefined && { stem: stemmer }),
  }
}
