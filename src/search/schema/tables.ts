/**
 * Creates the tables of a collection, and changes them when fields are added or removed (layout.ts describes them).
 */

import * as v from 'valibot'
import { ApiError, detailed } from '../../errors'
import { fragment, type SqlFragment } from '../fragment'
import { hasMeta, readMeta, writeMeta } from '../meta'
import {
  type Analyzer,
  dictionaryOf,
  holdDictionary,
  stemmingDictionaries,
  type TextIndex,
  TOKENIZER,
  WORD_TOKENIZER,
} from '../text/analyzer'
import type { CollectionSchema, Field } from '../types'
import { isDynamic, isFallback } from './field'
import {
  columnsTable,
  type FieldSlot,
  hasValues,
  isArray,
  isGeopoint,
  isGeopolygon,
  isNumber,
  isSearchable,
  isString,
  isVector,
  longitudeColumn,
  packedTable,
  type StoredSchema,
  scalarColumn,
  valuesTable,
  vectorsTable,
} from './layout'

/** Writing a document with more fields than this would block other requests for too long. */
const MAX_TEXT_FIELDS = 1_000

/** Columns created in advance, for fields added later: FTS5 cannot add a column. */
const SPARE_TEXT_COLUMNS = 16
const SPARE_TEXT_COLUMNS_WITH_PATTERNS = 64

/**
 * FTS5 holds this many bytes of words before it writes a segment in the middle of a transaction. A batch has half as
 * many.
 */
const HASH_BYTES = 4 * 1024 * 1024
/** As many segments of a level are merged by a commit at once, whatever that takes. Tidying merges them long before. */
const MOST_SEGMENTS = 1_000

const textsOf = (fields: Field[]): number =>
  fields.filter((field) => !isDynamic(field) && isSearchable(field)).length

/** How many columns text_index needs for these fields. @throws ApiError 400 past the limit */
export function textColumnsFor(fields: Field[]): number {
  const needed = textsOf(fields)
  if (needed > MAX_TEXT_FIELDS) {
    throw new ApiError(400, `A collection can have at most ${MAX_TEXT_FIELDS} indexed string fields.`)
  }
  const open = fields.some(
    (field) => isDynamic(field) || isFallback(field) || field.type.startsWith('object'),
  )
  const spare = open ? SPARE_TEXT_COLUMNS_WITH_PATTERNS : SPARE_TEXT_COLUMNS
  return Math.min(MOST_TEXT_COLUMNS, needed + spare)
}

/**
 * Whether text_index must be recreated: it has too few columns for the fields, or a field shares a column although
 * there is room for its own.
 */
export const outgrowsTextIndex = ({ fields, nextText, textColumns }: StoredSchema): boolean =>
  nextText > textColumns &&
  (textColumns < MOST_TEXT_COLUMNS || textsOf(fields) <= OWN_TEXT_COLUMNS || nextText > MOST_TEXTS)

/** The names of the full-text indexes. */
export type TextTables = Readonly<Record<TextIndex['table'], string>>

export const PRESENT: TextTables = { text_index: 'text_index', word_index: 'word_index' }
/** Those that are being filled to take the place of the present ones (schema.ts). */
export const NEXT: TextTables = { text_index: 'text_next', word_index: 'word_next' }

export function createTextIndexes(sql: SqlStorage, textColumns: number, tables = PRESENT): void {
  createFullText(sql, tables.text_index, textColumns, TOKENIZER)
  createFullText(sql, tables.word_index, textColumns, WORD_TOKENIZER)
}

function createFullText(sql: SqlStorage, table: string, textColumns: number, tokenizer: string): void {
  const columns = Array.from({ length: textColumns }, (_, number) => `t${number}`).join(', ')
  sql.exec(
    `CREATE VIRTUAL TABLE ${table} USING fts5(${columns}, content='', contentless_delete=1, tokenize="${tokenizer}")`,
  )
  configureFullText(sql, table)
}

/**
 * Makes FTS5 hold a whole batch in memory before it writes a segment, and leaves it to `collection/background.ts` to merge
 * segments. FTS5 would merge them in the commit of a write, which nothing can interrupt: after 50,000 documents of 66 words
 * some commits took a second.
 */
