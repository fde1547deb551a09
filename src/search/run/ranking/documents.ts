/** Reads documents for the ranking of a plain search: where they have the words, field by field. */
import type { SearchRequest } from '../../request/request'
import { stringsAt } from '../../schema/values'
import type { Analyzer } from '../../text/analyzer'
import type { Term } from '../../text/query'
import type { SearchContext } from '../context'
import { columnsOf } from '../keyword'
import { WordReader } from './reader'
import { type MatchRules, type ReadField, scoreDocument, type TextScore } from './score'

/** Characters of documents that one search reads. Those beyond keep the order of BM25. */
const MOST_CHARACTERS = 2_000_000

/** BM25's parameters, for the order of documents that are equal in everything else. */
const K1 = 1.2
const B = 0.75
/** The length of a text that counts as usual. */
const USUAL_LENGTH = 100

/** A document as it was read. */
export interface Scored {
  seq: number
  text: TextScore
  /** orders documents that fit equally well: more of the words in shorter fields. Higher is better */
  quality: number
}

export class DocumentScorer {
  readonly rules: MatchRules
  readonly #context: SearchContext
  readonly #request: SearchRequest
  /** by field of the request */
  readonly #readers: WordReader[]

  constructor(context: SearchContext, request: SearchRequest, terms: readonly Term[]) {
    this.#context = context
    this.#request = request
    const known = new Map<Analyzer, WordReader>()
    this.#readers = columnsOf(context, request).map(({ analyzer }) => {
      const reader = known.get(analyzer) ?? new WordReader(terms, analyzer, request.ranking.tokenPosition)
      known.set(analyzer, reader)
      return reader
    })
    this.rules = { ...request.ranking, sequence: this.#readers[0]!.sequence }
  }

  score(document: Record<string, unknown>): Omit<Scored, 'seq'> {
    const fields: ReadField[] = []
    let quality = 0
    for (const [index, { field, rank, weight }] of this.#request.queryFields.entries()) {
      const texts = textsAt(document, field.name).map((text) => this.#readers[index]!.read(text))
      fields.push({ weight: rank, texts })
      for (const { length, occurrences } of texts) quality += weight * saturated(occurrences.length, length)
    }
    return { text: scoreDocument(fields, this.rules), quality }
  }

  /** Scores documents by sequence number, in this order. Deleted ones are left out. */
  scoreAll(seqs: readonly number[]): Scored[] {
    const { sql } = this.#context
    const hasUnstored = this.#request.queryFields.some(({ field }) => !field.store)
    const rows = sql
      .exec<{ seq: number; body: string; unstored: string | null }>(
        `SELECT d.seq, d.body, ${hasUnstored ? 'u.body' : 'NULL'} AS unstored
           FROM json_each(?) s CROSS JOIN documents d ON d.seq = s.value
           ${hasUnstored ? 'LEFT JOIN unstored u ON u.seq = d.seq' : ''}`,
        JSON.stringify(seqs),
      )
      .toArray()
    let left = MOST_CHARACTERS
    return rows.map(({ seq, body, unstored }) => {
      left -= body.length
      // Numbers beyond 2^53 may be rounded here: only the texts are read.
      const document = left < 0 ? {} : JSON.parse(body)
      if (unstored !== null) Object.assign(document, JSON.parse(unstored))
      return { seq, ...this.score(document) }
    })
  }
}

const textsAt = (document: Record<string, unknown>, name: string): string[] => {
  const own = Object.hasOwn(document, name) ? document[name] : undefined
  return typeof own === 'string' ? [own] : stringsAt(document, name)
}

/** BM25's share of a word that a text has so often. */
const saturated = (count: number, length: number): number =>
  count / (count + K1 * (1 - B + (B * length) / USUAL_LENGTH))
