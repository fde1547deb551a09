/**
 * Filters on strings. They compare normal forms (text/words.ts): case, accents and punctuation do not count.
 *
 *     field: a b    every word is in the value         field:=a b    the value is these words, in order
 *     field: a pre* the last one is a prefix           field:=a pre* the value begins like this
 *     field:"a b"   the words follow each other; other values of a list with a phrase are compared whole
 *
 * Facets and sortable fields have their normal form in a column. Of other fields, only the full-text index has the
 * words, as stems. The index gives a superset, and the documents themselves decide.
 *
 * A field with `stem` or `stem_dictionary` is filtered by the stems that word_index has, as in Typesense.
 */

import { readStoredObject } from '../../stored-json'
import { balanced, fragment, oneOf, type SqlFragment } from '../fragment'
import { isWordIndexing } from '../meta'
import { ROWID_IN_RANGE } from '../range'
import { columnsTable, hasValues, isArray, scalarColumn, valuesTable } from '../schema/layout'
import { textCode, textColumn } from '../schema/shared-column'
import { stringsAt } from '../schema/values'
import { analyzerOf, WORDS } from '../text/analyzer'
import { rulesOf } from '../text/rules'
import { normalForm, prepare, type TokenRules, tokenize } from '../text/words'
import type { Field } from '../types'
import { someValue } from './columns'
import type { FilterContext } from './context'
import type { FilterClause } from './parse'

export interface Pattern {
  tokens: readonly string[]
  /** the words without folding, for FTS5, which folds by its own rules */
  written: readonly string[]
  /** the last token matches every word that begins with it */
  prefix: boolean
  /** the tokens follow each other in the value */
  phrase?: boolean
}

// More words would hardly shrink the superset, only lengthen the query.
const MAX_INDEX_WORDS = 16

/** The values of a clause, as words. */
export const patternsOf = (clause: FilterClause, rules: TokenRules): Pattern[] =>
  clause.values.map(({ text, quoted, phrase }) => {
    const prefix = !quoted && !phrase && text.endsWith('*')
    const bare = phrase ? text.slice(1, -1) : prefix ? text.slice(0, -1) : text
    if (rules.stem !== undefined) {
      const tokens = stemsOf(bare, rules, comparesWhole(clause) && !phrase)
      return {
        ...tokens,
        prefix: tokens.tokens.length > 0 && (prefix || tokens.begins),
        ...(phrase && { phrase }),
      }
    }
    const words = tokenize(bare, rules)
    return {
      tokens: words.map((word) => word.text),
      written: words.map(({ start, end }) => bare.slice(start, end)),
      prefix: prefix && words.length > 0,
      ...(phrase && { phrase }),
    }
  })

/** The words of a value as word_index has them. @param whole compared with all words of a value */
function stemsOf(text: string, rules: TokenRules, whole: boolean) {
  const analyzer = analyzerOf(WORDS, rules)
  const { words, begins } = analyzer.phrase(text)
  const tokens = whole ? analyzer.tokenize(text).map((word) => word.text) : words
  return { tokens, written: tokens, begins: begins && !whole }
}

/** The form in which filters compare a value: its words, as the index has them. */
export const comparedForm = (text: string, rules: TokenRules): string =>
  rules.stem === undefined ? normalForm(text, rules) : stemsOf(text, rules, true).tokens.join(' ')

/** Whether values are compared as a whole. As in Typesense, a phrase in a list turns `:` into `:=` for the others. */
export const comparesWhole = ({ operator, values, list }: FilterClause): boolean =>
  operator === ':=' || operator === ':!=' || (list && values.some(({ phrase }) => phrase))

export function stringClause(context: FilterContext, field: Field, clause: FilterClause): SqlFragment {
  const whole = comparesWhole(clause)
  const rules = rulesOf(context.schema, field)
  const patterns = patternsOf(clause, rules)
  // A value of punctuation has no words. `:` matches nothing by it; `:=` matches other values of punctuation.
  const useful = patterns.filter(({ tokens, phrase }) => tokens.length > 0 || (whole && !phrase))
  if (useful.length === 0) return fragment('0')
  if (!hasValues(field)) return compareDocuments(context, field, useful, whole)
  if (rules.stem !== undefined) return compareValues(context, field, useful, whole)
  const phrases = useful.filter(({ phrase }) => phrase)
  const others = useful.filter(({ phrase }) => !phrase)
  return someValue(context.schema, field, ({ norm }) =>
    balanced(
      [
        ...(phrases.length > 0 ? [containsPhrase(norm, phrases)] : []),
        ...(others.length > 0 ? [whole ? equals(norm, others) : contains(norm, others)] : []),
      ],
      'OR',
    ),
  )
}

const containsPhrase = (norm: string, phrases: Pattern[]): SqlFragment =>
  fragment(
    `${norm} IS NOT NULL AND EXISTS (SELECT 1 FROM json_each(?) p WHERE instr(' ' || ${norm} || ' ', p.value) > 0)`,
    JSON.stringify(phrases.map(({ tokens }) => ` ${tokens.join(' ')} `)),
  )

/** Documents with any string in a field that has no column: found by reading the documents. */
export function anyString(context: FilterContext, field: Field): SqlFragment {
  const seqs: number[] = []
  let read = 0
  for (const { seq, body } of candidates(context, field, { tokens: [], written: [], prefix: false })) {
    read++
    if (stringsAt(readStoredObject(body), field.name).length > 0) seqs.push(seq)
  }
  context.onRead?.(read)
  return oneOf(seqs)
}