export function configureFullText(sql: SqlStorage, table: string): void {
  for (const [option, value] of [
    ['hashsize', HASH_BYTES],
    ['automerge', 0],
    ['crisismerge', MOST_SEGMENTS],
  ]) {
    sql.exec(`INSERT INTO ${table} (${table}, rank) VALUES ('${option}', ${value})`)
  }
}

export function createTables(sql: SqlStorage, schema: CollectionSchema): StoredSchema {
  const stored: StoredSchema = {
    ...schema,
    fields: [],
    slots: {},
    nextSlot: 0,
    nextText: 0,
    textColumns: textColumnsFor(schema.fields),
  }
  createTextIndexes(sql, stored.textColumns)
  for (const field of schema.fields) addField(sql, stored, field)
  return stored
}

/**
 * Adds a field to a schema and creates the columns or tables for its values. Changes `schema` in place.
 * @param text the number of its text
 */
export function addField(sql: SqlStorage, schema: StoredSchema, field: Field, text = schema.nextText): void {
  schema.fields.push(field)
  keepStemWords(sql, field)
  if (isDynamic(field) || !(isVector(field) || isSearchable(field) || hasValues(field))) return
  const slot: FieldSlot = { slot: schema.nextSlot++ }
  if (isSearchable(field)) {
    slot.text = text
    schema.nextText = Math.max(schema.nextText, text + 1)
  }
  schema.slots[field.name] = slot
  if (isSearchable(field) && field.infix) {
    slot.infix = true
    createInfixIndex(sql, slot)
  }

  if (isVector(field)) {
    createVectorsTable(sql, slot)
  } else if (hasValues(field)) {
    const type = affinity(field)
    if (isArray(field)) {
      sql.exec(
        `CREATE TABLE ${valuesTable(slot)} (seq INTEGER NOT NULL, pos INTEGER NOT NULL, value ${type},
          ${isGeopoint(field) ? `norm ${type},` : ''} PRIMARY KEY (seq, pos)) WITHOUT ROWID`,
      )
    } else {
      addColumns(sql, slot, field, type)
    }
  }
}

export function createVectorsTable(sql: SqlStorage, slot: FieldSlot): void {
  sql.exec(`CREATE TABLE ${vectorsTable(slot)} (seq INTEGER PRIMARY KEY, vector BLOB NOT NULL)`)
  createPackedTable(sql, slot)
}

export const createPackedTable = (sql: SqlStorage, slot: FieldSlot): void => {
  sql.exec(
    `CREATE TABLE ${packedTable(slot)} (seq INTEGER PRIMARY KEY, count INTEGER NOT NULL, vectors BLOB NOT NULL)`,
  )
}

function affinity(field: Field): string {
  if (isString(field) || isGeopolygon(field)) return 'TEXT'
  return isGeopoint(field) || (isNumber(field) && field.type.startsWith('float')) ? 'REAL' : 'INTEGER'
}

function addColumns(sql: SqlStorage, slot: FieldSlot, field: Field, type: string): void {
  const table = columnsTable(slot)
  const exists = sql.exec(`SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?`, table).toArray()
  if (exists.length === 0) {
    sql.exec(`CREATE TABLE ${table} (seq INTEGER PRIMARY KEY)`)
    sql.exec(`INSERT INTO ${table} (seq) SELECT seq FROM documents`)
  }
  sql.exec(`ALTER TABLE ${table} ADD COLUMN ${scalarColumn(slot)} ${type}`)
  if (isGeopoint(field)) sql.exec(`ALTER TABLE ${table} ADD COLUMN ${longitudeColumn(slot)} ${type}`)
}

/**
 * Removes a field from a schema and its values from the tables. Its columns in the full-text indexes stay, and nothing
 * queries them again. The caller drops the table of a vector field. Changes `schema` in place.
 */
