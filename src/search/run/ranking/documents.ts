/** Reads documents for the ranking of a plain search, and finds the words in each field. */
import { readStoredObject } from '../../../lib/stored-json'
import { fragment, join, not, oneOf } from '../../fragment'
import type { SearchRequest } from '../../request/request'
import type { SortKey } from '../../request/sort'
import { stringsAt } from '../../schema/values'
import type { Analyzer } from '../../text/analyzer'
import { type Term, type TextMatch, termsFor } from '../../text/query'
import { waysOf } from '../../text/synonyms'
import {
  bestByScore,
  type Conditions,
  candidatesOf,
  Gathered,
  type OrderedMatch,
  type Top,
  textMatches,
} from '../candidates'
import type { Running, SearchContext } from '../context'
import { allMatches } from '../kept-matches'
import { type MatchSet, minus, partsOf, seqsOf, sizeOf } from '../match-set'
import { byNumbers, firstOf, windowOf } from '../order'
import { columnsOf } from '../query-words'
import {
  type MatchRules,
  type ReadField,
  type Reading,
  scoreDocument,
  type TextScore,
  WordReader,
  wordsOfText,
} from './score'

/** Characters of documents that one search reads. Those beyond keep the order of BM25. */
const MOST_CHARACTERS = 2_000_000

/** Documents that one statement reads: whoever needs no more of them reads the rest of these all the same. */
const AT_ONCE = 16

/** BM25's parameters, for the order of documents that are equal in everything else. */
const K1 = 1.2
const B = 0.75
/** The average length of a text that BM25 assumes here. */
const USUAL_LENGTH = 100

/** A document as it was read. */
export interface Scored {
  seq: number
  text: TextScore
  /**
   * Order documents that fit equally well and are equal in all keys of the sort: fields that begin with the words first,
   * then shorter fields; then more of the words in shorter fields. Higher is better.
   */
  shape: number
  quality: number
}

type Row = [seq: number, body: string, unstored: string | null]

/** The most ways to write a query with synonyms that are compared with a document. */
const MOST_WAYS = 16

/** A way to write the query, with or without synonyms. */
interface Way {
  rules: MatchRules
  /** by field of the request */
  readers: WordReader[]
}

export class DocumentScorer {
  readonly #ways: Way[]
  /** by field of the request */
  readonly #analyzers: Analyzer[]

  constructor(
    private readonly context: SearchContext,
    private readonly request: SearchRequest,
    terms: readonly Term[],
  ) {
    this.#analyzers = columnsOf(context, request).map(({ analyzer }) => analyzer)
    const [asked = [], ...others] = waysOf(terms).slice(0, MOST_WAYS)
    const own = wayOf(context, request, asked)
    const { length: insteadOf } = own.rules.sequence
    const demoted = request.synonyms?.demotes ?? false
    this.#ways = [
      own,
      ...others.map((way) => {
        const { rules, readers } = wayOf(context, request, way)
        return { rules: { ...rules, insteadOf, demoted }, readers }
      }),
    ]
  }

  /** Scores a document by the way to write the query that fits it best. */
  score(document: Record<string, unknown>): Omit<Scored, 'seq'> {
    const texts = this.request.queryFields.map(({ field }, index) =>
      stringsAt(document, field.name).map((text) => wordsOfText(text, this.#analyzers[index]!)),
    )
    const [first, ...others] = this.#ways.map((way) => this.#scoreBy(way, texts))
    return others.reduce((best, scored) => (scored.text.rank > best.text.rank ? scored : best), first!)
  }

  /** @param own the texts by field of the request */
  #scoreBy({ rules, readers }: Way, own: readonly string[][]): Omit<Scored, 'seq'> {
    const { queryFields } = this.request
    const fields: ReadField[] = []
    let quality = 0
    for (let index = 0; index < queryFields.length; index++) {
      const { rank, weight } = queryFields[index]!
      const texts: Reading[] = []
      for (const text of own[index]!) {
        const reading = readers[index]!.read(text)
        const { length: count } = reading.occurrences
        if (count === 0) continue
        texts.push(reading)
        quality += weight * saturated(count, reading.length)
      }
      fields.push({ weight: rank, texts })
    }
    const text = scoreDocument(fields, rules)
    return { text, shape: shapeOf(text), quality }
  }

  /** Scores documents by sequence number, in this order. Deleted ones are left out. */
  scoreAll(seqs: readonly number[]): Scored[] {
    const scored: Scored[] = []
    let left = MOST_CHARACTERS
    for (const [seq, body, unstored] of this.#bodies(seqs)) {
      left -= body.length + (unstored?.length ?? 0)
      if (left < 0) return [...scored, ...this.#unread(seqs.slice(seqs.indexOf(seq)))]
      // Numbers beyond 2^53 may be rounded here: only the texts are read.
      const document = readStoredObject(body)
      if (unstored) Object.assign(document, readStoredObject(unstored))
      scored.push({ seq, ...this.score(document) })
    }
    return scored
  }

  /** Documents in this order, without those that were deleted. */
  *#bodies(seqs: readonly number[]): Generator<Row> {
    const hasUnstored = this.request.queryFields.some(({ field }) => !field.store)
    for (let from = 0; from < seqs.length; from += AT_ONCE) {
      // Arrays take less time than objects.
      const rows = this.context.sql
        .exec(
          `SELECT d.seq, d.body, ${hasUnstored ? 'u.body' : 'NULL'} AS unstored
             FROM json_each(?) s CROSS JOIN documents d ON d.seq = s.value
             ${hasUnstored ? 'LEFT JOIN unstored u ON u.seq = d.seq' : ''}`,
          JSON.stringify(seqs.slice(from, from + AT_ONCE)),
        )
        .raw<Row>()
      try {
        yield* rows
      } finally {
        // A cursor cannot be closed. SQLite drops no table while one is open.
        while (!rows.next().done);
      }
    }
  }

  /** Documents whose texts are not read, as if they had none. Deleted ones are left out. */
  #unread(seqs: readonly number[]): Scored[] {
    const nothing = this.score({})
    return this.context.sql
      .exec<{ seq: number }>(
        'SELECT d.seq FROM json_each(?) s CROSS JOIN documents d ON d.seq = s.value',
        JSON.stringify(seqs),
      )
      .toArray()
      .map(({ seq }) => ({ seq, ...nothing }))
  }
}

