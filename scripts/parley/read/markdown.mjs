/** Markdown and MDX, with front matter. */
import remarkGfm from 'remark-gfm'
import remarkMdx from 'remark-mdx'
import remarkParse from 'remark-parse'
import remarkStringify from 'remark-stringify'
import { unified } from 'unified'
import { parse as parseYaml } from 'yaml'
import { titleOfPath } from './article.mjs'
import { htmlToMarkdown } from './html.mjs'

/**
 * @param {string} text
 * @param {string} path
 * @returns {import('./article.mjs').Content}
 */
export function readMarkdown(text, path) {
  const { data, body } = splitFrontMatter(text)
  const markdown = withoutHtml(/\.mdx$/i.test(path) ? withoutJsx(body) : body)
  const title = stringOf(data.title) ?? titleIn(markdown, path) ?? titleOfPath(path)
  const url = stringOf(data.url) ?? stringOf(data.permalink) ?? stringOf(data.canonical_url)
  const tags = [data.tags, data.keywords].flat().filter((tag) => typeof tag === 'string')
  const description = stringOf(data.description)
  // A description stands nowhere else in the page, and is often the best answer to "what is it?".
  const lead = description && !markdown.includes(description) ? `${description}\n\n` : ''
  return {
    article: {
      title,
      text: `${lead}${markdown.trim()}`,
      ...(url && /^https?:/.test(url) && { url }),
      ...(tags.length > 0 && { tags }),
    },
  }
}

/**
 * @param {string} text
 * @returns {{ data: Record<string, unknown>, body: string }} no data where the front matter is no YAML object
 */
function splitFrontMatter(text) {
  const source = text.replace(/^\uFEFF/, '')
  const found = /^---[ \t]*\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n|$)/.exec(source)
  if (!found) return { data: {}, body: source }
  try {
    const data = parseYaml(found[1] ?? '')
    if (typeof data !== 'object' || data === null || Array.isArray(data)) return { data: {}, body: source }
    return { data, body: source.slice(found[0].length) }
  } catch {
    return { data: {}, body: source }
  }
}

/** @param {unknown} value */
const stringOf = (value) => (typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined)

const parser = unified().use(remarkParse).use(remarkGfm)

/**
 * What a page calls itself: its first heading. A README without a heading of its own level begins with `Install` or the like, and
 * goes by its folder.
 * @param {string} markdown
 * @param {string} path
 * @returns {string | undefined}
 */
function titleIn(markdown, path) {
  const heading = parser.parse(markdown).children.find((node) => node.type === 'heading')
  if (!heading || (heading.depth > 1 && /\/(?:readme|index)\.[a-z]+$/i.test(path))) return undefined
  const text = textOf(heading).replace(/\{#[^}]*\}\s*$/, '')
  return text.trim().replace(/\s+/g, ' ') || undefined
}

/** @param {any} node of mdast @returns {string} */
const textOf = (node) => node.value ?? (node.children ?? []).map(textOf).join('')

/** Elements that authors of Markdown write. What else looks like a tag stands for something, such as `<your-key>`. */
const ELEMENTS = new Set(
  `a abbr b blockquote br caption center cite code col colgroup dd del details div dl dt em figcaption figure font footer h1 h2 h3 h4
  h5 h6 header hr i iframe img input ins kbd li main mark ol p picture pre q s samp script section small source span strike strong
  style sub summary sup svg table tbody td tfoot th thead tr tt u ul var video`.split(/\s+/),
)

/** @param {string} html @returns {boolean} whether it is HTML and no placeholder */
const isHtml = (html) => {
  const name = /^<(?:!--|\/?([a-z][a-z\d-]*))/i.exec(html.trim())
  return name !== null && (name[1] === undefined || ELEMENTS.has(name[1].toLowerCase()))
}

/**
 * Markdown without the HTML in it: its elements become Markdown, and tags around Markdown go. So do badges, which are links around
 * a picture, and pictures in headings: their words are about neither.
 * @param {string} markdown
 * @returns {string} with all else as it was written
 */
function withoutHtml(markdown) {
  /** @type {{ start: number, end: number, text: string }[]} */
  const edits = []
  /** @param {any} node @param {string} text */
  const replace = (node, text) =>
    edits.push({ start: node.position.start.offset, end: node.position.end.offset, text })
  /** @param {any} node of mdast @param {any} parent @param {boolean} isInHeading */
  const walk = (node, parent, isInHeading) => {
    if (node.type === 'html' && isHtml(node.value)) {
      if (parent.type === 'paragraph' || isInHeading)
        return replace(node, /^<br\b/i.test(node.value) ? ' ' : '')
      const indent = ' '.repeat(node.position.start.column - 1)
      const html = node.value.replace(BADGES, '')
      return replace(node, htmlToMarkdown(html).replaceAll('\n', `\n${indent}`))
    }
    if (isBadge(node) || (isInHeading && isPicture(node))) return replace(node, '')
    for (const child of node.children ?? []) walk(child, node, isInHeading || node.type === 'heading')
    if (node.type === 'heading' && !markdown.startsWith('#', node.position.start.offset)) underlined(node)
  }
  /** An underlined heading gets its marks in front. @param {any} node */
  const underlined = (node) => {
    const start = node.position.start.offset
    edits.push({ start, end: start, text: `${'#'.repeat(node.depth)} ` })
    const words = node.children.at(-1)?.position.end.offset ?? start
    edits.push({ start: words, end: node.position.end.offset, text: '' })
  }
  const tree = parser.parse(markdown)
  walk(tree, tree, false)
  let text = markdown
  for (const { start, end, text: by } of edits.toReversed())
    text = text.slice(0, start) + by + text.slice(end)
  return edits.length > 0 ? text.replace(/^[ \t]+$/gm, '').replace(/\n{3,}/g, '\n\n') : text
}

/** Pictures that are links, and those of services that draw badges. */
const BADGES =
  /<a\b[^>]*>\s*(?:<img\b[^>]*>\s*)+<\/a>|<img\b[^>]*\bsrc=["']?[^"'>]*(?:badge|shields\.io)[^>]*>/gi

/** @param {any} node */
const isPicture = (node) => node.type === 'image' || node.type === 'imageReference'

/** @param {any} node */
const isBadge = (node) =>
  (node.type === 'image' && /badge|shields\.io/.test(node.url)) ||
  ((node.type === 'link' || node.type === 'linkReference') &&
    node.children.length > 0 &&
    node.children.every(isPicture))

/**
 * MDX as Markdown: imports, exports and expressions go, components leave their content behind.
 * @param {string} mdx
 * @returns {string} as it is where it cannot be parsed
 */
function withoutJsx(mdx) {
  try {
    return String(
      unified()
        .use(remarkParse)
        .use(remarkGfm)
        .use(remarkMdx)
        .use(unwrapJsx)
        .use(remarkStringify)
        .processSync(mdx),
    )
  } catch {
    return mdx
  }
}

const GONE = new Set(['mdxjsEsm', 'mdxFlowExpression', 'mdxTextExpression'])

const unwrapJsx = () => unwrap

/** @param {any} node of mdast */
function unwrap(node) {
  if (!node.children) return
  for (const child of node.children) unwrap(child)
  node.children = node.children.flatMap((/** @type {any} */ child) => {
    if (GONE.has(child.type)) return []
    return child.type.startsWith('mdxJsx') ? child.children : [child]
  })
}
