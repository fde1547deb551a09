/** A synonym as a synonym set has it, and the checks of its JSON, in Typesense's words. */

import { refuse } from '../refused'
import { isObject } from '../schema/values'

const NO_SYNONYMS = 'Could not find an array of `synonyms`'
const BAD_SYNONYMS = 'Could not find a valid string array of `synonyms`'

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''

/** Typesense before 0.24 wrote a phrase as a list of its words. */
function phraseOf(value: unknown): string {
  if (isText(value)) return value
  if (!Array.isArray(value) || value.length === 0 || !value.every(isText)) refuse(BAD_SYNONYMS)
  return value.join(' ')
}

function rootOf(root: unknown): string {
  if (root === undefined || root === null) return ''
  if (typeof root === 'string') return root
  if (!Array.isArray(root)) refuse('Key `root` should be a string.')
  if (!root.every((word) => typeof word === 'string')) refuse('Synonym root is not valid.')
  return root.join(' ')
}

export type Synonym = ReturnType<typeof synonymOf>

/** @throws ApiError 400 */
export function synonymOf(body: unknown) {
  if (!isObject(body)) refuse('Bad JSON.')
  const { id, synonyms, locale, symbols_to_index: symbols } = body
  if (id === undefined) refuse('Missing `id` field.')
  if (!isText(id)) refuse('The `id` of a synonym should be a non-empty string.')
  if (!Array.isArray(synonyms) || synonyms.length === 0) refuse(NO_SYNONYMS)
  if (locale !== undefined && typeof locale !== 'string') refuse('Synonym `locale` should be a string.`')
  if (symbols !== undefined) {
    if (
      !Array.isArray(symbols) ||
      symbols.length === 0 ||
      !symbols.every((sign) => typeof sign === 'string')
    ) {
      refuse('Synonym `symbols_to_index` should be an array of strings.')
    }
    if (!symbols.every((sign) => sign.length === 1)) {
      refuse('Synonym `symbols_to_index` should be an array of single character symbols.')
    }
  }
  return {
    id,
    /** the phrase that is replaced; '' if each of `synonyms` can stand for all others */
    root: rootOf(body.root),
    synonyms: synonyms.map(phraseOf),
    /** fields of this locale alone */
    ...(locale ? { locale } : {}),
    /** symbols that count as part of words in these texts */
    ...(symbols === undefined ? {} : { symbols_to_index: symbols }),
  }
}