export function removeField(sql: SqlStorage, schema: StoredSchema, field: Field): void {
  schema.fields = schema.fields.filter((other) => other !== field)
  dropStemWords(sql, field, schema.fields)
  sql.exec('DELETE FROM join_keys WHERE field = ?', field.name)
  delete schema.linked?.keyed[field.name]
  const slot = Object.hasOwn(schema.slots, field.name) ? schema.slots[field.name] : undefined
  // A pattern has a slot only if a real field has the same name, and then the slot is that field's.
  if (slot === undefined || isDynamic(field)) return
  delete schema.slots[field.name]
  dropValues(sql, field, slot)
}

/** Removes the values of a field, and its index of parts of words. The caller drops the table of a vector field. */
export function dropValues(sql: SqlStorage, field: Field, slot: FieldSlot): void {
  if (slot.infix) dropInfixIndex(sql, slot)
  if (isVector(field)) return
  if (hasValues(field)) {
    sql.exec('DELETE FROM packed_columns WHERE slot = ?', slot.slot)
    if (isArray(field)) {
      sql.exec(`DROP TABLE IF EXISTS ${valuesTable(slot)}`)
    } else {
      const table = columnsTable(slot)
      sql.exec(`ALTER TABLE ${table} DROP COLUMN ${scalarColumn(slot)}`)
      if (isGeopoint(field)) sql.exec(`ALTER TABLE ${table} DROP COLUMN ${longitudeColumn(slot)}`)
    }
  }
}

/**
 * Creates the full-text indexes again, empty: a job has to fill them. `x: auto` and the field that was detected from it share
 * the name, and the slot is that field's. Changes `schema` in place.
 */
export function rebuildTextIndex(sql: SqlStorage, schema: StoredSchema): void {
  schema.textColumns = textColumnsFor(schema.fields)
  schema.nextText = 0
  for (const field of schema.fields) {
    const slot = Object.hasOwn(schema.slots, field.name) ? schema.slots[field.name] : undefined
    if (slot !== undefined && isSearchable(field)) slot.text = schema.nextText++
  }
  fillAgain(schema, schema.fields.filter(isSearchable))
  sql.exec('DROP TABLE text_index')
  sql.exec('DROP TABLE word_index')
  createTextIndexes(sql, schema.textColumns)
}

// =============================================================================
// The column that string fields share in the full-text indexes, from the 91st on. SQLite allows 100 columns a table, and
// counts the options of a virtual table too.
//
// In `t90` each word of a field begins with the field's code, one character that no word has. A query of a field asks
// for words with its code, so neither phrases nor prefixes match across fields. The code alone stands before the
// first word. The column also has each word once without a code, so the vocabulary of the index has the words of
// these fields: typos and the rarity of words are looked up there.

/** Fields with a column of their own. */
export const OWN_TEXT_COLUMNS = 90

/** All columns of a full-text index. */
const MOST_TEXT_COLUMNS = OWN_TEXT_COLUMNS + 1

const SHARED = `t${OWN_TEXT_COLUMNS}`

// Private-use characters, which unicode61 treats as letters. Symbols of `symbols_to_index` have U+E000 to U+E0FF
// (text/analyzer.ts).
const FIRST_CODE = 0xe100
const LAST_CODE = 0xf8ff

/** Texts beyond this have no code. */
export const MOST_TEXTS = OWN_TEXT_COLUMNS + LAST_CODE - FIRST_CODE + 1

/** The number of a field's column. */
export const textNumber = ({ text }: FieldSlot): number => Math.min(text!, OWN_TEXT_COLUMNS)

export const textColumn = (slot: FieldSlot): string => `t${textNumber(slot)}`

/** The code that begins each word of a field in the shared column; '' for a field with its own column. */
export const textCode = ({ text }: FieldSlot): string =>
  text! < OWN_TEXT_COLUMNS ? '' : String.fromCharCode(FIRST_CODE + text! - OWN_TEXT_COLUMNS)

export const isShared = (column: string): boolean => column === SHARED

/**
 * The text of the shared column.
 * @param texts of its fields, with their codes
 */
export function sharedText(texts: readonly { text: string; code: string; analyzer: Analyzer }[]): string {
  const all = new Set<string>()
  const each = texts.map(({ text, code, analyzer }) => {
    const words = analyzer.tokenize(text).map((token) => analyzer.indexed(token.text))
    for (const word of words) all.add(word)
    return [code, ...words.map((word) => code + word)].join(' ')
  })
  return [...all, ...each].join(' ')
}

