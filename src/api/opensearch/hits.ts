/** What a hit shows: the values that it is sorted by, and its highlights. */
import { timeOf } from '../../lib/dates'
import { MAX_DEPTH } from '../../search/limits'
import { valuesAt } from '../../search/schema/values'
import { rulesOf } from '../../search/text/query'
import { compare, normalForm } from '../../search/text/terms'
import type { Document, Hit, SearchParameters } from '../../search/types'
import { illegalArgument, noValues, parsingError, requireKeys, shardError, unsupported } from './errors'
import type { Fields, Target } from './fields'
import { isObject, type Json, listed, onlyEntry } from './route'
import { shownName } from './source'

// =============================================================================
// `sort`: as `sort_by`, and as the values that each hit shows.

export type Sort = NonNullable<ReturnType<typeof parseSort>>

interface Key {
  name: string
  /** undefined: no document has a value */
  by?: string
  value(document: Document, score: number, place?: number): unknown
  /** whether documents without a value come first */
  isFirst?: boolean
  /** a value as it is compared, unless it is null */
  form(value: unknown): string | number
}

/** @returns undefined if hits are sorted by score. @throws ApiError 400 */
export function parseSort(given: unknown, fields: Fields) {
  if (given === undefined) return undefined
  const keys = listed(given).map((each) => keyOf(each, fields))
  if (keys.length === 0) return undefined
  if (keys.length > 3) throw unsupported('A [sort] by more than 3 keys')
  const tie = keys.findIndex(({ name }) => name === '_id')
  if (tie === 0 || (tie > 0 && tie < keys.length - 1))
    throw unsupported('A [sort] by [_id], unless it is the last key and parts hits that are equal by others,')
  const isByScore = keys.length === 1 && keys[0]!.by === SCORE
  if (isByScore) return undefined
  return {
    /** the value for `sort_by` */
    by: keys.flatMap(({ by }) => by ?? []).join(',') || '_seq_id:asc',
    /** the values that a hit is sorted by; `score` if it is sorted by that. @param place among all hits, from 0 */
    values: (document: Document, score: number, place?: number) =>
      keys.map(({ value }) => value(document, score, place)),
    keys,
  }
}

const SCORE = '_text_match:desc'

function keyOf(given: unknown, fields: Fields): Key {
  const [name, body] = onlyEntry(typeof given === 'string' ? { [given]: {} } : given) ?? []
  if (name === undefined) throw illegalArgument('A key of [sort] has to name one field')
  const options = isObject(body) ? body : { order: body }
  requireKeys(options, 'order missing unmapped_type', (key) => unsupported(`[${key}] of a [sort]`))
  const order = String(options.order ?? (name === '_score' ? 'desc' : 'asc')).toLowerCase()
  if (order !== 'asc' && order !== 'desc') throw illegalArgument(`Unknown SortOrder [${order}]`)
  if (name === '_score') return { name, by: `_text_match:${order}`, value: (_, score) => score, form: Number }
  // Documents keep the order in which they came. Their number is their place among the hits, which rises in either order.
  const rising = (value: unknown) => (order === 'desc' ? -1 : 1) * Number(value)
  const byAge = { name, by: `_seq_id:${order}`, value: () => null, form: rising }
  if (name === '_doc') return { ...byAge, value: (_, __, place) => place ?? null }
  if (name === '_id') return { ...byAge, value: ({ id }) => id }
  const missing = options.missing ?? '_last'
  if (missing !== '_last' && missing !== '_first')
    throw unsupported(`[missing: ${String(missing)}] of a [sort]`)
  const isFirst = missing === '_first'
  const target = fields.find(name)
  if (target === undefined) {
    if (options.unmapped_type !== undefined) return { name, value: () => null, form: Number, isFirst }
    throw shardError(`No mapping found for [${name}] in order to sort on`)
  }
  if (target.kind === 'text') throw noValues(name)
  if (target.isArray) throw unsupported(`[sort] by [${name}], of which documents have lists,`)
  if (!target.hasValues || !target.field.sort) throw unsupported(`[sort] by [${name}]`)
  return {
    name,
    isFirst,
    // Of strings, a missing one would be the highest value.
    by: `${target.name}(missing_values: ${missing.slice(1)}):${order}`,
    value: (document) => shown(target, valuesAt(document, target.name)[0]),
    form: (value) => {
      if (target.isDate) return typeof value === 'number' ? value : timeOf(String(value))
      if (target.kind !== 'keyword') return Number(value)
      return normalForm(String(value), rulesOf(fields.schema, target.field))
    },
  }
}

/**
 * Compares the values of two hits. Negative: those of `a` come first. `_id` parts none: see `placeAfter`.
 * @param theirs the keys of `b`, if it is of another index
 */
export function orderOf(
  keys: readonly Key[],
  a: readonly unknown[],
  b: readonly unknown[],
  theirs = keys,
): number {
  for (const [at, { name, by, form, isFirst = false }] of keys.entries()) {
    const [left, right] = [a[at] ?? null, b[at] ?? null]
    if (name === '_id' || left === right) continue
    if (left === null || right === null) return (left === null) === isFirst ? -1 : 1
    const order = compare(form(left), theirs[at]!.form(right))
    if (order !== 0) return by?.endsWith('desc') ? -order : order
  }
  return 0
}

/**
 * Checks that the hits of several indices have one order.
 * @throws ApiError 400 for a key of different types, and for `search_after` by a place in one index
 */
