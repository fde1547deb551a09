/**
 * The words of a field with `infix: true`, so that a part of a word finds it.
 *
 *     infix_words_5(id, word)   every word that a document of the field has or once had
 *     infix_5(word)             trigrams of these words: FTS5 over the table above
 *
 * Single words are never removed. A search ignores words that no document has any more.
 */
import { fragment, type SqlFragment } from '../fragment'
import type { FieldSlot } from './layout'

const wordsTable = ({ slot }: FieldSlot): string => `infix_words_${slot}`
const trigramTable = ({ slot }: FieldSlot): string => `infix_${slot}`

/** Longer words are not found by their parts. */
const LONGEST = 250

/** Words in one bound value. SQLite takes 2 MB, and a character has at most three bytes. */
const AT_ONCE = 2_000

export function createInfixIndex(sql: SqlStorage, slot: FieldSlot): void {
  sql.exec(`CREATE TABLE ${wordsTable(slot)} (id INTEGER PRIMARY KEY, word TEXT NOT NULL UNIQUE)`)
  sql.exec(
    `CREATE VIRTUAL TABLE ${trigramTable(slot)} USING fts5(word, content='${wordsTable(slot)}', content_rowid='id',
      tokenize='trigram', detail='none', columnsize=0)`,
  )
}

export function dropInfixIndex(sql: SqlStorage, slot: FieldSlot): void {
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
 * @param vocabulary the table of the words that documents have; undefined if it may lack some
 */
export function wordsAround(
  slot: FieldSlot,
  part: string,
  extra: { before: number; after: number },
  limit: number,
  vocabulary: string | undefined,
): SqlFragment {
  const isAlive =
    vocabulary === undefined ? '1' : `EXISTS (SELECT 1 FROM ${vocabulary} v WHERE v.term = w.word)`
  // LIKE uses the trigrams for parts of three characters or more. But words may contain its wildcards as plain
  // characters, so instr() decides. Words are sorted before they are looked up in the vocabulary, so that no more are
  // looked up than needed.
  return fragment(
    `WITH w AS MATERIALIZED (
       SELECT word FROM ${trigramTable(slot)}
        WHERE word LIKE ? AND instr(word, ?) BETWEEN 1 AND ? AND length(word) - instr(word, ?) + 1 - ? <= ?
        ORDER BY length(word), word)
     SELECT word FROM w WHERE ${isAlive} LIMIT ?`,
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
