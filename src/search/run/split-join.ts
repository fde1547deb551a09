/**
 * `split_join_tokens`: words of a query that people also write as one, or the other way round. `note book` finds
 * `notebook`, and `blueprint` finds `blue print`.
 *
 * As in Typesense, all words are joined first, then neighbours, and then single words are split. The first way that
 * occurs in a document is used, in addition to the query as typed.
 *
 * A run of a script without blanks has to be in a document as it is. If it is in none, its words by the dictionary of the
 * language may be anywhere: somebody who writes Thai or Japanese does not part the words of a query.
 */
import { compoundsOf, stemOf, wordsOf } from '../../models/words'
import type { SearchRequest } from '../request/request'
import type { Analyzer } from '../text/analyzer'
import { otherSpellings } from '../text/spellings'
import { type Term, termOf, typed } from '../text/term'

/** Only this many words at the beginning of a query are joined or split. */
const MOST_WORDS = 5
/** Longer words are not split. */
const MOST_LETTERS = 32
/** Ways that are looked up in the index. */
const MOST_WAYS = 64

/** Words that replace some terms. */
interface Way {
  at: number
  span: number
  words: string[]
  /** they may be anywhere in a document */
  isApart?: true
}

/** Whether a search that found so many documents splits and joins words. */
export const splitsAndJoins = ({ splitJoin }: SearchRequest, found: number): boolean =>
  splitJoin === 'always' || (splitJoin === 'fallback' && found === 0)

/** Access to the index. */
export interface KnownWords {
  analyzer: Analyzer
  /** in how many documents a folded word is, for some words */
  documentsOf(words: string[]): (word: string) => number
  /** whether any document has all terms */
  isFound(terms: Term[]): boolean
}

/**
 * Adds joined or split words to the terms that they replace.
 * @returns undefined if no document has such words
 */
export function splitOrJoined(
  terms: readonly Term[],
  { analyzer, documentsOf, isFound }: KnownWords,
): Term[] | undefined {
  const made = waysOf(terms)
    .slice(0, MOST_WAYS)
    .map((way) => ({ ...way, instead: way.words.flatMap((word) => termOf(word, analyzer) ?? []) }))
  const tokensOf = (some: Term[]) => some.flatMap(({ tokens }) => tokens)
  const documents = documentsOf(tokensOf(made.flatMap(({ instead }) => instead)))
  for (const { at, span, words, instead, isApart } of made) {
    const isKnown =
      instead.length === words.length && (isApart || tokensOf(instead).every((word) => documents(word) > 0))
    const known = terms[at]!.synonyms
    if (!isKnown || (known !== undefined && known.span !== span)) continue
    // The parts of a split word must be adjacent.
    const wanted = isApart
      ? instead
      : [termOf(words.join(' '), analyzer)].filter((term) => term !== undefined)
    if (wanted.length === 0 || !isFound([...terms.slice(0, at), ...wanted, ...terms.slice(at + span)]))
      continue
    const synonyms = { span, instead: [...(known?.instead ?? []), instead] }
    return terms.with(at, { ...terms[at]!, synonyms })
  }
  return undefined
}

/** The terms, and verbs with their particles as one word where a document has it: `backup` beside "back up". */
export function withCompounds(
  terms: readonly Term[],
  { analyzer, documentsOf }: Pick<KnownWords, 'analyzer' | 'documentsOf'>,
): Term[] {
  const words = terms.map((term) => {
    const folded = isWord(term) ? term.tokens[0]! : ''
    return { folded, stem: stemOf(folded) }
  })
  const made = compoundsOf(words).flatMap(({ folded }) => termOf(folded, analyzer) ?? [])
  if (made.length === 0) return [...terms]
  const documents = documentsOf(made.flatMap(({ tokens }) => tokens))
  return [...terms, ...made.filter(({ tokens }) => tokens.length === 1 && documents(tokens[0]!) > 0)]
}

/** The terms, each with its British or American spelling too where a document has it. */
export function withSpellings(
  terms: readonly Term[],
  { documentsOf }: Pick<KnownWords, 'documentsOf'>,
): Term[] {
  const others = terms.map((term) => (isWord(term) ? otherSpellings(term.tokens[0]!) : []))
  if (others.every((some) => some.length === 0)) return [...terms]
  const documents = documentsOf(others.flat())
  return terms.map((term, at) => ({
    ...term,
    corrections: [...term.corrections, ...others[at]!.filter((word) => documents(word) > 0)],
  }))
}

const isWord = ({ tokens, quoted }: Term): boolean => tokens.length === 1 && !quoted

function waysOf(terms: readonly Term[]): Way[] {
  const ways: Way[] = []
  const joined = (at: number, span: number) => {
    const some = terms.slice(at, at + span)
    if (some.every(isWord))
      ways.push({ at, span, words: [some.map((term) => typed(term) + (term.repeats ?? '')).join('')] })
  }
  const first = terms.slice(0, MOST_WORDS)
  if (terms.length > 1) joined(0, terms.length)
  if (terms.length > 2) for (let at = 0; at + 1 < first.length; at++) joined(at, 2)
  for (const [at, term] of first.entries()) {
    const words = term.tokens.length > 1 && !term.quoted ? wordsOf(typed(term)).map(({ raw }) => raw) : []
    // Its words are not parted by a sign.
    if (words.length > 1 && words.join('') === typed(term)) ways.push({ at, span: 1, words, isApart: true })
    const letters = isWord(term) ? [...term.tokens[0]!] : []
    if (letters.length > MOST_LETTERS) continue
    for (let length = letters.length - 1; length > 0; length--) {
      const words = [letters.slice(0, length).join(''), letters.slice(length).join('')]
      ways.push({ at, span: 1, words })
    }
  }
  return ways
}
