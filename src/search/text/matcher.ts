/** Finds the words of a query in the text of a document, for highlights. */
import { completions, type Term } from './query'
import { stem, type TokenRules, tokenize } from './words'

/** A query word found in a text. */
export interface Mark {
  /** index of the token among the text's tokens */
  token: number
  /** index of the query word */
  word: number
  start: number
  end: number
}

/** Where the tokens of a text begin and end, and which of them match. */
export interface MarkedText {
  starts: number[]
  ends: number[]
  marks: Mark[]
}

// ASCII letters and digits: what unicode61 counts as word characters.
const IS_WORD = Uint8Array.from({ length: 128 }, (_, code) =>
  /[A-Za-z0-9]/.test(String.fromCharCode(code)) ? 1 : 0,
)

/** The first two characters of a word as one number. */
const keyOf = (word: string): number => word.charCodeAt(0) * 65536 + (word.charCodeAt(1) || 0)

export class WordMatcher {
  #exact = new Map<string, number>()
  #stems = new Map<string, number>()
  #beginnings: { text: string; stemmedText: string; word: number }[] = []
  // Porter's stemmer keeps the first two letters of a word, and changes at most the last letter of what it keeps
  // (happy, happi). So a word needs stemming only if it begins with a query stem minus its last letter. Those trunks
  // are indexed by their first two letters. A prefix of one letter turns the test off.
  #trunks = new Map<number, string[]>()
  #everyWord = false
  // Stemming is the expensive part, and the documents of a page share words.
  #known = new Map<string, { word: number; length: number } | null>()
  // Highlights and text_match_info read the same values.
  #seen = new Map<string, MarkedText>()
  /** how many different words to look for */
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
    for (const [at, { synonyms }] of terms.entries()) {
      if (synonyms !== undefined) this.#addSynonyms(terms.slice(at, at + synonyms.span), synonyms.instead)
    }
  }

  /** Marks synonyms as the words that they stand for. */
  #addSynonyms(replaced: Term[], instead: Term[][]): void {
    const ids = replaced.flatMap(({ tokens }) => tokens.map((token) => this.#exact.get(token)!))
    for (const terms of instead) {
      for (const [at, token] of terms.flatMap(({ tokens }) => tokens).entries()) {
        const id = ids[Math.min(at, ids.length - 1)]!
        if (!this.#exact.has(token)) this.#exact.set(token, id)
        this.#addStem(token, id)
      }
    }
  }

  #addStem(word: string, id: number): void {
    const stemmed = stem(word)
    if (!this.#stems.has(stemmed)) this.#stems.set(stemmed, id)
    const key = keyOf(stemmed)
    this.#trunks.set(key, [...(this.#trunks.get(key) ?? []), stemmed.slice(0, -1)])
  }

  /** The query word that a folded token matches, and how many of its letters. Undefined for none. */
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
      // FTS5 stems the prefix too, so it finds this one.
      if (stemmed.startsWith(stemmedText)) return { word, length: token.length }
    }
    return undefined
  }

  /** The tokens of a text, and those that match. */
  read(text: string, rules: TokenRules): MarkedText {
    const seen = this.#seen.get(text)
    if (seen !== undefined) return seen
    // A page of hits can hold hundreds of thousands of words, nearly all plain ASCII. No strings are made for those.
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
      // Folding can change a word's length. Then the matched beginning cannot be located in the original, so all of
      // it is marked.
      const isSameLength = token.end - token.start === token.text.length
      const end = isSameLength ? token.start + match.length : token.end
      marked.marks.push({ token: index, word: match.word, start: token.start, end })
    }
    return marked
  }
}
