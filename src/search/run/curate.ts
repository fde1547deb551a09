/**
 * Curations: rules by which the owner of a collection changes searches. This file decides which rules a search meets,
 * and applies them to its parameters.
 *
 * As in Typesense, rules are tried in order, and the first one that is met ends it unless its `stop_processing` is false.
 * A rule whose filter does not fit the collection is not met.
 */

import { unlessRefused } from '../../errors'
import { once } from '../../lib/once'
import { findRows } from '../documents/rows'
import { documentsOf, Filter } from '../filter/filter'
import { asNumber, comparedForm } from '../filter/test'
import type { SearchRequest } from '../request/request'
import { BLOCK, numberAt } from '../schema/column'
import { hasValues, isBool, isNumber, isString, type StoredSchema } from '../schema/layout'
import { findField } from '../schema/schema'
import type { Curation, CurationRule, Diversity } from '../sets/curation'
import { stem, type Token, type TokenRules } from '../text/analyzer'
import { rulesOf } from '../text/query'
import { type SynonymRules, withSynonyms } from '../text/synonyms'
import { comparedTokens } from '../text/terms'
import type { Field, SearchParameters } from '../types'
import type { Candidates } from './candidates'
import type { Running, SearchContext } from './context'
import type { HitRow } from './hits'
import { blocksOf, filteredIn, seqsOf, setOf, withSeqs } from './match-set'
import type { Window } from './order'

const EVERYTHING = '*'
/** To try a rule takes as long as to read so many rows. */
const ROWS_A_RULE = 16

/** The query while rules change it. */
class Query {
  #tokens: Token[] = []
  text: string

  constructor(
    text: string,
    private readonly rules: TokenRules,
  ) {
    this.text = text
    this.#read()
  }

  #read(): void {
    this.#tokens = this.text.trim() === EVERYTHING ? [] : comparedTokens(this.text, this.rules)
  }

  /** the words that rules are compared with */
  get words(): string[] {
    return this.text.trim() === EVERYTHING ? [EVERYTHING] : this.#tokens.map(({ text }) => text)
  }

  /** Takes words out, by their places. */
  remove(places: ReadonlySet<number>): void {
    if (places.size === 0) return
    let text = ''
    let at = 0
    for (const [place, { start, end }] of this.#tokens.entries()) {
      if (!places.has(place)) continue
      text += this.text.slice(at, start)
      at = end
    }
    this.text = (text + this.text.slice(at)).replace(/\s+/g, ' ').trim()
    if (comparedTokens(this.text, this.rules).length === 0) this.text = EVERYTHING
    this.#read()
  }
}

/** Applies curations to a search. Rests between them. */
export async function curate(
  context: Running,
  given: SearchParameters,
  curations: readonly Curation[],
  lists: Pick<RuleWords, 'synonyms' | 'dictionaries'>,
) {
  const params = { ...given }
  const curated = {
    params,
    pins: [] as { id: string; position: number }[],
    hidden: [] as string[],
    /** whether pinned documents have to pass the filter */
    filtersPins: false,
    metadata: undefined as Curation['metadata'],
    /** of the last curation that has some */
    diversity: undefined as Diversity | undefined,
  }
  if (curations.length === 0) return curated
  const query = new Query(params.q ?? EVERYTHING, context.schema)
  const known: RuleWords = { ...lists, tokens: context.schema, firstValue: valuesIn(context) }
  const filter = (params.filter_by ?? '').trim()
  let replaced: string | undefined
  for (const each of tagged(curations, tagsOf(params))) {
    let any = false
    for (const curation of each) {
      context.pace.countRows(ROWS_A_RULE)
      await context.pace.rest()
      const met = await meets(curation, query.words, filter, known)
      if (met === undefined) continue
      const own = substituted(curation.filter_by, met)
      if (!fits(context, own)) continue
      any = true
      if (own !== '') params.filter_by = params.filter_by ? `(${params.filter_by}) && (${own})` : own
      if (curation.sort_by !== '') params.sort_by = substituted(curation.sort_by, met)
      curated.hidden.push(...curation.excludes.map(({ id }) => id))
      for (const { id, position } of curation.includes)
        curated.pins.push({ id, position: Math.max(1, position) })
      curated.filtersPins ||= curation.filter_curated_hits
      curated.metadata ??= curation.metadata
      curated.diversity = curation.diversity ?? curated.diversity
      if (curation.replace_query !== '') replaced = curation.replace_query
      else if (curation.remove_matched_tokens) query.remove(met.places)
      if (curation.stop_processing) break
    }
    if (any) break
  }
  const text = replaced ?? query.text
  if (params.q !== undefined || text !== EVERYTHING) params.q = text
  return curated
}

const tagsOf = ({ curation_tags: tags, override_tags: earlier }: SearchParameters): string[] =>
  (tags ?? earlier ?? '')
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '')

/**
 * The curations to try for some tags, as lists. Only the first list with a matching curation is used. For several
 * tags, the first list has the curations with exactly these tags, the next those with any of them. Without tags: the
 * curations without tags, or with `*`.
 */
