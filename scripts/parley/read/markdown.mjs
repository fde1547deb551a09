/** Markdown and MDX, with front matter. */
import { decodeNamedCharacterReference } from 'decode-named-character-reference'
import remarkGfm from 'remark-gfm'
import remarkParse from 'remark-parse'
import { unified } from 'unified'
import { linesOutsideCode, titleOfPath } from './article.mjs'
import { htmlBlock, isBadgeAddress, isDecoration, tagEdits, tagOf, withEdits } from './markdown-html.mjs'
import { withoutMarks } from './markdown-marks.mjs'

/** Parsers of front matter. Without them it is read line by line. @typedef {Record<'yaml' | 'toml', (text: string) => unknown>} Parsers */

/**
 * @param {string} text
 * @param {string} path
 * @param {Parsers} [parsers]
 * @returns {import('./article.mjs').Content}
 */
export function readMarkdown(text, path, parsers) {
  const { data, body } = splitFrontMatter(text, parsers)
  const markdown = isTooLong(body) ? body : withoutHtml(withoutMarks(body, path, data))
  const title = stringOf(data.title) ?? titleOf(headingLine(markdown), path) ?? titleOfPath(path)
  const url = stringOf(data.url) ?? stringOf(data.permalink) ?? stringOf(data.canonical_url)
  const { taxonomies } = /** @type {{ taxonomies?: { tags?: unknown } }} */ (data)
  const tags = [data.tags, data.keywords, taxonomies?.tags].flat().filter((tag) => typeof tag === 'string')
  const description = stringOf(data.description)
  // A description stands nowhere else in the page, and is often the best answer to "what is it?".
  const lead = description && !markdown.includes(description) ? `${description}\n\n` : ''
  return {
    article: {
      title,
      // An indent of the first line may mean code.
      text: `${lead}${markdown.replace(/^(?:[ \t]*\r?\n)+/, '').trimEnd()}`,
      ...(url && /^https?:/.test(url) && { url }),
      ...(tags.length > 0 && { tags }),
    },
  }
}

/** Front matter: YAML, TOML or JSON (Hugo). */
const FRONT =
  /^(?:(---)[ \t]*\r?\n([\s\S]*?)\r?\n(?:---|\.\.\.)[ \t]*|(\+\+\+)[ \t]*\r?\n([\s\S]*?)\r?\n\+\+\+[ \t]*|(\{\r?\n[\s\S]*?\r?\n\})[ \t]*)(?:\r?\n|$)/

/**
 * @param {string} text
 * @param {Parsers | undefined} parsers
 * @returns {{ data: Record<string, unknown>, body: string }} no data where there is no front matter
 */
function splitFrontMatter(text, parsers) {
  const [whole, , yaml = '', isToml, toml = '', json] = FRONT.exec(text) ?? []
  if (whole === undefined) return { data: {}, body: text }
  const data =
    parsed(() => (json ? JSON.parse(json) : isToml ? parsers?.toml(toml) : parsers?.yaml(yaml))) ??
    pairsIn(yaml || toml)
  return data ? { data, body: text.slice(whole.length) } : { data: {}, body: text }
}

/** @param {() => any} parse @returns {Record<string, unknown> | undefined} nothing for what is no object */
function parsed(parse) {
  try {
    const data = parse()
    return typeof data === 'object' && data !== null && !Array.isArray(data) ? data : undefined
  } catch {
    return undefined
  }
}

/**
 * Names and values line by line, for what only looks like YAML or TOML, such as `title: Guide: First steps`, and where there is no
 * parser of them: a Worker goes without their 35 KB. Values are texts, folded ones included, and lists of texts.
 * @param {string} text
 * @returns {Record<string, string | string[]> | undefined} nothing for text
 */
