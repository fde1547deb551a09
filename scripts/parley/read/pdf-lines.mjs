/**
 * Lines of a PDF as Markdown. A PDF knows where letters stand on paper, and nothing of paragraphs. Two libraries were tried: unpdf
 * gives lines as they were broken, and @opendocsg/pdf2md makes headings of whole manuals and paragraphs of their code.
 */

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

/** Larger than the text by this much, a line is a heading. */
const HEADING_SIZE = 1.15
/** A gap this many times the usual one is between paragraphs. */
const PARAGRAPH_GAP = 1.35
/** Spaces of justified text are narrower, as a part of its size. */
const WIDE_SPACE = 0.5
const LONGEST_HEADING = 160
const CONTENTS = /(?:\.\s?){4,}\s*[\divxlc]+$/i
const BULLET = /^[•◦▪‣●○■·∙–*-]\s+/
/** A word that goes on in the next line. */
const BROKEN = /\p{L}[-\u00AD]$/u
const NUMBERED = /^\(?\d{1,2}[.)]\s+/
/** Letters of scripts that are written without spaces. */
export const WIDE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u

/**
 * Puts paragraphs, lists and code together again. Page numbers, running heads and tables of contents are left out, since they say
 * nothing and stand in the middle of sentences. A heading names its page, and a PDF without headings has one for each page.
 * @param {Page[]} pages
 * @returns {string} Markdown, without the document's title
 */