// =============================================================================
// Fields whose indexes are being filled again after a change of the schema (`StoredSchema.filling`). A search that read one of
// them would take a part of the documents for all. So it reads the field as it was (schema.ts), and gets an error if that cannot be.

/** Retry-After, in seconds. */
const RETRY_SECONDS = 5

/** Thrown where something reads the index of a field that is being filled. */
export class StillFilling extends Error {
  constructor(readonly field: string) {
    super('The index of a field is not complete.')
  }

  /** What the caller is told if it does not wait any longer. */
  get refusal(): ApiError {
    return new ApiError(
      503,
      `The field \`${this.field}\` is being indexed again after a change of the schema, so a part of the documents would be missing. Ask again in a moment: \`GET /operations/schema_changes\` shows how far it is.`,
      RETRY_SECONDS,
    )
  }
}

/** @throws StillFilling */
export function requireFilled({ filling }: StoredSchema, name: string): void {
  if (filling?.includes(name)) throw new StillFilling(name)
}

/** Notes fields whose indexes a job is about to fill. Changes `schema` in place. */
export function fillAgain(schema: StoredSchema, fields: readonly Field[]): void {
  schema.filling = [...new Set([...(schema.filling ?? []), ...fields.map(({ name }) => name)])]
}

/**
 * A schema as searches, joins and filters read it: whoever looks up where the values of a field are must not overlook that they
 * are incomplete, so the slot of a field that is being filled throws StillFilling.
 */
export function readable(schema: StoredSchema): StoredSchema {
  if (schema.filling === undefined) return schema
  const slots = { ...schema.slots }
  for (const name of schema.filling) {
    Object.defineProperty(slots, name, { get: () => requireFilled(schema, name), enumerable: false })
  }
  return { ...schema, slots }
}

// =============================================================================
// The words of a field with `infix: true`, so that a part of a word finds it.
//
//     infix_words_5(id, word)   every word that a document of the field has or once had
//     infix_5(word)             trigrams of these words: FTS5 over the table above
//
// Single words are never removed. A search ignores words that no document has any more.

const wordsTable = ({ slot }: FieldSlot): string => `infix_words_${slot}`
const trigramTable = ({ slot }: FieldSlot): string => `infix_${slot}`

/** Longer words are not found by their parts. */
const LONGEST = 250

/** Words in one bound value. SQLite takes 2 MB, and a character has at most three bytes. */
const AT_ONCE = 2_000

function createInfixIndex(sql: SqlStorage, slot: FieldSlot): void {
  sql.exec(`CREATE TABLE ${wordsTable(slot)} (id INTEGER PRIMARY KEY, word TEXT NOT NULL UNIQUE)`)
  sql.exec(
    `CREATE VIRTUAL TABLE ${trigramTable(slot)} USING fts5(word, content='${wordsTable(slot)}', content_rowid='id',
      tokenize='trigram', detail='none', columnsize=0)`,
  )
}

function dropInfixIndex(sql: SqlStorage, slot: FieldSlot): void {
  sql.exec(`DROP TABLE IF EXISTS ${trigramTable(slot)}`)
  sql.exec(`DROP TABLE IF EXISTS ${wordsTable(slot)}`)
}

export function clearInfixIndex(sql: SqlStorage, slot: FieldSlot): void {
  dropInfixIndex(sql, slot)
  createInfixIndex(sql, slot)
}

/** Adds the words of texts, as word_index has them. */
export function addInfixWords(sql: SqlStorage, slot: FieldSlot, words: readonly string[]): void {
  const short = [...new Set(words)].filter((word) => word.length <= LONGEST)
  for (let from = 0; from < short.length; from += AT_ONCE) {
    addSome(sql, slot, short.slice(from, from + AT_ONCE))
  }
}

