/**
 * Filters on strings. They compare normal forms (text/compared.ts): case, accents and signs do not count.
 *
 *     field: a b    every word is in the value         field:=a b    the value is these words, in order
 *     field: a pre* the last one is a prefix           field:=a pre* the value begins like this
 *     field:"a b"   the words follow each other; other values of a list with a phrase are compared whole
 *
 * Facets and sortable fields have their normal form in a column. Of other fields, only word_index has the words. It gives
 * a superset, and the documents themselves decide.
 *
 * A field with `stem` or `stem_dictionary` is filtered by the stems that word_index has, as in Typesense.
 */

import { readStoredObject } from '../../stored-json'
import { balanced, fragment, oneOf, type SqlFragment } from '../fragment'
import { isWordIndexing } from '../meta'
import { ROWID_IN_RANGE } from '../range'
import { hasValues } from '../schema/layout'
import { textCode, textColumn } from '../schema/shared-column'
import { stringsAt } from '../schema/values'
import { analyzerOf, WORDS } from '../text/analyzer'
import { comparedWords, normalForm, spaced } from '../text/compared'
import { rulesOf } from '../text/rules'
import type { TokenRules } from '../text/words'
import type { Field } from '../types'
import { type Columns, someValue, storedValues } from './columns'
import type { FilterContext } from './context'
import type { FilterClause } from './parse'

export interface Pattern {
  /** what was asked for, as it was written */
  text: string
  /** its words; none if values are compared as a whole */
  tokens: readonly string[]
  /** its normal form */
  form: string
  /** the last token matches every word that begins with it */
  prefix: boolean
  /** the tokens follow each other in the value */
  phrase?: boolean
}

// More words would hardly shrink the superset, only lengthen the query.
const MAX_INDEX_WORDS = 16

/** The values of a clause, as words. @param locale of the field. Where it has one, runs of a script without spaces are parted */
export const patternsOf = (clause: FilterClause, rules: TokenRules, locale: string): Pattern[] =>
  clause.values.map(({ text: given, quoted, phrase }) => {
    const open = !quoted && !phrase && given.endsWith('*')
    const bare = phrase ? given.slice(1, -1) : open ? given.slice(0, -1) : given
    const whole = comparesWhole(clause) && !phrase
    const text = locale === '' || whole || phrase ? bare : spaced(bare).trim()
    const { words, begins } = wordsOf(text, rules, whole)
    const form = words?.join(' ') ?? normalForm(text, rules)
    const prefix = form !== '' && (open || begins)
    return {
      text,
      tokens: whole ? [] : (words ?? comparedWords(text, rules)),
      form,
      prefix,
      ...(phrase && { phrase }),
    }
  })

/**
 * The words of a value as word_index has them, for a field with stems.
 * @param whole compared with all words of a value
 */
function wordsOf(text: string, rules: TokenRules, whole: boolean) {
  if (rules.stem === undefined) return { words: undefined, begins: false }
  const analyzer = analyzerOf(WORDS, rules)
  if (whole) return { words: analyzer.tokenize(text).map((word) => word.text), begins: false }
  return analyzer.phrase(text)
}

/** The form in which filters compare a value: its words, as the index has them. */
export const comparedForm = (text: string, rules: TokenRules): string =>
  wordsOf(text, rules, true).words?.join(' ') ?? normalForm(text, rules)

/** A value of signs has no words. `:` matches nothing by it; `:=` matches other values of signs. */
export const isUseful = ({ form, phrase }: Pattern, whole: boolean): boolean =>
  form !== '' || (whole && !phrase)

/** Whether values are compared as a whole. As in Typesense, a phrase in a list turns `:` into `:=` for the others. */
export const comparesWhole = ({ operator, values, list }: FilterClause): boolean =>
  operator === ':=' || operator === ':!=' || (list && values.some(({ phrase }) => phrase))

/** The texts that a value has to equal letter by letter; undefined if normal forms are compared. */
export const exactTexts = ({ values }: FilterClause): string[] | undefined =>
  values.every(({ exact }) => exact) ? values.map(({ text }) => text) : undefined

export function stringClause(context: FilterContext, field: Field, clause: FilterClause): SqlFragment {
  const whole = comparesWhole(clause)
  const rules = rulesOf(context.schema, field)
  const patterns = patternsOf(clause, rules, field.locale)
  const useful = patterns.filter((pattern) => isUseful(pattern, whole))
  if (useful.length === 0) return fragment('0')
  const exact = exactTexts(clause)
  if (!hasValues(field)) return compareDocuments(context, field, useful, whole, exact)
  if (exact !== undefined) {
    const list = JSON.stringify(exact)
    return someValue(context.schema, field, ({ value }) =>
      fragment(`${value} IN (SELECT value FROM json_each(?))`, list),
    )
  }
  if (rules.stem !== undefined) return compareValues(context, field, useful, whole)
  const { parted } = context.schema.slots[field.name]!
  const compared = someValue(context.schema, field, ({ norm }) => passing(norm, useful, whole))
  if (parted === undefined) return compared
  const older = { ...context, range: { ...context.range, low: Math.max(context.range.low, parted.seq) } }
  const others = compareValues(older, field, useful, whole, likely(rules, useful, whole))
  return {
    sql: `(d.seq < ? AND ${compared.sql} OR ${others.sql})`,
    bindings: [parted.seq, ...compared.bindings, ...others.bindings],
  }
}

