/**
 * HTML within Markdown, as Markdown. Only whole tags of elements that authors of Markdown use are taken for HTML, and inside of a text
 * only in pairs: all else, such as `<your-key>` or `a<b`, is text and stays.
 */
import { htmlToMarkdown, lowered, raised } from './html.mjs'

/** Addresses of services that draw badges. */
const BADGE = new RegExp(
  `^(?:https?:)?//(?:${[
    '(?:[\\w-]+\\.)?shields\\.io/',
    '(?:flat\\.)?badgen\\.net/',
    'badges?\\.[\\w-]+\\.[\\w.-]+/',
    '(?:api\\.|www\\.)?(?:codecov\\.io|travis-ci\\.(?:org|com)|coveralls\\.io|circleci\\.com|packagequality\\.com|david-dm\\.org)/',
    '(?:ci\\.appveyor\\.com|(?:api\\.)?codeclimate\\.com|(?:api|app)\\.codacy\\.com|nodei\\.co|img\\.badgesize\\.io)/',
    'github\\.com/[^?#]+/(?:workflows|actions)/[^?#]*badge\\.svg',
    '(?:snyk\\.io/test|packagephobia\\.(?:com|now\\.sh)|goreportcard\\.com|pkg\\.go\\.dev|docs\\.rs|deps\\.rs)/[^?#]*badge',
    '(?:opencollective\\.com|readthedocs\\.org|data\\.jsdelivr\\.com|gitlab\\.com|sonarcloud\\.io)/[^?#]*badge',
    '(?:www\\.)?bestpractices\\.(?:dev|coreinfrastructure\\.org)/[^?#]*badge',
    'api\\.(?:netlify\\.com|scorecard\\.dev|securityscorecards\\.dev)/[^?#]*badge',
    '(?:api\\.netlify\\.com/api/v1|jsr\\.io)/badges/',
    'dev\\.azure\\.com/[^?#]*/_apis/build/status',
  ].join('|')})`,
  'i',
)

/** @param {string} address of a picture @returns {boolean} whether a service draws it that draws badges */
export const isBadgeAddress = (address) => BADGE.test(address.trim())

/** What a page or a project shows beside its name. */
const DECORATION = /\b(?:logo|icon|banner)\b/i

/** @param {string} alt @param {string} heading @returns {boolean} whether a picture in a heading adds nothing to it */
export const isDecoration = (alt, heading) =>
  DECORATION.test(alt) || heading.toLowerCase().includes(alt.trim().toLowerCase())

/** Longer HTML stays as it is: what looks for its tags may take the square of its length. In UTF-16 units. */
const LONGEST_HTML = 65_536

const words = (/** @type {string} */ names) => new Set(names.split(/\s+/))

const INLINE = words(
  `a abbr audio b button cite code del em font i ins kbd label mark q s samp small span strike strong sub sup tt u var br wbr img input
  source col`,
)

/** Elements that begin a line of their own. */
const BLOCKS = words(
  `address article aside blockquote caption center colgroup dd details div dl dt figcaption figure footer h1 h2 h3 h4 h5 h6 header hr
  iframe li main nav ol p picture pre script section style summary svg table tbody td template tfoot th thead tr ul video`,
)

/** Elements whose end may be left out (HTML, 13.1.2.4, "Optional tags"). */
const OPEN_ENDED = words('p li dt dd td th tr thead tbody tfoot colgroup caption')

const EMPTY = words('br wbr hr img input source col')

/** Empty elements that stand for something without an attribute: "copy <source>". */
const NEEDS_ATTRIBUTES = words('img input source col')

/** Elements that are read as a whole. */
const UNITS = words('h1 h2 h3 h4 h5 h6 ul ol dl table pre blockquote svg script style iframe')

/** Attributes without a value. In `x<a and b>c` there are others, so it is no tag. */
const BOOLEAN = words(
  `allowfullscreen async autofocus autoplay checked compact controls crossorigin default defer disabled hidden href id inert ismap loop
  markdown multiple muted name nofollow noshade novalidate nowrap open playsinline readonly required reversed selected`,
)

