/**
 * BERT's uncased tokenizer (Devlin et al. 2019): turns text into the numbers of its word pieces.
 *
 * Text is folded (lower case, no accents, no control characters) and split at white space and around punctuation
 * and Chinese characters. Each word is cut from the left into the longest pieces of the vocabulary. The vocabulary
 * lists pieces inside a word with `##` in front. A word that cannot be cut into pieces, or has more than 100
 * characters, has none.
 */
import { regExp } from '../../lib/once'

const MOST_CHARACTERS = 100
const MOST_KNOWN = 50_000

// The blocks that BERT treats as Chinese, and what it treats as punctuation: all ASCII symbols too.
const CHINESE = String.raw`\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u{20000}-\u{2a6df}\u{2a700}-\u{2ceaf}\u{2f800}-\u{2fa1f}`
const PUNCTUATION = String.raw`\p{P}$+<=>^\x60|~`

const WORD = regExp(String.raw`[${CHINESE}${PUNCTUATION}]|[^\s\p{Z}${CHINESE}${PUNCTUATION}]+`, 'gu')
const ASCII_WORD = regExp(String.raw`[a-z0-9]+|[!-/:-@\[-\x60{-~]`, 'g')
const PLAIN_ASCII = regExp(String.raw`^[\t\n\r\x20-\x7e]*$`, '')
const CONTROLS = regExp(String.raw`(?![\t\n\r])[\p{C}\ufffd]`, 'gu')
const ACCENTS = regExp(String.raw`\p{Mn}`, 'gu')

export class WordPiece {
  /** pieces that a word begins with, in the order of their numbers */
  readonly starts = new Map<string, number>()
  /** pieces inside a word, without `##` */
  #insides = new Map<string, number>()
  // A cache: texts repeat their words, and collections repeat each other's.
  #known = new Map<string, readonly number[]>()

  /** @param vocabulary pieces in the order of their numbers */
  constructor(vocabulary: readonly string[]) {
    for (const [number, piece] of vocabulary.entries()) {
      if (piece.startsWith('##')) this.#insides.set(piece.slice(2), number)
      else this.starts.set(piece, number)
    }
  }

  /** Returns the numbers of the pieces of a text's words, in order, without `[CLS]`, `[SEP]` and `[UNK]`. */
  encode(words: readonly string[]): number[] {
    const numbers: number[] = []
    for (const word of words) {
      let pieces = this.#known.get(word)
      if (pieces === undefined) {
        pieces = this.#cut(word)
        if (this.#known.size >= MOST_KNOWN) this.#known.clear()
        this.#known.set(word, pieces)
      }
      for (let at = 0; at < pieces.length; at++) numbers.push(pieces[at]!)
    }
    return numbers
  }

  #cut(word: string): number[] {
    if (word.length > MOST_CHARACTERS && [...word].length > MOST_CHARACTERS) return []
    const numbers: number[] = []
    let start = 0
    while (start < word.length) {
      let end = word.length
      let number: number | undefined
      for (; end > start; end--) {
        number = (start === 0 ? this.starts : this.#insides).get(word.slice(start, end))
        if (number !== undefined) break
      }
      if (number === undefined) return []
      numbers.push(number)
      start = end
    }
    return numbers
  }
}

/** The words of a text as BERT sees them, punctuation marks among them. */
export function wordsOf(text: string): readonly string[] {
  // Use one match() for all words: matchAll makes an object for each.
  if (PLAIN_ASCII().test(text)) return text.toLowerCase().match(ASCII_WORD()) ?? []
  const folded = text.replace(CONTROLS(), '').normalize('NFD').replace(ACCENTS(), '').toLowerCase()
  return folded.match(WORD()) ?? []
}
