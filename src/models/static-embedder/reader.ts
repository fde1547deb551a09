/** The static embedder: its table, the words and pieces of a text, and how it reads passages for a question. */
import * as v from 'valibot'
import { once, regExp, remembered } from '../../lib/once'
import { Simd, wholeLanes } from '../../lib/simd'
import { readStored } from '../../lib/stored-json'
import { passagesOf } from '../passages'
import { isStopword, stemOf } from '../words'

// =============================================================================
// The table of a static embedder, as scripts/embedder/distill.py writes it (little-endian):
//
//     bytes 0-3            "PSE1"
//     bytes 4-7            length of the header
//     header               JSON: name, dimensions, pieces, vocabulary (its length in bytes); padded to a multiple of 4
//     vocabulary           the word pieces, one a line, in UTF-8; padded to a multiple of 4
//     float32[pieces]      the factor for the numbers of each row
//     int8[pieces][dims]   the rows
//
// A text's vector is the mean of its pieces' rows, scaled to length 1. The length of a row says how much its piece
// counts.

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

/** Scales a vector, unless it is all zeros. */
export function toLengthOne(vector: Float32Array): Float32Array {
  const length = norm(vector)
  if (length === 0) return vector
  const factor = 1 / length
  for (let index = 0; index < vector.length; index++) vector[index] = vector[index]! * factor
  return vector
}

const norm = (vector: Float32Array): number => Math.sqrt(dot(vector, vector))

// =============================================================================
// BERT's uncased tokenizer (Devlin et al. 2019): turns text into the numbers of its word pieces.
//
// Text is folded (lower case, no accents, no control characters) and split at white space and around punctuation
// and Chinese characters. Each word is cut from the left into the longest pieces of the vocabulary. The vocabulary
// lists pieces inside a word with `##` in front. A word that cannot be cut into pieces, or has more than 100
// characters, has none.

const LONGEST_WORD = 100
const MOST_KNOWN = 50_000

// The blocks that BERT treats as Chinese, and what it treats as punctuation: all ASCII symbols too.
const CHINESE = String.raw`\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u{20000}-\u{2a6df}\u{2a700}-\u{2ceaf}\u{2f800}-\u{2fa1f}`
const PUNCTUATION = String.raw`\p{P}$+<=>^\x60|~`

const WORD = regExp(String.raw`[${CHINESE}${PUNCTUATION}]|[^\s\p{Z}${CHINESE}${PUNCTUATION}]+`, 'gu')
const ASCII_WORD = regExp(String.raw`[a-z0-9]+|[!-/:-@\[-\x60{-~]`, 'g')
const PLAIN_ASCII = regExp(String.raw`^[\t\n\r\x20-\x7e]*$`, '')
const CONTROLS = regExp(String.raw`(?![\t\n\r])[\p{C}\ufffd]`, 'gu')
const ACCENTS = regExp(String.raw`\p{Mn}`, 'gu')

export class WordPiece {
  /** pieces that a word begins with, in the order of their numbers */
  readonly starts = new Map<string, number>()
  /** pieces inside a word, without `##` */
  #insides = new Map<string, number>()

  /** @param vocabulary pieces in the order of their numbers */
  constructor(vocabulary: readonly string[]) {
    for (const [number, piece] of vocabulary.entries()) {
      if (piece.startsWith('##')) this.#insides.set(piece.slice(2), number)
      else this.starts.set(piece, number)
    }
  }

  /** Returns the numbers of the pieces of a text's words, in order, without `[CLS]`, `[SEP]` and `[UNK]`. */
  encode(words: readonly string[]): number[] {
    const numbers: number[] = []
    for (const word of words) {
      const pieces = this.#cut(word)
      for (let at = 0; at < pieces.length; at++) numbers.push(pieces[at]!)
    }
    return numbers
  }

  readonly #cut = remembered(MOST_KNOWN, (word): readonly number[] => {
    if (word.length > LONGEST_WORD && [...word].length > LONGEST_WORD) return []
    const numbers: number[] = []
    let start = 0
    while (start < word.length) {
      let end = word.length
      let number: number | undefined
      for (; end > start; end--) {
        number = (start === 0 ? this.starts : this.#insides).get(word.slice(start, end))
        if (number !== undefined) break
      }
      if (number === undefined) return []
      numbers.push(number)
      start = end
    }
    return numbers
  })
}

/** The words of a text as BERT sees them, punctuation marks among them. */
export function wordsOf(text: string): readonly string[] {
  // Use one match() for all words: matchAll makes an object for each.
  if (PLAIN_ASCII().test(text)) return text.toLowerCase().match(ASCII_WORD()) ?? []
  const folded = text.replace(CONTROLS(), '').normalize('NFD').replace(ACCENTS(), '').toLowerCase()
  return folded.match(WORD()) ?? []
}

