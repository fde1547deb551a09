/**
 * Words that phrase a question but do not say what it is about. A query that found too little is relaxed by dropping them, unless it
 * has nothing else. A manual seldom says "I", so that such words would be the rarest ones of many questions.
 */
import { grammarsOf, isEnglishGrammar } from '../../lib/grammar'
import { foldWord } from './analyzer'
import type { Term } from './term'

/**
 * Tells the stopwords of a query: those of English, and those of the language that its words are in.
 * @param words of the whole query, folded
 */
export function stopwordsIn(words: readonly string[]): (word: string) => boolean {
  const grammars = grammarsOf(words)
  return (word) => isEnglishGrammar(word) || grammars.some((grammar) => grammar.words.has(word))
}

/** Tells the terms of a query that are stopwords alone. Their tokens may be stems, so it goes by what was typed. */
export function grammarIn(terms: readonly Term[]): (term: Term) => boolean {
  const folded = new Map(terms.map((term) => [term, term.written.map((word) => foldWord(word))]))
  const isStopword = stopwordsIn([...folded.values()].flat())
  return (term) => folded.get(term)?.every(isStopword) ?? false
}
