/**
 * Cuts a page into passages: the pieces that a search finds and an answer cites. A passage is a section with its headings. Small
 * sections stay with the one above them, and long ones are cut between blocks: a table keeps its head, code and lists the sentence
 * that introduces them. The console imports with this too, in a browser.
 */
import remarkGfm from 'remark-gfm'
import remarkParse from 'remark-parse'
import { unified } from 'unified'
import { anchors } from '../../docs/anchors.mjs'
import { outsideCode } from '../read/article.mjs'

/** Characters of a passage, at most: as many as an embedding model reads, and eight fit into a prompt of 16 KB. */
const LONGEST = 1_800
/** A section with all below it is one passage if it has no more characters. */
const TOGETHER = 600
/** A section with fewer characters says too little alone. */
const TINY = 80
/** A longer paragraph before code or a list is no introduction of it. */
const LONGEST_INTRODUCTION = 400
/** Longer blocks are not parsed: that could take the square of their length. */
const LONGEST_PARSED = 65_536

/** What a place of a page is called, behind a heading or as a paragraph of its own: `## Install {#install}`. */
const MARK = /[ \t]*\{#([^\s{}]+)\}[ \t]*$/
const ONLY_MARK = /^\{#([^\s{}]+)\}[ \t]*$/
const HEADING = /^ {0,3}(#{1,6})[ \t]+(\S.*?)(?:[ \t]+#+)?[ \t]*$/

/**
 * @typedef {object} Passage
 * @property {string[]} path the headings above it, outermost first; none for what stands below the title alone
 * @property {string} text Markdown
 * @property {string} [anchor] of the place on its page
 */

/** @typedef {{ depth: number, title: string, anchor?: string | undefined, lines: string[], below: Section[] }} Section */

/**
 * @param {string} markdown the text of a page, with marks of its places
 * @param {{ slugs?: boolean }} [options] slugs: a heading without a mark has the anchor that GitHub and site generators make of it
 * @returns {Passage[]} in the order of the page
 */
export function passagesOf(markdown, { slugs = false } = {}) {
  return passagesIn(sectionsOf(markdown, slugs), [], undefined).map(({ text, ...rest }) => ({
    ...rest,
    text: withoutPlaces(text),
  }))
}

/** A text without the marks of its places. @param {string} markdown */
export function withoutPlaces(markdown) {
  if (!markdown.includes('{#')) return markdown
  return outsideCode(markdown.split('\n'), (line) => {
    if (ONLY_MARK.test(line)) return undefined
    return HEADING.test(line) ? line.replace(MARK, '') : line
  })
    .join('\n')
    .replace(/\n{3,}(?=[^\n])/g, '\n\n')
    .trim()
}

/** @param {string} markdown @param {boolean} slugs @returns {Section} the page, with its sections below it */
function sectionsOf(markdown, slugs) {
  const anchorOf = anchors()
  /** @type {Section} */
  const page = { depth: 0, title: '', lines: [], below: [] }
  const open = [page]
  const parts = outsideCode(markdown.split('\n'), (line) => {
    const [, marks, words = ''] = HEADING.exec(line) ?? []
    if (marks === undefined) return line
    const named = MARK.exec(words)?.[1]
    const title = plain(words.replace(MARK, ''))
    // A heading with a mark counts, too: its words are taken then.
    const slug = anchorOf(title)
    return { depth: marks.length, title, anchor: named ?? (slugs ? slug : undefined), lines: [], below: [] }
  })
  for (const part of parts) {
    if (typeof part === 'string') {
      open.at(-1)?.lines.push(part)
      continue
    }
    while ((open.at(-1)?.depth ?? 0) >= part.depth) open.pop()
    open.at(-1)?.below.push(part)
    open.push(part)
  }
  return page
}

/** Marks of Markdown taken off a heading. @param {string} words */
const plain = (words) =>
  words
    .replace(/!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])/g, '$1')
    .replace(/(?<!\\)(\*\*|__|[`*])/g, '')
    .replace(/\\([!-/:-@[-`{-~])/g, '$1')
    .trim()

/** @param {Section} section */
const ownText = ({ lines }) =>
  lines
    .join('\n')
    .replace(/^(?:[ \t]*\n)+/, '')
    .trimEnd()

/** Characters of a section and all below it. @param {Section} section @returns {number} */
const lengthOf = (section) =>
  section.below.reduce((sum, each) => sum + each.title.length + lengthOf(each), ownText(section).length)

/** A section and all below it as one text, without its own heading. @param {Section} section @returns {string} */
const whole = (section) =>
  [ownText(section), ...section.below.map(headed)].filter((text) => text !== '').join('\n\n')

/** @param {Section} section @returns {string} */
const headed = (section) => `${'#'.repeat(section.depth)} ${section.title}\n\n${whole(section)}`.trimEnd()

/**
 * @param {Section} section
 * @param {string[]} outer the headings above its own
 * @param {string | undefined} around the anchor of the section around it
 * @returns {Passage[]}
 */
function passagesIn(section, outer, around) {
  const path = section.depth === 0 ? outer : [...outer, section.title]
  const place = section.anchor ?? around
  /** @param {string} text @returns {Passage[]} */
  const here = (text) => piecesOf(text).map((piece) => passage(path, piece, place))
  if (lengthOf(section) <= TOGETHER) return here(whole(section))
  const isTiny = (/** @type {Section} */ each) => lengthOf(each) < TINY
  const own = [ownText(section), ...section.below.filter(isTiny).map(headed)]
  const above = here(own.filter((text) => text !== '').join('\n\n'))
  const below = section.below.filter((each) => !isTiny(each)).flatMap((each) => passagesIn(each, path, place))
  const [only, first] = [above[0], below[0]]
  // A line that introduces a page is found with what it introduces.
  if (only && first && above.length === 1 && only.text.length < TINY && first.text.length + TINY <= LONGEST) {
    first.text = `${only.text}\n\n${first.text}`
    return below
  }
  return [...above, ...below]
}

/** @param {string[]} path @param {string} piece @param {string | undefined} place @returns {Passage} */
function passage(path, piece, place) {
  const own = ONLY_MARK.exec(piece.split('\n', 1)[0] ?? '')?.[1] ?? place
  return { path, text: piece, ...(own !== undefined && { anchor: own }) }
}

const parser = unified().use(remarkParse).use(remarkGfm)

/** @param {string} text @returns {string[]} none for no text */
function piecesOf(text) {
  if (text === '') return []
  if (withoutPlaces(text).length <= LONGEST) return [text]
  const units = unitsOf(text)
  const length = units.reduce((sum, unit) => sum + unit.length, 0)
  // Pieces of about the same length: a last one of a few words says nothing.
  const wanted = length / Math.ceil(length / LONGEST)
  /** @type {string[]} */
  const pieces = []
  let piece = ''
  let place = ''
  for (const unit of units) {
    if (piece !== '' && (piece.length >= wanted || piece.length + unit.length > LONGEST)) {
      pieces.push(piece)
      piece = ''
    }
    if (piece === '' && place !== '' && !ONLY_MARK.test(unit)) piece = `{#${place}}`
    piece += piece === '' ? unit : `\n\n${unit}`
    place = ONLY_MARK.exec(unit)?.[1] ?? place
  }
  const isMark = ONLY_MARK.test(piece)
  return isMark || piece === '' ? pieces : [...pieces, piece]
}

/** The blocks of a text, those together that belong together, and longer ones in parts. @param {string} text @returns {string[]} */
function unitsOf(text) {
  /** @type {string[]} */
  const units = []
  let introduction = ''
  for (const { type, source, parts } of blocksOf(text)) {
    const whole = introduction === '' ? source : `${introduction}\n\n${source}`
    if (type === 'paragraph' && source.length <= LONGEST_INTRODUCTION && !ONLY_MARK.test(source)) {
      if (introduction !== '') units.push(introduction)
      introduction = source
      continue
    }
    if (type !== 'heading') {
      if (whole.length <= LONGEST) units.push(whole)
      else if (parts.length === 0) units.push(...(introduction === '' ? [] : [introduction]), source)
      else {
        const [first = '', ...rest] = parts
        units.push(introduction === '' ? first : `${introduction}\n\n${first}`, ...rest)
      }
      introduction = ''
    } else introduction = whole
  }
  if (introduction !== '') units.push(introduction)
  return units
}

/**
 * @param {string} text
 * @returns {{ type: string, source: string, parts: string[] }[]} `parts` of a block that is too long for one passage
 */
function blocksOf(text) {
  const runs = text.split(/\n[ \t]*\n/)
  if (text.length > LONGEST_PARSED * 16) return runs.map(unparsed)
  /** @type {ReturnType<typeof blocksOf>} */
  const blocks = []
  let from = 0
  for (const [at, run] of runs.entries()) {
    if (run.length <= LONGEST_PARSED) continue
    blocks.push(...parsed(runs.slice(from, at).join('\n\n')), unparsed(run))
    from = at + 1
  }
  return [...blocks, ...parsed(runs.slice(from).join('\n\n'))]
}

/** What lines without a blank one are, by those that they begin with. @param {string} source @returns {{ type: string, source: string, parts: string[] }} */
function unparsed(source) {
  const [first = '', second = ''] = source.split('\n', 2)
  const isTable = first.includes('|') && second.includes('-') && /^[ \t|:-]+$/.test(second)
  const type = isTable ? 'table' : /^[ \t]*(?:`{3,}|~{3,})/.test(first) ? 'code' : 'paragraph'
  return { type, source, parts: partsOf({ type }, source, 0) }
}

/** @param {string} text @returns {{ type: string, source: string, parts: string[] }[]} */
function parsed(text) {
  return parser.parse(text).children.flatMap((/** @type {any} */ node) => {
    const [start, end] = [node.position.start.offset, node.position.end.offset]
    const source = text.slice(start, end)
    return source.trim() === '' ? [] : [{ type: node.type, source, parts: partsOf(node, source, start) }]
  })
}

/** @param {any} node of mdast @param {string} source @param {number} start @returns {string[]} */
function partsOf(node, source, start) {
  if (source.length <= LONGEST) return []
  if (node.type === 'table') {
    const [names = '', line = '', ...rows] = source.split('\n')
    return packed(rows, LONGEST - names.length - line.length).map((some) => [names, line, some].join('\n'))
  }
  if (node.type === 'list') {
    const items = node.children.map((/** @type {any} */ item) =>
      source.slice(item.position.start.offset - start, item.position.end.offset - start),
    )
    return packed(items, LONGEST)
  }
  if (node.type === 'code') {
    const lines = source.split('\n')
    const fence = /^[ \t]*(`{3,}|~{3,})/.exec(source)?.[1]
    if (fence === undefined) return packed(lines, LONGEST)
    const [first = '', inner] = [lines[0], lines.slice(1, -1)]
    return packed(inner, LONGEST).map((some) => `${first}\n${some}\n${fence}`)
  }
  return node.type === 'paragraph' ? cutText(source) : packed(source.split('\n'), LONGEST)
}

const sentences = new Intl.Segmenter(undefined, { granularity: 'sentence' })

/** @param {string} text @returns {string[]} */
const cutText = (text) =>
  text.length <= LONGEST
    ? []
    : packed(
        Array.from(sentences.segment(text), ({ segment }) => segment),
        LONGEST,
        '',
      )

/**
 * Puts parts together as long as they fit. One that is too long alone is cut where it is.
 * @param {string[]} parts
 * @param {number} most characters
 * @param {string} [between]
 * @returns {string[]}
 */
function packed(parts, most, between = '\n') {
  const room = Math.max(most, LONGEST / 4)
  /** @type {string[]} */
  const made = []
  for (const part of parts.flatMap((each) => slices(each, room))) {
    const last = made.at(-1)
    if (last !== undefined && last.length + between.length + part.length <= room)
      made[made.length - 1] = last + between + part
    else made.push(part)
  }
  return made
}

/** @param {string} text @param {number} length @returns {string[]} */
function slices(text, length) {
  if (text.length <= length) return [text]
  const pieces = []
  for (let at = 0; at < text.length; ) {
    let end = Math.min(text.length, at + length)
    const space = text.lastIndexOf(' ', end)
    if (end < text.length && space > at + length / 2) end = space
    // No character of two units is parted.
    else if (/[\ud800-\udbff]/.test(text[end - 1] ?? '')) end -= 1
    pieces.push(text.slice(at, end))
    at = end
  }
  return pieces
}
