/** Whether a search meets the rule of a curation: by its words, with placeholders for values of fields, or its filter. */
import type { CurationRule } from '../sets/curation'
import { comparedTokens } from '../text/compared'
import { type SynonymRules, withSynonyms } from '../text/synonyms'
import { stem, type TokenRules } from '../text/words'

/** How a search meets a rule. */
export interface Met {
  /** what stands for placeholders, by their names */
  values: Map<string, string>
  /** the places of the query's words that the rule took */
  places: Set<number>
}

/** The place of the first of some texts that documents have as a value of a field; undefined if they have none. */
export type FirstValue = (field: string, texts: readonly string[]) => Promise<number | undefined>

/** The rules for comparing words. */
export interface RuleWords {
  tokens: TokenRules
  synonyms: SynonymRules | undefined
  /** stemming dictionaries by name */
  dictionaries: ReadonlyMap<string, ReadonlyMap<string, string>>
  firstValue: FirstValue
}

/** Placeholders are tried with this many words of a query. */
const MOST_WORDS = 16
/** A rule is tried with this many ways to write a query with synonyms. */
const MOST_VARIANTS = 64

type RulePart = string | { field: string }

const PLACEHOLDER = /\{\s*([^{}\s]+)\s*\}/

/** The words and placeholders of a rule, in order. */
function partsOf(query: string, tokens: TokenRules): RulePart[] {
  if (query.trim() === '*') return ['*']
  const parts = query.matchAll(new RegExp(`${PLACEHOLDER.source}|[^\\s{}]+`, 'g'))
  return [...parts].flatMap(([part, field]): RulePart[] =>
    field === undefined ? comparedTokens(part, tokens).map(({ text }) => text) : [{ field }],
  )
}

/** One way to write a query. @property places for each word: the places of the query's own words */
interface Variant {
  words: string[]
  places: number[][]
}

/** @param words of the query, folded @returns undefined if the rule is not met */
export async function meetQuery(
  rule: CurationRule,
  words: string[],
  known: RuleWords,
): Promise<Met | undefined> {
  if (rule.match === '') return undefined
  const parts = partsOf(rule.query, known.tokens)
  if (parts.length === 0) return undefined
  const rootOf = rootsOf(rule, known)
  const wanted = parts.map((part) => (typeof part === 'string' ? rootOf(part) : part))
  const variants = variantsOf(words, rule.synonyms ? known.synonyms : undefined)
  // Looking for values goes through all blocks, so look for those of all variants at once.
  for (const part of variants.length > 1 ? parts : []) {
    if (typeof part !== 'string') await known.firstValue(part.field, textsOf(variants))
  }
  for (const variant of variants) {
    const roots = variant.words.map(rootOf)
    const met = await meetWords(wanted, { ...variant, roots }, rule.match === 'exact', known.firstValue)
    if (met !== undefined) return met
  }
  return undefined
}

/** The texts that placeholders may stand for. */
const textsOf = (variants: Variant[]): string[] => [
  ...new Set(
    variants.flatMap(({ words }) =>
      windowsOf(range(0, Math.min(words.length, MOST_WORDS)), false).map((window) => textOf(window, words)),
    ),
  ),
]

function rootsOf(
  { stem: stems, stemming_dictionary: name }: CurationRule,
  { dictionaries }: RuleWords,
): (word: string) => string {
  const dictionary = name === undefined ? undefined : dictionaries.get(name)
  return (word) => dictionary?.get(word) ?? (stems ? stem(word) : word)
}

/** The query as it is, and then with each synonym. */
function variantsOf(words: string[], synonyms: SynonymRules | undefined): Variant[] {
  const own: Variant = { words, places: words.map((_, place) => [place]) }
  if (synonyms === undefined) return [own]
  const terms = words.map((word) => ({ tokens: [word], written: [word], prefix: false, corrections: [] }))
  const variants = [own]
  for (const [from, { synonyms: standing }] of withSynonyms(terms, synonyms).entries()) {
    const { span = 0, instead = [] } = standing ?? {}
    const replaced = own.places.slice(from, from + span).flat()
    for (const way of instead) {
      const said = way.flatMap(({ tokens }) => tokens)
      variants.push({
        words: words.toSpliced(from, span, ...said),
        places: own.places.toSpliced(from, span, ...said.map(() => replaced)),
      })
    }
  }
  return variants.slice(0, MOST_VARIANTS)
}

type Said = Variant & { roots: string[] }

async function meetWords(
  parts: RulePart[],
  said: Said,
  exact: boolean,
  firstValue: FirstValue,
): Promise<Met | undefined> {
  const fixed = parts.filter((part) => typeof part === 'string')
  return fixed.length === parts.length
    ? meetFixed(fixed, said, exact)
    : meetPlaceholders(parts, said, exact, firstValue)
}

/**
 * A rule without placeholders. Its words must be the whole query, or adjacent in it. Every such occurrence counts.
 */
