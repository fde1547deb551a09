/**
 * Highlights the words of the query in a document's fields, in Typesense's two forms. A word is marked if it
 * matches a query word as it did in the index; if the query's last word is unfinished, matching prefixes are marked too. Nothing is escaped,
 * as in Typesense.
 */

import type { HighlightOptions } from '../request/request'
import { findField } from '../schema/find-field'
import { isString, type StoredSchema } from '../schema/layout'
import { partsOf, stringsAt, walk } from '../schema/values'
import { comparedTokens } from '../text/compared'
import type { Mark, Matchers, WordMatcher } from '../text/matcher'
import type { Token, TokenRules } from '../text/words'
import type { Document, Highlight } from '../types'

/** How many words apart the first and the last match may be to be shown together; Typesense's. */
const WINDOW = 10

interface Passage {
  snippet: string
  matchedTokens: string[]
  /** the whole value, if asked for */
  value?: string
  /** how well the query fits: more of its words side by side. 0 for none */
  fit: number
}

/** Makes the snippet of a value: the best window of matches with some tokens around it, or all of a short text. */
function highlightText(
  text: string,
  matcher: WordMatcher,
  options: HighlightOptions,
  full: boolean,
): Passage {
  const { starts, ends, marks } = matcher.read(text)
  let [from, to] = [0, text.length]
  const { first, last, fit } = bestWindow(marks)
  if (starts.length > options.snippetThreshold) {
    const start = marks.length === 0 ? 0 : Math.max(0, first - options.affixTokens)
    const end = marks.length === 0 ? options.snippetThreshold - 1 : last + options.affixTokens
    if (start > 0) from = starts[start]!
    if (end < ends.length - 1) to = ends[Math.max(0, end)]!
  }
  const all = rangesOf(marks)
  const within = all.filter((mark) => mark.start >= from && mark.end <= to)
  const matchedTokens = [...new Set(within.map((mark) => text.slice(mark.start, mark.end)))]
  const passage = { snippet: mark(text, from, to, within, options), matchedTokens, fit }
  return full ? { ...passage, value: mark(text, 0, text.length, all, options) } : passage
}

/** Marks that are shown together. */
interface MarkedRange {
  first: number
  last: number
  /** its different words count before how close they are. 0 for none */
  fit: number
}

/** The window with the most different query words; of equal ones the shortest, and then the first. */
function bestWindow(marks: Mark[]): MarkedRange {
  let best: MarkedRange = { first: 0, last: 0, fit: 0 }
  for (const [index, { token: first }] of marks.entries()) {
    const words = new Set<number>()
    for (let at = index; at < marks.length && marks[at]!.token <= first + WINDOW; at++) {
      const { token: last, word } = marks[at]!
      if (words.has(word)) continue
      words.add(word)
      const fit = words.size * (WINDOW + 1) - (last - first)
      if (fit > best.fit) best = { first, last, fit }
    }
  }
  return best
}

type Range = Pick<Mark, 'start' | 'end'>

/** The places of marks. Pairs of characters overlap, so adjacent matches form one place. */
function rangesOf(marks: Mark[]): Range[] {
  const ranges: Range[] = []
  for (const { start, end } of marks) {
    const last = ranges.at(-1)
    if (last !== undefined && start < last.end) last.end = Math.max(last.end, end)
    else ranges.push({ start, end })
  }
  return ranges
}

function mark(text: string, from: number, to: number, marks: Range[], options: HighlightOptions): string {
  let out = ''
  let at = from
  for (const { start, end } of marks) {
    out += text.slice(at, start) + options.startTag + text.slice(start, end) + options.endTag
    at = end
  }
  return out + text.slice(at, to)
}

export interface DocumentHighlights {
  highlight: Record<string, unknown>
  highlights: Highlight[]
}

