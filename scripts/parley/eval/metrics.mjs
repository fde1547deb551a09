/** Measures of retrieval and answers: pure. */

/**
 * The share of relevant documents among the first `k`.
 * @param {string[]} found best first
 * @param {Set<string>} relevant
 * @param {number} k
 */
export const recallAt = (found, relevant, k) =>
  relevant.size === 0 ? 0 : new Set(found.slice(0, k).filter((id) => relevant.has(id))).size / relevant.size

/**
 * Normalised discounted cumulative gain with binary relevance (Järvelin and Kekäläinen 2002, the form with log2(rank + 1)).
 * @param {string[]} found best first; of an id that comes twice the first place counts
 * @param {Set<string>} relevant
 * @param {number} k
 */
export function ndcgAt(found, relevant, k) {
  if (relevant.size === 0) return 0
  const discount = (/** @type {number} */ rank) => 1 / Math.log2(rank + 2)
  let gain = 0
  for (const [rank, id] of [...new Set(found)].slice(0, k).entries())
    if (relevant.has(id)) gain += discount(rank)
  let best = 0
  for (let rank = 0; rank < Math.min(k, relevant.size); rank++) best += discount(rank)
  return gain / best
}

/** Words as answers are compared by them: SQuAD's normalisation. @param {string} text */
const words = (text) =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s]/gu, ' ')
    .split(/\s+/)
    .filter((word) => word !== '' && !/^(a|an|the)$/.test(word))

/**
 * F1 of the words that two texts share (SQuAD, Rajpurkar et al. 2016).
 * @param {string} answer
 * @param {string} expected
 */
export function f1(answer, expected) {
  const said = words(answer)
  const wanted = words(expected)
  /** @type {Map<string, number>} */
  const left = new Map()
  for (const word of wanted) left.set(word, (left.get(word) ?? 0) + 1)
  let shared = 0
  for (const word of said) {
    const times = left.get(word) ?? 0
    if (times === 0) continue
    left.set(word, times - 1)
    shared += 1
  }
  if (shared === 0) return said.length === wanted.length && said.length === 0 ? 1 : 0
  const precision = shared / said.length
  const recall = shared / wanted.length
  return (2 * precision * recall) / (precision + recall)
}

/** Text as phrases are looked for in it: in small letters, without marks of Markdown, blanks as one. @param {string} text */
const plain = (text) =>
  text
    .toLowerCase()
    .replace(/[*_`\\]/g, '')
    .replace(/\s+/g, ' ')
    .trim()

/** Writing without blanks between words. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u

/** Whether a text has a phrase, not as a part of longer words. @param {string} text @param {string} phrase */
function hasPhrase(text, phrase) {
  const isWord = (/** @type {string | undefined} */ sign) =>
    sign !== undefined && /[\p{L}\p{N}]/u.test(sign) && !UNSPACED.test(phrase)
  for (let at = text.indexOf(phrase); at >= 0; at = text.indexOf(phrase, at + 1))
    if (!isWord(text[at - 1]) && !isWord(text[at + phrase.length])) return true
  return false
}

/**
 * The share of expected words that an answer says; 1 if it says them as a phrase. One word is said or not. Where a number of
 * several words is missing, less than half is said.
 * @param {string} answer
 * @param {string} expected
 */
export function saidOf(answer, expected) {
  if (hasPhrase(plain(answer), plain(expected))) return 1
  const said = new Set(words(answer))
  const wanted = [...new Set(words(expected))]
  if (wanted.length < 2) return 0
  const share = wanted.filter((word) => said.has(word)).length / wanted.length
  return wanted.every((word) => said.has(word) || !/\p{N}/u.test(word)) ? share : share / 2
}

const DECLINES =
  /\b(?:(?:do|does|did|could|can|was|were|is|are)(?: not|n['’]t)|cannot|no(?:thing)?)\b[^.!?\n]{0,60}\b(?:know|find|found|answer|mention(?:ed)?|information|documents?|say|context|provided)\b/i

/**
 * Whether an answer says that it does not know: it cites nothing, and says so in its first sentences.
 * @param {{ answer: string, citations: unknown[] }} turn
 */
export const isDeclined = ({ answer, citations }) =>
  answer.trim() === '' || (citations.length === 0 && DECLINES.test(answer.slice(0, 300)))

/** @param {number[]} values @returns {number | undefined} their mean; undefined of none */
export const mean = (values) =>
  values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0) / values.length