// =============================================================================
// The words of the passages that a reader has read, each with its pieces, its stem and its vector as int8.

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

class Lexicon {
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
  constructor(
    private readonly table: StaticTable,
    private readonly asked: number,
  ) {
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
    return this.table.embedPieces(pieces)
  }

  /** The vector of a word that is asked for. */
  vector(word: string): Float32Array {
    return this.table.embed(word, DIMENSIONS)
  }

  #learn(word: string): number {
    const pieces = this.table.pieces([word])
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
    return (this.asked + 1) * VECTOR_BYTES + number * DIMENSIONS
  }

  #add(word: string, pieces: number[]): number {
    const number = this.#stems.push(stemOf(word)) - 1
    if (number === this.#room) [this.#simd, this.#vectors] = this.#grown()
    this.ask(this.asked, this.table.embedPieces(pieces, DIMENSIONS))
    const largest = this.#simd.quantize(this.asked * VECTOR_BYTES, DIMENSIONS, this.#rowOf(number))
    this.#scales.push(largest / 127)
    return number
  }

  /** Twice the room, with what is there. */
  #grown(): [Simd, Float32Array] {
    const before = this.#room === 0 ? undefined : this.#simd.memory
    this.#room = Math.max(FIRST_ROOM, 2 * this.#room)
    const simd = new Simd(this.#rowOf(this.#room))
    if (before) new Uint8Array(simd.memory).set(new Uint8Array(before))
    return [simd, new Float32Array(simd.memory, 0, (this.asked + 1) * DIMENSIONS)]
  }
}

// =============================================================================
// The words of a question as a reader sees them.

interface WantedWord {
  word: string
  /** how much it says in the collection */
  says: number
}

/**
 * The index of a collection and a reader may divide a text in different ways: `wi-fi` can be one word to the index and two to a
 * reader, and a word in katakana is one to a reader and one a character to the index. A word that the reader sees otherwise is
 * taken apart, put together, or written as the reader writes it, so that it is found in what is read.
 * @param text of the question
 * @param words of the question as the index has them, in order
 * @returns each word once. The parts of a word share what it says; a whole says what its parts do
 */
export function wordsToRead(text: string, words: readonly WantedWord[]): WantedWord[] {
  const seen = wordsOf(text).filter((word) => LETTER().test(word))
  const known = new Set(seen)
  // A reader takes marks off all letters, also off kana, and Korean syllables apart.
  const said = new Map(words.map(({ word, says }) => [wordsOf(word).join(''), says]))
  const order = [...said.keys()]
  const whole = new Map<string, string>()
  for (const word of known) {
    const parts = said.has(word) ? [] : partsOf(word, order)
    for (const part of parts) if (!known.has(part)) whole.set(part, word)
  }
  const read = new Map<string, number>()
  for (const [word, says] of said) {
    const joined = whole.get(word)
    const parts = joined !== undefined ? [joined] : known.has(word) ? [word] : partsOf(word, seen)
    for (const part of parts.length === 0 ? [word] : parts) {
      read.set(part, (read.get(part) ?? 0) + says / Math.max(1, parts.length))
    }
  }
  return Array.from(read, ([word, says]) => ({ word, says }))
}

/** Words that make a word together, in order; none if they do not. Each may be there more than once. */
function partsOf(word: string, words: readonly string[]): readonly string[] {
  const parts: string[] = []
  for (let at = 0; at < word.length; at += parts.at(-1)!.length) {
    const next = words.filter((part) => part !== '' && word.startsWith(part, at))
    if (next.length === 0) return []
    parts.push(next.reduce((longest, part) => (part.length > longest.length ? part : longest)))
  }
  return parts
}

// =============================================================================
// Reads documents passage by passage, and says how well the best passage answers a question.
//
// One vector stands for all of a long document, and BM25 counts words wherever they are. A reader looks closer:
//
// - likeness: the cosine of question and passage. A passage's vector is the mean of two unit vectors, one of its text
//   and one of the names and headings above it. In one text a short heading would be lost beside a long passage.
// - words: how much of the question the passage says. Each word of the question takes the word of the passage that is
//   most alike (MaxSim of ColBERT, Khattab and Zaharia 2020, https://arxiv.org/abs/2004.12832), and weighs by how much
//   it says: its rarity in the collection times the length of its vector, which is small for common English words.
// - pairs: the share of neighbouring words of the question that are near each other in the passage.
//
// The table knows English. Pieces of other languages' words say little about what they mean, so there likeness counts for nothing,
// and words for half (docs/search.md has what that gains).
//
// The passages and vectors of a text are cached in memory, since many questions read the same documents. The key is
// the text itself, so an entry is never stale.

