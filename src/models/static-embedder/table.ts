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
    const counts = new Map<number, number>()
    for (const piece of this.#tokenizer.encode(words)) counts.set(piece, (counts.get(piece) ?? 0) + 1)
    for (const [piece, count] of counts) {
      const scale = count * this.#scales[piece]!
      const start = piece * this.dimensions
      for (let index = 0; index < used; index++) {
        vector[index] = vector[index]! + scale * rows[start + index]!
      }
    }
    return vector
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