function addSome(sql: SqlStorage, slot: FieldSlot, words: readonly string[]): void {
  const added = sql
    .exec<{ id: number; word: string }>(
      `INSERT OR IGNORE INTO ${wordsTable(slot)} (word) SELECT value FROM json_each(?) RETURNING id, word`,
      JSON.stringify(words),
    )
    .toArray()
  if (added.length === 0) return
  sql.exec(
    `INSERT INTO ${trigramTable(slot)} (rowid, word) SELECT value ->> 'id', value ->> 'word' FROM json_each(?)`,
    JSON.stringify(added),
  )
}

/** Bytes of a LIKE pattern, without its two wildcards: workerd refuses patterns of more than 50 bytes. */
const LONGEST_PATTERN = 46

/**
 * A query for the words that contain a part and that a document has, the ones with the fewest other letters first:
 * rows of `word`.
 * @param extra how many characters may come before and after the part
 * @param vocabulary the table of the words that documents have
 */
export function wordsAround(
  slot: FieldSlot,
  part: string,
  extra: { before: number; after: number },
  limit: number,
  vocabulary: string,
): SqlFragment {
  // LIKE uses the trigrams for parts of three characters or more. But words may contain its wildcards as plain
  // characters, so instr() decides. Words are sorted before they are looked up in the vocabulary, so that no more are
  // looked up than needed.
  return fragment(
    `WITH w AS MATERIALIZED (
       SELECT word FROM ${trigramTable(slot)}
        WHERE word LIKE ? AND instr(word, ?) BETWEEN 1 AND ? AND length(word) - instr(word, ?) + 1 - ? <= ?
        ORDER BY length(word), word)
     SELECT word FROM w WHERE EXISTS (SELECT 1 FROM ${vocabulary} v WHERE v.term = w.word) LIMIT ?`,
    `%${beginning(part, LONGEST_PATTERN)}%`,
    part,
    extra.before + 1,
    part,
    [...part].length,
    extra.after,
    limit,
  )
}

/** The first whole characters of a text that fit in so many bytes of UTF-8. */
function beginning(text: string, bytes: number): string {
  const encoder = new TextEncoder()
  return text.slice(0, encoder.encodeInto(text, new Uint8Array(bytes)).read)
}

// =============================================================================
// Stemming dictionaries of fields. A field copies the words of its dictionary when it is created, and keeps that
// copy: its index holds roots, so queries must use the same words as the indexed documents. Each list of words is a
// row of `meta`, named by a hash of its content, and fields name that row in `stem_words`.

/**
 * Adds the words of dictionaries to fields, and loads these words into memory.
 * @throws ApiError 404 for a dictionary that does not exist
 */
export const takeStemWords = (fields: Field[], env: Cloudflare.Env): Promise<Field[]> =>
  Promise.all(
    fields.map(async (field) => {
      const { stem_dictionary: name } = field
      if (name === '') return field
      const words = await stemmingDictionaries.find(env.DB, name)
      if (words === undefined) {
        throw detailed(
          404,
          `Stemming dictionary \`${name}\` not found.`,
          `Import it before the field \`${field.name}\` is made.`,
        )
      }
      const key = `stem_words ${await hashOf(JSON.stringify([...words]))}`
      holdDictionary(key, words)
      return { ...field, stem_words: key }
    }),
  )

async function hashOf(text: string): Promise<string> {
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
  return [...new Uint8Array(hash)].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Stores the words of a field that is added to the schema. */
function keepStemWords(sql: SqlStorage, { stem_words: key }: Field): void {
  if (key === undefined || hasMeta(sql, key)) return
  const words = dictionaryOf(key)
  if (words !== undefined) writeMeta(sql, key, [...words])
}

/** Deletes the words of a field, if no other field has them. */
export function dropStemWords(sql: SqlStorage, { stem_words: key }: Field, others: readonly Field[]): void {
  if (key !== undefined && !others.some(({ stem_words: other }) => other === key)) {
    writeMeta(sql, key, undefined)
  }
}

/** Reads the words of all fields into memory. */
export function loadStemWords(sql: SqlStorage, fields: readonly Field[]): void {
  for (const key of new Set(fields.flatMap(({ stem_words: key }) => key ?? []))) {
    if (dictionaryOf(key) !== undefined) continue
    holdDictionary(key, new Map(readMeta(sql, key, v.array(v.tuple([v.string(), v.string()]))) ?? []))
  }
}
