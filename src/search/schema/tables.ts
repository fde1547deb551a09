/**
 * Creates the tables of a collection, and changes them when fields are added or removed (layout.ts describes them).
 */
import { ApiError } from '../../errors'
import type { TextIndex } from '../text/analyzer'
import { TOKENIZER, WORD_TOKENIZER } from '../text/words'
import type { CollectionSchema, Field } from '../types'
import { isDynamic, isFallback } from './field'
import { fillAgain } from './filling'
import { createInfixIndex, dropInfixIndex } from './infix-index'
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
  normColumn,
  packedTable,
  type StoredSchema,
  scalarColumn,
  valuesTable,
  vectorsTable,
} from './layout'
import { MOST_TEXT_COLUMNS, MOST_TEXTS, OWN_TEXT_COLUMNS } from './shared-column'
import { dropStemWords, keepStemWords } from './stem-words'

/** Writing a document with more fields than this would block other requests for too long. */
export const MAX_TEXT_FIELDS = 1_000

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
/** Those that are being filled to take the place of the present ones (former.ts). */
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
 * Makes FTS5 hold a whole batch in memory before it writes a segment, and leaves it to `collection/tidying.ts` to merge
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

const needsSlot = (field: Field): boolean =>
  !isDynamic(field) && (isVector(field) || isSearchable(field) || hasValues(field))

/**
 * Adds a field to a schema and creates the columns or tables for its values. Changes `schema` in place.
 * @param text the number of its text
 */
export function addField(sql: SqlStorage, schema: StoredSchema, field: Field, text = schema.nextText): void {
  schema.fields.push(field)
  keepStemWords(sql, field)
  if (!needsSlot(field)) return
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
        `CREATE TABLE ${valuesTable(slot)} (seq INTEGER NOT NULL, pos INTEGER NOT NULL, value ${type}, norm ${type},
          PRIMARY KEY (seq, pos)) WITHOUT ROWID`,
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
  if (isString(field) || isGeopoint(field)) {
    sql.exec(`ALTER TABLE ${table} ADD COLUMN ${normColumn(slot)} ${type}`)
  }
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
      if (isString(field) || isGeopoint(field))
        sql.exec(`ALTER TABLE ${table} DROP COLUMN ${normColumn(slot)}`)
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