function pairsIn(text) {
  /** @type {[string, string, string[]][]} each name and its value, with the lines below */
  const pairs = []
  for (const line of text.split(/\r?\n/)) {
    if (/^[^\s#]/.test(line) && !/^-(?:\s|$)/.test(line)) {
      const [whole, name = '', value = ''] =
        /^["']?([\w.-]+)["']?\s*[:=](?:\s+|$)(.*)$/.exec(line) ?? /^\[([\w.-]+)\]()\s*$/.exec(line) ?? []
      if (whole === undefined) return undefined
      pairs.push([name, value.replace(/\s#.*$/, '').trim(), []])
    } else if (line.trim() !== '') pairs.at(-1)?.[2].push(line.trim())
  }
  if (pairs.length === 0) return undefined
  // Of two with one name the first counts: tables of TOML come after what is of the page itself.
  return Object.fromEntries(pairs.toReversed().map(([name, value, below]) => [name, textsIn(value, below)]))
}

/** @param {string} value @param {string[]} below the lines that belong to it */
function textsIn(value, below) {
  const plain = (/** @type {string} */ item) => item.trim().replace(/^(["'])(.*)\1$/, '$2')
  if (/^[|>][+-]?$/.test(value)) return below.join(value.startsWith('|') ? '\n' : ' ')
  const list = /^\[(.*)\]$/.exec([value, ...below].join(' ').trim())?.[1]
  if (list !== undefined) return list.split(',').map(plain).filter(Boolean)
  const items = below.flatMap((line) => /^-\s+(.*)$/.exec(line)?.[1] ?? [])
  return value === '' && items.length > 0 ? items.map(plain) : plain(value)
}

/** @param {unknown} value */
const stringOf = (value) =>
  (typeof value === 'string' || typeof value === 'number') && String(value).trim() !== ''
    ? String(value).trim()
    : undefined

const parser = unified().use(remarkParse).use(remarkGfm)

/** Longer pages stay as they are, in UTF-16 units: their parse takes many seconds. */
const LONGEST_PAGE = 1_048_576

/** So do pages with a longer run of lines without a blank one: the parser takes the square of its length. */
const LONGEST_RUN = 65_536

/** @param {string} markdown */
const isTooLong = (markdown) =>
  markdown.length > LONGEST_PAGE || markdown.split(/\n[ \t\r]*\n/).some((run) => run.length > LONGEST_RUN)

/** HTML, a picture, a reference or an underline: without them nothing changes. */
const MAY_CHANGE = /<[a-z/!]|!\[|&[#a-z]|\]:|\S[ \t]*\r?\n[ \t>]*(?:=+|-+)[ \t]*\r?(?:\n|$)/i

/**
 * The title of a page: its first heading. A README without a heading of its own level begins with `Install` or the like, and
 * goes by its folder.
 * @param {string | undefined} heading with its marks
 * @param {string} path
 * @returns {string | undefined}
 */
function titleOf(heading, path) {
  const node = parser.parse(heading ?? '').children[0]
  if (node?.type !== 'heading' || (node.depth > 1 && /\/(?:readme|index)\.[a-z]+$/i.test(path)))
    return undefined
  const text = textOf(node).replace(/\{#[^}]*\}\s*$/, '')
  return text.trim().replace(/\s+/g, ' ') || picturesIn(node).find((alt) => !isDecoration(alt, ''))
}

/** @param {any} node of mdast @returns {string} */
const textOf = (node) => node.value ?? (node.children ?? []).map(textOf).join('')

/** @param {any} node of mdast @returns {string[]} the words that stand for its pictures */
const picturesIn = (node) => (isPicture(node) ? [node.alt ?? ''] : (node.children ?? []).flatMap(picturesIn))

/** @param {any} node */
const isPicture = (node) => node.type === 'image' || node.type === 'imageReference'

/** The first heading of a page. @param {string} markdown @returns {string | undefined} with its marks */
function headingLine(markdown) {
  let last = ''
  for (const line of linesOutsideCode(markdown)) {
    if (/^ {0,3}#{1,6}[ \t]+[^\s#]/.test(line)) return line
    if (/^ {0,3}=+\s*$/.test(line) && last.trim() !== '') return `# ${last.trim()}`
    last = line
  }
  return undefined
}

/**
 * Markdown without the HTML in it: its elements become Markdown, and tags around Markdown go. So do badges, and pictures in headings
 * that say no more than their words. An underlined heading gets its marks in front, as passages are told apart by them.
 * @param {string} markdown
 * @returns {string} with all else as it was written
 */
function withoutHtml(markdown) {
  if (isTooLong(markdown) || !MAY_CHANGE.test(markdown)) return markdown
  const tree = parser.parse(markdown)
  const page = new Page(markdown, tree)
  for (const node of tree.children) page.visit(node, { isRoot: true, isInQuote: false })
  return withEdits(markdown, page.edits)
}

/** An address as a link has it. @param {string} url */
const addressed = (url) => (/[\s()\\]/.test(url) ? `<${url}>` : url)

const REFERENCE = /&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z][a-z\d]{1,31}));/gi

/**
 * Character references of a text as the characters that they are, such as a dash for `&mdash;`. One that means something in Markdown or
 * HTML stays.
 * @param {string} text @param {number} from its offset
 * @returns {import('./markdown-html.mjs').Edit[]}
 */
const referencesIn = (text, from) =>
  [...text.matchAll(REFERENCE)].flatMap(({ 0: whole, 1: decimal, 2: hex, 3: name, index }) => {
    const code = decimal ? Number(decimal) : Number.parseInt(hex ?? '', 16)
    const character = name
      ? decodeNamedCharacterReference(name)
      : isCharacter(code) && String.fromCodePoint(code)
    const after = text[index + whole.length] ?? ''
    const isPlain = character && (/[^ -~]|["']/.test(character) || (character === '&' && /\s/.test(after)))
    const start = from + index
    return isPlain ? [{ start, end: start + whole.length, text: character.replaceAll('\u00a0', ' ') }] : []
  })

/** @param {number} code */
const isCharacter = (code) => code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff)

/** What begins a block, at the beginning of a line. */
const BLOCK_MARK = /^[ \t>]*(?:#{1,6}(?:\s|$)|[-+*](?:\s|$)|\d{1,9}[.)](?:\s|$)|```|~~~|=+\s*$|-{2,}\s*$|<)/

/** @param {string} text */
const blockMarks = (text) =>
  text.split('\n').filter((line) => BLOCK_MARK.test(line.replace(/^(?:[ \t]*<)+/, ' '))).length

/** @typedef {{ isRoot: boolean, isInQuote: boolean }} Place */

/** The edits that a page needs. */
class Page {
  /** @type {import('./markdown-html.mjs').Edit[]} */
  edits = []

  /** @param {string} source @param {any} tree of mdast */
  constructor(source, tree) {
    this.source = source
    /** Elements that end somewhere on the page. */
    this.closed = new Set(
      [...source.matchAll(/<\/([a-z][a-z\d]*)\s*>/gi)].map(([, name]) => String(name).toLowerCase()),
    )
    /** Addresses by the names that references use. @type {Map<string, string>} */
    this.addresses = new Map()
    this.define(tree)
  }

  /** @param {any} node */
  define(node) {
    if (node.type === 'definition' && !this.addresses.has(node.identifier))
      this.addresses.set(node.identifier, node.url)
    for (const child of node.children ?? []) this.define(child)
  }

  /** @param {any} node a block @param {Place} place */
  visit(node, place) {
    if (node.type === 'html') this.html(node, place)
    // Links have their addresses with them: a passage would be parted from the end of its page.
    else if (node.type === 'definition') this.removeLines(node)
    else if (node.type === 'heading') this.headed(node, place)
    else if (node.type === 'paragraph') this.paragraph(node, place)
    else if (node.type === 'tableCell') this.edits.push(...this.within(node))
    else {
      const inner = { isRoot: false, isInQuote: place.isInQuote || node.type === 'blockquote' }
      for (const child of node.children ?? []) this.visit(child, inner)
    }
  }

  /** @param {any} node @param {Place} place */
  html(node, place) {
    const text = htmlBlock(node.value, this.closed)
    if (text === node.value) return
    const start = node.position.start.offset
    // Further lines stay in the list or the quote.
    const before = this.source.slice(this.lineStart(start), start).replace(/[^>\s]/g, ' ')
    this.replace(node, text.replaceAll('\n', `\n${before}`), place)
  }

  /** @param {any} node @param {Place} place */
  paragraph(node, place) {
    const edits = this.within(node)
    if (edits.length === 0) return
    const source = this.sliceOf(node)
    let text = this.edited(node, edits)
    // A paragraph has no blank lines: these are of what went.
    if (place.isRoot)
      text = text
        .split('\n')
        .filter((line) => line.trim() !== '')
        .join('\n')
        .trim()
    // What would be a list or a heading without the tag in front of it stays.
    if (blockMarks(text) > blockMarks(source)) return
    this.replace(node, text, place)
  }

  /** @param {any} node @param {Place} place */
  headed(node, place) {
    const source = this.sliceOf(node)
    const edits = this.within(node)
    const isUnderlined = source.includes('\n')
    let text = source
    if (isUnderlined) {
      const line = this.edited(node, edits)
        .replace(/\r?\n[^\n]*$/, '')
        .replace(place.isInQuote ? /(?<!\\)\\?[ \t]*\r?\n[ \t>]*/g : /(?<!\\)\\?[ \t]*\r?\n[ \t]*/g, ' ')
        .trim()
        // Signs at the end would be taken for marks.
        .replace(/(?<=^|\s)#+$/, '\\$&')
      text = `${'#'.repeat(node.depth)} ${line}`
    } else if (edits.length > 0) {
      text = this.edited(node, edits)
        .replace(/^(#+)[ \t]+/, '$1 ')
        .trimEnd()
    }
    if (text !== source && /^#+\s*$/.test(text)) text = ''
    if (text !== source) this.replace(node, text, place)
  }

  /**
   * What becomes of the HTML, the badges and the pictures of a text.
   * @param {any} node
   */
  within(node) {
    const isInHeading = node.type === 'heading'
    const heading = isInHeading ? textOf(node).replace(/<[^>]*>/g, ' ') : ''
    /** @type {import('./markdown-html.mjs').Edit[]} */
    const edits = []
    /** @param {any} parent @param {boolean} isInLink */
    const collect = (parent, isInLink) => {
      const tags = []
      for (const child of parent.children ?? []) {
        // Addresses that are written without a mark, and the text beside them, are nowhere.
        if (!child.position) continue
        const [start, end] = [child.position.start.offset, child.position.end.offset]
        if (child.type === 'html') {
          const tag = tagOf(child.value, start)
          // In a quote or a list the lines of a tag have marks in front.
          if (tag) tags.push({ ...tag, end })
        } else if (this.isBadge(child)) edits.push({ start, end, text: '' })
        else if (isPicture(child)) {
          const url = child.type === 'imageReference' && this.addresses.get(child.identifier)
          const alt = (child.alt ?? '').replace(/[[\]]/g, '\\$&')
          if (heading.trim() !== '' && isDecoration(child.alt ?? '', heading))
            edits.push({ start, end, text: '' })
          else if (url) edits.push({ start, end, text: `![${alt}](${addressed(url)})` })
        } else if (child.type === 'text') edits.push(...referencesIn(this.source.slice(start, end), start))
        else {
          collect(child, isInLink || child.type.startsWith('link'))
          const url = child.type === 'linkReference' && this.addresses.get(child.identifier)
          const from = child.children?.at(-1)?.position?.end.offset
          if (url && from) edits.push({ start: from, end, text: `](${addressed(url)})` })
        }
      }
      edits.push(...tagEdits(tags, this.source, { isInLink, isInHeading, heading }))
    }
    collect(node, false)
    return edits
  }

  /** @param {any} node @returns {boolean} whether it is a badge, or a link around badges */
  isBadge(node) {
    if (isPicture(node)) return isBadgeAddress(node.url ?? this.addresses.get(node.identifier) ?? '')
    const isBlank = (/** @type {any} */ child) => child.type === 'text' && child.value.trim() === ''
    return (
      (node.type === 'link' || node.type === 'linkReference') &&
      node.children.some(isPicture) &&
      node.children.every(
        (/** @type {any} */ child) => isBlank(child) || (isPicture(child) && this.isBadge(child)),
      )
    )
  }

  /** @param {any} node */
  sliceOf = (node) => this.source.slice(node.position.start.offset, node.position.end.offset)

  /** @param {any} node @param {import('./markdown-html.mjs').Edit[]} edits */
  edited(node, edits) {
    const from = node.position.start.offset
    return withEdits(
      this.sliceOf(node),
      edits.map(({ start, end, text }) => ({ start: start - from, end: end - from, text })),
    )
  }

  /** @param {number} offset */
  lineStart = (offset) => this.source.lastIndexOf('\n', offset - 1) + 1

  /** A block by another, or by none. @param {any} node @param {string} text @param {Place} place */
  replace(node, text, place) {
    const [start, end] = [node.position.start.offset, node.position.end.offset]
    const line = this.lineStart(start)
    const isFirst = line === 0 || this.source.slice(this.lineStart(line - 1), line).trim() === ''
    if (text !== '' || !place.isRoot || !isFirst) {
      this.edits.push({ start, end, text })
      return
    }
    this.removeLines(node)
  }

  /** The lines of a block, and the blank ones behind them. @param {any} node */
  removeLines(node) {
    const end = node.position.end.offset
    const blank = /[ \t]*(?:\r?\n|$)(?:[ \t]*\r?\n)*/y
    blank.lastIndex = end
    const past = end + (blank.exec(this.source)?.[0].length ?? 0)
    this.edits.push({ start: this.lineStart(node.position.start.offset), end: past, text: '' })
  }
}
