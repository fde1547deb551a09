/** The words of a query, as the words of a document are compared with them for highlights. */
import { completions, type Term } from './query'
import { stem, type TokenRules, tokenize } from './words'

/** A word of the query in a text. */
export interface Mark {
  /** index of the token among the text's tokens */
  token: number
  /** of the query's words, which */
  word: number
  start: number
  end: number
}

/** Where the tokens of a text begin and end, and those among them that match. */
export interface MarkedText {
  starts: number[]
  ends: number[]
  marks: Mark[]
}

// Letters and digits of ASCII: what unicode61 takes for a word there.
const IS_WORD = Uint8Array.from({ length: 128 }, (_, code) =>
  /[A-Za-z0-9]/.test(String.fromCharCode(code)) ? 1 : 0,
)

/** The first two characters of a word as one number. */
const keyOf = (word: string): number => word.charCodeAt(0) * 65536 + (word.charCodeAt(1) || 0)

export class WordMatcher {
  #exact = new Map<string, number>()
  #stems = new Map<string, number>()
  #beginnings: { text: string; stemmedText: string; word: number }[] = []
  // Porter's stemmer leaves the first two letters alone and, of what it leaves, changes the last letter at most
  // (happy, happi). So a word is worth stemming only if it begins with a stem but for its last letter; those
  // are kept by their first two letters. A beginning of one letter switches the test off.
  #trunks = new Map<number, string[]>()
  #everyWord = false
  // Stemming is what costs, and the documents of one page share their words.
  #known = new Map<string, { word: number; length: number } | null>()
  // The same values are looked at for highlights and for text_match_info.
  #seen = new Map<string, MarkedText>()
  /** how many different words there are to find */
  readonly words: number

  constructor(terms: Term[]) {
    let word = 0
    for (const { tokens, prefix, corrections } of terms) {
      for (const [index, token] of tokens.entries()) {
        const id = this.#exact.get(token) ?? word++
        this.#exact.set(token, id)
        this.#addStem(token, id)
        if (!prefix || index < tokens.length - 1) continue
        this.#beginnings.push({ text: token, stemmedText: stem(token), word: id })
        this.#everyWord ||= token.length < 2
        for (const completion of completions(token)) this.#addStem(completion, id)
      }
      for (const correction of corrections) this.#addStem(correction, this.#exact.get(tokens[0]!) ?? 0)
    }
    this.words = word
  }

  #addStem(word: string, id: number): void {
    const stemmed = stem(word)
    if (!this.#stems.has(stemmed)) this.#stems.set(stemmed, id)
    const key = keyOf(stemmed)
    this.#trunks.set(key, [...(this.#trunks.get(key) ?? []), stemmed.slice(0, -1)])
  }

  /** The query word that a folded token matches, and how much of the token: undefined for none. */
  match(token: string): { word: number; length: number } | undefined {
    if (!this.#everyWord) {
      const trunks = this.#trunks.get(keyOf(token))
      if (trunks === undefined || !trunks.some((trunk) => token.startsWith(trunk))) return undefined
    }
    const known = this.#known.get(token)
    if (known !== undefined) return known === null ? undefined : known
    const match = this.#compare(token)
    this.#known.set(token, match ?? null)
    return match
  }

  #compare(token: string): { word: number; length: number } | undefined {
    const stemmed = stem(token)
    const exact = this.#exact.get(token) ?? this.#stems.get(stemmed)
    if (exact !== undefined) return { word: exact, length: token.length }
    for (const { text, stemmedText, word } of this.#beginnings) {
      if (token.startsWith(text)) return { word, length: text.length }
      // FTS5 stems the beginning too, and so it finds this.
      if (stemmed.startsWith(stemmedText)) return { word, length: token.length }
    }
    return undefined
  }

  /** A text's tokens, and those among them that match. */
  read(text: string, rules: TokenRules): MarkedText {
    const seen = this.#seen.get(text)
    if (seen !== undefined) return seen
    // A page of hits can be hundreds of thousands of words, nearly all of them plain; those are not made strings.
    const isPlain = rules.symbols_to_index.length === 0 && /^[\0-\x7f]*$/.test(text)
    const marked = isPlain ? this.#readPlain(text) : this.#readTokens(text, rules)
    this.#seen.set(text, marked)
    return marked
  }

  #readPlain(text: string): MarkedText {
    const starts: number[] = []
    const ends: number[] = []
    const marks: Mark[] = []
    const lower = text.toLowerCase()
    const length = lower.length
    const keys = this.#everyWord ? undefined : this.#trunks
    for (let at = 0; at < length; at++) {
      const first = lower.charCodeAt(at)
      if (IS_WORD[first] === 0) continue
      const start = at++
      const second = at < length ? lower.charCodeAt(at) : 0
      const isLonger = IS_WORD[second] === 1
      while (at < length && IS_WORD[lower.charCodeAt(at)] === 1) at++
      if (keys === undefined || keys.has(first * 65536 + (isLonger ? second : 0))) {
        const match = this.match(lower.slice(start, at))
        if (match !== undefined) {
          marks.push({ token: starts.length, word: match.word, start, end: start + match.length })
        }
      }
      starts.push(start)
      ends.push(at)
    }
    return { starts, ends, marks }
  }

  #readTokens(text: string, rules: TokenRules): MarkedText {
    const marked: MarkedText = { starts: [], ends: [], marks: [] }
    for (const [index, token] of tokenize(text, rules).entries()) {
      marked.starts.push(token.start)
      marked.ends.push(token.end)
      const match = this.match(token.text)
      if (match === undefined) continue
      // Folding can change a word's length; then its beginning cannot be told in the original.
      const isSameLength = token.end - token.start === token.text.length
      const end = isSameLength ? token.start + match.length : token.end
      marked.marks.push({ token: index, word: match.word, start: token.start, end })
    }
    return marked
  }
}