export function requireOneOrder(sorts: readonly Sort[], after: unknown): void {
  for (const [at, { name }] of (sorts[0]?.keys ?? []).entries()) {
    if (after !== undefined && (name === '_id' || name === '_doc'))
      throw unsupported(`[search_after] of a [sort] by [${name}] in several indices`)
    const own = sorts.map(({ keys }) => keys[at]!).filter(({ by }) => by !== undefined)
    if (new Set(own.map(({ form }) => typeof form(''))).size < 2) continue
    const why = `Can't sort on field [${name}]; the field has incompatible sort types across indices`
    throw shardError(why, 'illegal_argument_exception')
  }
}

/** Hits that are equal but for their `_id`, of which one is looked for. */
const MOST_TIED = 10_000
const SOME = 250

/**
 * The place of the first hit behind the values of `search_after`. It is found by halves: of 10,000 hits, 14 are read.
 * @param read the number of all hits, and the values of some by place
 * @throws ApiError 400 for values that are none, or an `_id` that no such hit has
 */
export async function placeAfter(
  keys: readonly Key[],
  after: unknown,
  read: (place: number, size: number) => Promise<{ found: number; rows: unknown[][] }>,
): Promise<number> {
  if (!Array.isArray(after)) throw parsingError('[search_after] takes a list of values')
  const refused = (why: string) => shardError(why, 'illegal_argument_exception')
  if (keys.length === 0) throw refused('Sort must contain at least one field.')
  if (after.length !== keys.length)
    throw refused(`search_after has ${after.length} value(s) but sort has ${keys.length}.`)
  const bad = keys.find(({ form }, at) => after[at] !== null && Number.isNaN(form(after[at])))
  if (bad !== undefined && bad.name !== '_id')
    throw refused(`Failed to parse search_after value for field [${bad.name}].`)
  const isTied = keys.at(-1)!.name === '_id'
  let [low, high] = [0, Math.min((await read(0, 0)).found, MAX_DEPTH)]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const [row] = (await read(middle, 1)).rows
    const order = row === undefined ? 1 : orderOf(keys, row, after)
    if (order < 0 || (order === 0 && !isTied)) low = middle + 1
    else high = middle
  }
  if (!isTied) return low
  for (let at = low; at < low + MOST_TIED; at += SOME) {
    const { rows } = await read(at, SOME)
    const place = rows.findIndex((row) => row.at(-1) === after.at(-1))
    if (place >= 0) return at + place + 1
    if (rows.length < SOME) break
  }
  throw refused(`No hit of [search_after] has the [_id] ${JSON.stringify(after.at(-1))} any more.`)
}

function shown(target: Target, value: unknown): unknown {
  if (value === undefined) return null
  if (typeof value === 'boolean') return value ? 1 : 0
  const time = target.isDate ? timeOf(String(value)) : Number.NaN
  return Number.isNaN(time) ? value : time
}

// =============================================================================
// `highlight`: as parameters of the search, and as hits show it.

/** Characters of a word and the blank behind it, more or less. */
const LETTERS = 6
/** What a field may have of its own. Fragments are found in one way here, whatever the type. */
const OF_FIELDS = 'number_of_fragments fragment_size type'

/** @throws ApiError 400 that names what is unknown */
export function highlightParameters(given: unknown, fields: Fields): SearchParameters {
  if (given === undefined) return { highlight_fields: 'none' }
  if (!isObject(given)) throw parsingError('[highlight] has to be an object')
  const known = `fields pre_tags post_tags encoder ${OF_FIELDS}`
  requireKeys(given, known, (key) => unsupported(`[${key}] of [highlight]`))
  const { fields: named, pre_tags, post_tags, number_of_fragments, fragment_size } = given
  const entries = listed(named).flatMap((each) => (isObject(each) ? Object.entries(each) : []))
  if (entries.length === 0) throw parsingError('[highlight] takes an object of [fields]')
  const names: string[] = []
  const whole: string[] = []
  const sizes = new Set<unknown>()
  for (const [name, options] of entries) {
    const own = isObject(options) ? options : {}
    requireKeys(own, OF_FIELDS, (key) => unsupported(`[${key}] of a field of [highlight]`))
    const fragments = own.number_of_fragments ?? number_of_fragments
    const targets = fields.matching(name).filter(({ kind }) => kind === 'text')
    names.push(...targets.map((target) => target.name))
    // 0 means the whole value. Otherwise it is the most fragments, and there is one of each value.
    if (fragments === 0) whole.push(...targets.map((target) => target.name))
    sizes.add(own.fragment_size ?? fragment_size)
  }
  if (sizes.size > 1) throw unsupported('A [fragment_size] of [highlight] for each field')
  const [size = 100] = sizes
  if (!Number.isInteger(size) || (size as number) < 1)
    throw illegalArgument('[fragment_size] takes a number of characters')
  return {
    highlight_fields: names.join(',') || 'none',
    highlight_full_fields: whole.join(',') || 'none',
    // Half of the words before the match, and half behind it.
    highlight_affix_num_tokens: String(Math.max(1, Math.round((size as number) / (2 * LETTERS)))),
    highlight_start_tag: tag('pre_tags', pre_tags, '<em>'),
    highlight_end_tag: tag('post_tags', post_tags, '</em>'),
  }
}

function tag(name: string, given: unknown, otherwise: string): string {
  const [first = otherwise, ...others] = listed(given)
  if (typeof first !== 'string' || others.length > 0) throw unsupported(`[${name}] of more than one text`)
  return first
}

/** A hit's highlights: a list of texts for each field. */
export function highlightOf({ highlights }: Pick<Hit, 'highlights'>): Json | undefined {
  if (highlights.length === 0) return undefined
  return Object.fromEntries(
    highlights.map(({ field, value, values, snippet, snippets }) => [
      shownName(field),
      values ?? (value === undefined ? (snippets ?? [snippet]) : [value]),
    ]),
  )
}
