/** The language of what is imported. */
import { grammarsOf } from '../../../src/lib/grammar.ts'

/** What a field of such texts has. @typedef {{ locale?: string, stem?: boolean }} Language */

/** Fewer words of grammar than this do not tell a language: a list of names has some. */
const FEWEST = 8
/** Characters that are read of all texts, and of each. */
const [MOST_READ, MOST_OF_ONE] = [200_000, 2_000]

/**
 * How words of these texts are searched: by the stems of their language. English needs none, since questions are searched by English
 * stems anyway.
 * @param {string[]} texts
 * @returns {Language} nothing where the language is not known
 */
export function languageOf(texts) {
  const step = Math.max(1, Math.floor((texts.length * MOST_OF_ONE) / MOST_READ))
  const some = texts.filter((_, at) => at % step === 0).map((text) => text.slice(0, MOST_OF_ONE))
  const folded = some
    .join(' ')
    .toLowerCase()
    .normalize('NFD')
    .replace(/\p{M}/gu, '')
    .match(/\p{L}+/gu)
  const [grammar, ...others] = grammarsOf(folded ?? [], FEWEST)
  return grammar === undefined || others.length > 0 ? {} : { locale: grammar.locale, stem: true }
}