/** The parts of a document that a reader gets. */
export interface Written {
  /** its title and other names */
  names: string
  text: string
}

/** A question for a reader. */
interface Asked {
  text: string
  /** its words in order, folded, each with how much it says in the collection */
  words: { word: string; says: number }[]
}

/** How well the best passage of a document answers a question. */
export interface Reading {
  /** cosine, -1 to 1; in another language than the table's 0 */
  likeness: number
  /** share of the question that is said, 0 to 1; in another language 0 to 0.5 */
  words: number
  /** share of the question's neighbouring words that are near each other, 0 to 1 */
  pairs: number
}

interface ReadPassage {
  /** of length 1 */
  vector: Float32Array
  /** numbers of its words in the lexicon, those of its names and headings first */
  words: Int32Array
}

/** A word that was asked for, and how alike the words of the lexicon are to it. */
interface AskedWord {
  stem: string
  vector: Float32Array
  /** by the number of a word of the lexicon: 1 if it is hardly alike, as most are */
  unlike: Uint8Array<ArrayBuffer>
  /** by the number of any other word: how alike it is, up to 1 for the same stem */
  alike: Map<number, number>
}

/** Questions whose readings are cached. The searches of one turn ask fewer. */
const MOST_QUESTIONS = 8
/** How many words of a question are looked for: those that say the most. More would take time and add little. */
const MOST_ASKED = 32
/** Words of questions whose likenesses are cached, with about 60 KB each. The questions of a turn share many words. */
const MOST_COMPARED = 64
/** With no more of its words whole in the table, a question is in another language; from the second share on, it is in the table's. */
const [FOREIGN, OWN] = [0.4, 0.7]
/** Two words at most so many words apart are near each other. */
const NEAR = 4
/** Words cached in memory, about 8 MB. A document that is being read may exceed this. */
const MOST_WORDS = 32_768
/** Characters of texts cached in memory. With their passages they take about 8 MB. */
const MOST_CHARACTERS = 2_000_000

export class PassageReader {
  #lexicon: Lexicon
  #kept = new Map<string, ReadPassage[]>()
  /** by question, the longest unused first */
  #asked = new Map<string, (document: Written) => Reading>()
  /** words of questions, the longest unused first */
  #compared = new Map<string, AskedWord>()
  #characters = 0

  constructor(private readonly table: StaticTable) {
    this.#lexicon = new Lexicon(table, MOST_ASKED)
  }

  /**
   * Starts to read for a question. The searches of one turn ask some questions twice: both the original follow-up and
   * the rewritten one search with the earlier conversation. So the readings of the last questions are cached for each
   * text.
   */
  ask(asked: Asked): (document: Written) => Reading {
    const key = JSON.stringify(asked)
    const reads = this.#asked.get(key) ?? this.#reads(asked)
    this.#asked.delete(key)
    this.#asked.set(key, reads)
    if (this.#asked.size > MOST_QUESTIONS) this.#asked.delete(this.#asked.keys().next().value!)
    return reads
  }

  #reads({ text, words: own }: Asked): (document: Written) => Reading {
    const words = wordsToRead(text, own)
    const vector = this.table.embed(text)
    const english = this.#english(words)
    const weighed = heaviest(
      words.map(({ word, says }) => ({ word, weight: says * this.table.length(word) })),
    )
    const whole = weighed.reduce((sum, { weight }) => sum + weight, 0) || 1
    let lexicon: Lexicon | undefined
    let asked: AskedWord[] = []
    /** by the number of a word of the lexicon: 1 if it is hardly alike to any word of the question, as most are */
    let dull = new Uint8Array(0)
    const readings = new WeakMap<ReadPassage[], Reading>()
    const best = new Float32Array(weighed.length)
    const last = new Int32Array(weighed.length)
    return (document) => {
      const passages = this.#read(document)
      const known = readings.get(passages)
      if (known !== undefined) return known
      if (lexicon !== this.#lexicon) {
        lexicon = this.#lexicon
        asked = weighed.map(({ word }) => this.#askedWord(word))
        dull = new Uint8Array(0)
      }
      dull = roomy(dull, lexicon.room)
      for (const [place, word] of asked.entries()) {
        word.unlike = roomy(word.unlike, lexicon.room)
        lexicon.ask(place, word.vector)
      }
      const reading = { likeness: -1, words: 0, pairs: 0 }
      for (const passage of passages) {
        reading.likeness = Math.max(reading.likeness, english * dot(vector, passage.vector))
        best.fill(0)
        last.fill(-NEAR - 1)
        const near = new Set<number>()
        for (let place = 0; place < passage.words.length; place++) {
          const number = passage.words[place]!
          if (dull[number] === 1) continue
          let isDull = true
          for (let index = 0; index < asked.length; index++) {
            const { unlike, alike } = asked[index]!
            if (unlike[number] === 1) continue
            const like = alike.get(number) ?? this.#compare(number, index, asked[index]!)
            if (like > 0) isDull = false
            if (like > best[index]!) best[index] = like
            if (like < 1) continue
            last[index] = place
            if (index > 0 && place - last[index - 1]! <= NEAR) near.add(index)
            if (index + 1 < asked.length && place - last[index + 1]! <= NEAR) near.add(index + 1)
          }
          if (isDull) dull[number] = 1
        }
        const said = weighed.reduce((sum, { weight }, index) => sum + weight * best[index]!, 0)
        reading.words = Math.max(reading.words, ((1 + english) / 2) * (said / whole))
        if (asked.length > 1) reading.pairs = Math.max(reading.pairs, near.size / (asked.length - 1))
      }
      readings.set(passages, reading)
      return reading
    }
  }

  /** From 0 to 1, how much the table knows the language of some words, by how many it has whole. */
  #english(words: readonly { word: string }[]): number {
    // The table has single letters, and characters of other scripts, which say nothing of the language.
    const telling = words.filter(({ word }) => !/^[a-z]$/.test(word))
    const whole = telling.filter(({ word }) => word.length > 1 && this.table.words.has(word)).length
    return Math.max(0, Math.min(1, (whole / (telling.length || 1) - FOREIGN) / (OWN - FOREIGN)))
  }

