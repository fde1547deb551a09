/**
 * The table of terms in memory, for a collection of few words. Similar words are looked up there with a step for each
 * beginning that may still fit; SQLite reads all words that share one of some hundred beginnings.
 */
import { readColumn } from '../../lib/stored-json'
import { fragment, limited, type Read } from '../fragment'
import { Kept, type Memory } from '../memory'
import { LONGEST_TERM, TERMS, termWrites } from './terms'

/** A table of more words is not read. */
const MOST_TERMS = 65_536
/** To read the table takes about as long as this many searches in it. */
const FIRST_LOOKUPS = 8
const BYTES_A_TERM = 48

const WIDTH = LONGEST_TERM + 4
/** By letters read of a term: its distance from each beginning of the word, which has up to as many letters. */
const rows = new Uint8Array(WIDTH * WIDTH)

interface Sorted {
  terms: readonly string[]
  /** by term: how many letters it begins with as the one before it does */
  shared: Uint8Array
}

const NONE: Sorted = { terms: [], shared: new Uint8Array(0) }

export class TermMemory {
  readonly #kept: Kept<'terms', Sorted>
  #writes = -1
  #lookups = 0
  /** There are more words than are kept. Collections seldom lose words, so the table is not read again. */
  #isLarge = false

  constructor(memory?: Memory) {
    this.#kept = new Kept(memory)
  }

  get #sorted(): Sorted {
    return this.#kept.get('terms') ?? NONE
  }

  /** Call this right before a look-up, with how to read the table. @returns whether the words are in memory */
  begin(sql: SqlStorage, read: Read): boolean {
    const writes = termWrites(sql)
    if (writes !== this.#writes) {
      this.#kept.clear()
      this.#lookups = 0
    }
    this.#writes = writes
    if (this.#kept.has('terms')) return true
    if (!this.#isLarge && ++this.#lookups % FIRST_LOOKUPS === 0) this.#load(sql, read)
    return this.#kept.has('terms')
  }

  #load(sql: SqlStorage, read: Read): void {
    const some = `SELECT term FROM ${TERMS} ORDER BY term${limited(MOST_TERMS + 1).sql}`
    const [row] = read<{ list: string }>(
      sql,
      fragment(`SELECT json_group_array(term) AS list FROM (${some})`),
    )
    const terms = readColumn<string>(row!.list)
    this.#isLarge = terms.length > MOST_TERMS
    if (this.#isLarge) return
    const shared = new Uint8Array(terms.length)
    for (let at = 1; at < terms.length; at++) shared[at] = sharedBy(terms[at - 1]!, terms[at]!)
    this.#kept.set('terms', { terms, shared }, terms.length * BYTES_A_TERM)
  }

  /**
   * The words at most so many typos from another one (wordDistance), as a whole or also by their beginnings.
   * @param word at most 64 UTF-16 units
   * @param half words with two typos in so many letters at the beginning may be left out; -1 for none
   */
  near(word: string, limit: number, byBeginning: boolean, half: number): string[] {
    const { terms, shared } = this.#sorted
    const past = limit + 1
    const { length } = word
    const found: string[] = []
    for (let i = 0; i <= length; i++) rows[i] = Math.min(i, past)
    let at = 0
    const next = (depth: number): boolean => ++at < terms.length && shared[at]! >= depth
    while (at < terms.length) {
      const term = terms[at]!
      let depth = shared[at]!
      let least = 0
      let last = past
      while (depth < term.length && least <= limit && !(byBeginning && last <= limit)) {
        depth++
        const own = depth * WIDTH
        const before = own - WIDTH
        const from = Math.max(1, depth - limit)
        const to = Math.min(length, depth + limit)
        const letter = term.charCodeAt(depth - 1)
        // Cells further from the diagonal than the limit are past it.
        rows[own + from - 1] = from === 1 ? Math.min(depth, past) : past
        if (to === depth + limit) rows[before + to] = past
        least = from === 1 ? rows[own]! : past
        // Before the half is read, only its own beginnings count.
        const isEarly = depth < half
        const most = isEarly ? 1 : limit
        for (let i = from; i <= to; i++) {
          const other = word.charCodeAt(i - 1)
          let cost = Math.min(
            rows[before + i - 1]! + (letter === other ? 0 : 1),
            rows[before + i]! + 1,
            rows[own + i - 1]! + 1,
          )
          const isSwapped =
            i > 1 && depth > 1 && letter === word.charCodeAt(i - 2) && term.charCodeAt(depth - 2) === other
          if (isSwapped) cost = Math.min(cost, rows[before - WIDTH + i - 2]! + 1)
          rows[own + i] = Math.min(cost, past)
          if (cost < least && !(isEarly && i > half)) least = cost
        }
        last = to === length ? rows[own + length]! : past
        const isLate =
          depth === half + 1 &&
          Math.min(rows[own + half]!, rows[before + half]!, rows[before - WIDTH + half]!) > 1
        if (isLate || least > most) least = past
      }
      if (byBeginning && last <= limit) {
        do found.push(terms[at]!)
        while (next(depth))
      } else if (least > limit) {
        while (next(depth));
      } else {
        if (last <= limit) found.push(term)
        at++
      }
    }
    return found
  }
}

function sharedBy(one: string, other: string): number {
  let at = 0
  while (at < one.length && one.charCodeAt(at) === other.charCodeAt(at)) at++
  return at
}
