/**
 * Documents for the benchmarks: about 1 KB each, words drawn by Zipf's law from a made-up vocabulary, the
 * same at every run. Used by the Node side and inside workerd alike.
 */

/** mulberry32: a small seeded generator; the same seed gives the same documents. */
export function random(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

const SYLLABLES = [
  'ba',
  'ke',
  'ti',
  'lo',
  'mu',
  'ran',
  'sel',
  'dor',
  'vin',
  'gal',
  'per',
  'shu',
  'ne',
  'cor',
  'fi',
  'zan',
]

/** The words of the documents, the most frequent first. */
export const VOCABULARY = (() => {
  const next = random(7)
  const words = new Set()
  while (words.size < 20_000) {
    let word = ''
    for (let n = 2 + Math.floor(next() * 3); n > 0; n--)
      word += SYLLABLES[Math.floor(next() * SYLLABLES.length)]
    words.add(word)
  }
  return [...words]
})()

// Zipf with exponent 1 by inverse transform: rank = V^u is the continuous form of it.
const zipf = (next) => VOCABULARY[Math.floor(VOCABULARY.length ** next()) - 1] ?? VOCABULARY[0]

const CATEGORIES = ['guide', 'reference', 'tutorial', 'release', 'faq', 'blog']

/** The document numbered `n`: id, title, text (about 1 KB), category, points. */
export function makeDocument(n) {
  const next = random(n + 1)
  const words = (count) => Array.from({ length: count }, () => zipf(next)).join(' ')
  return {
    id: `doc-${n}`,
    title: words(6),
    text: words(125),
    category: CATEGORIES[Math.floor(next() * CATEGORIES.length)],
    points: Math.floor(next() * 1000),
  }
}

export const SCHEMA = {
  fields: [
    { name: 'title', type: 'string' },
    { name: 'text', type: 'string' },
    { name: 'category', type: 'string', facet: true },
    { name: 'points', type: 'int32' },
  ],
  default_sorting_field: 'points',
}

/** A history collection, as Typesense's documentation has it. */
export const HISTORY_FIELDS = [
  { name: 'conversation_id', type: 'string' },
  { name: 'model_id', type: 'string' },
  { name: 'timestamp', type: 'int32' },
  { name: 'role', type: 'string', index: false },
  { name: 'message', type: 'string', index: false },
]

/** Two- and three-word queries from the middle of the vocabulary: neither stopwords nor unique. */
export function makeQueries(count) {
  const next = random(99)
  const word = () => VOCABULARY[20 + Math.floor(next() * 400)]
  return Array.from({ length: count }, (_, i) =>
    i % 2 === 0 ? `${word()} ${word()}` : `${word()} ${word()} ${word()}`,
  )
}
