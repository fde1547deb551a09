/**
 * Folds a word, so that its spellings compare as equal: case, accents, width, vowel points and ligatures do not
 * count. Marks that make a different word stay: those of Hindi and Thai, й and и, が and か.
 */
import { regExp } from '../../lib/once'

const ASCII = /^[\0-\x7f]*$/
// Written as escapes: æ, œ, ø, ı, ß, đ, ħ, ł, ŧ, ð, þ, ŋ.
const FOLDED_MARKS = regExp(
  String.raw`([a-z\u00e6\u0153\u00f8\u0131\u00df\u0111\u0127\u0142\u0167\u00f0\u00fe\u014b\p{Script=Greek}])\p{M}+`,
  'gu',
)
// Vowel points and reading signs of Hebrew and Arabic, and Arabic's lengthening stroke.
const POINTS = regExp(
  '[\\u0591-\\u05bd\\u05bf\\u05c1\\u05c2\\u05c4\\u05c5\\u05c7\\u0610-\\u061a\\u0640\\u064b-\\u0652\\u0670\\u06d6-\\u06ed]',
  'gu',
)
// Marks on an alef: hamza above and below, madda.
const ALEF = regExp('\\u0627[\\u0653-\\u0655]', 'gu')
// Russian usually omits the dots of ё, and marks stress only in dictionaries.
const CYRILLIC = regExp(
  '\\u0435\\u0308|([\\u0430\\u0435\\u0438\\u043e\\u0443\\u044b\\u044d-\\u044f])[\\u0300\\u0301]',
  'gu',
)
const LIGATURES: Readonly<Record<string, string>> = {
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  ø: 'o',
  ı: 'i',
  đ: 'd',
  ð: 'd',
  ħ: 'h',
  ł: 'l',
  ŧ: 't',
  þ: 'th',
  ŋ: 'n',
  ς: 'σ',
}
const LIGATURE = regExp(`[${Object.keys(LIGATURES).join('')}]`, 'gu')

/** @param stem takes the word in small letters, with its accents */
export function foldWord(written: string, stem?: (word: string) => string): string {
  const word = stem === undefined ? written : stem(written.normalize('NFC').toLowerCase())
  if (ASCII.test(word)) return word.toLowerCase()
  const letters = word
    .normalize('NFKD')
    .toLowerCase()
    .replace(FOLDED_MARKS(), '$1')
    .replace(LIGATURE(), (letter) => LIGATURES[letter]!)
  if (ASCII.test(letters)) return letters
  return letters
    .replace(POINTS(), '')
    .replace(ALEF(), '\u0627')
    .replace(CYRILLIC(), (_, stressed?: string) => stressed ?? '\u0435')
    .normalize('NFC')
}
