/**
 * Words that phrase a question but do not say what it is about. A query that found too little is relaxed by dropping them, unless it
 * has nothing else. A manual seldom says "I", so that such words would be the rarest ones of many questions.
 */
import { grammarsOf, isEnglishGrammar } from '../../lib/grammar'

/**
 * Tells the stopwords of a query: those of English, and those of the language that its words are in.
 * @param words of the whole query, folded
 */
export function stopwordsIn(words: readonly string[]): (word: string) => boolean {
  const grammars = grammarsOf(words)
  return (word) => isEnglishGrammar(word) || grammars.some((grammar) => grammar.words.has(word))
}
