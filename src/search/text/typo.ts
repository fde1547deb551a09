/**
 * Corrections for words that the index does not hold.
 *
 * The index's own vocabulary is the dictionary, read through fts5vocab. It holds stems, and so are the words
 * compared by stem. The first letter is taken to be right: that keeps the scan to a part of the vocabulary.
 */
import { stem } from './words'

export interface TypoRules {
  /** 0 to 2 */
  maxTypos: number
  /** shortest words that may have one typo, and two */
  minLengthOneTypo: number
  minLengthTwoTypos: number
}

// Of many words at the same distance these are the most frequent.
const MAX_CORRECTIONS = 4

export const typosAllowed = (word: string, rules: TypoRules): number =>
  Math.min(
    rules.maxTypos,
    word.length >= rules.minLengthTwoTypos ? 2 : word.length >= rules.minLengthOneTypo ? 1 : 0,
  )

/** The table of the index's words, each with the number of documents that hold it; made when it is first needed. */
export function vocabularyOf(sql: SqlStorage): string {
  sql.exec(`CREATE VIRTUAL TABLE IF NOT EXISTS vocabulary USING fts5vocab('text_index', 'row')`)
  return 'vocabulary'
}

/**
 * Words that a search can use instead of one that is not in the index: the nearest stems, written so that
 * FTS5 stems them to themselves.
 */
export function corrections(sql: SqlStorage, word: string, rules: TypoRules): string[] {
  const allowed = typosAllowed(word, rules)
  // Words that are not Latin are neither stemmed nor misspelt in ways that letters count.
  if (allowed === 0 || !/^[a-z][a-z0-9]*$/.test(word)) return []
  const wanted = stem(word)
  const next = String.fromCharCode(wanted.charCodeAt(0) + 1)
  const found: { term: string; documents: number; distance: number }[] = []
  const rows = sql.exec<{ term: string; doc: number }>(
    `SELECT term, doc FROM ${vocabularyOf(sql)} WHERE term >= ? AND term < ? AND length(term) BETWEEN ? AND ?`,
    wanted[0]!,
    next,
    wanted.length - allowed,
    wanted.length + allowed,
  )
  for (const { term, doc } of rows) {
    const distance = editDistance(wanted, term, allowed)
    if (distance > 0 && distance <= allowed) found.push({ term, documents: doc, distance })
  }
  const nearest = Math.min(...found.map(({ distance }) => distance))
  return found
    .filter(({ distance }) => distance === nearest)
    .sort((a, b) => b.documents - a.documents || (a.term < b.term ? -1 : 1))
    .map(({ term }) => unstem(term))
    .filter((spelling) => spelling !== undefined)
    .slice(0, MAX_CORRECTIONS)
}

/** A word whose stem this is: stems are stemmed again when FTS5 is asked for them, and not all survive that. */
function unstem(term: string): string | undefined {
  const endings = ['', 'e', 's', 'ity', 'ed', 'ing', 'ation']
  const spellings = endings.map((ending) => term + ending)
  if (term.endsWith('i')) spellings.push(`${term.slice(0, -1)}y`, `${term.slice(0, -1)}ies`)
  return spellings.find((spelling) => stem(spelling) === term)
}

/**
 * Letters to insert, delete, replace or swap with their neighbour (optimal string alignment), or `limit + 1`
 * when there are more than `limit`.
 */
export function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    let least = i
    for (let j = 1; j <= b.length; j++) {
      let cost = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        cost = Math.min(cost, beforeLast[j - 2]! + 1)
      }
      row.push(cost)
      least = Math.min(least, cost)
    }
    if (least > limit) return limit + 1
    beforeLast = last
    last = row
  }
  return Math.min(last[b.length]!, limit + 1)
}
