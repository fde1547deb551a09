/**
 * Reads documents passage by passage, and says how well the best passage answers a question.
 *
 * One vector stands for all of a long document, and BM25 counts words wherever they are. A reader looks closer:
 *
 * - likeness: the cosine of question and passage. A passage's vector is the mean of two unit vectors, one of its text
 *   and one of the names and headings above it. In one text a short heading would be lost beside a long passage.
 * - words: how much of the question the passage says. Each word of the question takes the word of the passage that is
 *   most alike (MaxSim of ColBERT, Khattab and Zaharia 2020, https://arxiv.org/abs/2004.12832), and weighs by how much
 *   it says: its rarity in the collection times the length of its vector, which is small for common English words.
 * - pairs: the share of neighbouring words of the question that are near each other in the passage.
 *
 * The table knows English. Pieces of other languages' words say little about what they mean, so there likeness counts for nothing,
 * and words for half (docs/search.md has what that gains).
 *
 * The passages and vectors of a text are cached in memory, since many questions read the same documents. The key is
 * the text itself, so an entry is never stale.
 */
import { passagesOf } from '../passages'
import { stemOf } from '../words'
import { wordsToRead } from './asked-words'
import { Lexicon } from './lexicon'
import type { StaticTable } from './table'
import { wordsOf } from './word-piece'

/** The parts of a document that a reader gets. */
export interface Written {
  /** its title and other names */
  names: string
  text: string
}

/** A question for a reader. */
export interface Asked {
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
  #table: StaticTable
  #lexicon: Lexicon
  #kept = new Map<string, ReadPassage[]>()
  /** by question, the longest unused first */
  #asked = new Map<string, (document: Written) => Reading>()
  /** words of questions, the longest unused first */
  #compared = new Map<string, AskedWord>()
  #characters = 0

  constructor(table: StaticTable) {
    this.#table = table
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
    const vector = this.#table.embed(text)
    const english = this.#english(words)
    const weighed = heaviest(
      words.map(({ word, says }) => ({ word, weight: says * this.#table.length(word) })),
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
    const whole = telling.filter(({ word }) => word.length > 1 && this.#table.words.has(word)).length
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
    this.#lexicon = new Lexicon(this.#table, MOST_ASKED)
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
    const length = Math.sqrt(dot(vector, vector)) || 1
    for (let index = 0; index < vector.length; index++) vector[index] = vector[index]! / length
    return { vector, words: Int32Array.from(words) }
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
