/** Words as the built-in models see them: folded, stemmed, and told apart by how much they say. */

import { stemmer } from 'stemmer'
import { regExp } from '../once'

export interface Word {
  /** as it is written */
  raw: string
  /** lower case, no diacritics, no possessive */
  folded: string
  stem: string
}

// A character of a script without spaces is a word of its own.
const WORD = regExp(
  String.raw`\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Thai}|[\p{L}\p{N}\p{M}]+(?:['’.]\p{L}+)*`,
  'gu',
)
const MARKS = regExp(String.raw`\p{M}+`, 'gu')

const ASCII = /^[a-z0-9]+$/

/** Lower case, without diacritics and possessive endings. */
const fold = (word: string): string => {
  const lower = word.toLowerCase()
  if (ASCII.test(lower)) return lower
  return lower
    .normalize('NFD')
    .replace(MARKS(), '')
    .replace(/['’]s?$|['’]/g, '')
}

const stems = new Map<string, string>()

/** Porter's stem. Remembered, because the same few thousand words come again and again. */
export function stemOf(folded: string): string {
  if (folded.length < 3 || !ASCII.test(folded)) return folded
  const known = stems.get(folded)
  if (known !== undefined) return known
  if (stems.size > 20_000) stems.clear()
  const stem = stemmer(folded)
  stems.set(folded, stem)
  return stem
}

/** The words of a text, in order. */
export const wordsOf = (text: string): Word[] =>
  Array.from(text.matchAll(WORD()), ([raw]) => {
    const folded = fold(raw)
    return { raw, folded, stem: stemOf(folded) }
  })

const list = (words: string): ReadonlySet<string> => new Set(words.split(' '))

/** Words that hold a sentence together and say nothing about its subject. */
export const STOPWORDS = list(
  'a about above after again against all also am an and any are aren arent as at be because been before being ' +
    'below between both but by can cant cannot could couldnt did didnt do does doesnt doing dont down during each ' +
    'either else ever every few for from further get gets give given go had has have having he her here hers him his ' +
    'how i if im in into is isnt it its itself just let lets like made make makes many may me might more most much ' +
    'must my need no nor not now of off on once one ones only or other others our out over own please same say she ' +
    'should shouldnt so some such tell than thanks that thats the their theirs them then there theres these they ' +
    'this those through to too under until up upon us use used using very was wasnt way we were what whats when ' +
    'where which while who whom whose why will with within without wont would you your yours',
)

/** Words that a question asks with, beyond the stopwords: they seldom stand in its answer. */
const ASKING = list(
  'describe explain define definition difference discuss find know list main mean meaning name show talk tell ' +
    'think understand want wonder work works happen happens kind kinds sort type types example examples',
)

/** Says something about a subject. */
export const isContent = (word: Word): boolean => !STOPWORDS.has(word.folded)

/** Says something about the subject of a question. */
export const isTopical = (word: Word): boolean => isContent(word) && !ASKING.has(word.folded)

/** The different stems of the words of a text that say something. */
export const contentStems = (text: string): Set<string> =>
  new Set(
    wordsOf(text)
      .filter(isContent)
      .map((word) => word.stem),
  )
