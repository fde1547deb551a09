/** What is measured on the pages of a PDF, and how titles are compared. */

/** @typedef {import('./pdf-lines.mjs').Page} Page */

/** Larger than the text by this much, a line is a heading. */
export const HEADING_SIZE = 1.15
export const LONGEST_HEADING = 160

/**
 * Titles without their numbers, as bookmarks often have them.
 * @param {string} title
 */
export const comparable = (title) =>
  title
    .normalize('NFKC')
    .toLowerCase()
    .replace(/^(?:(?:chapter|appendix|section)\s+)?(?:[\da-z](?:[\d.]*\.)?\d*[.:]?|[ivx]+\.)\s+/i, '')
    .replace(/[\s‘’'"“”]+/g, '')

/**
 * What most letters have, such as a size.
 * @param {[value: number, letters: number][]} texts
 */
export function ofMostLetters(texts) {
  /** @type {Map<number, number>} */
  const counts = new Map()
  for (const [value, letters] of texts) counts.set(value, (counts.get(value) ?? 0) + letters)
  return [...counts].toSorted((a, b) => b[1] - a[1])[0]?.[0] ?? 0
}

/** The size of most letters. @param {Page[]} pages */
export const textSize = (pages) =>
  ofMostLetters(pages.flatMap(({ lines }) => lines.map(({ size, text }) => [size, text.length])))

/**
 * The distance of two lines of a paragraph.
 * @param {Page[]} pages
 * @param {number} size of the text
 */
export function usualGap(pages, size) {
  const gaps = pages.flatMap(({ lines }) =>
    lines.flatMap((line, at) => {
      const next = lines[at + 1]
      const gap = next ? line.base - next.base : 0
      return gap > 0 && gap < size * 3 && line.size === size && next?.size === size ? [gap] : []
    }),
  )
  return gaps.toSorted((a, b) => a - b)[Math.floor(gaps.length / 3)] ?? size * 1.2
}