/** Attributes of Vue, Alpine and the like need none either. */
const DIRECTIVE = /^(?:[@:]|v-|x-|data-)/

const ATTRIBUTE = /\s+([a-z_:@][\w:.-]*)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s"'=<>`]+))?/gi

const TAG =
  /^<(\/?)([a-z][a-z\d-]*)((?:\s+[a-z_:@][\w:.-]*(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'=<>`]+))?)*)\s*\/?>$/i

/** Code, which is no HTML, or a comment, or what may be a tag. */
const TOKENS =
  /(```[\s\S]*?```|~~~[\s\S]*?~~~|`[^`\n]*`)|<!--[\s\S]*?-->|<\/?[a-z](?:"[^"]*"|'[^']*'|[^<>"'])*>/gi

/**
 * @typedef {object} Tag
 * @property {number} start offset in the source
 * @property {number} end
 * @property {string} name in lower case; '!' of a comment
 * @property {boolean} isEnd
 * @property {boolean} [isClosed] written as `<span id="x"/>`: nothing belongs to it
 * @property {Map<string, string>} attributes
 * @property {boolean} [isSure] whether it is HTML and no text
 * @property {Tag} [mate] the end tag of a start tag
 */

/** @typedef {{ start: number, end: number, text: string }} Edit */

/**
 * @param {string} html what may be a tag or a comment
 * @param {number} start its offset
 * @returns {Tag | undefined} nothing where it is text
 */
export function tagOf(html, start) {
  const end = start + html.length
  if (/^<!--[\s\S]*-->$/.test(html)) return { start, end, name: '!', isEnd: false, attributes: new Map() }
  const found = TAG.exec(html)
  const name = found?.[2]?.toLowerCase() ?? ''
  if (!found || !(INLINE.has(name) || BLOCKS.has(name))) return undefined
  const attributes = new Map()
  for (const [, key = '', value] of (found[3] ?? '').matchAll(ATTRIBUTE)) {
    if (value === undefined && !BOOLEAN.has(key.toLowerCase()) && !DIRECTIVE.test(key)) return undefined
    attributes.set(key.toLowerCase(), (value ?? '').replace(/^(["'])([\s\S]*)\1$/, '$2'))
  }
  const isClosed = html.endsWith('/>') && attributes.size > 0
  return { start, end, name, isEnd: found[1] === '/', isClosed, attributes }
}

/** @param {string} source @returns {Tag[]} */
const tagsIn = (source) =>
  [...source.matchAll(TOKENS)].flatMap((found) => {
    const tag = found[1] === undefined ? tagOf(found[0], found.index) : undefined
    return tag ? [tag] : []
  })

/**
 * Tells tags from text by their pairs.
 * @param {Tag[]} tags of one parent, in order
 * @param {ReadonlySet<string>} [closed] elements that end somewhere on the page; undefined inside of a text, where both ends must be near
 */
function pair(tags, closed) {
  /** @type {Tag[]} */
  const open = []
  for (const tag of tags) {
    if (tag.name === '!') tag.isSure = true
    else if (EMPTY.has(tag.name)) tag.isSure = !NEEDS_ATTRIBUTES.has(tag.name) || tag.attributes.size > 0
    else if (tag.isClosed && INLINE.has(tag.name)) tag.isSure = true
    else if (!tag.isEnd) open.push(tag)
    else {
      const at = open.findLastIndex(({ name }) => name === tag.name)
      if (at < 0) {
        tag.isSure = closed !== undefined && BLOCKS.has(tag.name)
        continue
      }
      const [start, ...inner] = open.splice(at)
      for (const each of inner) each.isSure = OPEN_ENDED.has(each.name)
      if (start) Object.assign(start, { isSure: true, mate: tag })
      tag.isSure = true
    }
  }
  if (!closed) return
  for (const tag of open) {
    const isBlock = BLOCKS.has(tag.name) && !['script', 'style', 'pre'].includes(tag.name)
    tag.isSure = isBlock && (closed.has(tag.name) || OPEN_ENDED.has(tag.name))
  }
}

/**
 * What becomes of the tags within a text.
 * @param {Tag[]} tags of one parent, in order
 * @param {string} source
 * @param {{ closed?: ReadonlySet<string>, isInLink?: boolean, isInHeading?: boolean, heading?: string }} where
 * @returns {Edit[]}
 */
export function tagEdits(tags, source, { closed, isInLink = false, isInHeading = false, heading = '' }) {
  pair(tags, closed)
  /** @type {Edit[]} */
  const edits = []
  const put = (/** @type {Tag} */ { start, end }, /** @type {string} */ text) =>
    edits.push({ start, end, text })
  /** @type {Map<Tag, string>} */
  const ends = new Map()
  for (const tag of tags) {
    if (!tag.isSure) continue
    if (tag.name === 'img') {
      const alt = (tag.attributes.get('alt') ?? '').replace(/\s+/g, ' ').trim()
      const isGone =
        isBadgeAddress(tag.attributes.get('src') ?? '') ||
        (heading.trim() !== '' && isDecoration(alt, heading))
      put(tag, isGone ? '' : alt.replace(/[[\]|]/g, '\\$&'))
    } else if (BLOCKS.has(tag.name) || tag.name === 'br') {
      // Points of a list in a cell of a table.
      const isFurther =
        tag.name === 'li' && !tag.isEnd && tags.some((each) => each.name === 'li' && each.start < tag.start)
      put(tag, isFurther ? '; ' : tag.name === 'li' && tag.isEnd ? '' : ' ')
    } else if (tag.isEnd) put(tag, ends.get(tag) ?? '')
    else {
      const [before, after] = tag.mate ? around(tag, tag.mate, source, { isInLink, isInHeading }) : ['', '']
      // An address that Markdown cannot hold: the link stays HTML.
      if (before === undefined) {
        if (tag.mate) tag.mate.isSure = false
        continue
      }
      put(tag, before)
      if (tag.mate) ends.set(tag.mate, after ?? '')
    }
  }
  return edits
}

/**
 * @param {Tag} tag
 * @param {Tag} mate
 * @param {string} source
 * @param {{ isInLink: boolean, isInHeading: boolean }} where
 * @returns {[string, string] | [undefined]} what stands for its start and end; nothing where the tags must stay
 */
function around(tag, mate, source, { isInLink, isInHeading }) {
  const content = source.slice(tag.end, mate.start)
  const before = source[tag.start - 1] ?? ''
  if (tag.name === 'sup') return raised(before, content)
  if (tag.name === 'sub') return lowered(before, content)
  if (tag.name === 'code' && PLAIN_CODE.test(content) && before !== '`' && source[mate.end] !== '`')
    return ['`', '`']
  // Keys side by side are one chord, and no word.
  if (tag.name === 'kbd') return ['', source.startsWith('<kbd', mate.end) ? ' ' : '']
  const href = tag.name === 'a' ? (tag.attributes.get('href') ?? '').trim() : ''
  if (href === '' || isInLink || (isInHeading && href.startsWith('#'))) return ['', '']
  const isEmpty = content.replace(/<[^>]*>/g, (html) => altOf(html)).trim() === ''
  // What a template would fill in leads nowhere.
  if (isEmpty || /\{[{%]/.test(href)) return ['', '']
  const isLinkable = !/[<>|\s]/.test(href) && !/[[\]]|https?:/.test(content.replace(/<[^>]*>/g, ''))
  if (!isLinkable) return [undefined]
  // Space at the ends of a link's words stands outside.
  const [left = 0, right = 0] = [/^\s*/, /\s*$/].map((ends) => ends.exec(content)?.[0].length)
  tag.end += left
  mate.start -= right
  const target = /[()\\]/.test(href) ? `<${href}>` : href
  return [left > 0 ? ' [' : '[', `](${target})${right > 0 ? ' ' : ''}`]
}

/** Code without a sign that means something in Markdown or HTML. */
const PLAIN_CODE = /^[\w.:/@=,'"()#$%+-](?:[\w .:/@=,'"()#$%+-]*[\w.:/@=,'"()#$%+-])?$/

/** The words of a picture that is no badge. @param {string} html @returns {string} */
const altOf = (html) => {
  const tag = tagOf(html, 0)
  return tag?.name === 'img' && !isBadgeAddress(tag.attributes.get('src') ?? '')
    ? (tag.attributes.get('alt') ?? '')
    : ''
}

/** @param {string} source @param {Edit[]} edits without an overlap */
export function withEdits(source, edits) {
  const pieces = []
  let at = 0
  for (const { start, end, text } of edits.toSorted((a, b) => a.start - b.start || a.end - b.end)) {
    pieces.push(source.slice(at, start), text)
    at = end
  }
  pieces.push(source.slice(at))
  return pieces.join('')
}

/** What stands between the parts of a block, and before a heading: signs of the private use area. */
const [APART, HEADING] = ['\uE000', '\uE001']
/** A text behind a tag, such as `# a comment`, is no heading. */
const LIKE_HEADING = /^([ \t]*)(?=#{1,6}\s)/

/**
 * A block of HTML as Markdown. Its text stays as it was written, Markdown or not; lists, tables and code of HTML become Markdown's.
 * @param {string} html
 * @param {ReadonlySet<string>} closed names of elements that end somewhere on the page
 * @returns {string} without blank lines at its ends
 */
export function htmlBlock(html, closed) {
  if (html.length > LONGEST_HTML) return html
  const tags = tagsIn(html)
  pair(tags, closed)
  const wide = aroundBlocks(tags)
  /** @type {Edit[]} */
  const edits = []
  /** Tags within a line are read as in a text. @type {Tag[]} */
  const inline = []
  let at = 0
  for (const tag of tags) {
    const { start, end, name, mate, isSure, isEnd } = tag
    if (start < at) continue
    const put = (/** @type {string} */ text, to = end) => edits.push({ start, end: to, text })
    const address = wide.get(tag)
    if (isSure && mate && UNITS.has(name)) {
      at = mate.end
      put(['', ...unit(tag, mate, html, closed), ''].join(APART), at)
    } else if (!(BLOCKS.has(name) || name === 'br' || address !== undefined)) inline.push(tag)
    else if (isSure && name === 'br') put('\n')
    else if (isSure && address !== undefined) put(`${APART}${address}${APART}`)
    else if (isSure) put(APART + (name === 'li' && !isEnd ? '- ' : name === 'hr' ? `---${APART}` : ''))
  }
  edits.push(...tagEdits(inline, html, { closed }))
  return withEdits(html, edits)
    .split(APART)
    .map((part) => dedented(part.replace(LIKE_HEADING, '$1\\').replace(HEADING, '')))
    .filter((part) => part !== '' && part !== '-')
    .join('\n\n')
}

/**
 * Tags around blocks, such as links around a heading, which Markdown does not have.
 * @param {Tag[]} tags
 * @returns {Map<Tag, string>} what stands for each: for the end of a link its address
 */
function aroundBlocks(tags) {
  /** @type {Map<Tag, string>} */
  const wide = new Map()
  /** How many blocks begin or end before a tag. @type {Map<Tag, number>} */
  const counts = new Map()
  let count = 0
  for (const tag of tags) {
    counts.set(tag, count)
    if (tag.isSure && BLOCKS.has(tag.name)) count += 1
  }
  for (const tag of tags) {
    if (!tag.mate || BLOCKS.has(tag.name) || counts.get(tag) === counts.get(tag.mate)) continue
    const href = tag.attributes.get('href')?.trim() ?? ''
    wide.set(tag, '').set(tag.mate, /^https?:[^\s<>]+$/i.test(href) ? `<${href}>` : '')
  }
  return wide
}

/**
 * @param {Tag} tag
 * @param {Tag} mate
 * @param {string} html
 * @param {ReadonlySet<string>} closed
 * @returns {string[]}
 */
function unit(tag, mate, html, closed) {
  const content = html.slice(tag.end, mate.start)
  if (['script', 'style', 'iframe'].includes(tag.name)) return []
  if (tag.name === 'svg') return [content.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ')]
  if (!/^h\d$/.test(tag.name))
    return [htmlToMarkdown(protectedHtml(html.slice(tag.start, mate.end)), (text) => text)]
  const all = tagsIn(content)
  const bare = content.replace(/<[^>]*>/g, ' ')
  const edits = tagEdits(all, content, { closed, isInHeading: true, heading: bare })
  // A picture that says something of its own is no part of the heading's words.
  const pictures = []
  if (bare.trim() !== '') {
    for (const edit of edits) {
      if (edit.text.trim() === '' || !/^<img\b/i.test(content.slice(edit.start, edit.end))) continue
      pictures.push(edit.text)
      edit.text = ''
    }
  }
  const line = withEdits(content, edits).replace(/\s+/g, ' ').trim()
  return [line === '' ? '' : `${HEADING}${'#'.repeat(Number(tag.name[1]))} ${line}`, ...pictures]
}

/** HTML in which what is no tag is text, and without badges. @param {string} html */
function protectedHtml(html) {
  const kept = html.replace(TOKENS, (token, code, at) => {
    if (code !== undefined) return token
    const tag = tagOf(token, at)
    if (!tag) return token.replaceAll('<', '&lt;').replaceAll('>', '&gt;')
    return tag.name === 'img' && isBadgeAddress(tag.attributes.get('src') ?? '') ? '' : token
  })
  // Turndown takes only this for a block of code.
  return kept.replace(/(<pre\b[^>]*>)(?!\s*<code\b)(?:\r?\n)?([\s\S]*?)(<\/pre>)/gi, '$1<code>$2</code>$3')
}

/** Text without the indent that its lines share. @param {string} part */
function dedented(part) {
  const lines = part
    .replace(/^(?:[ \t]*\r?\n)+/, '')
    .trimEnd()
    .split(/\r?\n/)
  // The first line may go on behind a tag, without its indent.
  const indents = lines
    .slice(1)
    .filter((line) => line.trim() !== '')
    .map((line) => /^[ \t]*/.exec(line)?.[0].length ?? 0)
  const shared = Math.min(...indents, 1_000)
  return lines
    .map((line, at) => (at === 0 ? line.trimStart() : line.slice(Math.min(shared, line.length))))
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
}

/** What a page never shows, by its own word. Panels of tabs are shown later. */
const HIDDEN =
  /<(div|p|span|section|aside|figure|table|ul|ol)\b(?=[^<>]{0,500}(?:\shidden(?=[\s>=])|display\s*:\s*none))(?![^<>]{0,500}(?:tab|until-found))[^<>]{0,500}>/gi

/** Markdown without elements that are hidden, and what is in them. @param {string} markdown without code */
export function withoutHidden(markdown) {
  let text = ''
  let at = 0
  HIDDEN.lastIndex = 0
  for (let found = HIDDEN.exec(markdown); found; found = HIDDEN.exec(markdown)) {
    const end = endOf(markdown, found[1] ?? '', HIDDEN.lastIndex)
    if (end === undefined) continue
    text += markdown.slice(at, found.index)
    at = end
    HIDDEN.lastIndex = end
  }
  return text + markdown.slice(at)
}

/** Where an element ends. @param {string} markdown @param {string} name @param {number} from @returns {number | undefined} */
function endOf(markdown, name, from) {
  const near = markdown.slice(from, from + LONGEST_HTML)
  let depth = 1
  for (const found of near.matchAll(new RegExp(`<(/?)${name}(?=[\\s>])[^<>]{0,500}>`, 'gi'))) {
    depth += found[1] === '' ? 1 : -1
    if (depth === 0) return from + found.index + found[0].length
  }
  return undefined
}
