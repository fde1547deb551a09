/** Markdown and MDX, with front matter. */
import remarkGfm from 'remark-gfm'
import remarkMdx from 'remark-mdx'
import remarkParse from 'remark-parse'
import remarkStringify from 'remark-stringify'
import { unified } from 'unified'
import { parse as parseYaml } from 'yaml'
import { firstHeading, titleOfPath } from './article.mjs'

/**
 * @param {string} text
 * @param {string} path
 * @returns {import('./article.mjs').Content}
 */
export function readMarkdown(text, path) {
  const { data, body } = splitFrontMatter(text)
  const markdown = /\.mdx$/i.test(path) ? withoutJsx(body) : body
  const title = stringOf(data.title) ?? firstHeading(markdown) ?? titleOfPath(path)
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
