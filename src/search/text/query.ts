/**
 * The words of `q`, and how they are put to text_index.
 *
 * Every word reaches FTS5 in double quotes, so nothing that a user types is ever syntax. A word that the
 * tokenizer takes apart (`state-of-the-art`) is a phrase. As in Typesense, "double quotes" make a phrase and
 * a leading minus excludes a word or a phrase.
 */
import { stemmer } from 'stemmer'
import { STOPWORDS } from './stopwords'
import { prepare, type TokenRules, tokenize } from './words'

export interface Term {
  /** folded words; more than one is a phrase */
  tokens: string[]
  /** the same words as they were typed: FTS5 folds by rules of its own, and so it gets these */
  written: string[]
  /** the last token stands for every word that begins with it */
  prefix: boolean
  /** words of the index to take instead, because it does not hold this one */
  corrections: string[]
}

export interface ParsedQuery {
  terms: Term[]
  excluded: Term[]
}

/**
 * All that a query asks for; how much of it takes part in a search, long-query.ts says.
 * @param prefix whether the last word may be unfinished
 */
export function parseQuery(q: string, rules: TokenRules, prefix: boolean): ParsedQuery {
  const terms: Term[] = []
  const excluded: Term[] = []
  const seen = new Set<string>()
  const parts = [...q.matchAll(/(?<=^|\s)(-?)"([^"]*)"|(\S+)/g)]
  for (const [index, part] of parts.entries()) {
    const minus = part[1] === '-' || /^-[^-]/.test(part[3] ?? '')
    const text = part[2] ?? part[3]!
    const words = tokenize(text, rules)
    const tokens = words.map((word) => word.text)
    const written = words.map(({ start, end }) => text.slice(start, end))
    if (tokens.length === 0) continue
    const unfinished = prefix && !minus && part[3] !== undefined && index === parts.length - 1
    const key = `${minus ? '-' : ''}${tokens.join(' ')}${unfinished ? '*' : ''}`
    if (seen.has(key)) continue
    seen.add(key)
    const term = { tokens, written, prefix: unfinished, corrections: [] }
    if (minus) excluded.push(term)
    else terms.push(term)
  }
  return { terms, excluded }
}

/**
 * The terms of a relaxed query: single words, stopwords left out unless there is nothing else, and phrases as
 * such beside their words, which ranks documents that have the words together higher.
 */
export function relax(terms: Term[]): Term[] {
  const relaxed: Term[] = []
  const seen = new Set<string>()
  const add = (term: Term): void => {
    const key = term.tokens.join(' ')
    if (seen.has(key)) return
    seen.add(key)
    relaxed.push(term)
  }
  for (const term of terms) {
    if (term.tokens.length === 1) {
      add(term)
      continue
    }
    add(term)
    for (const [index, token] of term.tokens.entries()) {
      add({ tokens: [token], written: [term.written[index]!], prefix: false, corrections: [] })
    }
  }
  const informative = relaxed.filter((term) => !term.tokens.every((token) => STOPWORDS.has(token)))
  return informative.length > 0 ? informative : relaxed
}

/** How many words of a query say what it is about. */
export const informativeWords = (terms: Term[]): number =>
  terms.filter((term) => !term.tokens.every((token) => STOPWORDS.has(token))).length

/**
 * A term as FTS5 reads it.
 * @param prefix whether its last word may match by its beginning here
 */
export function termExpression(term: Term, rules: TokenRules, prefix: boolean): string {
  const words = prepare(term.written.join(' '), rules).trim().replace(/\s+/g, ' ')
  const alternatives = [`"${words}"`]
  if (prefix && term.prefix) {
    alternatives[0] += '*'
    if (term.tokens.length === 1) {
      alternatives.push(...completions(term.tokens[0]!).map((word) => `"${word}"`))
    }
  }
  alternatives.push(...term.corrections.map((word) => `"${word}"`))
  return alternatives.length === 1 ? alternatives[0]! : `(${alternatives.join(' OR ')})`
}

/**
 * The MATCH expression of a query.
 * @param columns text columns to look in, each with whether the last word matches by its beginning there
 * @param operator whether every term has to be found (in any of the columns) or one of them
 */
export function matchExpression(
  terms: Term[],
  excluded: Term[],
  columns: { column: string; prefix: boolean }[],
  operator: 'AND' | 'OR',
  rules: TokenRules,
): string {
  const names = (some: { column: string }[]): string => `{${some.map(({ column }) => column).join(' ')}}`
  const withPrefix = columns.filter(({ prefix }) => prefix)
  const withoutPrefix = columns.filter(({ prefix }) => !prefix)
  const expressions = terms.map((term) => {
    if (!term.prefix || withPrefix.length === 0) return termExpression(term, rules, false)
    if (withoutPrefix.length === 0) return termExpression(term, rules, true)
    const either = [
      `${names(withPrefix)} : (${termExpression(term, rules, true)})`,
      `${names(withoutPrefix)} : (${termExpression(term, rules, false)})`,
    ]
    return `(${either.join(' OR ')})`
  })
  const wanted = expressions.join(` ${operator} `)
  if (excluded.length === 0) return `${names(columns)} : (${wanted})`
  const unwanted = excluded.map((term) => termExpression(term, rules, false)).join(' OR ')
  if (terms.length === 0) return `${names(columns)} : (${unwanted})`
  return `${names(columns)} : ((${wanted}) NOT (${unwanted}))`
}

// Endings that Porter's stemmer takes off, the combined ones too.
const ENDINGS =
  `s es ed ing ies ied ying ly ment ments ness nesses ful fully fulness less al ally als ial ially ical ically
icals ic ics able ably ible ibly ability ibility ance ances ence ences ancy ency ant ants ent ents ation ations
ational ationally ator ators ition itions ion ions ional ionally ize izes ized izing izer izers ization
izations ise ised ising isation ism isms ist ists ity ities iti ive ives ively iveness ous ously ousness er ers
eness ate ates ated ating y e`.split(/\s+/)

/**
 * Words that what was typed so far may become and that the stemmer shortens below it.
 *
 * The index holds stems, so the prefix query for `documentati` misses `document`, the stem of
 * `documentation`. A completion stands for its stem: it is a word that begins with what was typed and whose
 * stem does not. Whole words are returned because FTS5 stems what it is asked, and stems of stems differ
 * (university, univers, univer).
 */
export function completions(typed: string): string[] {
  if (!/^[a-z]{4,}$/.test(typed)) return []
  const typedStem = stemmer(typed)
  const byStem = new Map<string, string>()
  for (const ending of ENDINGS) {
    // A doubled consonant is the beginning of -ing or -ed alone: stopp, stopped, stop.
    const doubled = /([b-df-hj-np-tv-z])\1$/.test(typed) && (ending === 'ing' || ending === 'ed')
    for (let shared = doubled ? 0 : 1; shared <= Math.min(ending.length, typed.length - 3); shared++) {
      const begun = ending.slice(0, shared)
      if (!typed.endsWith(begun)) continue
      const root = typed.slice(0, typed.length - shared)
      const word = root + ending
      const stem = stemmer(word)
      // Nothing shorter than three letters: `string` is no form of `str`, nor `thing` of `th`.
      if (stem.length < 3 || stem.startsWith(typedStem) || !/[aeiouy]/.test(stem)) continue
      const known = byStem.get(stem)
      if (known === undefined || word.length < known.length) byStem.set(stem, word)
    }
  }
  return [...byStem.values()]
}
