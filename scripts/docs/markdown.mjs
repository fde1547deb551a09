/** Markdown of docs/ as HTML of the site: anchors, links between pages, highlighted code with a button to copy it. */
import { readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { Marked } from 'marked'
import { createCssVariablesTheme, createHighlighter } from 'shiki'
import { anchors } from './anchors.mjs'

/** @typedef {{ depth: number, id: string, text: string }} Heading */

const LANGUAGES = ['sh', 'json', 'js', 'jsx', 'ts', 'html', 'css', 'vue', 'toml', 'yaml', 'md', 'sql']
const NAMES = /** @type {Record<string, string>} */ ({ sh: 'Shell', js: 'JavaScript', md: 'Markdown' })

// The policy of the site allows no inline style, so each colour of the theme becomes a class.
const theme = createCssVariablesTheme({ name: 'classes', variablePrefix: '--tok-' })
const highlighter = await createHighlighter({ themes: [theme], langs: LANGUAGES })

/** @param {string} text */
export const escaped = (text) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

/** @param {string} code @param {string} language @returns {string} HTML */
function highlighted(code, language) {
  if (!LANGUAGES.includes(language)) return escaped(code)
  const { tokens } = highlighter.codeToTokens(code, { lang: /** @type {any} */ (language), theme: 'classes' })
  return tokens
    .map((line) =>
      line
        .map(({ content, color = '' }) => {
          const kind = /--tok-token-([\w-]+)/.exec(color)?.[1]
          return kind === undefined ? escaped(content) : `<span class="t-${kind}">${escaped(content)}</span>`
        })
        .join(''),
    )
    .join('\n')
}

/** One line of Markdown as HTML. Its links are addresses of the site already. @param {string} text */
export const inline = (text) => String(new Marked({ gfm: true }).parseInline(text))

/**
 * A block of code with its language and a button to copy it.
 * @param {string} code
 * @param {string} [given] its language
 */
export function codeBlock(code, given = '') {
  // Guides write commands that their tests do not wait for without a language.
  const language = given === '' && /^(npm|npx|export|curl|node) /.test(code) ? 'sh' : given
  const name = NAMES[language] ?? (language === '' ? 'Output' : language.toUpperCase())
  const copy = '<button type="button" class="copy" data-copy>Copy</button>'
  return `<div class="code"><div class="code-head"><span>${escaped(name)}</span>${copy}</div><pre tabindex="0"><code>${highlighted(code.trimEnd(), language)}</code></pre></div>\n`
}

/** Width and height of a PNG, JPEG or SVG in pixels: space is kept for it before it is loaded. @param {string} file */
function sizeOf(file) {
  const bytes = readFileSync(file)
  const viewBox = file.endsWith('.svg') && /viewBox="0 0 (\d+) (\d+)"/.exec(bytes.toString())
  if (viewBox) return { width: Number(viewBox[1]), height: Number(viewBox[2]) }
  if (bytes.readUInt32BE(0) === 0x89504e47)
    return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }
  // JPEG: walks the segments up to the frame header (SOF0 to SOF2).
  for (let at = 2; at < bytes.length && bytes[at] === 0xff; at += 2 + bytes.readUInt16BE(at + 2)) {
    const marker = bytes[at + 1] ?? 0
    if (marker >= 0xc0 && marker <= 0xc2) {
      return { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) }
    }
  }
  throw new Error(`${file} is no PNG, JPEG or SVG with a viewBox.`)
}

/**
 * Renders a page.
 * @param {string} markdown
 * @param {object} place
 * @param {(href: string) => string} place.link where a relative link of the page leads to on the site
 * @param {(href: string) => string} place.file the file of an image
 * @returns {{ html: string, headings: Heading[] }}
 */
export function render(markdown, { link, file }) {
  const anchorOf = anchors()
  /** @type {Heading[]} */
  const headings = []
  const marked = new Marked({
    gfm: true,
    renderer: {
      heading({ tokens, depth }) {
        const html = this.parser.parseInline(tokens)
        const text = this.parser.parseInline(tokens, this.parser.textRenderer)
        const id = anchorOf(text)
        headings.push({ depth, id, text })
        const inner = depth === 1 ? html : `<a href="#${id}">${html}</a>`
        return `<h${depth} id="${id}">${inner}</h${depth}>\n`
      },
      code: ({ text, lang }) => codeBlock(text, lang),
      html: ({ text }) => (text.trim().startsWith('<!--') ? '' : escaped(text)),
      link({ href, tokens }) {
        const text = this.parser.parseInline(tokens)
        if (/^[a-z]+:/.test(href)) return `<a href="${escaped(href)}" rel="noopener">${text}</a>`
        return `<a href="${escaped(href.startsWith('#') ? href : link(href))}">${text}</a>`
      },
      image({ href, text }) {
        // The policy of the site loads no image from elsewhere.
        if (/^[a-z]+:/.test(href)) return escaped(text)
        const { width, height } = sizeOf(file(href))
        const source = escaped(link(href))
        return `<a class="figure" href="${source}"><img src="${source}" alt="${escaped(text)}" width="${width}" height="${height}" decoding="async"></a>`
      },
      table(token) {
        /** @param {typeof token.header[number]} cell */
        const cell = ({ tokens, header, align }) => {
          const side = align === 'right' ? ' class="right"' : ''
          const tag = header ? 'th' : 'td'
          const html = this.parser.parseInline(tokens)
          // An empty head names nothing: it is no header cell.
          if (header && html === '') return '<td></td>'
          return `<${tag}${side}${header ? ' scope="col"' : ''}>${html}</${tag}>`
        }
        const head = token.header.map(cell).join('')
        const rows = token.rows.map((row) => `<tr>${row.map(cell).join('')}</tr>`).join('\n')
        return `<div class="table" tabindex="0"><table><thead><tr>${head}</tr></thead><tbody>${rows}</tbody></table></div>\n`
      },
    },
  })
  return { html: String(marked.parse(markdown)), headings }
}

/**
 * Where a relative link between the files of the project leads to on the site.
 * @param {string} name of the page that has the link
 * @param {string} href
 * @throws Error for a file that the site does not have
 */
export function siteLink(name, href) {
  const [path = '', fragment] = href.split('#')
  const target = posix.normalize(posix.join('docs', posix.dirname(name), path))
  const hash = fragment === undefined ? '' : `#${fragment}`
  if (target === 'README.md') return '/docs/'
  if (target.startsWith('docs/images/')) return `/${target}`
  if (target.startsWith('docs/') && target.endsWith('.md')) return `/${target.slice(0, -'.md'.length)}${hash}`
  const example = /^examples\/([^/]+)$/.exec(target)?.[1]
  if (example !== undefined) {
    return example === 'README.md' ? `/docs/examples${hash}` : `/docs/examples#${anchors()(example)}`
  }
  throw new Error(`docs/${name}.md links to ${href}, which is not part of the site.`)
}
