/**
 * The words of `q`, and the FTS5 expressions made of them.
 *
 * Every word goes to FTS5 in double quotes, so user input is never syntax. A word that the tokenizer splits
 * (`state-of-the-art`) becomes a phrase. As in Typesense, "double quotes" make a phrase, and a leading minus excludes
 * a word or phrase.
 */
import { stemmer } from 'stemmer'
import { STOPWORDS } from './stopwords'
import { expressionsOf, relaxSynonyms } from './synonyms'
import type { ParsedQuery, Term } from './term'
import { PLAIN, prepare, type TokenRules, tokenize } from './words'

export type { ParsedQuery, Term }

/**
 * Parses all that a query asks for. long-query.ts decides how much of it a search uses.
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
    const term: Term = { tokens, written, prefix: unfinished, corrections: [] }
    if (part[2] !== undefined) term.quoted = true
    if (minus) excluded.push(term)
    else terms.push(term)
  }
  return { terms, excluded }
}

/** The query without some words. A query of such words alone stays as it is, and so does a phrase in quotes. */
export function withoutStopwords(query: ParsedQuery, stopwords: string[], rules: TokenRules): ParsedQuery {
  if (stopwords.length === 0) return query
  const dropped = new Set(stopwords.flatMap((word) => tokenize(word, rules).map(({ text }) => text)))
  const terms = query.terms.filter(({ tokens }) => tokens.length > 1 || !dropped.has(tokens[0]!))
  return terms.length > 0 ? { ...query, terms } : query
}

/**
 * The terms of a relaxed query: single words without stopwords (unless there is nothing else). Phrases stay beside
 * their words, so that documents with the whole phrase rank higher.
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
  return relaxSynonyms(terms, informative.length > 0 ? informative : relaxed)
}

/** How many words of a query are not stopwords. */
export const informativeWords = (terms: Term[]): number =>
  terms.filter((term) => !term.tokens.every((token) => STOPWORDS.has(token))).length

/** Informative words up to which a question is short. */
const SHORT = 5

/** Whether a question says so little that the one before it may tell what it is about. */
export const isShort = (question: string): boolean =>
  informativeWords(parseQuery(question, PLAIN, false).terms) <= SHORT

/**
 * A term as an FTS5 expression.
 * @param prefix whether the last word may match by its beginning
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
 * @param columns text columns to search, and whether the last word may match by its beginning in each
 * @param operator AND: every term has to be in one of the columns. OR: one term is enough
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
  const expressions = expressionsOf(terms, (term) => {
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

// Endings that Porter's stemmer removes, combined ones included.
const ENDINGS =
  `s es ed ing ies ied ying ly ment ments ness nesses ful fully fulness less al ally als ial ially ical ically
icals ic ics able ably ible ibly ability ibility ance ances ence ences ancy ency ant ants ent ents ation ations
ational ationally ator ators ition itions ion ions ional ionally ize izes ized izing izer izers ization
izations ise ised ising isation ism isms ist ists ity ities iti ive ives ively iveness ous ously ousness er ers
eness ate ates ated ating y e`.split(/\s+/)

/**
 * Words that an unfinished word may become but that the prefix query misses, because the stemmer cuts them shorter
 * than what was typed.
 *
 * The index holds stems. So the prefix query for `documentati` misses `document`, the stem of `documentation`. Each
 * completion begins with what was typed and has a stem that does not. Whole words are returned because FTS5 stems
 * what it is asked, and the stem of a stem can differ (university, univers, univer).
 */
export function completions(typed: string): string[] {
  if (!/^[a-z]{4,}$/.test(typed)) return []
  const typedStem = stemmer(typed)
  const byStem = new Map<string, string>()
  for (const ending of ENDINGS) {
    // A doubled consonant only occurs before -ing and -ed: stopp, stopped, stop.
    const doubled = /([b-df-hj-np-tv-z])\1$/.test(typed) && (ending === 'ing' || ending === 'ed')
    for (let shared = doubled ? 0 : 1; shared <= Math.min(ending.length, typed.length - 3); shared++) {
      const begun = ending.slice(0, shared)
      if (!typed.endsWith(begun)) continue
      const root = typed.slice(0, typed.length - shared)
      const word = root + ending
      const stem = stemmer(word)
      // Stems have at least three letters: `string` is not a form of `str`, nor `thing` of `th`.
      if (stem.length < 3 || stem.startsWith(typedStem) || !/[aeiouy]/.test(stem)) continue
      const known = byStem.get(stem)
      if (known === undefined || word.length < known.length) byStem.set(stem, word)
    }
  }
  return [...byStem.values()]
}
