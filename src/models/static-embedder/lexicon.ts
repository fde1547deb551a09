/** The words of the passages that a reader has read, each with its pieces, its stem and its vector as int8. */
import { regExp } from '../../lib/once'
import { Simd } from '../../lib/simd'
import { isStopword, stemOf } from '../words'
import type { StaticTable } from './table'

const LETTER = regExp(String.raw`[\p{L}\p{N}]`, 'u')

/** A word that a passage is not compared by: a common one, or a punctuation mark. */
const SKIPPED = -1

/** Dimensions that words are compared in: the first, which say the most. With 128 documents are ranked as with 256. */
const DIMENSIONS = 128
const VECTOR_BYTES = 4 * DIMENSIONS
/** Words that there is room for at first. */
const FIRST_ROOM = 1_024
/** The most that a different word can count. */
const ALMOST = 0.99
/** Words that are less alike than this say different things. */
const ALIKE = 0.3

export class Lexicon {
  #table: StaticTable
  #asked: number
  /** where each word is in #entries: one look-up for both */
  #places = new Map<string, number>()
  /** for each word its number or SKIPPED, where its pieces end, and its pieces */
  #entries: number[] = []
  #stems: string[] = []
  /** Times its scale, a word's int8 are its vector. */
  #scales: number[] = []
  #room = 0
  /** Its memory has the vectors of the words that are asked for, one more for a new word, and the int8 of all words. */
  #simd: Simd
  #vectors: Float32Array

  /** @param asked how many words are asked for at once, at most */
  constructor(table: StaticTable, asked: number) {
    this.#table = table
    this.#asked = asked
    ;[this.#simd, this.#vectors] = this.#grown()
  }

  /** How many different words there are, with those that are skipped. */
  get size(): number {
    return this.#places.size
  }

  /** Numbers are smaller than this. It grows. */
  get room(): number {
    return this.#room
  }

  stem(number: number): string | undefined {
    return this.#stems[number]
  }

  /**
   * The vector of some words, of length 1.
   * @param numbers gets the number of each that is not skipped
   */
  read(words: readonly string[], numbers: number[]): Float32Array {
    const pieces: number[] = []
    const entries = this.#entries
    for (const word of words) {
      const at = this.#places.get(word) ?? this.#learn(word)
      if (entries[at]! !== SKIPPED) numbers.push(entries[at]!)
      for (let piece = at + 2, end = entries[at + 1]!; piece < end; piece++) pieces.push(entries[piece]!)
    }
    return this.#table.embedPieces(pieces)
  }

  /** The vector of a word that is asked for. */
  vector(word: string): Float32Array {
    return this.#table.embed(word, DIMENSIONS)
  }

  #learn(word: string): number {
    const pieces = this.#table.pieces([word])
    const number = isStopword(word) || !LETTER().test(word) ? SKIPPED : this.#add(word, pieces)
    const at = this.#entries.length
    this.#entries.push(number, at + 2 + pieces.length, ...pieces)
    this.#places.set(word, at)
    return at
  }

  /** Asks for a word: `likeness` compares with it until another one takes its place. */
  ask(place: number, vector: Float32Array): void {
    this.#vectors.set(vector, place * DIMENSIONS)
  }

  /** How alike a word is to the one that was asked for at a place: at most ALMOST, and 0 if they are hardly alike. */
  likeness(place: number, number: number): number {
    const product =
      this.#simd.product(place * VECTOR_BYTES, this.#rowOf(number), DIMENSIONS) * this.#scales[number]!
    return product < ALIKE ? 0 : Math.min(product, ALMOST)
  }

  #rowOf(number: number): number {
    return (this.#asked + 1) * VECTOR_BYTES + number * DIMENSIONS
  }

  #add(word: string, pieces: number[]): number {
    const number = this.#stems.push(stemOf(word)) - 1
    if (number === this.#room) [this.#simd, this.#vectors] = this.#grown()
    this.ask(this.#asked, this.#table.embedPieces(pieces, DIMENSIONS))
    const largest = this.#simd.quantize(this.#asked * VECTOR_BYTES, DIMENSIONS, this.#rowOf(number))
    this.#scales.push(largest / 127)
    return number
  }

  /** Twice the room, with what is there. */
  #grown(): [Simd, Float32Array] {
    const before = this.#room === 0 ? undefined : this.#simd.memory
    this.#room = Math.max(FIRST_ROOM, 2 * this.#room)
    const simd = new Simd(this.#rowOf(this.#room))
    if (before) new Uint8Array(simd.memory).set(new Uint8Array(before))
    return [simd, new Float32Array(simd.memory, 0, (this.#asked + 1) * DIMENSIONS)]
  }
}
