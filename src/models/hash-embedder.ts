/**
 * `local/hash-N`: vectors without a model, for work offline. Words that share a stem, or most of their letters,
 * come out alike. It knows no other meaning.
 *
 * Feature hashing (Weinberger et al. 2009): each stem goes to two dimensions and each of its character trigrams to
 * one. The hash also gives the sign, so that collisions cancel out on average. Counts are damped (1 + ln n),
 * stopwords weigh a tenth, and the vector has length 1. A kilobyte of English takes about 60 us once its words are
 * cached, twice that before.
 */
import { regExp } from '../lib/once'
import type { EmbeddingModel } from './embedding-model'
import { isStopword, stemOf } from './words'

const STOPWORD_WEIGHT = 0.1
const TRIGRAM_WEIGHT = 0.35

// Words are cached: texts repeat their words, and collections repeat each other's.
interface Features {
  /** hashes of the stem, the second for its second dimension */
  stem: number
  again: number
  trigrams: Int32Array
  weight: number
}

const known = new Map<string, Features>()
const MOST_KNOWN = 50_000

const WORD = regExp(String.raw`[\p{L}\p{N}\p{M}]+`, 'gu')
const MARKS = regExp(String.raw`\p{M}+`, 'gu')

/** FNV-1a over UTF-16 units, then a finaliser, because the low bits choose the dimension. */
function hash(text: string, seed: number): number {
  let value = 0x811c9dc5 ^ seed
  for (let index = 0; index < text.length; index++) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193)
  }
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35)
  return (value ^ (value >>> 16)) >>> 0
}

function featuresOf(word: string): Features {
  const folded = /^[a-z0-9]+$/.test(word) ? word : word.normalize('NFD').replace(MARKS(), '')
  const stem = stemOf(folded)
  const padded = `^${stem}$`
  const trigrams = new Int32Array(Math.max(1, padded.length - 2))
  for (let index = 0; index < trigrams.length; index++) {
    trigrams[index] = hash(padded.slice(index, index + 3), 3) | 0
  }
  const features = {
    stem: hash(stem, 1),
    again: hash(stem, 2),
    trigrams,
    weight: isStopword(folded) ? STOPWORD_WEIGHT : 1,
  }
  if (known.size >= MOST_KNOWN) known.clear()
  known.set(word, features)
  return features
}

/** The vector of a text; all zeros for a text without words. */
export function hashVector(text: string, dimensions: number): Float32Array {
  const counts = new Map<Features, number>()
  // Use one match() for all words: matchAll makes an object for each.
  for (const word of text.toLowerCase().match(WORD()) ?? []) {
    const features = known.get(word) ?? featuresOf(word)
    counts.set(features, (counts.get(features) ?? 0) + 1)
  }
  const vector = new Float32Array(dimensions)
  const add = (value: number, amount: number) => {
    const dimension = (value >>> 1) % dimensions
    vector[dimension] = vector[dimension]! + (value & 1 ? amount : -amount)
  }
  for (const [features, count] of counts) {
    const amount = features.weight * (1 + Math.log(count))
    add(features.stem, amount)
    add(features.again, amount)
    const share = (TRIGRAM_WEIGHT * amount) / Math.sqrt(features.trigrams.length)
    for (const trigram of features.trigrams) add(trigram >>> 0, share)
  }
  let norm = 0
  for (const value of vector) norm += value * value
  if (norm > 0) {
    const scale = 1 / Math.sqrt(norm)
    for (let index = 0; index < dimensions; index++) vector[index] = vector[index]! * scale
  }
  return vector
}

/** Weight when combined with words. It is low, because these vectors know little that the words do not. */
const WEIGHT = 0.25

export const hashEmbedder = (name: string, dimensions: number): EmbeddingModel => ({
  name,
  weight: WEIGHT,
  batchSize: 1000,
  embed: async (texts) => texts.map((text) => hashVector(text, dimensions)),
  embedNow: (text) => hashVector(text, dimensions),
})
