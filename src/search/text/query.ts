/**
 * The words of `q`, and the FTS5 expressions made of them.
 *
 * Every word goes to FTS5 in double quotes, so user input is never syntax. A word that the tokenizer splits
 * (`state-of-the-art`) becomes a phrase. As in Typesense, "double quotes" make a phrase, and a leading minus excludes
 * a word or phrase.
 */
import { type Analyzer, stemAnalyzer } from './analyzer'
import { STOPWORDS } from './stopwords'
import { PLAIN } from './words'

export interface Term {
  /** folded words; several make a phrase */
  tokens: string[]
  /** the words as typed */
  written: string[]
  /** the whole term as typed, where it is more than its words with blanks between */
  text?: string
  /** the last token matches every word that begins with it */
  prefix: boolean
  /** words of the index to use instead, because it lacks this one */
  corrections: string[]
}

export interface ParsedQuery {
  terms: Term[]
  excluded: Term[]
}

/**
 * Parses all that a query asks for. long-query.ts decides how much of it a search uses.
 * @param prefix whether the last word may be unfinished
 */
export function parseQuery(q: string, analyzer: Analyzer, prefix: boolean): ParsedQuery {
  const terms: Term[] = []
  const excluded: Term[] = []
  const seen = new Set<string>()
  const parts = [...q.matchAll(/(?<=^|\s)(-?)"([^"]*)"|(\S+)/g)]
  for (const [index, part] of parts.entries()) {
    const minus = part[1] === '-' || /^-[^-]/.test(part[3] ?? '')
    const bare = part[2] ?? (minus ? part[3]!.slice(1) : part[3]!)
    const pieces = part[2] !== undefined || minus ? [bare] : analyzer.pieces(bare)
    for (const [at, piece] of pieces.entries()) {
      const term = termOf(piece, analyzer)
      if (term === undefined) continue
      const isLast = index === parts.length - 1 && at === pieces.length - 1
      term.prefix = prefix && !minus && part[3] !== undefined && isLast
      const key = `${minus ? '-' : ''}${term.tokens.join(' ')}${term.prefix ? '*' : ''}`
      if (seen.has(key)) continue
      seen.add(key)
      if (minus) excluded.push(term)
      else terms.push(term)
    }
  }
  return { terms, excluded }
}

/** A piece of a query as a term, if it has words. */
export function termOf(piece: string, analyzer: Analyzer): Term | undefined {
  const { words: tokens } = analyzer.phrase(piece)
  if (tokens.length === 0) return undefined
  const words = analyzer.tokenize(piece).slice(0, tokens.length)
  const written = words.map(({ start, end }) => piece.slice(start, end))
  const text = piece.trim()
  const term: Term = { tokens, written, prefix: false, corrections: [] }
  return text === written.join(' ') ? term : { ...term, text }
}

/** A term as it was typed. */
export const typed = ({ text, written }: Term): string => text ?? written.join(' ')

/** The query without some words. A query of such words alone stays as it is, and so does a phrase in quotes. */
export function withoutStopwords(query: ParsedQuery, stopwords: string[], analyzer: Analyzer): ParsedQuery {
  if (stopwords.length === 0) return query
  const dropped = new Set(stopwords.flatMap((word) => analyzer.tokenize(word).map(({ text }) => text)))
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
  return informative.length > 0 ? informative : relaxed
}

/** How many words of a query are not stopwords. */
export const informativeWords = (terms: Term[]): number =>
  terms.filter((term) => !term.tokens.every((token) => STOPWORDS.has(token))).length

/** Informative words up to which a question is short. */
const SHORT = 5

/** Whether a question says so little that the one before it may tell what it is about. */
export const isShort = (question: string): boolean =>
  informativeWords(parseQuery(question, stemAnalyzer(PLAIN), false).terms) <= SHORT

/**
 * A term as an FTS5 expression.
 * @param prefix whether the last word may match by its beginning
 * @returns undefined if the analyzer finds no words in it
 */
export function termExpression(term: Term, analyzer: Analyzer, prefix: boolean): string | undefined {
  const { text, begins } = analyzer.phrase(typed(term))
  if (text === '') return undefined
  const alternatives = [`"${text}"`]
  if (begins || (prefix && term.prefix)) alternatives[0] += '*'
  if (prefix && term.prefix) {
    if (term.tokens.length === 1) {
      alternatives.push(...analyzer.completions(term.tokens[0]!).map((word) => `"${word}"`))
    }
  }
  alternatives.push(...term.corrections.map((word) => `"${word.replaceAll('"', '""')}"`))
  return alternatives.length === 1 ? alternatives[0]! : `(${alternatives.join(' OR ')})`
}

/** A text column to search. */
export interface SearchedColumn {
  column: string
  /** whether the last word of the query may match by its beginning */
  prefix: boolean
  analyzer: Analyzer
}

/** Columns with the same analyzer, which take prefixes or not. */
type Group = Omit<SearchedColumn, 'column'> & { names: string }

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
  const expressions = terms.map((term) => inColumns(term, term.prefix ? byPrefix : byAnalyzer))
  const wanted = expressions.filter((each) => each !== undefined).join(` ${operator} `)
  const unwanted = excluded
    .map((term) => inColumns(term, byAnalyzer))
    .filter((each) => each !== undefined)
    .join(' OR ')
  const all = names(columns)
  if (unwanted === '') return `${all} : (${wanted})`
  if (terms.length === 0) return `${all} : (${unwanted})`
  return `${all} : ((${wanted}) NOT (${unwanted}))`
}

const names = (columns: { column: string }[]): string => `{${columns.map(({ column }) => column).join(' ')}}`

function groupsOf(columns: SearchedColumn[]): Group[] {
  const groups: (Omit<SearchedColumn, 'column'> & { columns: SearchedColumn[] })[] = []
  for (const column of columns) {
    const { analyzer, prefix } = column
    const group = groups.find((other) => other.analyzer === analyzer && other.prefix === prefix)
    if (group === undefined) groups.push({ analyzer, prefix, columns: [column] })
    else group.columns.push(column)
  }
  return groups.map(({ columns: some, ...group }) => ({ ...group, names: names(some) }))
}

/** A term in any of the columns. Undefined if it has no word in any of them. */
function inColumns(term: Term, groups: Group[]): string | undefined {
  const [only] = groups
  if (groups.length === 1) return termExpression(term, only!.analyzer, only!.prefix)
  const either = groups.flatMap(({ analyzer, prefix, names: some }) => {
    const expression = termExpression(term, analyzer, prefix)
    return expression === undefined ? [] : [`${some} : (${expression})`]
  })
  return either.length === 0 ? undefined : `(${either.join(' OR ')})`
}
