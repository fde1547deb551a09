/** Reads documents for the ranking of a plain search, and finds the words in each field. */
import { readStoredObject } from '../../../lib/stored-json'
import type { SearchRequest } from '../../request/request'
import { stringsAt } from '../../schema/values'
import type { Analyzer } from '../../text/analyzer'
import { type Term, termsFor } from '../../text/query'
import { waysOf } from '../../text/synonyms'
import type { SearchContext } from '../context'
import { columnsOf } from '../query-words'
import { WordReader, wordsOf } from './reader'
import { type MatchRules, type ReadField, type Reading, scoreDocument, type TextScore } from './score'

/** Characters of documents that one search reads. Those beyond keep the order of BM25. */
const MOST_CHARACTERS = 2_000_000

/** Documents that one statement reads: whoever needs no more of them reads the rest of these all the same. */
const AT_ONCE = 16
/** After documents with this many characters together, one statement reads more. */
const SHORT = 64_000
const MOST_AT_ONCE = 64

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
  readonly #context: SearchContext
  readonly #request: SearchRequest
  readonly #ways: Way[]
  /** by field of the request */
  readonly #analyzers: Analyzer[]

  constructor(context: SearchContext, request: SearchRequest, terms: readonly Term[]) {
    this.#context = context
    this.#request = request
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
    const texts = this.#request.queryFields.map(({ field }, index) =>
      textsAt(document, field.name).map((text) => wordsOf(text, this.#analyzers[index]!)),
    )
    const [first, ...others] = this.#ways.map((way) => this.#scoreBy(way, texts))
    return others.reduce((best, scored) => (scored.text.rank > best.text.rank ? scored : best), first!)
  }

  /** @param own the texts by field of the request */
  #scoreBy({ rules, readers }: Way, own: readonly string[][]): Omit<Scored, 'seq'> {
    const { queryFields } = this.#request
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
      scored.push({ seq, ...this.score(parsed(body, unstored)) })
    }
    return scored
  }

  /** Documents in this order, without those that were deleted. */
  *#bodies(seqs: readonly number[]): Generator<Row> {
    const hasUnstored = this.#request.queryFields.some(({ field }) => !field.store)
    let atOnce = AT_ONCE
    for (let from = 0; from < seqs.length; ) {
      const some = seqs.slice(from, from + atOnce)
      let characters = 0
      // Arrays take less time than objects.
      const rows = this.#context.sql
        .exec(
          `SELECT d.seq, d.body, ${hasUnstored ? 'u.body' : 'NULL'} AS unstored
             FROM json_each(?) s CROSS JOIN documents d ON d.seq = s.value
             ${hasUnstored ? 'LEFT JOIN unstored u ON u.seq = d.seq' : ''}`,
          JSON.stringify(some),
        )
        .raw<Row>()
      try {
        for (const row of rows) {
          characters += row[1].length
          yield row
        }
      } finally {
        // A cursor cannot be closed. SQLite drops no table while one is open.
        while (!rows.next().done);
      }
      from += some.length
      atOnce = characters < SHORT ? MOST_AT_ONCE : AT_ONCE
    }
  }

  /** Documents whose texts are not read, as if they had none. Deleted ones are left out. */
  #unread(seqs: readonly number[]): Scored[] {
    const nothing = this.score({})
    return this.#context.sql
      .exec<{ seq: number }>(
        'SELECT d.seq FROM json_each(?) s CROSS JOIN documents d ON d.seq = s.value',
        JSON.stringify(seqs),
      )
      .toArray()
      .map(({ seq }) => ({ seq, ...nothing }))
  }
}

function wayOf(context: SearchContext, request: SearchRequest, terms: readonly Term[]): Way {
  const known = new Map<Analyzer, Map<string, WordReader>>()
  const readers = columnsOf(context, request).map((column) => {
    const { analyzer, prefix, typos } = column
    const alike = known.get(analyzer) ?? new Map<string, WordReader>()
    known.set(analyzer, alike)
    const rules = `${prefix} ${typos}`
    const reader =
      alike.get(rules) ?? new WordReader(termsFor(terms, column), analyzer, request.ranking.tokenPosition)
    alike.set(rules, reader)
    return reader
  })
  return { rules: { ...request.ranking, sequence: readers[0]!.sequence }, readers }
}

function parsed(body: string, unstored: string | null | undefined): Record<string, unknown> {
  // Numbers beyond 2^53 may be rounded here: only the texts are read.
  const document = readStoredObject(body)
  if (unstored) Object.assign(document, readStoredObject(unstored))
  return document
}

const textsAt = (document: Record<string, unknown>, name: string): string[] => {
  const own = Object.hasOwn(document, name) ? document[name] : undefined
  return typeof own === 'string' ? [own] : stringsAt(document, name)
}

/** Fields of more words than this are equally long. Lengths of long texts are estimates. */
const LONG = 16

const shapeOf = ({ best }: TextScore): number =>
  best === undefined ? 0 : (best.begins ? LONG + 1 : 0) + LONG - Math.min(LONG, best.length)

/** BM25's share of a word that a text has so often. */
const saturated = (count: number, length: number): number =>
  count / (count + K1 * (1 - B + (B * length) / USUAL_LENGTH))