function meetFixed(wanted: string[], { roots, places }: Said, exact: boolean): Met | undefined {
  const taken = new Set<number>()
  let any = false
  for (let at = 0; at + wanted.length <= roots.length; at++) {
    if (!wanted.every((word, index) => roots[at + index] === word)) continue
    any = true
    for (const place of places.slice(at, at + wanted.length).flat()) taken.add(place)
  }
  if (!any || (exact && roots.length !== wanted.length)) return undefined
  return { values: new Map(), places: taken }
}

/**
 * A rule with placeholders. Each takes the most words, of those up to the rule's next word, that are a value of its
 * field. Only their places count, as in Typesense: `{brand} phone` with `remove_matched_tokens` leaves `phone`.
 */
async function meetPlaceholders(
  parts: RulePart[],
  said: Said,
  exact: boolean,
  firstValue: FirstValue,
): Promise<Met | undefined> {
  const met: Met = { values: new Map(), places: new Set() }
  const end = Math.min(said.words.length, MOST_WORDS)
  let at = 0
  for (let index = 0; index < parts.length; ) {
    const part = parts[index]!
    if (typeof part === 'string') {
      const found = said.roots.indexOf(part, at)
      if (found < 0 || (exact && found !== at)) return undefined
      at = found + 1
      index++
      continue
    }
    const next = parts.findIndex((other, place) => place > index && typeof other === 'string')
    const last = next < 0 ? parts.length : next
    const wall = next < 0 ? -1 : said.roots.indexOf(parts[next] as string, at)
    let free = range(at, wall < 0 ? end : wall)
    at = wall < 0 ? end : wall
    for (const [order, placeholder] of parts.slice(index, last).entries()) {
      const { field } = placeholder as { field: string }
      const windows = windowsOf(free, order > 0)
      const texts = windows.map((places) => textOf(places, said.words))
      const window = windows[(await firstValue(field, texts)) ?? windows.length]
      if (window === undefined || (exact && window[0] !== free[0])) return undefined
      met.values.set(field, textOf(window, said.words))
      for (const place of window.flatMap((each) => said.places[each]!)) met.places.add(place)
      free = free.filter((place) => place > window.at(-1)!)
    }
    if (exact && free.length > 0) return undefined
    index = last
  }
  return exact && at < said.words.length ? undefined : met
}

const range = (from: number, to: number): number[] =>
  Array.from({ length: Math.max(0, to - from) }, (_, index) => from + index)

/** Places that follow each other: the longest first, and the first of equals. @param first they begin at the first place */
function windowsOf(places: readonly number[], first: boolean): number[][] {
  const windows: number[][] = []
  for (let length = places.length; length > 0; length--) {
    for (let from = 0; from + length <= places.length && !(first && from > 0); from++) {
      windows.push(places.slice(from, from + length))
    }
  }
  return windows
}

const textOf = (places: readonly number[], words: readonly string[]): string =>
  places.map((place) => words[place]).join(' ')

/** Limit of a filter's length times the placeholders of a rule. A larger product does not match. */
const MOST_COMPARED = 4_000_000

/**
 * Whether a search's filter is the rule's. A placeholder stands for any text without `&`, `|` and parentheses, the
 * shortest that fits. The filter is read from its end, once for each placeholder: an expression with two of them tries
 * all pairs of places.
 * @returns undefined if it is not
 */
export function meetFilter(rule: string, filter: string): Met | undefined {
  const met: Met = { values: new Map(), places: new Set() }
  const wanted = rule.trim()
  if (!PLACEHOLDER.test(wanted)) return wanted === filter ? met : undefined
  const parts = wanted.split(new RegExp(PLACEHOLDER.source, 'g'))
  const pieces = parts.filter((_, index) => index % 2 === 0)
  const names = parts.filter((_, index) => index % 2 === 1)
  const [first, last] = [pieces[0]!, pieces.at(-1)!]
  if (!filter.startsWith(first) || !filter.endsWith(last)) return undefined
  if (filter.length * names.length > MOST_COMPARED) return undefined
  /** for each placeholder: where its text ends if it begins at a place; 0 if nothing fits */
  const ends = names.map(() => new Int32Array(filter.length + 1))
  for (let index = names.length - 1; index >= 0; index--) {
    const piece = pieces[index + 1]!
    const after = ends[index + 1]
    const fits = (at: number): boolean =>
      after === undefined
        ? at + piece.length === filter.length
        : filter.startsWith(piece, at) && after[at + piece.length]! > 0
    let end = 0
    for (let at = filter.length - 1; at >= 0; at--) {
      if (fits(at + 1)) end = at + 1
      if ('&|()'.includes(filter[at]!)) end = 0
      ends[index]![at] = end
    }
  }
  let from = first.length
  for (const [index, name] of names.entries()) {
    const end = ends[index]![from] ?? 0
    if (end === 0) return undefined
    met.values.set(name, filter.slice(from, end).trim())
    from = end + pieces[index + 1]!.length
  }
  return met
}
