/**
 * The words of `q`, and the FTS5 expressions made of them.
 *
 * Every word goes to FTS5 in double quotes, so user input is never syntax. A word that the tokenizer splits
 * (`state-of-the-art`) becomes a phrase. As in Typesense, "double quotes" make a phrase, and a leading minus excludes
 * a word or phrase. A minus that the index holds as a symbol is part of its word.
 */

import { grammarsOf, isEnglishGrammar } from '../../lib/grammar'
import type { CollectionSchema, Field } from '../types'
import {
  type Analyzer,
  foldWord,
  PLAIN,
  stemAnalyzer,
  type TextIndex,
  type TokenRules,
  tokenize,
} from './analyzer'
import { expressionsOf, relaxSynonyms } from './synonyms'
import { isOpen, type ParsedQuery, type Term, type Typos, termOf, typed } from './term'

/** A query of a full-text index: an FTS5 expression, and the weights in the form of FTS5's `rank`. */
export interface TextMatch {
  match: string
  table: TextIndex['table']
  /** `bm25(2.0, 1.0)` */
  rank: string
  /** an FTS5 expression. Its matches come before all others */
  first?: string
}

export type { ParsedQuery, Term }
export { isOpen, termOf, typed }

/**
 * Parses the whole query. `termsFor` decides how many of its terms a search uses.
 * @param prefix whether the last word that is not excluded may be unfinished, as in Typesense
 */
export function parseQuery(q: string, analyzer: Analyzer, prefix: boolean): ParsedQuery {
  const terms: Term[] = []
  const excluded: Term[] = []
  const seen = new Set<string>()
  const parts = [...q.matchAll(/(?<=^|\s)(-?)"([^"]*)"|(\S+)/g)]
  const excludes = q.includes('-') && analyzer.tokenize('-').length === 0
  const isExcluded = (part: RegExpExecArray) => excludes && (part[1] === '-' || /^-[^-]/.test(part[3] ?? ''))
  const last = parts.findLastIndex((part) => !isExcluded(part))
  for (const [index, part] of parts.entries()) {
    const minus = isExcluded(part)
    const bare = part[2] ?? (minus ? part[3]!.slice(1) : part[3]!)
    const pieces = part[2] !== undefined || minus ? [bare] : analyzer.pieces(bare)
    for (const [at, piece] of pieces.entries()) {
      const term = termOf(piece, analyzer)
      if (term === undefined) continue
      term.prefix = prefix && part[3] !== undefined && index === last && at === pieces.length - 1
      const key = `${minus ? '-' : ''}${term.tokens.join(' ')}${term.prefix ? '*' : ''}`
      if (seen.has(key)) {
        const before = terms.at(-1)
        if (before !== undefined && !minus) before.repeats = (before.repeats ?? '') + typed(term)
        continue
      }
      seen.add(key)
      if (part[2] !== undefined) term.quoted = true
      if (minus) excluded.push(term)
      else terms.push(term)
    }
  }
  return { terms, excluded }
}

/** The query without some words. A phrase in quotes stays as it is. */
export function withoutStopwords(query: ParsedQuery, stopwords: string[], analyzer: Analyzer): ParsedQuery {
  if (stopwords.length === 0) return query
  const dropped = new Set(stopwords.flatMap((word) => analyzer.tokenize(word).map(({ text }) => text)))
  const terms = query.terms.filter(
    ({ tokens, quoted }) => quoted || tokens.length > 1 || !dropped.has(tokens[0]!),
  )
  return { ...query, terms, onlyStopwords: terms.length === 0 && query.terms.length > 0 }
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
    add(term)
    if (term.tokens.length === 1) continue
    for (const [index, token] of term.tokens.entries()) {
      add({ tokens: [token], written: [term.written[index]!], prefix: false, corrections: [] })
    }
  }
  const informative = withoutGrammar(relaxed)
  return relaxSynonyms(terms, informative.length > 0 ? informative : relaxed)
}

/** How many words of a query are not stopwords. */
export const informativeWords = (terms: Term[]): number => withoutGrammar(terms).length

/** The terms that are not stopwords alone. */
function withoutGrammar(terms: Term[]): Term[] {
  const isGrammar = grammarIn(terms)
  return terms.filter((term) => !isGrammar(term))
}

/** Informative words up to which a question is short. */
const SHORT = 5

/** Whether a question has so few informative words that its topic may be in the question before it. */
export const isShort = (question: string): boolean =>
  informativeWords(parseQuery(question, stemAnalyzer(PLAIN), false).terms) <= SHORT