function tagged(curations: readonly Curation[], tags: string[]): Curation[][] {
  if (tags.length === 0) {
    return [
      curations.filter(({ rule: { tags } }) => tags.length === 0 || (tags.length === 1 && tags[0] === '*')),
    ]
  }
  const wanted = new Set(tags)
  const some = curations.filter(({ rule }) => rule.tags.some((tag) => wanted.has(tag)))
  const all = some.filter(({ rule }) => {
    const own = new Set(rule.tags)
    return own.size === wanted.size && rule.tags.every((tag) => wanted.has(tag))
  })
  return wanted.size > 1 ? [all, some] : [some]
}

/** Whether the present is within the curation's time. */
export function isInEffect({ effective_from_ts: from, effective_to_ts: to }: Curation): boolean {
  const now = Math.floor(Date.now() / 1000)
  return (from === undefined || now >= from) && (to === undefined || now <= to)
}

async function meets(
  curation: Curation,
  words: string[],
  filter: string,
  known: RuleWords,
): Promise<Met | undefined> {
  if (!isInEffect(curation)) return undefined
  const { rule } = curation
  const byFilter = rule.filter_by === '' ? undefined : meetFilter(rule.filter_by, filter)
  if (rule.filter_by !== '' && byFilter === undefined) return undefined
  if (rule.query === '') return rule.tags.length > 0 ? (byFilter ?? NOTHING) : byFilter
  const byQuery = await meetQuery(rule, words, known)
  return byQuery && { ...byQuery, values: new Map([...(byFilter?.values ?? []), ...byQuery.values]) }
}

const NOTHING: Met = { values: new Map(), places: new Set() }

/** A filter or sort with values in place of its placeholders. */
function substituted(text: string, { values }: Met): string {
  return text.replace(/\{\s*([^{}\s]+)\s*\}/g, (placeholder, name: string) => values.get(name) ?? placeholder)
}

const fits = ({ schema }: SearchContext, filter: string): boolean =>
  unlessRefused(() => new Filter(schema, filter)) !== undefined

/** A longer text is not tried as a value. */
const MOST_CHARACTERS = 1_600
/** Documents that are read between rests, of a field without values in blocks. */
const READ_AT_ONCE = 100
/** To look so many texts up takes as long as to read a row. */
const TEXTS_A_ROW = 8
/** To make the form of a value takes as long as to read so many rows. */
const ROWS_A_FORM = 4
/** Bytes of a form besides its characters. */
const BYTES_A_FORM = 64

/**
 * Looks for values in the collection. The forms that a field's values have in a block are kept with the block (ColumnMemory.forms),
 * so a search looks texts up in sets, and reads documents only where they were written since.
 */
function valuesIn(context: Running): FirstValue {
  /** by field: whether a text is a value */
  const known = new Map<string, Map<string, boolean>>()
  return async (name, texts) => {
    const before = known.get(name) ?? new Map<string, boolean>()
    known.set(name, before)
    const field = valueField(context.schema, name)
    const open = texts.filter((text) => text.length <= MOST_CHARACTERS && !before.has(text))
    if (name === 'id') for (const id of findRows(context.sql, open).keys()) before.set(id, true)
    else if (field !== undefined && open.length > 0) {
      const forms = open.map((text) => formIn(context.schema, field, text))
      const { low, high } = context.pace.ends(context.sql)
      for (let number = Math.floor(low / BLOCK); number * BLOCK <= high; number++) {
        const values = await formsInBlock(context, name, number)
        for (const [at, form] of forms.entries())
          if (form !== undefined && values.has(form)) before.set(open[at]!, true)
        context.pace.countRows(open.length / TEXTS_A_ROW)
        if (!(await context.pace.rest())) break
      }
    }
    for (const text of open) if (!before.has(text)) before.set(text, false)
    const first = texts.findIndex((text) => before.get(text))
    return first < 0 ? undefined : first
  }
}

/** A field that a placeholder can stand for. */
function valueField(schema: StoredSchema, name: string): Field | undefined {
  const field = findField(schema, name)
  return field?.index && (isString(field) || isNumber(field) || isBool(field)) ? field : undefined
}

/** The form of a text as a value of a field; undefined if the field cannot have it. */
function formIn(schema: StoredSchema, field: Field, text: string): string | undefined {
  if (isString(field)) return comparedForm(text, rulesOf(schema, field))
  if (isBool(field)) return BOOLS.get(text)
  const number = asNumber(field, text)
  return number === undefined ? undefined : String(number)
}

const BOOLS = new Map([
  ['false', '0'],
  ['true', '1'],
])

