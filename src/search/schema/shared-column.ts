/**
 * The column that string fields share in the full-text indexes, from the 91st on. SQLite allows 100 columns a table, and
 * counts the options of a virtual table too.
 *
 * In `t90` each word of a field begins with the field's code, one character that no word has. A query of a field asks
 * for words with its code, so neither phrases nor prefixes match across fields. The code alone stands before the
 * first word. The column also has each word once without a code, so the vocabulary of the index has the words of
 * these fields: typos and the rarity of words are looked up there.
 */
import type { Analyzer } from '../text/analyzer'
import type { FieldSlot } from './layout'

/** Fields with a column of their own. */
export const OWN_TEXT_COLUMNS = 90

/** All columns of a full-text index. */
export const MOST_TEXT_COLUMNS = OWN_TEXT_COLUMNS + 1

const SHARED = `t${OWN_TEXT_COLUMNS}`

// Private-use characters, which unicode61 treats as letters. Symbols of `symbols_to_index` have U+E000 to U+E0FF
// (text/words.ts).
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