function equals(norm: string, patterns: Pattern[]): SqlFragment {
  const exact = patterns.filter(({ prefix }) => !prefix).map(({ tokens }) => tokens.join(' '))
  const beginnings = patterns.filter(({ prefix }) => prefix).map(({ tokens }) => tokens.join(' '))
  const list = fragment(`${norm} IN (SELECT value FROM json_each(?))`, JSON.stringify(exact))
  if (exact.length === 1 && beginnings.length === 0) return fragment(`${norm} = ?`, exact[0]!)
  if (beginnings.length === 0) return list
  const begins = `EXISTS (SELECT 1 FROM json_each(?) p WHERE substr(${norm}, 1, length(p.value)) = p.value)`
  return {
    sql: `(${list.sql} OR ${begins})`,
    bindings: [...list.bindings, JSON.stringify(beginnings)],
  }
}

function contains(norm: string, patterns: Pattern[]): SqlFragment {
  // With spaces around words and value, a match is a whole word.
  const needles = patterns.map(({ tokens, prefix }) =>
    tokens.map((token, index) => (prefix && index === tokens.length - 1 ? ` ${token}` : ` ${token} `)),
  )
  const value = `' ' || ${norm} || ' '`
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
): SqlFragment {
  const seqs = new Set<number>()
  let read = 0
  for (const pattern of patterns) {
    for (const row of candidates(context, field, pattern)) {
      if (seqs.has(row.seq)) continue
      read++
      const values = stringsAt(readStoredObject(row.body), field.name)
      if (
        values.some((value) => matches(comparedForm(value, rulesOf(context.schema, field)), pattern, whole))
      ) {
        seqs.add(row.seq)
      }
    }
  }
  context.onRead?.(read)
  return oneOf([...seqs])
}

/** Compares the values in a field's columns, which have no stems. */
function compareValues(
  { sql, schema, range, onRead }: FilterContext,
  field: Field,
  patterns: Pattern[],
  whole: boolean,
): SqlFragment {
  const slot = schema.slots[field.name]!
  const rules = rulesOf(schema, field)
  const [table, column] = isArray(field)
    ? [valuesTable(slot), 'value']
    : [columnsTable(slot), scalarColumn(slot)]
  const rows = sql.exec<{ seq: number; value: string }>(
    `SELECT seq, ${column} AS value FROM ${table} WHERE seq BETWEEN ? AND ? AND ${column} IS NOT NULL`,
    range.low,
    range.high,
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
      known.set(value, passes)
    }
    if (passes) seqs.add(seq)
  }
  onRead?.(read)
  return oneOf([...seqs])
}

function candidates(context: FilterContext, field: Field, { tokens, written, prefix }: Pattern) {
  const slot = context.schema.slots[field.name]!
  const rules = rulesOf(context.schema, field)
  const stemmed = rules.stem !== undefined
  const index = stemmed ? WORDS.table : 'text_index'
  const words = stemmed
    ? stemsAsked(context.sql, tokens, textCode(slot), prefix)
    : written.slice(0, MAX_INDEX_WORDS).map((each, index) => {
        const isUnfinished = prefix && index === written.length - 1
        const code = textCode(slot)
        if (code !== '') return inSharedColumn(each, rules, code, isUnfinished)
        const word = prepare(each, rules).trim()
        if (!isUnfinished) return `"${word}"`
        // A stem can be shorter than what was typed and end differently (happily, happi). But it keeps the first two
        // letters, and words of two letters are not stemmed.
        return `"${[...word].slice(0, 2).join('')}"*`
      })
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
      WHERE seq IN (SELECT rowid FROM ${index} WHERE ${index} MATCH ? AND ${ROWID_IN_RANGE})`,
    `{${column}} : (${words.join(' AND ')})`,
    low,
    high,
  )
}

/**
 * Stems in the form of an FTS5 query. Empty, which means all documents, while word_index does not have every
 * document.
 */
const stemsAsked = (sql: SqlStorage, tokens: readonly string[], code: string, prefix: boolean): string[] =>
  isWordIndexing(sql)
    ? []
    : tokens.slice(0, MAX_INDEX_WORDS).map((token, index) => {
        const asked = `"${(code + token).replaceAll('"', '""')}"`
        return prefix && index === tokens.length - 1 ? `${asked}*` : asked
      })

/** A word in the form of an FTS5 query, for the column that fields share. */
function inSharedColumn(word: string, rules: TokenRules, code: string, isUnfinished: boolean): string {
  const words = tokenize(word, rules).map(({ text }) => code + prepare(text, rules).trim())
  // With the code in front, even a word of two letters is stemmed. But it keeps its first letter.
  return isUnfinished ? `"${[...(words[0] ?? code)].slice(0, 2).join('')}"*` : `"${words.join(' ')}"`
}

/** Whether a value's normal form matches. @param whole the value is compared as a whole, unless it is a phrase */
export function matches(norm: string, { tokens, prefix, phrase }: Pattern, whole: boolean): boolean {
  if (phrase) return tokens.length > 0 && ` ${norm} `.includes(` ${tokens.join(' ')} `)
  if (whole) {
    const value = tokens.join(' ')
    return prefix ? norm.startsWith(value) : norm === value
  }
  const padded = ` ${norm} `
  return tokens.every((token, index) =>
    padded.includes(prefix && index === tokens.length - 1 ? ` ${token}` : ` ${token} `),
  )
}