/** Words for FTS5, between double quotes: in a shared column, each with its code (schema/tables.ts). */
export const inQuotes = (words: readonly string[], { analyzer, code = '' }: InColumn): string =>
  words
    .map((word) => (code === '' ? word : code + analyzer.indexed(word)))
    .join(' ')
    .replaceAll('"', '""')

/**
 * A term as an FTS5 expression for a column.
 * @returns undefined if the analyzer finds no words in it
 */
function termExpression(term: Term, column: InColumn): string | undefined {
  const { analyzer, prefix, typos, code } = column
  const { words, text, begins } = analyzer.phrase(typed(term))
  if (text === '') return undefined
  const alternatives = [`"${code ? inQuotes(words, column) : text}"`]
  const isUnfinished = prefix && term.prefix
  if (begins || (isUnfinished && isOpen(term))) alternatives[0] += '*'
  const completed = isUnfinished && term.tokens.length === 1 ? analyzer.completions(term.tokens[0]!) : []
  for (const word of [...completed, ...correctionsFor(term, prefix, typos)]) {
    alternatives.push(`"${inQuotes([word], column)}"`)
  }
  return alternatives.length === 1 ? alternatives[0]! : `(${alternatives.join(' OR ')})`
}

/** The most that any search allows. */
const MOST_TYPOS = 2

/** A text column to search. */
export interface SearchedColumn {
  column: string
  /** whether the last word of the query may match by its beginning */
  prefix: boolean
  analyzer: Analyzer
  /** typos that its words may have; undefined: as many as the search allows */
  typos?: number | undefined
  /** the code that begins the field's words there (schema/tables.ts) */
  code?: string
}

type InColumn = Omit<SearchedColumn, 'column'>

/** Columns with the same rules. */
export type ColumnGroup = InColumn & { names: string }

/**
 * Adapts terms to the rules of some columns: unfinished only if prefixes count there, and with no more typos than
 * allowed.
 */
export const termsFor = (terms: readonly Term[], { prefix, typos }: InColumn): Term[] =>
  terms.map((term) => ({
    ...term,
    prefix: term.prefix && prefix,
    corrections: correctionsFor(term, prefix, typos),
  }))

function correctionsFor(
  { corrections, typos, prefix }: Term,
  takesPrefix: boolean,
  most = MOST_TYPOS,
): string[] {
  if (typos === undefined) return corrections
  const isEnough = ({ whole, beginning }: Typos) => (prefix && takesPrefix ? beginning : whole) <= most
  return corrections.filter((word) => {
    const distance = typos.get(word)
    return distance === undefined || isEnough(distance)
  })
}

/**
 * The MATCH expression of a query.
 * @param columns those with equal rules must have the same analyzer object
 * @param operator AND: every term has to be in one of the columns. OR: one term is enough
 */
export function matchExpression(
  terms: Term[],
  excluded: Term[],
  columns: SearchedColumn[],
  operator: 'AND' | 'OR',
): string {
  const byPrefix = groupsOf(columns)
  const byAnalyzer = groupsOf(columns.map((column) => ({ ...column, prefix: false })))
  const expressions = expressionsOf(terms, (term) => inColumns(term, term.prefix ? byPrefix : byAnalyzer))
  const wanted = expressions.join(` ${operator} `)
  const unwanted = excluded
    .map((term) => inColumns(term, byAnalyzer))
    .filter((each) => each !== undefined)
    .join(' OR ')
  const all = names(columns)
  if (unwanted === '') return `${all} : (${wanted})`
  if (terms.length === 0) return `${all} : (${unwanted})`
  return `${all} : ((${wanted}) NOT (${unwanted}))`
}

const names = (columns: { column: string }[]): string =>
  `{${[...new Set(columns.map(({ column }) => column))].join(' ')}}`

/** Groups columns that use the same words. */
export function groupsOf(columns: readonly SearchedColumn[]): ColumnGroup[] {
  const groups: (InColumn & { columns: SearchedColumn[] })[] = []
  for (const column of columns) {
    const { column: _, ...rules } = column
    const group = groups.find(
      (other) =>
        other.analyzer === rules.analyzer &&
        other.prefix === rules.prefix &&
        other.typos === rules.typos &&
        other.code === rules.code,
    )
    if (group === undefined) groups.push({ ...rules, columns: [column] })
    else group.columns.push(column)
  }
  return groups.map(({ columns: some, ...group }) => ({ ...group, names: names(some) }))
}

