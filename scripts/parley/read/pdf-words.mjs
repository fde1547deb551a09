/** Words of a PDF that were broken at the end of a line. */

/** Letters of scripts that are written without spaces. */
export const WIDE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u
/** A word that goes on in the next line. */
export const BROKEN = /\p{L}[-\u00AD]$/u
const WORDS = /\p{L}+(?:-\p{L}+)*/gu
/** In "in- and output" the hyphen stands for a word. */
const CONJUNCTION = /^(?:and|or|und|oder|bis|sowie|et|ou)(?!\p{L})/u
/** Shorter parts of a broken word can be words by accident, as in "with-out". */
const SHORTEST_PART = 4

/**
 * The words within lines, in small letters, with their hyphens.
 * @param {import('./pdf-lines.mjs').Page[]} pages
 * @returns {Set<string>}
 */
export function knownWords(pages) {
  /** @type {Set<string>} */
  const words = new Set()
  for (const { text } of pages.flatMap(({ lines }) => lines)) {
    for (const [word] of text.replace(/\S+-$/u, '').toLowerCase().matchAll(WORDS)) {
      words.add(word)
      // "long-term" is also in "a long-term-plan", and its parts are words.
      const parts = word.split('-')
      for (const [at, part] of parts.entries()) {
        words.add(part)
        if (at > 0) words.add(`${parts[at - 1]}-${part}`)
      }
    }
  }
  return words
}

/**
 * Two lines as one text. A word that was broken is one word again, and a compound keeps its hyphen.
 * @param {string} text
 * @param {string} next
 * @param {Set<string>} words that the PDF has elsewhere
 */
export function joined(text, next, words) {
  if (BROKEN.test(text) && /^\p{L}/u.test(next) && !CONJUNCTION.test(next)) {
    return keepsHyphen(text, next, words) ? text + next : text.slice(0, -1) + next
  }
  const isWide = WIDE.test(text.at(-1) ?? '') && WIDE.test(next[0] ?? '')
  return isWide ? text + next : `${text} ${next}`
}

/** @param {string} text @param {string} next @param {Set<string>} words */
function keepsHyphen(text, next, words) {
  if (text.endsWith('\u00AD')) return false
  if (/^\p{Lu}/u.test(next)) return true
  const before = /\p{L}+(?=-$)/u.exec(text)?.[0].toLowerCase() ?? ''
  const after = /^\p{L}+/u.exec(next)?.[0].toLowerCase() ?? ''
  if (words.has(`${before}-${after}`)) return true
  if (words.has(before + after)) return false
  return [before, after].every((part) => part.length >= SHORTEST_PART && words.has(part))
}
