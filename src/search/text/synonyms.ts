/**
 * Adds synonyms to the words of a query.
 *
 * As in Typesense, a word, or several words in a row, that match a synonym may be replaced by each of the synonym's
 * texts. Then a document must have all words of that text. Inserted words are not replaced again, so there are no
 * loops.
 */
import { wordDistance } from '../../lib/nearest'
import type { Analyzer } from './analyzer'
import { type Term, termOf } from './term'

/** The parts of a synonym that rewriting needs. */
export interface SynonymTexts {
  root: string
  synonyms: string[]
  locale?: string
  symbols_to_index?: string[]
}

export interface SynonymRules {
  indexes: SynonymIndex[]
  /** the form in which words are compared */
  form: Analyzer['form']
  /** the locale of the field that is searched: synonyms of others do not count */
  locale: string
  /** whether a word of the query may be a prefix of a synonym's word */
  prefix: boolean
  /** typos of a query's word, 0 to 2 */
  typos: number
  /** whether documents that only a synonym finds come last */
  demotes: boolean
}

/** The most ways to write adjacent words of a query. */
const MOST_WAYS = 64
/** The most terms that synonyms add to a query. */
const MOST_ADDED = 512
/**
 * In a query of more terms, synonyms are matched without typos, because each word would be compared with all
 * synonyms.
 */
const MOST_MISSPELT = 16
/** The most synonyms that an unfinished or misspelt word may match. */
const MOST_GUESSED = 10

interface Entry {
  words: string[]
  locale: string
  instead: Term[][]
}

/** Synonyms by their first word. */
export class SynonymIndex {
  readonly #byFirst = new Map<string, Entry[]>()
  /** words of the longest source */
  longest = 0

  /** @param analyzerOf makes an analyzer that treats these symbols as part of words */
  constructor(synonyms: readonly SynonymTexts[], analyzerOf: (symbols: readonly string[]) => Analyzer) {
    for (const synonym of synonyms) {
      const own = analyzerOf(synonym.symbols_to_index ?? [])
      const instead = synonym.synonyms.map((text) => termsOf(text, own)).filter((terms) => terms.length > 0)
      const sources = synonym.root.trim() === '' ? instead : [termsOf(synonym.root, own)]
      for (const source of sources) {
        const words = source.flatMap(({ tokens }) => tokens).map(own.form)
        if (words.length === 0) continue
        this.longest = Math.max(this.longest, words.length)
        const first = words[0]!
        const entry = { words, locale: synonym.locale ?? '', instead }
        const known = this.#byFirst.get(first)
        if (known === undefined) this.#byFirst.set(first, [entry])
        else known.push(entry)
      }
    }
  }

  /** The synonyms whose words begin a list of words. */
  *at(words: readonly string[], rules: SynonymRules): Generator<Entry> {
    const begins = ({ words: wanted, locale }: Entry): boolean =>
      locale === rules.locale &&
      wanted.length <= words.length &&
      wanted.every((word, index) => isMeant(words[index]!, word, rules))
    const exact = this.#byFirst.get(words[0]!)
    if (exact !== undefined) yield* exact.filter(begins)
    if (exact !== undefined || (!rules.prefix && rules.typos === 0)) return
    let left = MOST_GUESSED
    for (const [first, entries] of this.#byFirst) {
      if (!isMeant(words[0]!, first, rules)) continue
      for (const entry of entries.filter(begins)) {
        if (left-- === 0) return
        yield entry
      }
    }
  }
}

function isMeant(given: string, word: string, { prefix, typos }: SynonymRules): boolean {
  if (given === word || (prefix && word.startsWith(given))) return true
  return typos > 0 && wordDistance(given, word, typos).whole <= typos
}

/** The words of a synonym as terms. Words that belong together are one. */
const termsOf = (text: string, analyzer: Analyzer): Term[] =>
  text
    .split(/\s+/)
    .flatMap((part) => analyzer.pieces(part))
    .flatMap((piece) => termOf(piece, analyzer) ?? [])

/** A synonym found in a query: it replaces the terms from `from` up to `to`. */
interface Found {
  from: number
  to: number
  instead: Term[][]
}

/**
 * The terms of a query with their synonyms. No term is lost, and the order stays. `typos` applies to queries of at
 * most 16 terms.
 */
export function withSynonyms(terms: readonly Term[], given: SynonymRules): Term[] {
  const rules = terms.length > MOST_MISSPELT ? { ...given, typos: 0 } : given
  const longest = Math.max(0, ...rules.indexes.map((index) => index.longest))
  const found = terms.flatMap((_, from) => findAt(terms, from, longest, rules))
  if (found.length === 0) return [...terms]
  const expanded = [...terms]
  let left = MOST_ADDED
  for (const group of groupsOf(found)) {
    const from = group[0]!.from
    const to = Math.max(...group.map((each) => each.to))
    const instead: Term[][] = []
    for (const way of waysToWrite(terms, group, from, to)) {
      left -= way.length
      if (left < 0) break
      instead.push(way)
    }
    if (instead.length > 0) expanded[from] = { ...terms[from]!, synonyms: { span: to - from, instead } }
  }
  return expanded
}