/** The forms of a field's values in a block: from the block, or from the documents of a field that has none. */
async function formsInBlock(context: Running, name: string, number: number): Promise<ReadonlySet<string>> {
  const { sql, columns, schema } = context
  const forms = new Set<string>()
  const field = valueField(schema, name)
  if (field === undefined) return forms
  const { slot } = schema.slots[field.name]!
  const known = columns.forms.get(slot, number)
  if (known !== undefined) return known
  const { writes } = columns.forms
  const rules = rulesOf(schema, field)
  if (hasValues(field)) {
    const { values, words } = blocksOf(context)(field, number)
    if (words === undefined) {
      for (let place = 0; place < values.length; place++)
        if (!Number.isNaN(values[place])) forms.add(String(numberAt(values, place)))
    }
    for (const [id, text] of words?.texts.entries() ?? []) {
      // A long text, of which there is only its place, has more words than a placeholder stands for.
      if (id === 0 || typeof text === 'number') continue
      forms.add(rules.stem === undefined ? words!.norm(id) : comparedForm(text, rules))
    }
    context.pace.countRows(forms.size * ROWS_A_FORM)
  } else {
    const present = columns.present(sql, schema, context.count(), number, context.pace.query)
    for (let from = 0; from < present.length; from += READ_AT_ONCE) {
      const some = present.subarray(from, from + READ_AT_ONCE)
      const source = { sql, columns, read: context.pace.query }
      for (const { texts } of documentsOf({ source, number }, some, [])) {
        for (const text of texts(field))
          if (typeof text === 'string' && text.length <= MOST_CHARACTERS) forms.add(comparedForm(text, rules))
      }
      context.pace.countDocuments(some.length)
      if (!(await context.pace.rest())) return forms
    }
  }
  let bytes = 0
  for (const form of forms) bytes += BYTES_A_FORM + 2 * form.length
  columns.forms.set(slot, number, forms, bytes, writes)
  return forms
}

// =============================================================================
// Whether a search meets the rule of a curation: by its words, with placeholders for values of fields, or its filter.

/** How a search meets a rule. */
interface Met {
  /** what stands for placeholders, by their names */
  values: Map<string, string>
  /** the places of the query's words that the rule took */
  places: Set<number>
}

/** The place of the first of some texts that documents have as a value of a field; undefined if they have none. */
type FirstValue = (field: string, texts: readonly string[]) => Promise<number | undefined>

/** The rules for comparing words. */
interface RuleWords {
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

// =============================================================================
// Documents that a search or a curation pins to positions.

/** A pinned document. Positions begin with 1. */
export interface Pinned {
  seq: number
  position: number
}

/**
 * The documents that a search pins, by position. Of two at one position, the one named first comes first. One that has not been
 * compared with the filter when the search is cut off is left out.
 */
export async function pinnedDocuments(context: Running, request: SearchRequest): Promise<Pinned[]> {
  if (request.pinnedHits.length === 0) return []
  let seqs = findRows(
    context.sql,
    request.pinnedHits.map(({ id }) => id),
  )
  if (request.filterPinned) {
    const filter = new Filter(context.schema, request.filterBy, context.joins?.documents)
    const passing = new Set(seqsOf(await filteredIn(context, filter, setOf([...new Set(seqs.values())]))))
    seqs = new Map([...seqs].filter(([, seq]) => passing.has(seq)))
  }
  return request.pinnedHits
    .filter(({ id }) => seqs.has(id) && !request.hiddenHits.includes(id))
    .map(({ id, position }) => ({ seq: seqs.get(id)!, position }))
    .sort((a, b) => a.position - b.position)
}

/** Which of the hits are pinned documents, by place. Those positioned past the end follow the last hit. */
export function placesOf(pinned: readonly Pinned[], natural: number): Map<number, number> {
  const places = new Map<number, number>()
  let next = 0
  for (const [index, { seq, position }] of pinned.entries()) {
    // Two documents pinned to one position follow each other.
    next = Math.min(Math.max(position - 1, next), natural + index)
    places.set(next++, seq)
  }
  return places
}

/** A window of other matches that holds all those that share a window with pinned documents. */
export function besidePinned<Place extends Window>(window: Place, pinned: readonly Pinned[]): Place {
  const offset = Math.max(0, window.offset - pinned.length)
  return { ...window, offset, limit: window.limit + window.offset - offset }
}

/**
 * A window with the pinned documents in their places.
 * @param others the other matches: those of the window that `besidePinned` returns, and the number of all
 */
export function withPinned(
  others: { rows: readonly HitRow[]; found: number },
  pinned: readonly Pinned[],
  window: Window,
): { rows: HitRow[]; found: number } {
  const places = placesOf(pinned, others.found)
  const found = others.found + pinned.length
  const before = [...places.keys()].filter((place) => place < window.offset).length
  const { offset } = besidePinned(window, pinned)
  let next = window.offset - before - offset
  const rows: HitRow[] = []
  for (let place = window.offset; place < Math.min(window.offset + window.limit, found); place++) {
    const seq = places.get(place)
    const row = seq === undefined ? others.rows[next++] : pinnedRow(seq)
    if (row !== undefined) rows.push(row)
  }
  return { rows, found }
}

export const pinnedRow = (seq: number): HitRow => ({
  seq,
  score: null,
  distance: null,
  fused: null,
  curated: true,
})

/** The matches and the pinned documents together, for facets. */
export function includingPinned(candidates: Candidates, pinned: readonly Pinned[]): Candidates {
  if (pinned.length === 0) return candidates
  const seqs = pinned.map(({ seq }) => seq)
  return {
    ...candidates,
    found: undefined,
    set: once(async () => withSeqs(await candidates.set(), seqs)),
  }
}
