/**
 * Scores the matches of a single word from the places that the index has of it, without reading their texts.
 *
 * How well a text fits one word depends on little: whether it has the word itself or a longer one, and whether it has
 * nothing else. Reading that takes a tenth of the time of reading texts.
 */
import { readColumn } from '../../../stored-json'
import { fragment, limited } from '../../fragment'
import { isArray } from '../../schema/layout'
import { WORDS } from '../../text/analyzer'
import { columnsOf } from '../keyword'
import type { Scored } from './documents'
import { LAST_LETTER, readPlaces } from './longer-words'
import { hasLength, wordsIn } from './matches'
import type { Ranking } from './ranking'
import type { Reading, TextScore } from './score'

/** Reading the texts of so few documents takes no longer. */
const FEWEST = 4
/** Places that are read for each document, and for all together. With more, other fields have the word much oftener. */
const MOST_PLACES = 4
const MORE_PLACES = 64

const LONGER = 1
const EXACT = 2
const WHOLE = 3

const reading = (length: number, cost: number): Reading[] => [
  { length, occurrences: [{ token: 0, word: 0, cost }] },
]
/** How a word can fit a field: not, as the beginning of a longer word, itself, and as the whole text. */
const READINGS: readonly Reading[][] = [[], reading(2, 1), reading(2, 0), reading(1, 0)]

/**
 * Scores all matches of a word, in this order.
 * @param seqs documents that match
 * @returns undefined if their texts have to be read
 */
export function scoresOfWord(
  { context, request, scorer, sort, pace }: Ranking,
  seqs: readonly number[],
): Scored[] | undefined {
  const { single } = scorer
  const { queryFields, index } = request
  const columns = columnsOf(context, request)
  // Without other keys, the shapes of the texts decide.
  const isKnown =
    single !== undefined &&
    sort.length > 1 &&
    seqs.length > FEWEST &&
    index.table === WORDS.table &&
    columns.every(hasLength) &&
    !queryFields.some(({ field }) => isArray(field))
  if (!isKnown) return undefined
  const { sql } = context
  const most = MOST_PLACES * seqs.length + MORE_PLACES
  const sizes = columns.map(({ column }) => `WHEN '${column}' THEN ${wordsIn(WORDS.table, column)} = x'01'`)
  const query = fragment(
    `SELECT json_group_array(d.seq) AS seqs, json_group_array(d.col) AS columns,
            json_group_array(d.term <> ?) AS costs,
            json_group_array(iif(d.offset = 0, CASE d.col ${sizes.join(' ')} END, 0)) AS wholes
       FROM (SELECT doc AS seq, col, term, offset FROM word_instances
             WHERE term >= ? AND term <= ?${limited(2 ** Math.ceil(Math.log2(most))).sql}) d`,
    single.text,
    single.text,
    single.prefix ? single.text + LAST_LETTER : single.text,
  )
  const [row] = readPlaces<Record<'seqs' | 'columns' | 'costs' | 'wholes', string>>(sql, query, pace)
  const found = readColumn<number>(row!.seqs)
  if (found.length >= most) return undefined
  const names = readColumn<string>(row!.columns)
  const costs = readColumn<number>(row!.costs)
  const wholes = readColumn<number | null>(row!.wholes)
  const numbers = new Map(columns.map(({ column }, at) => [column, at]))
  // A field that is searched twice has one column.
  if (numbers.size < columns.length) return undefined
  /** by document: how the word fits each field, two bits each as in `READINGS`; there are at most 16 */
  const fits = new Map<number, number>()
  for (let at = 0; at < found.length; at++) {
    const number = numbers.get(names[at]!)
    if (number === undefined) continue
    const fit = costs[at]! > 0 ? LONGER : wholes[at] ? WHOLE : EXACT
    const fields = fits.get(found[at]!) ?? 0
    const known = fitOf(fields, number)
    if (known < fit) fits.set(found[at]!, fields ^ ((known ^ fit) << (2 * number)))
  }
  const scores = new Map<number, TextScore>()
  const scored: Scored[] = []
  for (const seq of seqs) {
    const fields = fits.get(seq)
    if (fields === undefined) return undefined
    let text = scores.get(fields)
    if (text === undefined) {
      text = scorer.scoreReadings(columns.map((_, at) => READINGS[fitOf(fields, at)]!))
      scores.set(fields, text)
    }
    scored.push({ seq, text, shape: 0, quality: 0 })
  }
  return scored
}

const fitOf = (fields: number, number: number): number => (fields >>> (2 * number)) & 3
