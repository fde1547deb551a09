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
import { once } from '../../lib/once'
import { Simd, wholeLanes } from '../../lib/simd'
import { readStored } from '../../lib/stored-json'
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
  #simd: Simd
  /** the address and factor of each piece of a text */
  #addresses: Int32Array
  #factors: Float32Array
  /** their sum */
  #summed: Float32Array
  /** where the rows start */
  #rows: number
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
    // A copy: the bytes themselves are not needed any more.
    this.#scales = new Float32Array(bytes, scalesStart, header.pieces).slice()
    const sum = 8 * header.pieces
    this.#rows = sum + 4 * wholeLanes(header.dimensions)
    // The last row is read beyond its end, unless its length is a multiple of what is read at once.
    this.#simd = new Simd(this.#rows + header.pieces * header.dimensions + wholeLanes(1))
    const { memory } = this.#simd
    this.#addresses = new Int32Array(memory, 0, 2 * header.pieces)
    this.#factors = new Float32Array(memory, 0, 2 * header.pieces)
    this.#summed = new Float32Array(memory, sum, header.dimensions)
    new Int8Array(memory, this.#rows).set(new Int8Array(bytes, rowsStart))
    this.#counts = new Uint32Array(header.pieces)
  }

  /**
   * The vector of a text, of length 1; all zeros if the text has no known piece.
   * @param dimensions if more than the table's, the rest are zeros; if fewer, the first, which say the most
   */
  embed(text: string, dimensions?: number): Float32Array {
    return this.embedPieces(this.pieces(wordsOf(text)), dimensions)
  }

  /** Pieces that words begin with, most of them whole words, in the order of their numbers: common ones first. */
  get words(): ReadonlyMap<string, number> {
    return this.#tokenizer.starts
  }

  /** The numbers of the pieces of words (`wordsOf`), in order. */
  pieces(words: readonly string[]): number[] {
    return this.#tokenizer.encode(words)
  }

  /** As `embed`, for a text whose pieces are known. */
  embedPieces(pieces: readonly number[], dimensions: number = this.dimensions): Float32Array {
    return toLengthOne(this.#sum(pieces, dimensions))
  }

  /** How much a word says in English: the length of its vector before scaling. It is small for common words. */
  length(word: string): number {
    return norm(this.#sum(this.pieces(wordsOf(word)), this.dimensions))
  }

  #sum(all: readonly number[], dimensions: number): Float32Array {
    const vector = new Float32Array(dimensions)
    const used = Math.min(dimensions, this.dimensions)
    const pieces = this.#count(all)
    if (pieces.length === 0) return vector
    for (let at = 0; at < pieces.length; at++) {
      const piece = pieces[at]!
      this.#addresses[2 * at] = this.#rows + piece * this.dimensions
      this.#factors[2 * at + 1] = this.#counts[piece]! * this.#scales[piece]!
      this.#counts[piece] = 0
    }
    this.#simd.sum(0, 8 * pieces.length, wholeLanes(used), this.#summed.byteOffset)
    vector.set(this.#summed.subarray(0, used))
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
  for (let index = 0; index < vector.length; index++) square += vector[index]! * vector[index]!
  return Math.sqrt(square)
}
