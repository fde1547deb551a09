/**
 * What the words of a text are in an index. A collection has two full-text indexes with the same columns:
 *
 *     word_index   words as people write them, for plain searches
 *     text_index   Porter's stems, for questions: they are seldom put in the words of their answer
 *
 * An analyzer tells an index, its queries and the highlights the same words.
 */
import { completions } from './completions'
import { prepare, stem, type Token, type TokenRules, tokenize, writtenWords } from './words'

export interface Analyzer {
  /** the folded words of a text, and where they are */
  tokenize(text: string): Token[]
  /** whether each sign that is neither letter nor digit ends a word */
  splitsAtSymbols: boolean
  /** Text in the form in which the index and its queries take it. Empty if it has no words. */
  prepare(text: string): string
  /** The form in which words of the index are compared. */
  form(word: string): string
  /** Words to ask for besides the prefix query, because their forms do not begin with what was typed. */
  completions(typed: string): string[]
}

/** The analyzer of word_index. */
export const wordAnalyzer = (rules: TokenRules): Analyzer => ({
  tokenize: (text) => tokenize(text, rules),
  splitsAtSymbols: rules.symbols_to_index.length === 0,
  prepare: (text) => writtenWords(text, rules),
  form: (word) => word,
  completions: () => [],
})

/** The full-text index that a search reads. */
export interface TextIndex {
  table: 'word_index' | 'text_index'
  /** the table of its words and how many documents hold each */
  vocabulary: string
  /** whether its words are stems */
  stems: boolean
}

export const WORDS: TextIndex = { table: 'word_index', vocabulary: 'word_vocabulary', stems: false }
export const STEMS: TextIndex = { table: 'text_index', vocabulary: 'vocabulary', stems: true }

/** The analyzer of text_index. SQLite splits and stems what `prepare` returns. */
export const stemAnalyzer = (rules: TokenRules): Analyzer => ({
  tokenize: (text) => tokenize(text, rules),
  splitsAtSymbols: rules.symbols_to_index.length === 0,
  prepare: (text) => prepare(text, rules).trim().replace(/\s+/g, ' '),
  form: stem,
  completions,
})

/** The analyzer of an index. It is the same object for the same rules. */
export function analyzerOf({ stems }: TextIndex, rules: TokenRules): Analyzer {
  const known = ANALYZERS.get(rules) ?? {}
  ANALYZERS.set(rules, known)
  if (stems) {
    known.stems ??= stemAnalyzer(rules)
    return known.stems
  }
  known.words ??= wordAnalyzer(rules)
  return known.words
}

const ANALYZERS = new WeakMap<TokenRules, { words?: Analyzer; stems?: Analyzer }>()
