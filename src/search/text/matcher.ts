/** Finds the words of a query in the text of a document, for highlights. */
import { type Analyzer, INSIDE, OUTSIDE, PART } from './analyzer'
import { type SearchedColumn, type Term, termsFor, typed } from './query'

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
interface MarkedText {
  starts: number[]
  ends: number[]
  marks: Mark[]
}

/** The first two characters of a word as one number. */
const keyOf = (word: string): number => word.charCodeAt(0) * 65536 + (word.charCodeAt(1) || 0)

export class WordMatcher {
  #exact = new Map<string, number>()
  #forms = new Map<string, number>()
  #beginnings: { text: string; form: string; word: number }[] = []
  // Porter's stemmer keeps the first two letters of a word, and changes at most the last letter of what it keeps
  // (happy, happi). So a word needs stemming only if it begins with a query stem minus its last letter. Those trunks
  // are indexed by their first two letters. A prefix of one letter turns the test off.
  #trunks = new Map<number, string[]>()
  #everyWord = false
  // Stemming is the expensive part, and the documents of a page share words.
  #known = new Map<string, { word: number; length: number } | null>()
  /** @param analyzer that of the texts. Matchers of the same terms number their words alike, whatever the analyzer */
  constructor(
    terms: Term[],
    private readonly analyzer: Analyzer,
  ) {
    const ids = new Map<string, number>()
    for (const term of terms) {
      const { tokens, prefix, corrections } = term
      for (const token of tokens) if (!ids.has(token)) ids.set(token, ids.size)
      const { words: own, begins } = analyzer.phrase(typed(term))
      for (const [index, token] of own.entries()) {
        const id = ids.get(tokens[Math.min(index, tokens.length - 1)]!)!
        if (!this.#exact.has(token)) this.#exact.set(token, id)
        this.#addForm(token, id)
        if (!(prefix || begins) || index < own.length - 1) continue
        this.#beginnings.push({ text: token, form: analyzer.form(token), word: id })
        this.#everyWord ||= token.length < 2
        for (const completion of analyzer.completions(token)) this.#addForm(completion, id)
      }
      for (const correction of corrections) this.#addForm(correction, ids.get(tokens[0]!) ?? 0)
    }
    for (const [at, { synonyms }] of terms.entries()) {
      if (synonyms === undefined) continue
      const replaced = terms.slice(at, at + synonyms.span).flatMap(({ tokens }) => tokens)
      this.#addSynonyms(
        replaced.map((token) => ids.get(token)!),
        synonyms.instead,
      )
    }
  }

  /** Marks synonyms as the words that they stand for. */
  #addSynonyms(ids: number[], instead: Term[][]): void {
    for (const terms of instead) {
      const words = terms.flatMap((term) => this.analyzer.phrase(typed(term)).words)
      for (const [at, text] of words.entries()) {
        const id = ids[Math.min(at, ids.length - 1)]!
        if (!this.#exact.has(text)) this.#exact.set(text, id)
        this.#addForm(text, id)
      }
    }
  }

  #addForm(word: string, id: number): void {
    const form = this.analyzer.form(word)
    if (!this.#forms.has(form)) this.#forms.set(form, id)
    const key = keyOf(form)
    this.#trunks.set(key, [...(this.#trunks.get(key) ?? []), form.slice(0, -1)])
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
    const form = this.analyzer.form(token)
    const exact = this.#exact.get(token) ?? this.#forms.get(form)
    if (exact !== undefined) return { word: exact, length: token.length }
    for (const { text, form: begun, word } of this.#beginnings) {
      if (token.startsWith(text)) return { word, length: text.length }
      // FTS5 stems the prefix too, so it finds this word.
      if (form.startsWith(begun)) return { word, length: token.length }
    }
    return undefined
  }

  /** The tokens of a text, and those that match. */
  read(text: string): MarkedText {
    // A page of hits can hold hundreds of thousands of words, nearly all plain ASCII. No strings are made for those.
    const { classes } = this.analyzer
    const isPlain = classes !== undefined && /^[\0-\x7f]*$/.test(text)
    return isPlain ? this.#readPlain(text, classes) : this.#readTokens(text)
  }

  #readPlain(text: string, classes: Uint8Array): MarkedText {
    const starts: number[] = []
    const ends: number[] = []
    const marks: Mark[] = []
    const lower = text.toLowerCase()
    const length = lower.length
    const { mostLetters } = this.analyzer
    const keys = this.#everyWord ? undefined : this.#trunks
    for (let at = 0; at < length; at++) {
      const first = lower.charCodeAt(at)
      if (classes[first] !== PART) continue
      const start = at
      let second = 0
      let end = at + 1
      let parts = 1
      for (at++; at < length; at++) {
        const code = lower.charCodeAt(at)
        if (classes[code] === OUTSIDE) break
        if (classes[code] === INSIDE) continue
        if (second === 0) second = code
        end = at + 1
        parts++
      }
      if (keys === undefined || keys.has(first * 65536 + second)) {
        const isWhole = parts === end - start && parts <= mostLetters
        const word = lower.slice(start, end)
        const match = this.match(isWhole ? word : this.analyzer.phrase(word).words[0]!)
        if (match !== undefined) {
          // If all letters of a cut word match, the mark ends where the whole word ends.
          const isAll = match.length >= Math.min(parts, mostLetters)
          const marked = isAll ? end : endOfLetters(lower, start, end, match.length, classes)
          marks.push({ token: starts.length, word: match.word, start, end: marked })
        }
      }
      starts.push(start)
      ends.push(end)
    }
    return { starts, ends, marks }
  }

  #readTokens(text: string): MarkedText {
    const marked: MarkedText = { starts: [], ends: [], marks: [] }
    for (const [index, token] of this.analyzer.tokenize(text).entries()) {
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

/** The end of this many letters of a word that may have symbols between them. */
function endOfLetters(
  text: string,
  start: number,
  end: number,
  letters: number,
  classes: Uint8Array,
): number {
  let left = letters
  for (let at = start; at < end; at++)
    if (classes[text.charCodeAt(at)] === PART && --left === 0) return at + 1
  return end
}

/** How a field matches the words of a query. */
type FieldRules = Pick<SearchedColumn, 'analyzer' | 'prefix' | 'typos'>

/** Matchers of the same terms for texts of different fields. */
export class Matchers {
  #rulesOf: (field: string) => FieldRules
  #made = new Map<Analyzer, Map<string, WordMatcher>>()
  /** how many different words to look for */
  readonly words: number

  /** @param rules those of a field by its name */
  constructor(
    private readonly terms: Term[],
    rules: (field: string) => FieldRules,
  ) {
    this.#rulesOf = rules
    this.words = new Set(terms.flatMap(({ tokens }) => tokens)).size
  }

  of(field: string): WordMatcher {
    const rules = this.#rulesOf(field)
    const { analyzer, prefix, typos } = rules
    const made = this.#made.get(analyzer) ?? new Map<string, WordMatcher>()
    this.#made.set(analyzer, made)
    const key = `${prefix} ${typos}`
    const matcher = made.get(key) ?? new WordMatcher(termsFor(this.terms, rules), analyzer)
    made.set(key, matcher)
    return matcher
  }
}