  #askedWord(word: string): AskedWord {
    const known = this.#compared.get(word)
    this.#compared.delete(word)
    const asked = known ?? {
      stem: stemOf(word),
      vector: this.#lexicon.vector(word),
      unlike: new Uint8Array(0),
      alike: new Map(),
    }
    this.#compared.set(word, asked)
    if (this.#compared.size > MOST_COMPARED) this.#compared.delete(this.#compared.keys().next().value!)
    return asked
  }

  /**
   * How alike a word of the lexicon is to a word of a question: 1 if both have one stem, 0 if they are hardly alike.
   * @param place of that word in its question
   */
  #compare(number: number, place: number, { stem, unlike, alike }: AskedWord): number {
    const like = this.#lexicon.stem(number) === stem ? 1 : this.#lexicon.likeness(place, number)
    if (like === 0) unlike[number] = 1
    else alike.set(number, like)
    return like
  }

  #read({ names, text }: Written): ReadPassage[] {
    const key = `${names}\n\n${text}`
    let passages = this.#kept.get(key)
    if (passages !== undefined) {
      // The map is in the order of use, the longest unused first.
      this.#kept.delete(key)
      this.#kept.set(key, passages)
      return passages
    }
    if (this.#lexicon.size >= MOST_WORDS) this.#forget()
    const parts = passagesOf(text)
    passages =
      parts.length === 0
        ? [this.#passage(names, '')]
        : parts.map((part) =>
            this.#passage([names, ...part.headings.map((heading) => heading.text)].join('. '), part.text),
          )
    this.#keep(key, passages)
    return passages
  }

  #keep(key: string, passages: ReadPassage[]): void {
    this.#kept.set(key, passages)
    this.#characters += key.length
    for (const oldest of this.#kept.keys()) {
      if (this.#characters <= MOST_CHARACTERS) break
      this.#kept.delete(oldest)
      this.#characters -= oldest.length
    }
  }

  #forget(): void {
    this.#lexicon = new Lexicon(this.table, MOST_ASKED)
    this.#asked.clear()
    this.#compared.clear()
    this.#kept.clear()
    this.#characters = 0
  }

  #passage(above: string, text: string): ReadPassage {
    const words: number[] = []
    const headed = this.#lexicon.read(wordsOf(above), words)
    const vector = this.#lexicon.read(wordsOf(text), words)
    for (let index = 0; index < vector.length; index++) vector[index] = vector[index]! + headed[index]!
    return { vector: toLengthOne(vector), words: Int32Array.from(words) }
  }
}

/** The same with room for so many words. */
function roomy(marks: Uint8Array<ArrayBuffer>, room: number): Uint8Array<ArrayBuffer> {
  if (marks.length === room) return marks
  const grown = new Uint8Array(room)
  grown.set(marks)
  return grown
}

/** At most MOST_ASKED words, in order. */
function heaviest<Word extends { weight: number }>(words: Word[]): Word[] {
  if (words.length <= MOST_ASKED) return words
  const chosen = new Set(words.toSorted((a, b) => b.weight - a.weight).slice(0, MOST_ASKED))
  return words.filter((word) => chosen.has(word))
}

function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0
  for (let index = 0; index < a.length; index++) sum += a[index]! * b[index]!
  return sum
}