export function markdownOf(pages) {
  const size = textSize(pages)
  const read = withoutRunningLines(pages, size)
  const gap = usualGap(read, size)
  /** @type {(Block & { page: string })[]} */
  const blocks = []
  for (const page of read) {
    const headings = new Map(page.outline.map(({ title, level }) => [comparable(title), level]))
    for (const [at, line] of page.lines.entries()) {
      const block = blocks.at(-1)
      const level = headingLevel(line, page.lines[at + 1], headings, size)
      if (block && continues(block, line, { page, at, level, gap })) append(block, line, gap)
      else blocks.push({ ...begun(line, level), page: page.label })
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
 * Page numbers, and what stands at the same edge of several pages but for its numbers.
 * @param {Page[]} pages
 * @param {number} size of the text
 * @returns {Page[]}
 */
function withoutRunningLines(pages, size) {
  /** @type {Map<string, number>} */
  const seen = new Map()
  const edges = pages.map(edgesOf)
  const chapters = new Set(pages.flatMap(({ outline }) => outline.map(({ title }) => comparable(title))))
  for (const lines of edges) {
    for (const key of new Set(lines.values())) seen.set(key, (seen.get(key) ?? 0) + 1)
  }
  return pages.map((page, at) => ({
    ...page,
    lines: page.lines.filter((line) => {
      if (CONTENTS.test(line.text)) return false
      const [, entry] = /^(.*\S)[\s.]+(?:\d+|[ivxlc]+)$/.exec(line.text) ?? []
      if (entry !== undefined && chapters.has(comparable(entry))) return false
      const key = edges[at]?.get(line)
      if (key === undefined) return true
      if (/^(?:[-–—]\s*)?(?:\d{1,4}|[ivxlc]+)(?:\s*[-–—])?$/.test(line.text)) return false
      const count = seen.get(key) ?? 0
      const hasNumber = line.text.split(/[\s/|]+/).some((word) => isNumber(word, page.label, at))
      // Slides can have one title several times.
      return line.size >= size * HEADING_SIZE || count < (hasNumber || count === pages.length ? 2 : 3)
    }),
  }))
}

/**
 * The two highest and the two lowest lines of a page, each with what it says but for the page's number.
 * @param {Page} page
 * @param {number} at
 * @returns {Map<Line, string>}
 */
function edgesOf({ lines, label }, at) {
  const byHeight = lines.toSorted((a, b) => b.base - a.base)
  /** @param {Line[]} some @param {string} edge @returns {[Line, string][]} */
  const masked = (some, edge) =>
    some.map((line) => {
      const words = withoutTotal(line.text)
        .split(/\s+/)
        .map((word) => (isNumber(word, label, at) ? '#' : word))
      return [line, `${edge} ${words.join(' ')}`]
    })
  return new Map([
    ...masked(byHeight.slice(0, 2), 'top'),
    ...(byHeight.length > 4 ? masked(byHeight.slice(-2), 'bottom') : []),
  ])
}

/**
 * Whether a word is a page's number, as it is printed or counted.
 * @param {string} word
 * @param {string} label
 * @param {number} at
 */
const isNumber = (word, label, at) => word === label || word === String(at + 1)

/**
 * The number of all pages masked, since on the last page it is the number of that page too.
 * @param {string} text
 */
const withoutTotal = (text) => text.replace(/(?<=\d\s*(?:\/|\p{L}{1,4})\s*)\d+/gu, '#')

/**
 * @param {Line} line
 * @param {Line | undefined} next
 * @param {Map<string, number>} headings of the page's bookmarks
 * @param {number} size of the text
 * @returns {number} 0 for no heading; a chapter is 1
 */
function headingLevel(line, next, headings, size) {
  const marked =
    headings.get(comparable(line.text)) ??
    // A long title is broken, and its bookmark is not.
    (next && next.size === line.size ? headings.get(comparable(`${line.text} ${next.text}`)) : undefined)
  if (marked !== undefined) return marked
  if (line.isMonospaced || line.size < size * HEADING_SIZE) return 0
  if (line.text.length > LONGEST_HEADING || !/\p{L}/u.test(line.text)) return 0
  return line.size >= size * 1.5 ? 1 : 2
}

/**
 * Titles without their numbers, as bookmarks often have them.
 * @param {string} title
 */
const comparable = (title) =>
  title
    .normalize('NFKC')
    .toLowerCase()
    .replace(/^(?:(?:chapter|appendix|section)\s+)?(?:[\da-z](?:[\d.]*\.)?\d*[.:]?|[ivx]+\.)\s+/i, '')
    .replace(/[\s‘’'"“”]+/g, '')

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
      level > 0 && before === block.last && line.size === before.size && down > 0 && down < line.size * 1.7
    )
  }
  if (level > 0) return false
  if (block.kind === 'code') return line.isMonospaced && (before === undefined || down < gap * 4)
  if (line.isMonospaced || BULLET.test(line.text) || NUMBERED.test(line.text)) return false
  // A page or a column is full in the middle of a sentence.
  if (before === undefined || down <= 0) return goesOn(block.text, line.text)
  if (down > Math.max(gap, line.size * 1.1) * PARAGRAPH_GAP) return false
  if (areRows(before, line) && isShort(before, page.lines)) return false
  return BROKEN.test(before.text) || !hadRoom(before, line, page.lines, at)
}

/**
 * Whether two lines are rows of one table: something in them begins at the same place.
 * @param {Line} a
 * @param {Line} b
 */
const areRows = (a, b) =>
  a.columns.some((one) =>
    b.columns.some(
      (other) => Math.abs(one.left - other.left) < 1 && Math.max(one.gap, other.gap) > WIDE_SPACE,
    ),
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

/** @param {Block} block @param {Line} line @param {number} gap */
function append(block, line, gap) {
  if (block.kind === 'code') {
    const wide = (line.right - line.left) / Math.max(1, line.text.length)
    const indent = wide > 0 ? Math.max(0, Math.round((line.left - block.indent) / wide)) : 0
    const isApart = block.last.base - line.base > gap * 1.6
    block.text += `\n${isApart ? '\n' : ''}${' '.repeat(indent)}${line.text}`
  } else {
    block.text = joined(block.text, line.text)
  }
  block.last = line
}

/**
 * Two lines as one text. A word that was broken is one word again.
 * @param {string} text
 * @param {string} next
 */
function joined(text, next) {
  if (BROKEN.test(text) && /^\p{Ll}/u.test(next)) return text.slice(0, -1) + next
  const isWide = WIDE.test(text.at(-1) ?? '') && WIDE.test(next[0] ?? '')
  return isWide ? text + next : `${text} ${next}`
}

/**
 * @param {(Block & { page: string })[]} blocks
 * @param {Page[]} pages
 */
function written(blocks, pages) {
  const hasHeadings = blocks.filter(({ kind }) => kind === 'heading').length * 8 >= pages.length
  /** @type {string[]} */
  const parts = []
  let page = ''
  for (const [at, block] of blocks.entries()) {
    const next = blocks[at + 1]
    if (!hasHeadings && block.page !== page) parts.push(`## Page ${block.page}`)
    page = block.page
    if (block.kind === 'heading') {
      // Nothing stands below a list of contents any more.
      const isEmpty = !next || (next.kind === 'heading' && next.level <= block.level)
      if (isEmpty) continue
      const marks = '#'.repeat(Math.min(6, block.level + (hasHeadings ? 1 : 2)))
      parts.push(`${marks} ${block.text}${hasHeadings ? ` (page ${block.page})` : ''}`)
    } else if (block.kind === 'code') parts.push(`\`\`\`\n${block.text}\n\`\`\``)
    else if (block.kind === 'item') {
      if (blocks[at - 1]?.kind === 'item') parts.push(`${parts.pop()}\n- ${block.text}`)
      else parts.push(`- ${block.text}`)
    } else parts.push(block.text.replace(/^(?=#)/, '\\'))
  }
  return parts.join('\n\n')
}

/**
 * The size of most letters.
 * @param {Page[]} pages
 */
function textSize(pages) {
  /** @type {Map<number, number>} */
  const letters = new Map()
  for (const { size, text } of pages.flatMap(({ lines }) => lines)) {
    letters.set(size, (letters.get(size) ?? 0) + text.length)
  }
  return [...letters].toSorted((a, b) => b[1] - a[1])[0]?.[0] ?? 0
}

/**
 * The distance of two lines of a paragraph.
 * @param {Page[]} pages
 * @param {number} size of the text
 */
function usualGap(pages, size) {
  const gaps = pages.flatMap(({ lines }) =>
    lines.flatMap((line, at) => {
      const next = lines[at + 1]
      const gap = next ? line.base - next.base : 0
      return gap > 0 && gap < size * 3 && line.size === size && next?.size === size ? [gap] : []
    }),
  )
  return gaps.toSorted((a, b) => a - b)[Math.floor(gaps.length / 3)] ?? size * 1.2
}