function wayOf(context: SearchContext, request: SearchRequest, terms: readonly Term[]): Way {
  const readers = columnsOf(context, request).map(
    (column) => new WordReader(termsFor(terms, column), column.analyzer, request.ranking.tokenPosition),
  )
  return { rules: { ...request.ranking, sequence: readers[0]!.sequence }, readers }
}

/** Fields of more words than this are equally long. Lengths of long texts are estimates. */
const LONG = 16

const shapeOf = ({ best }: TextScore): number =>
  best === undefined ? 0 : (best.begins ? LONG + 1 : 0) + LONG - Math.min(LONG, best.length)

/** BM25's share of a word that a text has so often. */
const saturated = (count: number, length: number): number =>
  count / (count + K1 * (1 - B + (B * length) / USUAL_LENGTH))

// =============================================================================
// The first matches of an expression: by the keys of an order, by the length of a field, or by BM25.

/** Up to this many matches are all read, without asking which are the best. Of each tier, this many are read. */
export const FEW = 64

/** The order of BM25. */
export const BY_TEXT: SortKey = { kind: 'text_match', buckets: undefined, direction: 'DESC' }

/**
 * A window of some matches of an expression by BM25, in one statement: whatever part of them it is asked for, FTS5 reads all
 * documents of each word.
 * @param set some of what the expression matches
 */
export async function bestMatches(
  context: Running,
  match: TextMatch,
  set: MatchSet,
  top: Top,
): Promise<OrderedMatch[]> {
  const all = (await allMatches(context, match)).set
  const found = sizeOf(set)
  const others = sizeOf(all) - found
  const list = others < found ? not(oneOf(seqsOf(minus(all, set)))) : oneOf(seqsOf(set))
  const parts = textMatches(context, match, () => (others === 0 ? fragment('1') : list), true)
  const { offset, limit, sort } = top
  const { best } = await bestByScore(context, parts, offset + limit, sort.length === 1)
  return (await windowOf(context, candidatesOf(best, true, false), sort, top)).rows
}

/** A window of a set by the length of a field, the shortest first. */
export async function firstByLength(
  { sql, pace }: Running,
  set: MatchSet,
  length: string,
  { offset, limit }: { offset: number; limit: number },
): Promise<OrderedMatch[]> {
  const lengths = new Gathered()
  for await (const relation of partsOf(set, pace)) {
    const query = join([fragment(`SELECT d.seq, hex(${length}) AS length FROM (`), relation, fragment(') d')])
    for (const row of pace.query<{ seq: number; length: string }>(sql, query)) {
      lengths.add(row.seq, Number.parseInt(row.length, 16))
    }
  }
  const numbers = await pace.through(lengths.numbers(lengths.scores))
  // A document without a length is as short as can be.
  const order = [byNumbers(numbers, -1, Number.NEGATIVE_INFINITY)]
  const first = await firstOf(set, order, offset + limit, pace)
  return first.slice(offset).map(({ seq }) => ({ seq, score: null, distance: null, fused: null }))
}

/** Only the lengths of the first columns are read. Each column before a column makes the query longer. */
const MOST_COLUMNS = 16

/** Whether `wordsIn` can return the length of a field. It cannot for fields that share a column. */
export const hasLength = ({ column, code }: { column: string; code?: string }): boolean =>
  !code && Number(column.slice(1)) < MOST_COLUMNS

/**
 * How many words document `d.seq` has in a column of an index, to order by: a byte, which is exact up to 127.
 *
 * FTS5 keeps the numbers of a document's columns in a row of the table `<index>_docsize`, as a blob of varints one after the
 * other: seven bits a byte, and the high bit is set in all bytes of a number but the last.
 */
export function wordsIn(table: TextMatch['table'], column: string): string {
  let place = `SELECT sz, 1 AS at FROM ${table}_docsize WHERE id = d.seq`
  for (let before = Number(column.slice(1)); before > 0; before--) {
    // OFFSET keeps SQLite from writing the inner query into each place that uses it.
    place = `SELECT sz, at + CASE WHEN substr(sz, at, 1) < x'80' THEN 1
      WHEN substr(sz, at + 1, 1) < x'80' THEN 2 ELSE 3 END AS at FROM (${place} LIMIT 1 OFFSET 0)`
  }
  return `(SELECT substr(sz, at, 1) FROM (${place}))`
}

/** A search whose matches are ranked. */
export interface Ranking {
  context: Running
  request: SearchRequest
  scorer: DocumentScorer
  filter: Conditions
  /** all keys; the first is the text match */
  sort: SortKey[]
}
