/**
 * The table of a static embedder, as scripts/embedder/distill.py writes it (little-endian):
 *
 *     bytes 0-3            "PSE1"
 *     bytes 4-7            length of the header
 *     header               JSON: name, dimensions, pieces, vocabulary (its length in bytes); padded to a multiple of 4
 *     vocabulary           the word pieces, one a line, in UTF-8; padded to a multiple of 4
 *     float32[pieces]      the factor for the numbers of each row
 *     int8[pieces][dims]   the rows
 *
 * A text's vector is the mean of its pieces' rows, scaled to length 1. The length of a row says how much its piece
 * counts.
 */
import * as v from 'valibot'
import { once } from '../../once'
import { readStored } from '../../stored-json'
import { WordPiece, wordsOf } from './word-piece'

const MAGIC = 'PSE1'

const Header = once(() =>
  v.object({ name: v.string(), dimensions: v.number(), pieces: v.number(), vocabulary: v.number() }),
)

export class StaticTable {
  readonly name: string
  readonly dimensions: number
  #tokenizer: WordPiece
  #scales: Float32Array
  #rows: Int8Array
  /** by piece, all zero between sums */
  #counts: Uint32Array

  /** @throws Error if the bytes are no such table */
  constructor(bytes: ArrayBuffer) {
    const text = (start: number, length: number) =>
      new TextDecoder().decode(new Uint8Array(bytes, start, length))
    if (bytes.byteLength < 8 || text(0, 4) !== MAGIC) throw new Error('Not a table of a static embedder.')
    const headerLength = new DataView(bytes).getUint32(4, true)
    const header = readStored(Header(), text(8, headerLength))
    const vocabularyStart = padded(8 + headerLength)
    const scalesStart = padded(vocabularyStart + header.vocabulary)
    const rowsStart = scalesStart + 4 * header.pieces
    if (bytes.byteLength !== rowsStart + header.pieces * header.dimensions) {
      throw new Error('The table of the static embedder is cut off.')
    }
    this.name = header.name
    this.dimensions = header.dimensions
    this.#tokenizer = new WordPiece(text(vocabularyStart, header.vocabulary).split('\n'))
    this.#scales = new Float32Array(bytes, scalesStart, header.pieces)
    this.#rows = new Int8Array(bytes, rowsStart)
    this.#counts = new Uint32Array(header.pieces)
  }

  /**
   * The vector of a text, of length 1; all zeros if the text has no known piece.
   * @param dimensions if more than the table's, the rest are zeros; if fewer, the first, which say the most
   */
  embed(text: string, dimensions?: number): Float32Array {
    return this.embedWords(wordsOf(text), dimensions)
  }

  /** The same for a text whose words (`wordsOf`) are known. */
  embedWords(words: readonly string[], dimensions: number = this.dimensions): Float32Array {
    return toLengthOne(this.#sum(words, dimensions))
  }

  /** How much a word says in English: the length of its vector before scaling. It is small for common words. */
  length(word: string): number {
    return norm(this.#sum(wordsOf(word), this.dimensions))
  }

  #sum(words: readonly string[], dimensions: number): Float32Array {
    const vector = new Float32Array(dimensions)
    const used = Math.min(dimensions, this.dimensions)
    const rows = this.#rows
    const pieces = this.#count(this.#tokenizer.encode(words))
    const { fround } = Math
    const scaleOf = (at: number) => {
      const piece = pieces[at]!
      const scale = this.#counts[piece]! * this.#scales[piece]!
      this.#counts[piece] = 0
      return scale
    }
    const startOf = (at: number) => pieces[at]! * this.dimensions
    let at = 0
    // Four rows at a time: the vector is read and written less often. Each sum is rounded as if it were stored.
    for (; at + 4 <= pieces.length; at += 4) {
      const [a, b, c, d] = [startOf(at), startOf(at + 1), startOf(at + 2), startOf(at + 3)]
      const [ofA, ofB, ofC, ofD] = [scaleOf(at), scaleOf(at + 1), scaleOf(at + 2), scaleOf(at + 3)]
      for (let index = 0; index < used; index++) {
        let sum = fround(vector[index]! + ofA * rows[a + index]!)
        sum = fround(sum + ofB * rows[b + index]!)
        sum = fround(sum + ofC * rows[c + index]!)
        vector[index] = sum + ofD * rows[d + index]!
      }
    }
    for (; at < pieces.length; at++) {
      const start = startOf(at)
      const scale = scaleOf(at)
      for (let index = 0; index < used; index++) {
        vector[index] = vector[index]! + scale * rows[start + index]!
      }
    }
    return vector
  }

  /** Counts pieces in `#counts`. @returns each of them once */
  #count(pieces: readonly number[]): number[] {
    const counts = this.#counts
    const distinct: number[] = []
    for (const piece of pieces) {
      if (counts[piece] === 0) distinct.push(piece)
      counts[piece]!++
    }
    return distinct
  }
}

const padded = (offset: number): number => Math.ceil(offset / 4) * 4

function toLengthOne(vector: Float32Array): Float32Array {
  const length = norm(vector)
  if (length === 0) return vector
  const factor = 1 / length
  for (let index = 0; index < vector.length; index++) vector[index] = vector[index]! * factor
  return vector
}

function norm(vector: Float32Array): number {
  let square = 0
  for (const value of vector) square += value * value
  return Math.sqrt(square)
}