/** @param blank what is between words */
function passing(norm: string, patterns: Pattern[], whole: boolean, blank = ' '): SqlFragment {
  const phrases = patterns.filter(({ phrase }) => phrase)
  const others = patterns.filter(({ phrase }) => !phrase)
  return balanced(
    [
      ...(phrases.length > 0 ? [containsPhrase(norm, phrases, blank)] : []),
      ...(others.length > 0 ? [whole ? equals(norm, others) : contains(norm, others, blank)] : []),
    ],
    'OR',
  )
}

/** Signs alone. A separator that is a letter was part of a word once. */
const SIGNS = /^[!-/:-@[-`{-~]*$/

/**
 * Finds the values that may pass by forms of an earlier version, which SQLite does ten times as fast as they are compared. In
 * ASCII, these have the same letters and symbols in other words.
 */
function likely({ token_separators, symbols_to_index }: TokenRules, patterns: Pattern[], whole: boolean) {
  if (!SIGNS.test([...token_separators, ...symbols_to_index].join(''))) return undefined
  const joined = (text: string) => text.replaceAll(' ', '')
  const wanted = patterns.map((pattern) => ({
    ...pattern,
    tokens: pattern.tokens.map(joined),
    form: joined(pattern.form),
  }))
  return ({ value, norm }: Columns): SqlFragment => {
    const { sql, bindings } = passing(`replace(${norm}, ' ', '')`, wanted, whole, '')
    return { sql: `(octet_length(${value}) <> length(${value}) OR ${sql})`, bindings }
  }
}

const containsPhrase = (norm: string, phrases: Pattern[], blank: string): SqlFragment =>
  fragment(
    `${norm} IS NOT NULL AND EXISTS (SELECT 1 FROM json_each(?) p WHERE instr('${blank}' || ${norm} || '${blank}', p.value) > 0)`,
    JSON.stringify(phrases.map(({ form }) => blank + form + blank)),
  )

/** Documents with any string in a field that has no column: found by reading the documents. */
export function anyString(context: FilterContext, field: Field): SqlFragment {
  const seqs: number[] = []
  let read = 0
  for (const { seq, body } of candidates(context, field, { text: '', prefix: false })) {
    read++
    if (stringsAt(readStoredObject(body), field.name).length > 0) seqs.push(seq)
  }
  context.onRead?.(read)
  return oneOf(seqs)
}

function equals(norm: string, patterns: Pattern[]): SqlFragment {
  const exact = patterns.filter(({ prefix }) => !prefix).map(({ form }) => form)
  const beginnings = patterns.filter(({ prefix }) => prefix).map(({ form }) => form)
  const list = fragment(`${norm} IN (SELECT value FROM json_each(?))`, JSON.stringify(exact))
  if (exact.length === 1 && beginnings.length === 0) return fragment(`${norm} = ?`, exact[0]!)
  if (beginnings.length === 0) return list
  const begins = `EXISTS (SELECT 1 FROM json_each(?) p WHERE substr(${norm}, 1, length(p.value)) = p.value)`
  return {
    sql: `(${list.sql} OR ${begins})`,
    bindings: [...list.bindings, JSON.stringify(beginnings)],
  }
}

function contains(norm: string, patterns: Pattern[], blank: string): SqlFragment {
  // With spaces around words and value, a match is a whole word.
  const needles = patterns.map(({ tokens, prefix }) =>
    tokens.map((token, index) => blank + token + (prefix && index === tokens.length - 1 ? '' : blank)),
  )
  const value = `'${blank}' || ${norm} || '${blank}'`
  if (needles.length === 1 && needles[0]!.length === 1) {
    return fragment(`instr(${value}, ?) > 0`, needles[0]![0]!)
  }
  const missing = `SELECT 1 FROM json_each(p.value) w WHERE instr(${value}, w.value) = 0`
  return fragment(
    `${norm} IS NOT NULL AND EXISTS (SELECT 1 FROM json_each(?) p WHERE NOT EXISTS (${missing}))`,
    JSON.stringify(needles),
  )
}

/** Finds candidates by the index, then compares the documents themselves. */
function compareDocuments(
  context: FilterContext,
  field: Field,
  patterns: Pattern[],
  whole: boolean,
  exact: string[] | undefined,
): SqlFragment {
  const seqs = new Set<number>()
  let read = 0
  for (const pattern of patterns) {
    for (const row of candidates(context, field, pattern)) {
      if (seqs.has(row.seq)) continue
      read++
      const values = stringsAt(readStoredObject(row.body), field.name)
      if (
        values.some(
          (value) =>
            exact?.includes(value) ??
            matches(comparedForm(value, rulesOf(context.schema, field)), pattern, whole),
        )
      ) {
        seqs.add(row.seq)
      }
    }
  }
  context.onRead?.(read)
  return oneOf([...seqs])
}

/** SQLite compares so many values in the time in which a document is read and parsed. */
const ROWS_A_DOCUMENT = 50
/** Values whose comparison is kept, since values repeat. */
const MOST_KNOWN = 10_000

/**
 * Compares the values in a field's columns, which have no stems, and may have normal forms of an earlier version.
 * @param among finds the values that may pass; all by default
 */
function compareValues(
  { sql, schema, range, onRead }: FilterContext,
  field: Field,
  patterns: Pattern[],
  whole: boolean,
  among: (columns: Columns) => SqlFragment = () => fragment('1'),
): SqlFragment {
  const rules = rulesOf(schema, field)
  const { table, columns } = storedValues(schema, field)
  const { value: column } = columns
  const condition = among(columns)
  const rows = sql.exec<{ seq: number; value: string }>(
    `SELECT c.seq, ${column} AS value FROM ${table} c WHERE c.seq BETWEEN ? AND ? AND ${column} IS NOT NULL AND ${condition.sql}`,
    range.low,
    range.high,
    ...condition.bindings,
  )
  const known = new Map<string, boolean>()
  const seqs = new Set<number>()
  let read = 0
  for (const { seq, value } of rows) {
    read++
    let passes = known.get(value)
    if (passes === undefined) {
      const form = comparedForm(value, rules)
      passes = patterns.some((pattern) => matches(form, pattern, whole))
      if (known.size >= MOST_KNOWN) known.clear()
      known.set(value, passes)
    }
    if (passes) seqs.add(seq)
  }
  onRead?.(Math.max(read, rows.rowsRead / ROWS_A_DOCUMENT))
  return oneOf([...seqs])
}

function candidates(context: FilterContext, field: Field, pattern: Pick<Pattern, 'text' | 'prefix'>) {
  const slot = context.schema.slots[field.name]!
  const words = wordsAsked(context.sql, pattern, rulesOf(context.schema, field), textCode(slot))
  // Fields that are indexed but not stored are in a table of their own.
  const table = field.store ? 'documents' : 'unstored'
  const { low, high } = context.range
  if (words.length === 0) {
    return context.sql.exec<{ seq: number; body: string }>(
      `SELECT seq, body FROM ${table} WHERE seq BETWEEN ? AND ?`,
      low,
      high,
    )
  }
  const column = textColumn(slot)
  return context.sql.exec<{ seq: number; body: string }>(
    `SELECT seq, body FROM ${table}
      WHERE seq IN (SELECT rowid FROM word_index WHERE word_index MATCH ? AND ${ROWID_IN_RANGE})`,
    `{${column}} : (${words.join(' AND ')})`,
    low,
    high,
  )
}

/**
 * Words in the form of an FTS5 query. Empty, which means all documents, while word_index does not have every document.
 * @param code begins each word in the column that fields share
 */
function wordsAsked(
  sql: SqlStorage,
  { text, prefix }: Pick<Pattern, 'text' | 'prefix'>,
  rules: TokenRules,
  code: string,
): string[] {
  if (isWordIndexing(sql)) return []
  const analyzer = analyzerOf(WORDS, rules)
  const pieces = analyzer.pieces(text)
  return pieces.slice(0, MAX_INDEX_WORDS).map((piece, index) => {
    const { words, begins } = analyzer.phrase(piece)
    const asked = words.map((word) => code + word).join(' ')
    const isOpen = begins || (prefix && index === pieces.length - 1)
    return `"${asked.replaceAll('"', '""')}"${isOpen ? '*' : ''}`
  })
}

/** Whether a value's normal form matches. @param whole the value is compared as a whole, unless it is a phrase */
export function matches(norm: string, { tokens, form, prefix, phrase }: Pattern, whole: boolean): boolean {
  if (phrase) return form !== '' && ` ${norm} `.includes(` ${form} `)
  if (whole) return prefix ? norm.startsWith(form) : norm === form
  const padded = ` ${norm} `
  return tokens.every((token, index) =>
    padded.includes(prefix && index === tokens.length - 1 ? ` ${token}` : ` ${token} `),
  )
}
