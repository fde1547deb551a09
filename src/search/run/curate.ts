/**
 * Curations: rules by which the owner of a collection changes searches. This file decides which rules a search meets,
 * and applies them to its parameters.
 *
 * As in Typesense, rules are tried in order, and the first one that is met ends it unless its `stop_processing` is false.
 * A rule whose filter does not fit the collection is not met.
 */
import { unlessRefused } from '../../errors'
import { changesOf } from '../changes'
import { documentsOf, Filter } from '../filter/filter'
import { asNumber } from '../filter/number'
import { comparedForm } from '../filter/string'
import { BLOCK, numberAt } from '../schema/block'
import { findField } from '../schema/find-field'
import { hasValues, isBool, isNumber, isString, type StoredSchema } from '../schema/layout'
import type { Curation } from '../sets/curation'
import type { Diversity } from '../sets/diversity'
import { comparedTokens } from '../text/compared'
import { rulesOf } from '../text/rules'
import type { Token, TokenRules } from '../text/words'
import type { Field, SearchParameters } from '../types'
import type { SearchContext } from './context'
import { type FirstValue, type Met, meetFilter, meetQuery, type RuleWords } from './curation-rules'
import type { Pace } from './pace'

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
/** To try a rule takes as long as to read so many rows. */
const ROWS_A_RULE = 16

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

/** Applies curations to a search. Rests between them. */
export async function curate(
  context: SearchContext,
  given: SearchParameters,
  curations: readonly Curation[],
  lists: Pick<RuleWords, 'synonyms' | 'dictionaries'>,
  pace: Pace,
): Promise<Curated> {
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
  const known: RuleWords = { ...lists, tokens: context.schema, firstValue: valuesIn(context, pace) }
  const filter = (params.filter_by ?? '').trim()
  let replaced: string | undefined
  for (const each of tagged(curations, tagsOf(params))) {
    let any = false
    for (const curation of each) {
      pace.countRows(ROWS_A_RULE)
      await pace.rest()
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

/**
 * Looks for values in the collection. The forms that a field's values have in a block are kept with the block (ColumnMemory.forms),
 * so a search looks texts up in sets, and reads documents only where they were written since.
 */
function valuesIn(context: SearchContext, pace: Pace): FirstValue {
  /** by field: whether a text is a value */
  const known = new Map<string, Map<string, boolean>>()
  return async (name, texts) => {
    const before = known.get(name) ?? new Map<string, boolean>()
    known.set(name, before)
    const field = valueField(context.schema, name)
    const open = texts.filter((text) => text.length <= MOST_CHARACTERS && !before.has(text))
    if (name === 'id') for (const id of idsAmong(context.sql, open)) before.set(id, true)
    else if (field !== undefined && open.length > 0) {
      const forms = open.map((text) => formIn(context.schema, field, text))
      const { low, high } = pace.ends(context.sql)
      for (let number = Math.floor(low / BLOCK); number * BLOCK <= high; number++) {
        const values = await formsInBlock(context, name, number, pace)
        for (const [at, form] of forms.entries())
          if (form !== undefined && values.has(form)) before.set(open[at]!, true)
        pace.countRows(open.length / TEXTS_A_ROW)
        if (!(await pace.rest())) break
      }
    }
    for (const text of open) if (!before.has(text)) before.set(text, false)
    const first = texts.findIndex((text) => before.get(text))
    return first < 0 ? undefined : first
  }
}

const idsAmong = (sql: SqlStorage, texts: readonly string[]): string[] =>
  sql
    .exec<{ id: string }>(
      'SELECT id FROM documents WHERE id IN (SELECT value FROM json_each(?))',
      JSON.stringify(texts),
    )
    .toArray()
    .map(({ id }) => id)

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
async function formsInBlock(
  context: SearchContext,
  name: string,
  number: number,
  pace: Pace,
): Promise<ReadonlySet<string>> {
  const { sql, columns, schema } = context
  const forms = new Set<string>()
  const field = valueField(schema, name)
  if (field === undefined) return forms
  const { slot } = schema.slots[field.name]!
  const known = columns.formsOf(number, slot)
  if (known !== undefined) return known
  const changes = changesOf(sql)
  const rules = rulesOf(schema, field)
  if (hasValues(field)) {
    const [column] = columns.columns(schema, [field])
    const { values, words } = columns.block(sql, column!, number, pace.read)
    if (words === undefined) {
      for (let place = 0; place < values.length; place++)
        if (!Number.isNaN(values[place])) forms.add(String(numberAt(values, place)))
    }
    for (const [id, text] of words?.texts.entries() ?? []) {
      // A long text, of which there is only its place, has more words than a placeholder stands for.
      if (id === 0 || typeof text === 'number') continue
      forms.add(rules.stem === undefined ? words!.norm(id) : comparedForm(text, rules))
    }
    pace.countRows(forms.size * ROWS_A_FORM)
  } else {
    const present = columns.present(sql, schema, context.count(), number, pace.read)
    for (let from = 0; from < present.length; from += READ_AT_ONCE) {
      const some = present.subarray(from, from + READ_AT_ONCE)
      const source = { sql, columns, read: pace.read }
      for (const { texts } of documentsOf({ source, number }, some, [])) {
        for (const text of texts(field))
          if (typeof text === 'string' && text.length <= MOST_CHARACTERS) forms.add(comparedForm(text, rules))
      }
      pace.countDocuments(some.length)
      if (!(await pace.rest())) return forms
    }
  }
  if (changesOf(sql) === changes && context.schema === schema) columns.keepForms(number, slot, forms)
  return forms
}
