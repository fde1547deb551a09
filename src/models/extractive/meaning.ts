/** Port to the meaning of texts: a table of word vectors, or nothing. */

export interface Meaning {
  /** the vector of a text, of length 1; all zeros if the text has no known word */
  vector(text: string): Float32Array
}

/** Words whose vectors are less alike than this are never matched. */
const ALIKE = 0.45

/** Cosine of two vectors of length 1. */
export function cosine(a: Float32Array, b: Float32Array): number {
  let sum = 0
  for (let index = 0; index < a.length; index++) sum += a[index]! * b[index]!
  return sum
}

/** How alike a word of a question and a word of a text are in meaning, 0 to 1. */
export type Likeness = (asked: string, said: string) => number

/**
 * Likeness of words by their vectors, cached by word for one answer. Without a meaning it is always 0; words of the
 * same stem are matched elsewhere.
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
