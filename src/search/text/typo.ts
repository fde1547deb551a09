/**
 * Corrects words that the index does not hold.
 *
 * The dictionary is the index's own vocabulary, read through fts5vocab. In the index of stems, words are compared by
 * stem. The first letter is assumed to be right: that limits the scan to a part of the vocabulary.
 */
import { wordDistance } from '../../lib/nearest'
import type { TextIndex } from './analyzer'
import { stem } from './words'

export interface TypoRules {
  /** 0 to 2 */
  maxTypos: number
  /** shortest words that may have one typo, or two */
  minLengthOneTypo: number
  minLengthTwoTypos: number
  /** whether words of letters and digits may have typos */
  withDigits: boolean
  /** whether numbers may have typos */
  numbers: boolean
}

// The most corrections. Among words at the same distance, the most frequent are chosen.
const MAX_CORRECTIONS = 4

export const typosAllowed = (word: string, rules: TypoRules): number =>
  (!rules.withDigits && /\d/.test(word) && !/^\d+$/.test(word)) || (!rules.numbers && /^\d+$/.test(word))
    ? 0
    : Math.min(
        rules.maxTypos,
        word.length >= rules.minLengthTwoTypos ? 2 : word.length >= rules.minLengthOneTypo ? 1 : 0,
      )

/** Name of the table of the index's words and how many documents hold each. It is created on first use. */
export function vocabularyOf(sql: SqlStorage, { table, vocabulary }: TextIndex): string {
  sql.exec(`CREATE VIRTUAL TABLE IF NOT EXISTS ${vocabulary} USING fts5vocab('${table}', 'row')`)
  return vocabulary
}

/**
 * Words to search for in place of one that the index lacks: the nearest ones, and how far they are. Stems are written so
 * that FTS5 stems them back to themselves.
 */
export function corrections(
  sql: SqlStorage,
  index: TextIndex,
  word: string,
  rules: TypoRules,
): Map<string, number> {
  const allowed = typosAllowed(word, rules)
  // Counting letters says little about typos in other scripts.
  if (allowed === 0 || !/^[a-z][a-z0-9]*$/.test(word)) return new Map()
  const wanted = index.stems ? stem(word) : word
  const next = String.fromCharCode(wanted.charCodeAt(0) + 1)
  const found: { term: string; documents: number; distance: number }[] = []
  const rows = sql.exec<{ term: string; doc: number }>(
    `SELECT term, doc FROM ${vocabularyOf(sql, index)} WHERE term >= ? AND term < ? AND length(term) BETWEEN ? AND ?`,
    wanted[0]!,
    next,
    wanted.length - allowed,
    wanted.length + allowed,
  )
  for (const { term, doc } of rows) {
    const distance = wordDistance(wanted, term, allowed).whole
    if (distance > 0 && distance <= allowed) found.push({ term, documents: doc, distance })
  }
  const nearest = Math.min(...found.map(({ distance }) => distance))
  const words = found
    .filter(({ distance }) => distance === nearest)
    .sort((a, b) => b.documents - a.documents || (a.term < b.term ? -1 : 1))
    .map(({ term }) => (index.stems ? unstem(term) : term))
    .filter((spelling) => spelling !== undefined)
    .slice(0, MAX_CORRECTIONS)
  return new Map(words.map((spelling) => [spelling, nearest]))
}

/** Finds a word that has this stem. FTS5 stems the words of a query, and not every stem is its own stem. */
function unstem(term: string): string | undefined {
  const endings = ['', 'e', 's', 'ity', 'ed', 'ing', 'ation']
  const spellings = endings.map((ending) => term + ending)
  if (term.endsWith('i')) spellings.push(`${term.slice(0, -1)}y`, `${term.slice(0, -1)}ies`)
  return spellings.find((spelling) => stem(spelling) === term)
}
