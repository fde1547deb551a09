/**
 * Lines of a PDF as Markdown. A PDF knows where letters stand on paper, and nothing of paragraphs. Two libraries were tried: unpdf
 * gives lines as they were broken, and @opendocsg/pdf2md makes headings of whole manuals and paragraphs of their code.
 */
import { leftOut } from './pdf-running-lines.mjs'

/** Larger than the text by this much, a line is a heading. */
export const HEADING_SIZE = 1.15
const LONGEST_HEADING = 160

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
 * @param {Page[]} pages
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
function levelsOf(pages, size) {
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

/**
 * A line as it stands on its page. Lengths are in points.
 * @typedef {object} Line
 * @property {string} text
 * @property {number} left
 * @property {number} right
 * @property {{ left: number, gap: number }[]} columns where else in it text begins, in another font or behind a space of its own,
 *   and how far that is from the text before it, as a part of the size
 * @property {number} base the height of its baseline above the page's lower edge
 * @property {number} size of most of its letters
 * @property {boolean} isMonospaced whether all of its letters are as wide as each other, as in code
 */

/**
 * @typedef {object} Page
 * @property {string} label what its number is in print
 * @property {number} [number] by which an address opens it, from 1
 * @property {Line[]} lines in the order in which they are read
 * @property {{ title: string, level: number }[]} outline the bookmarks that lead to it; level 1 is a chapter
 */

/**
 * @typedef {object} Block
 * @property {'heading' | 'text' | 'item' | 'code'} kind
 * @property {string} text
 * @property {number} level of a heading
 * @property {Line} last its last line
 * @property {number} indent where a code block begins
 */

/** A gap this many times the usual one is between paragraphs. */
const PARAGRAPH_GAP = 1.35
/** Spaces of justified text are narrower, as a part of its size. */
const WIDE_SPACE = 0.5
/** And so wide is none. */
const FAR = 1.5
const BULLET = /^[•◦▪‣●○■·∙–*-]\s+/
const NUMBERED = /^\(?\d{1,2}[.)]\s+/
/**
 * Puts paragraphs, lists and code together again. Page numbers, running heads and tables of contents are left out, since they say
 * nothing and stand in the middle of sentences; all other text stays. A heading names its page, and a PDF without headings has one
 * for each page.
 * @param {Page[]} pages
 * @returns {string} Markdown, without the document's title
 */
export function markdownOf(pages) {
  const size = textSize(pages)
  const without = leftOut(pages)
  const read = pages.map((page) => ({ ...page, lines: page.lines.filter((line) => !without.has(line)) }))
  const gap = usualGap(read, size)
  const levels = levelsOf(read, size)
  const words = knownWords(read)
  /** @type {(Block & { page: Page })[]} */
  const blocks = []
  for (const page of read) {
    for (const [at, line] of page.lines.entries()) {
      const block = blocks.at(-1)
      const level = levels.get(line) ?? 0
      if (block && continues(block, line, { page, at, level, gap })) append(block, line, gap, words)
      else blocks.push({ ...begun(line, level), page })
    }
  }
  return written(blocks, read)
}

/**
 * The largest line of the first page: what a document without a title in its data is called.
 * @param {Page[]} pages
 * @returns {string | undefined} nothing if no line stands out
 */
export function printedTitle(pages) {
  const lines = pages[0]?.lines ?? []
  const size = textSize(pages)
  const largest = Math.max(...lines.map((line) => line.size))
  if (!(largest >= size * 1.3)) return undefined
  const first = lines.findIndex((line) => line.size === largest)
  const end = lines.findIndex((line, at) => at > first && line.size !== largest)
  const title = lines
    .slice(first, end < 0 ? first + 3 : Math.min(end, first + 3))
    .map(({ text }) => text)
    .join(' ')
  return /\p{L}{2}/u.test(title) && title.length <= LONGEST_HEADING ? title : undefined
}

/**
 * Whether a line goes on with a block.
 * @param {Block} block
 * @param {Line} line
 * @param {{ page: Page, at: number, level: number, gap: number }} place
 */
function continues(block, line, { page, at, level, gap }) {
  const before = page.lines[at - 1]
  const down = before === undefined ? Number.NaN : before.base - line.base
  if (block.kind === 'heading') {
    return (
      level > 0 &&
      before === block.last &&
      line.size === before.size &&
      down > 0 &&
      down < line.size * 1.7 &&
      block.text.length + line.text.length < LONGEST_HEADING &&
      !/^\d{1,2}\.\d/.test(line.text)
    )
  }
  if (level > 0) return false
  if (block.kind === 'code') return line.isMonospaced && (before === undefined || down < gap * 4)
  if (line.isMonospaced || BULLET.test(line.text) || NUMBERED.test(line.text)) return false
  // A page or a column is full in the middle of a sentence.
  if (before === undefined || down <= 0) return goesOn(block.text, line.text)
  if (down > Math.max(gap, line.size * 1.1) * PARAGRAPH_GAP) return false
  if (areRows(before, line, WIDE_SPACE) && isShort(before, page.lines)) return false
  // No text is set that far apart.
  if (areRows(before, line, FAR)) return false
  return BROKEN.test(before.text) || !hadRoom(before, line, page.lines, at)
}

/**
 * Whether two lines are rows of one table: something in them begins at the same place.
 * @param {Line} a
 * @param {Line} b
 * @param {number} space before it in one of them, as a part of the size
 */
const areRows = (a, b, space) =>
  a.columns.some((one) =>
    b.columns.some((other) => Math.abs(one.left - other.left) < 1 && Math.max(one.gap, other.gap) > space),
  )

/** @param {Line} line @param {Line[]} lines of its page */
const isShort = (line, lines) => line.right + line.size * 3 < Math.max(...lines.map(({ right }) => right))

/** @param {string} text @param {string} next */
const goesOn = (text, next) => !/[.!?:;。！？]["”’)]?$/.test(text) && /^[\p{Ll}\p{Lo}(,]/u.test(next)

/**
 * Whether the first word of a line would have fitted into the line before, which then was ended on purpose.
 * @param {Line} before
 * @param {Line} line
 * @param {Line[]} lines of the page
 * @param {number} at
 */
function hadRoom(before, line, lines, at) {
  // Lines around it that begin where these do show how far their column goes; a box has its own.
  const near = lines
    .slice(Math.max(0, at - 8), at + 8)
    .filter(({ left }) => Math.abs(left - before.left) < 3 || Math.abs(left - line.left) < 3)
  const margin = Math.max(...near.map(({ right }) => right))
  // A margin may be ragged, so a line that seems to go on counts with two words.
  const words = /^\p{Ll}/u.test(line.text) ? /^\S+(?:\s+\S+)?/ : /^\S+/
  const first = WIDE.test(line.text[0] ?? '') ? line.text[0] : words.exec(line.text)?.[0]
  const wide = ((line.right - line.left) / Math.max(1, line.text.length)) * ((first?.length ?? 0) + 1)
  return before.right + wide * 1.2 < margin
}

/** @param {Line} line @param {number} level @returns {Block} */
function begun(line, level) {
  if (level > 0) return { kind: 'heading', text: line.text, level, last: line, indent: 0 }
  if (line.isMonospaced) return { kind: 'code', text: line.text, level, last: line, indent: line.left }
  const item = line.text.replace(BULLET, '')
  if (item !== line.text) return { kind: 'item', text: item, level, last: line, indent: 0 }
  return { kind: 'text', text: line.text, level, last: line, indent: 0 }
}

/** @param {Block} block @param {Line} line @param {number} gap @param {Set<string>} words that the PDF has */
function append(block, line, gap, words) {
  if (block.kind === 'code') {
    const wide = (line.right - line.left) / Math.max(1, line.text.length)
    const indent = wide > 0 ? Math.max(0, Math.round((line.left - block.indent) / wide)) : 0
    const isApart = block.last.base - line.base > gap * 1.6
    block.text += `\n${isApart ? '\n' : ''}${' '.repeat(indent)}${line.text}`
  } else {
    block.text = joined(block.text, line.text, words)
  }
  block.last = line
}

/**
 * @param {(Block & { page: Page })[]} blocks
 * @param {Page[]} pages
 */
function written(blocks, pages) {
  const hasHeadings = blocks.filter(({ kind }) => kind === 'heading').length * 8 >= pages.length
  /** @type {string[]} */
  const parts = []
  /** @type {Page | undefined} */
  let page
  for (const [at, block] of blocks.entries()) {
    const { label, number } = block.page
    const place = number === undefined ? '' : `{#page=${number}}`
    const isNew = block.page !== page
    page = block.page
    if (isNew && !hasHeadings) parts.push(`## Page ${label} ${place}`.trimEnd())
    else if (isNew && block.kind !== 'heading' && place !== '') parts.push(place)
    if (block.kind === 'heading') {
      const marks = '#'.repeat(Math.min(6, block.level + (hasHeadings ? 1 : 2)))
      parts.push(`${marks} ${block.text}${hasHeadings ? ` (page ${label})` : ''} ${place}`.trimEnd())
    } else if (block.kind === 'code') parts.push(`\`\`\`\n${block.text}\n\`\`\``)
    else if (block.kind === 'item') {
      if (blocks[at - 1]?.kind === 'item' && !isNew) parts.push(`${parts.pop()}\n- ${block.text}`)
      else parts.push(`- ${block.text}`)
    } else parts.push(block.text.replace(/^(?=#)/, '\\'))
  }
  return parts.join('\n\n')
}
