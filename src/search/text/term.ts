/** The terms of a query. */
import type { Analyzer } from './analyzer'

export interface Term {
  /** folded words; several make a phrase */
  tokens: readonly string[]
  /** the words as typed */
  written: string[]
  /** the whole term as typed, if it is not just its words with blanks in between */
  text?: string
  /** the last token matches every word that begins with it */
  prefix: boolean
  /** no word of the index begins with this one, its token, and is longer (run/ranking/plain.ts) */
  longest?: string
  /** words of the index to use instead, because it lacks this one */
  corrections: string[]
  /**
   * the typos of each correction, if fields allow different numbers of typos. Words that are not in the map have none
   */
  typos?: ReadonlyMap<string, Typos>
  /** repeated words typed after it, without blanks. They count only when words are joined */
  repeats?: string
  /** a phrase in quotes: no synonym replaces it */
  quoted?: true
  /** synonyms of this term, together with those after it */
  synonyms?: Standing
}

/** The distance of a word from the typed one. */
export interface Typos {
  whole: number
  /** the distance from the word's nearest prefix */
  beginning: number
}

/** Synonyms of a term, together with those after it. */
export interface Standing {
  /** number of terms that are replaced together */
  span: number
  /** alternatives: lists of terms. A document must have all terms of one list */
  instead: Term[][]
}

export interface ParsedQuery {
  terms: Term[]
  excluded: Term[]
  /** whether all its words were stopwords: it finds nothing */
  onlyStopwords?: boolean
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

/**
 * Whether FTS5 has to look for words that begin with the term. That takes four times as long as to look for the word.
 * Words in place of it may be the beginnings of longer ones too.
 */
export const isOpen = ({ prefix, tokens, longest, corrections }: Term): boolean =>
  prefix && (tokens.length > 1 || tokens[0] !== longest || corrections.length > 0)

/** A term as it was typed. */
export const typed = ({ text, written }: Term): string => text ?? written.join(' ')
