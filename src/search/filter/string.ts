/**
 * Filters on strings. They compare normal forms (text/compared.ts): case, accents and signs do not count.
 *
 *     field: a b    every word is in the value         field:=a b    the value is these words, in order
 *     field: a pre* the last one is a prefix           field:=a pre* the value begins like this
 *     field:"a b"   the words follow each other; other values of a list with a phrase are compared whole
 *
 * Of fields without values, only word_index has the words. It gives a superset, and the documents themselves decide (filter.ts).
 *
 * A field with `stem` or `stem_dictionary` is filtered by the stems that word_index has, as in Typesense.
 */

import type { StoredSchema } from '../schema/layout'
import { textCode, textColumn } from '../schema/shared-column'
import { analyzerOf, WORDS } from '../text/analyzer'
import { comparedWords, normalForm, spaced } from '../text/compared'
import { rulesOf } from '../text/rules'
import type { TokenRules } from '../text/words'
import type { Field } from '../types'
import { type FilterClause, isNegated, isPresence } from './parse'

export interface Pattern {
  /** what was asked for, as it was written */
  text: string
  /** its words; none if values are compared as a whole */
  tokens: readonly string[]
  /** its normal form */
  form: string
  /** the last token matches every word that begins with it */
  prefix: boolean
  /** the tokens follow each other in the value */
  phrase?: boolean
}

// More words would hardly shrink the superset, only lengthen the query.
const MAX_INDEX_WORDS = 16
/** Beginnings of words that the index is asked for: for each one FTS5 reads all words that begin so, whatever the range. */
const MOST_BEGINNINGS = 2

/** The values of a clause, as words. @param locale of the field. Where it has one, runs of a script without spaces are parted */
export function patternsOf(clause: FilterClause, rules: TokenRules, locale: string): readonly Pattern[] {
  const known = PREPARED.get(clause)
  if (known?.rules === rules && known.locale === locale) return known.patterns
  return clause.values.map(patternOf(comparesWhole(clause), rules, locale))
}

/** Values whose patterns are made between rests, and that a clause has at least if they are made beforehand. */
const AT_ONCE = 2_000
/** Patterns that are kept, over all clauses. */
const MOST_PREPARED = 100_000

/** The latest clauses of many values: a search asks for their patterns several times, and to make them takes long. */
const PREPARED = new Map<FilterClause, { rules: TokenRules; locale: string; patterns: Pattern[] }>()

/** Makes the patterns of a clause, so that `patternsOf` finds those of many values. @param rest lets others be served */
export async function preparePatterns(
  clause: FilterClause,
  rules: TokenRules,
  locale: string,
  rest: (values: number) => Promise<unknown>,
): Promise<void> {
  const { values } = clause
  if (values.length <= AT_ONCE || PREPARED.has(clause)) return
  const patterns: Pattern[] = []
  const make = patternOf(comparesWhole(clause), rules, locale)
  for (const value of values) {
    if (patterns.push(make(value)) % AT_ONCE === 0) await rest(AT_ONCE)
  }
  PREPARED.set(clause, { rules, locale, patterns })
  let kept = 0
  for (const { patterns } of PREPARED.values()) kept += patterns.length
  for (const [oldest, { patterns }] of PREPARED) {
    if (kept <= MOST_PREPARED || oldest === clause) break
    PREPARED.delete(oldest)
    kept -= patterns.length
  }
}

const patternOf =
  (isWhole: boolean, rules: TokenRules, locale: string) =>
  ({ text: given, quoted, phrase, open: isOpen, times }: FilterClause['values'][number]): Pattern => {
    // Any text may be a date: each is read (test.ts).
    if (times !== undefined) return { text: '', tokens: [], form: '', prefix: true }
    const open = isOpen ?? (!quoted && !phrase && given.endsWith('*'))
    const bare = phrase ? given.slice(1, -1) : open ? given.slice(0, -1) : given
    const whole = isWhole && !phrase
    const text = locale === '' || whole || phrase ? bare : spaced(bare).trim()
    const { words, begins } = wordsOf(text, rules, whole)
    const tokens = whole ? [] : (words ?? comparedWords(text, rules))
    const form = words?.join(' ') ?? (whole ? normalForm(text, rules) : tokens.join(' '))
    const prefix = form !== '' && (open || begins)
    return {
      text,
      tokens,
      form,
      prefix,
      ...(phrase && { phrase }),
    }
  }

