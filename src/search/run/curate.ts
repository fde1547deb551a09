/**
 * Curations: rules by which the owner of a collection changes searches. This file decides which rules a search meets,
 * and applies them to its parameters.
 *
 * As in Typesense, rules are tried in order, and the first one that is met ends it unless its `stop_processing` is false.
 * A rule whose filter does not fit the collection is not met.
 */
import { ApiError } from '../../errors'
import { atOnce, Filter } from '../filter/filter'
import { readAll } from '../fragment'
import { BLOCK, type Offsets } from '../schema/block'
import type { Curation } from '../sets/curation'
import type { Diversity } from '../sets/diversity'
import { comparedTokens } from '../text/compared'
import type { Token, TokenRules } from '../text/words'
import type { SearchParameters } from '../types'
import type { SearchContext } from './context'
import { type FirstValue, type Met, meetFilter, meetQuery, type RuleWords } from './curation-rules'

export interface Curated {
  params: SearchParameters
  pins: { id: string; position: number }[]
  hidden: string[]
  /** whether pinned documents have to pass the filter */
  filtersPins: boolean
  metadata: Record<string, unknown> | undefined
  /** of the last curation that has some */
  diversity: Diversity | undefined
}

const EVERYTHING = '*'

/** The query while rules change it. */
class Query {
  readonly #rules: TokenRules
  #tokens: Token[] = []
  text: string

  constructor(text: string, rules: TokenRules) {
    this.#rules = rules
    this.text = text
    this.#read()
  }

  #read(): void {
    this.#tokens = this.text.trim() === EVERYTHING ? [] : comparedTokens(this.text, this.#rules)
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
    if (comparedTokens(this.text, this.#rules).length === 0) this.text = EVERYTHING
    this.#read()
  }
}

/** Applies curations to a search. */
export function curate(
  context: SearchContext,
  given: SearchParameters,
  curations: readonly Curation[],
  lists: Pick<RuleWords, 'synonyms' | 'dictionaries'>,
): Curated {
  const params = { ...given }
  const curated: Curated = {
    params,
    pins: [],
    hidden: [],
    filtersPins: false,
    metadata: undefined,
    diversity: undefined,
  }
  if (curations.length === 0) return curated
  const query = new Query(params.q ?? EVERYTHING, context.schema)
  const known: RuleWords = { ...lists, tokens: context.schema, firstValue: valuesOf(context) }
  const filter = (params.filter_by ?? '').trim()
  let replaced: string | undefined
  for (const each of tagged(curations, tagsOf(params))) {
    let any = false
    for (const curation of each) {
      const met = meets(curation, query.words, filter, known)
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
    return [curations.filter(({ rule }) => rule.tags.length === 0 || isForAll(rule.tags))]
  }
  const wanted = new Set(tags)
  const some = curations.filter(({ rule }) => rule.tags.some((tag) => wanted.has(tag)))
  const all = some.filter(({ rule }) => {
    const own = new Set(rule.tags)
    return own.size === wanted.size && rule.tags.every((tag) => wanted.has(tag))
  })
  return wanted.size > 1 ? [all, some] : [some]
}

const isForAll = (tags: string[]): boolean => tags.length === 1 && tags[0] === '*'

/** Whether the present is within the curation's time. */
export function isInEffect({ effective_from_ts: from, effective_to_ts: to }: Curation): boolean {
  const now = Math.floor(Date.now() / 1000)
  return (from === undefined || now >= from) && (to === undefined || now <= to)
}

function meets(curation: Curation, words: string[], filter: string, known: RuleWords): Met | undefined {
  if (!isInEffect(curation)) return undefined
  const { rule } = curation
  const byFilter = rule.filter_by === '' ? undefined : meetFilter(rule.filter_by, filter)
  if (rule.filter_by !== '' && byFilter === undefined) return undefined
  if (rule.query === '') return rule.tags.length > 0 ? (byFilter ?? NOTHING) : byFilter
  const byQuery = meetQuery(rule, words, known)
  return byQuery && { ...byQuery, values: new Map([...(byFilter?.values ?? []), ...byQuery.values]) }
}

const NOTHING: Met = { values: new Map(), places: new Set() }

/** A filter or sort with values in place of its placeholders. */
function substituted(text: string, { values }: Met): string {
  return text.replace(/\{\s*([^{}\s]+)\s*\}/g, (placeholder, name: string) => values.get(name) ?? placeholder)
}

function fits({ schema }: SearchContext, filter: string): boolean {
  try {
    new Filter(schema, filter)
    return true
  } catch (error) {
    if (error instanceof ApiError) return false
    throw error
  }
}

/** Texts that one statement looks for. */
const AT_ONCE = 500
/** A longer text is not tried as a value. */
const MOST_CHARACTERS = 1_600

/**
 * Looks for values in the collection. Each statement may read all documents, so it looks for many texts at once. If
 * one of them is a value, bisection finds the first.
 */
function valuesOf({ sql, schema, columns, count }: SearchContext): FirstValue {
  const known = new Map<string, boolean>()
  function* blocks(): Generator<[number, Offsets]> {
    const [ends] = sql.exec<{ last: number | null }>('SELECT max(seq) AS last FROM documents').toArray()
    for (let number = 0; number * BLOCK <= (ends?.last ?? -1); number++)
      yield [number, columns.present(sql, schema, count(), number, readAll)]
  }
  /** undefined if the collection has no such field, or if a text does not fit the field's type */
  const isAny = (field: string, texts: readonly string[]): boolean | undefined => {
    try {
      const list = texts.map((text) => `\`${text}\``).join(',')
      const filter = new Filter(schema, `${field}:=[${list}]`)
      for (const [number, offsets] of blocks()) {
        if (atOnce(filter.among({ sql, columns, read: readAll }, number, offsets)).length > 0) return true
      }
      return false
    } catch (error) {
      if (error instanceof ApiError) return undefined
      throw error
    }
  }
  /** @param hasOne whether one of the texts is known to be a value */
  const firstOf = (field: string, texts: readonly string[], hasOne = false): string | undefined => {
    const keyOf = (text: string) => `${field}:${text}`
    const [first] = texts
    if (first === undefined || known.get(keyOf(first)) === true) return first
    const isOne = texts.length === 1
    const found = hasOne || isAny(field, texts)
    if (found === false || (isOne && found === undefined)) {
      for (const text of texts) known.set(keyOf(text), false)
      return undefined
    }
    if (isOne) {
      known.set(keyOf(first), true)
      return first
    }
    const middle = texts.length >> 1
    return firstOf(field, texts.slice(0, middle)) ?? firstOf(field, texts.slice(middle), found)
  }
  return (field, texts) => {
    const open = texts.filter(
      (text) => text.length <= MOST_CHARACTERS && known.get(`${field}:${text}`) !== false,
    )
    for (let from = 0; from < open.length; from += AT_ONCE) {
      const found = firstOf(field, open.slice(from, from + AT_ONCE))
      if (found !== undefined) return texts.indexOf(found)
    }
    return undefined
  }
}
