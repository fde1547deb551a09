/** What an answer says of what is expected: pure. */

/** Words as answers are compared by them: SQuAD's normalisation. @param {string} text */
export const words = (text) =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s]/gu, ' ')
    .split(/\s+/)
    .filter((word) => word !== '' && !/^(a|an|the)$/.test(word))

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
