/** Which lines of a PDF are headings, and of which level. */
import { comparable, HEADING_SIZE, LONGEST_HEADING } from './pdf-measures.mjs'

/** @typedef {import('./pdf-lines.mjs').Line} Line */
/** @typedef {import('./pdf-lines.mjs').Page} Page */

/** The number of a section: "3.5. /boot" is one level below "3". */
const SECTION = /^((?:\d{1,2}|[A-Z])(?:\.\d{1,2}){1,4})\.?\s/
const CHAPTER = /^(?:chapter|kapitel|chapitre|capítulo|appendix|anhang)\s+(?:\d{1,2}|[A-Z]|[IVX]+)\b/i

/**
 * Bookmarks say the level of a line, and so does its number. Lines of one size have the level that most of them are known to have,
 * and else as many levels above them as there are larger sizes.
 * @param {Page[]} pages
 * @param {number} size of the text
 * @returns {Map<Line, number>} a chapter is 1
 */
export function levelsOf(pages, size) {
  /** @type {Map<Line, number>} */
  const levels = new Map()
  /** @type {Line[]} */
  const unknown = []
  for (const { lines, outline } of pages) {
    const bookmarks = new Map(outline.map(({ title, level }) => [comparable(title), level]))
    for (const [at, line] of lines.entries()) {
      const known =
        bookmarked(line, lines[at + 1], bookmarks) ?? (isLarge(line, size) ? numbered(line) : undefined)
      if (known !== undefined) levels.set(line, known)
      else if (isLarge(line, size)) unknown.push(line)
    }
  }
  const sizes = sizeLevels(levels, unknown, size)
  for (const line of unknown) levels.set(line, sizes.get(line.size) ?? 1)
  return levels
}

/** @param {Line} line @param {number} size */
const isLarge = (line, size) =>
  !line.isMonospaced &&
  line.size >= size * HEADING_SIZE &&
  line.text.length <= LONGEST_HEADING &&
  /\p{L}/u.test(line.text)

/**
 * A long title is broken, and its bookmark is not.
 * @param {Line} line @param {Line | undefined} next @param {Map<string, number>} bookmarks
 */
const bookmarked = (line, next, bookmarks) =>
  bookmarks.get(comparable(line.text)) ??
  (next && next.size === line.size ? bookmarks.get(comparable(`${line.text} ${next.text}`)) : undefined)

/** @param {Line} line */
function numbered({ text }) {
  if (CHAPTER.test(text)) return 1
  return SECTION.exec(text)?.[1]?.split('.').length
}

/**
 * @param {Map<Line, number>} known
 * @param {Line[]} unknown
 * @param {number} size of the text
 * @returns {Map<number, number>} the level of lines of each size
 */
function sizeLevels(known, unknown, size) {
  /** @type {Map<number, Map<number, number>>} */
  const votes = new Map()
  for (const [line, level] of known) {
    if (line.size < size * HEADING_SIZE) continue
    const of = votes.get(line.size) ?? new Map()
    votes.set(line.size, of.set(level, (of.get(level) ?? 0) + 1))
  }
  /** @type {Map<number, number>} */
  const levels = new Map()
  // A smaller line is never above a larger one, and one of unknown level is below all that are larger.
  let above = 0
  let deepest = 0
  const sizes = new Set([...known.keys(), ...unknown].map((line) => line.size))
  for (const one of [...sizes].filter((one) => one >= size * HEADING_SIZE).toSorted((a, b) => b - a)) {
    const voted = [...(votes.get(one) ?? [])].toSorted((a, b) => b[1] - a[1])
    above = Math.max(above, voted[0]?.[0] ?? deepest + 1)
    deepest = Math.max(
      above,
      deepest,
      ...voted.filter(([, count]) => count * 4 >= (voted[0]?.[1] ?? 0)).map(([level]) => level),
    )
    levels.set(one, above)
  }
  return levels
}