/** @param fields names of the fields to look at */
export function highlightDocument(
  document: Document,
  fields: string[],
  matchers: Matchers,
  schema: StoredSchema,
  options: HighlightOptions,
): DocumentHighlights {
  const result: DocumentHighlights = { highlight: {}, highlights: [] }
  const old: { fit: number; highlight: Highlight }[] = []
  for (const name of fields) {
    const field = findField(schema, name)
    if (field === undefined || !isString(field)) continue
    const full = options.fullFields.includes(name)
    const matcher = matchers.of(name)
    const passages = stringsAt(document, name).map((text) => highlightText(text, matcher, options, full))
    const isMatched = passages.some(({ matchedTokens }) => matchedTokens.length > 0)
    // As in Typesense: a field of `highlight_fields` is in the new form, even if nothing of it matches.
    if (!isMatched && !options.fields?.includes(name)) continue
    // The new form has the document's shape, and visits the values in the same order.
    const queue = [...passages]
    mirror(result.highlight, document, name, () => {
      const { snippet, matchedTokens, value } = queue.shift()!
      return { matched_tokens: matchedTokens, snippet, ...(value === undefined ? {} : { value }) }
    })
    if (!isMatched || !options.v1) continue
    const fit = Math.max(...passages.map((passage) => passage.fit))
    old.push({ fit, highlight: oldForm(name, field.type.endsWith('[]'), passages) })
  }
  // As in Typesense, the field that fits best comes first. The sort is stable.
  result.highlights = old.sort((a, b) => b.fit - a.fit).map(({ highlight }) => highlight)
  return result
}

function oldForm(field: string, array: boolean, passages: Passage[]): Highlight {
  if (!array) {
    const { snippet, matchedTokens, value } = passages[0]!
    return { field, matched_tokens: matchedTokens, snippet, ...(value === undefined ? {} : { value }) }
  }
  const matched = passages
    .map((passage, index) => ({ ...passage, index }))
    .filter(({ matchedTokens }) => matchedTokens.length > 0)
    .sort((a, b) => b.fit - a.fit)
  const values = matched.map(({ value }) => value).filter((value) => value !== undefined)
  return {
    field,
    indices: matched.map(({ index }) => index),
    matched_tokens: matched.map(({ matchedTokens }) => matchedTokens),
    snippets: matched.map(({ snippet }) => snippet),
    ...(values.length > 0 ? { values } : {}),
  }
}

type Json = Record<string, unknown>

/** Puts `leaf()` into `target` for every string that a name reaches in `source`, in the shape of `source`. */
function mirror(target: Json, source: Document, name: string, leaf: () => Json): void {
  walk(source, name, partsOf(name), target, beside, ({ key, value }, parent) => {
    if (typeof value === 'string') parent[key] = leaf()
    else if (Array.isArray(value)) {
      parent[key] = value.filter((each) => typeof each === 'string').map(() => leaf())
    }
  })
}

/** The node of the copy that corresponds to a node of the document. Fields in the same object share it. */
function beside(parent: Json, key: string | number, node: unknown): Json {
  const known = Object.hasOwn(parent, key) ? parent[key] : Array.isArray(node) ? [] : {}
  parent[key] = known
  return known as Json
}

export interface MatchCounts {
  /** fields with at least one of the words */
  fields: number
  /** different query words found in any of them */
  words: number
  /** index of the field with the most different words, -1 for none */
  bestField: number
}

/** How much of the query a document contains, for text_match_info. */
export function countMatches(document: Document, fields: string[], matchers: Matchers): MatchCounts {
  const all = new Set<number>()
  let matched = 0
  let best = { field: -1, words: 0 }
  for (const [index, name] of fields.entries()) {
    const words = new Set<number>()
    for (const text of stringsAt(document, name)) {
      for (const { word } of matchers.of(name).read(text).marks) words.add(word)
    }
    if (words.size > 0) matched++
    if (words.size > best.words) best = { field: index, words: words.size }
    for (const word of words) all.add(word)
  }
  return { fields: matched, words: all.size, bestField: best.field }
}

/** Marks the prefixes in a facet value that match the facet query. */
export function highlightFacet(
  value: string,
  queryTokens: string[],
  rules: TokenRules,
  options: { startTag: string; endTag: string },
): string {
  let out = ''
  let at = 0
  for (const { text, start, end } of comparedTokens(value, rules)) {
    const beginning = queryTokens.find((token) => text.startsWith(token))
    if (beginning === undefined) continue
    const marked = endOfBeginning(value, { text, start, end }, beginning.length, rules)
    out += value.slice(at, start) + options.startTag + value.slice(start, marked) + options.endTag
    at = marked
  }
  return out + value.slice(at)
}

/** Where the first letters of a word end, which may have signs between them. Where folding changed its length, all of it. */
function endOfBeginning(value: string, word: Token, letters: number, rules: TokenRules): number {
  let [end, left] = [word.start, letters]
  for (let at = word.start; at < word.end; at++) {
    if (comparedTokens(value[at]!, rules).length === 0) continue
    if (left-- > 0) end = at + 1
  }
  return letters - left === word.text.length ? end : word.end
}