/** @param longest words of the longest synonym: no more are looked at */
function findAt(terms: readonly Term[], from: number, longest: number, rules: SynonymRules): Found[] {
  const words: string[] = []
  /** the term after the one that ends with this many words */
  const ends = new Map<number, number>()
  for (let at = from; at < terms.length && words.length < longest && !terms[at]!.quoted; at++) {
    words.push(...terms[at]!.tokens.map(rules.form))
    ends.set(words.length, at + 1)
  }
  if (words.length === 0) return []
  return rules.indexes.flatMap((index) =>
    [...index.at(words, rules)].flatMap(({ words: replaced, instead }): Found[] => {
      const to = ends.get(replaced.length)
      return to === undefined ? [] : [{ from, to, instead }]
    }),
  )
}

/** Synonyms that share a term belong together. @param found in the order of their first terms */
function groupsOf(found: Found[]): Found[][] {
  const groups: Found[][] = []
  let end = 0
  for (const each of found) {
    if (groups.length > 0 && each.from < end) groups.at(-1)!.push(each)
    else groups.push([each])
    end = Math.max(end, each.to)
  }
  return groups
}

/** All ways to write some terms, besides as they are. */
function waysToWrite(terms: readonly Term[], group: Found[], from: number, to: number): Term[][] {
  // Computed from the end: by position, all ways to write the terms from there on.
  const ways = new Map<number, Term[][]>([[to, [[]]]])
  for (let at = to - 1; at >= from; at--) {
    const unfinished = terms[at]!
    const own = ways.get(at + 1)!.map((rest) => [unfinished, ...rest])
    const replaced = group
      .filter((each) => each.from === at)
      .flatMap(({ to: next, instead }) =>
        instead.flatMap((texts) =>
          ways.get(next)!.map((rest) => [...(next === to ? ending(texts, terms, to) : texts), ...rest]),
        ),
      )
    ways.set(at, distinct([...own, ...replaced]).slice(0, MOST_WAYS))
  }
  return ways.get(from)!.slice(1)
}

/** A text that replaces an unfinished word may be unfinished, too. */
const ending = (texts: Term[], terms: readonly Term[], to: number): Term[] =>
  terms[to - 1]!.prefix ? texts.with(-1, { ...texts.at(-1)!, prefix: true }) : texts

function distinct(ways: Term[][]): Term[][] {
  const byWords = new Map<string, Term[]>()
  for (const way of ways) {
    const words = way.flatMap(({ tokens }) => tokens).join(' ')
    if (!byWords.has(words)) byWords.set(words, way)
  }
  return [...byWords.values()]
}

/**
 * FTS5 expressions of terms, one for each term or for those that a synonym replaces together.
 * @param one the expression of a single term; undefined if it has no word
 */
export function expressionsOf(terms: readonly Term[], one: (term: Term) => string | undefined): string[] {
  const expressions: string[] = []
  for (let at = 0; at < terms.length; ) {
    const { span = 1, instead = [] } = terms[at]!.synonyms ?? {}
    // If the last of these terms were dropped, the synonym no longer applies and the words stand for themselves.
    const whole = instead.length > 0 && at + span <= terms.length
    const own = terms.slice(at, at + (whole ? span : 1))
    const ways = [own, ...(whole ? instead : [])]
      .map((way) => way.map(one).filter((each) => each !== undefined))
      .filter((way) => way.length > 0)
      .map(allOf)
    if (ways.length > 0) expressions.push(ways.length === 1 ? ways[0]! : `(${ways.join(' OR ')})`)
    at += own.length
  }
  return expressions
}

const allOf = (expressions: string[]): string =>
  expressions.length === 1 ? expressions[0]! : `(${expressions.join(' AND ')})`

/**
 * Terms of which any is enough, with their synonyms.
 * @param terms all terms of the query
 * @param relaxed those of which any is enough, without their synonyms
 */
export function relaxSynonyms(terms: readonly Term[], relaxed: Term[]): Term[] {
  const standing = terms.flatMap((term) => (term.synonyms ? [{ term, ...term.synonyms }] : []))
  if (standing.length === 0 || relaxed.length === 0) return relaxed
  const found = relaxed.map(({ synonyms: _, ...term }): Term => term)
  for (const { term, instead } of standing) {
    const own = found.findIndex(({ tokens }) => tokens.join(' ') === term.tokens.join(' '))
    const at = Math.max(0, own)
    const known = found[at]!.synonyms?.instead ?? []
    found[at] = { ...found[at]!, synonyms: { span: 1, instead: [...known, ...instead] } }
  }
  return found
}

/**
 * All ways to write the query, as lists of terms without synonyms. The original comes first. At most 64. Ranking
 * compares a document with each of them.
 */
export function waysOf(terms: readonly Term[]): Term[][] {
  let ways: Term[][] = [[]]
  for (let at = 0; at < terms.length; ) {
    const { span = 1, instead = [] } = terms[at]!.synonyms ?? {}
    const whole = at + span <= terms.length
    const own = withoutSynonyms(terms.slice(at, at + (whole ? span : 1)))
    const parts = whole ? [own, ...instead.map(withoutSynonyms)] : [own]
    ways = parts.flatMap((part) => ways.map((way) => [...way, ...part])).slice(0, MOST_WAYS)
    at += own.length
  }
  return ways
}

export const hasSynonyms = (terms: readonly Term[]): boolean => terms.some(({ synonyms }) => synonyms)

/** The terms without their synonyms. */
export const withoutSynonyms = (terms: readonly Term[]): Term[] =>
  terms.map(({ synonyms: _, ...term }): Term => term)