/** A term in any of the columns. Undefined if it has no word in any of them. */
function inColumns(term: Term, groups: ColumnGroup[]): string | undefined {
  const [only] = groups
  if (groups.length === 1) return termExpression(term, only!)
  const either = groups.flatMap(({ names: some, ...rules }) => {
    const expression = termExpression(term, rules)
    return expression === undefined ? [] : [`${some} : (${expression})`]
  })
  return either.length === 0 ? undefined : `(${either.join(' OR ')})`
}

// =============================================================================
// Chooses the words of a query that is too long to be searched as a whole.

/** Distinct words and phrases that one search uses, excluded ones included. */
export const MAX_TERMS = 256
const MAX_EXCLUDED = 128

/**
 * Cuts a query down to the terms that one search uses: the rarest ones that the collection has. They keep their
 * order.
 * @param documentsOf how many documents hold a folded word; called only when there are too many terms
 */
export function mostTelling(
  { terms, excluded }: ParsedQuery,
  documentsOf: (words: string[]) => (word: string) => number,
): ParsedQuery {
  const most = MAX_TERMS - Math.min(excluded.length, MAX_EXCLUDED)
  if (terms.length <= most) return { terms, excluded: excluded.slice(0, MAX_EXCLUDED) }
  const documents = documentsOf([...new Set(terms.flatMap(({ tokens }) => tokens))])
  const isGrammar = grammarIn(terms)
  const rank = new Map<Term, number>()
  for (const term of terms) {
    const rarest = Math.min(...term.tokens.map(documents))
    const says = !isGrammar(term)
    rank.set(term, rarest === 0 ? Number.POSITIVE_INFINITY : says ? rarest : Number.MAX_SAFE_INTEGER)
  }
  const ranked = terms.toSorted((a, b) => compare(rank.get(a)!, rank.get(b)!))
  // A word in no document finds nothing, so it must not take the place of one that does.
  const known = ranked.filter((term) => rank.get(term) !== Number.POSITIVE_INFINITY)
  const chosen = new Set((known.length > 0 ? known : ranked).slice(0, most))
  return { terms: terms.filter((term) => chosen.has(term)), excluded: excluded.slice(0, MAX_EXCLUDED) }
}

const compare = (a: number, b: number): number => (a < b ? -1 : a > b ? 1 : 0)

/** Longer tokens are ids, addresses and encoded data, not words. */
const LONGEST_WORD = 64

/**
 * Turns a text of any length into a query. A long one becomes its distinct words without stopwords; if they are still
 * too many, the longest, which are the rarest in any language. Then `mostTelling` chooses by how many documents of
 * the collection have each word.
 * @param most bytes
 */
export function asQuery(text: string, most: number): string {
  // One UTF-16 unit takes at most three bytes of UTF-8.
  if (text.length * 3 <= most || byteLength(text) <= most) return text
  const words = new Map<string, string>()
  for (const { text: folded, start, end } of tokenize(text, PLAIN)) {
    if (end - start <= LONGEST_WORD && !words.has(folded)) words.set(folded, text.slice(start, end))
  }
  const isStopword = stopwordsIn([...words.keys()])
  const telling = [...words].filter(([folded]) => !isStopword(folded)).map(([, word]) => word)
  // Only stopwords or symbols, so there is nothing to choose by.
  if (telling.length === 0) return text.slice(0, most / 3)
  let left = most
  const chosen = new Set<string>()
  for (const word of telling.toSorted((a, b) => b.length - a.length)) {
    left -= byteLength(word) + 1
    if (left < 0) break
    chosen.add(word)
  }
  return telling.filter((word) => chosen.has(word)).join(' ')
}

const byteLength = (text: string): number => new TextEncoder().encode(text).length

// =============================================================================
// The rules by which a field's texts are split into words. The field's own options override those of its collection.

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

// =============================================================================
// Words that phrase a question but do not say what it is about. A query that found too little is relaxed by dropping them, unless it
// has nothing else. A manual seldom says "I", so that such words would be the rarest ones of many questions.

/**
 * Tells the stopwords of a query: those of English, and those of the language that its words are in.
 * @param words of the whole query, folded
 */
function stopwordsIn(words: readonly string[]): (word: string) => boolean {
  const grammars = grammarsOf(words)
  return (word) => isEnglishGrammar(word) || grammars.some((grammar) => grammar.words.has(word))
}

/** Tells the terms of a query that are stopwords alone. Their tokens may be stems, so it goes by what was typed. */
function grammarIn(terms: readonly Term[]): (term: Term) => boolean {
  const folded = new Map(terms.map((term) => [term, term.written.map((word) => foldWord(word))]))
  const isStopword = stopwordsIn([...folded.values()].flat())
  return (term) => folded.get(term)?.every(isStopword) ?? false
}