/**
 * The words of a value as word_index has them, for a field with stems.
 * @param whole compared with all words of a value
 */
function wordsOf(text: string, rules: TokenRules, whole: boolean) {
  if (rules.stem === undefined) return { words: undefined, begins: false }
  const analyzer = analyzerOf(WORDS, rules)
  if (whole) return { words: analyzer.tokenize(text).map((word) => word.text), begins: false }
  return analyzer.phrase(text)
}

/** The form in which filters compare a value: its words, as the index has them. */
export const comparedForm = (text: string, rules: TokenRules): string =>
  wordsOf(text, rules, true).words?.join(' ') ?? normalForm(text, rules)

/** A value of signs has no words. `:` matches nothing by it; `:=` matches other values of signs. */
export const isUseful = ({ form, phrase }: Pattern, whole: boolean): boolean =>
  form !== '' || (whole && !phrase)

/** Whether values are compared as a whole. As in Typesense, a phrase in a list turns `:` into `:=` for the others. */
export const comparesWhole = ({ operator, values, list }: FilterClause): boolean =>
  operator === ':=' || operator === ':!=' || (list && values.some(({ phrase }) => phrase))

/** The texts that a value has to equal letter by letter; undefined if normal forms are compared. */
export const exactTexts = ({ values }: FilterClause): string[] | undefined =>
  values.every(({ exact }) => exact) ? values.map(({ text }) => text) : undefined

/**
 * An FTS5 expression of word_index that every document with a clause's words meets, and further ones.
 * @returns undefined if it would find no fewer documents than there are, or takes longer than to read them
 */
export function indexedWords(schema: StoredSchema, field: Field, clause: FilterClause): string | undefined {
  if (isNegated(clause) || isPresence(clause)) return undefined
  const rules = rulesOf(schema, field)
  const slot = schema.slots[field.name]!
  const patterns = patternsOf(clause, rules, field.locale).filter((pattern) =>
    isUseful(pattern, comparesWhole(clause)),
  )
  const asked = patterns.map((pattern) => wordsAsked(pattern, rules, textCode(slot)))
  const beginnings = asked.flat().filter((word) => word.endsWith('*'))
  if (asked.length === 0 || asked.some((words) => words.length === 0) || beginnings.length > MOST_BEGINNINGS)
    return undefined
  return `({${textColumn(slot)}} : (${asked.map((words) => `(${words.join(' AND ')})`).join(' OR ')}))`
}

/** @param code begins each word in the column that fields share */
function wordsAsked({ text, prefix }: Pattern, rules: TokenRules, code: string): string[] {
  const analyzer = analyzerOf(WORDS, rules)
  const pieces = analyzer.pieces(text)
  return pieces.slice(0, MAX_INDEX_WORDS).map((piece, index) => {
    const { words, begins } = analyzer.phrase(piece)
    const asked = words.map((word) => code + word).join(' ')
    const isOpen = begins || (prefix && index === pieces.length - 1)
    return `"${asked.replaceAll('"', '""')}"${isOpen ? '*' : ''}`
  })
}

/** Whether a value's normal form matches. @param whole the value is compared as a whole, unless it is a phrase */
export function matches(norm: string, { tokens, form, prefix, phrase }: Pattern, whole: boolean): boolean {
  if (phrase) return form !== '' && ` ${norm} `.includes(prefix ? ` ${form}` : ` ${form} `)
  if (whole) return prefix ? norm.startsWith(form) : norm === form
  const padded = ` ${norm} `
  return tokens.every((token, index) =>
    padded.includes(prefix && index === tokens.length - 1 ? ` ${token}` : ` ${token} `),
  )
}
