/** What texts mean, as far as the answerer can tell: a port to a table of word vectors, or to nothing. */

export interface Meaning {
  /** the vector of a text, of length 1, or all zeros for a text without a known word */
  vector(text: string): Float32Array
}

/** Words whose vectors are less alike than this are not taken for each other. */
const ALIKE = 0.45

/** Cosine of two vectors of length 1. */
export function cosine(a: Float32Array, b: Float32Array): number {
  let sum = 0
  for (let index = 0; index < a.length; index++) sum += a[index]! * b[index]!
  return sum
}

/** How far a word of a text says what a word of a question says, 0 to 1. */
export type Likeness = (asked: string, said: string) => number

/**
 * Likeness of words by their vectors, remembered by word for the time of one answer.
 * Without a meaning no two words are alike but those of the same stem, which is not asked here.
 */
export function likenessBy(meaning: Meaning | undefined): Likeness {
  if (!meaning) return () => 0
  const vectors = new Map<string, Float32Array>()
  const vectorOf = (word: string): Float32Array => {
    let vector = vectors.get(word)
    if (!vector) {
      vector = meaning.vector(word)
      vectors.set(word, vector)
    }
    return vector
  }
  return (asked, said) => {
    const alike = cosine(vectorOf(asked), vectorOf(said))
    return alike < ALIKE ? 0 : Math.min(0.9, alike)
  }
}
