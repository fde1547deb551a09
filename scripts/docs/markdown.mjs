/** How the Markdown of docs/ becomes pages of the site: links between files, code, tables and pictures under the site's policy. */
import { readdirSync } from 'node:fs'
import { join, posix } from 'node:path'
import sharp from 'sharp'
import { createCssVariablesTheme } from 'shiki'
import { namesIn, requestsIn } from '../../ui/docs/src/command.js'
import { anchor, anchors } from './anchors.mjs'
import { FOLDER } from './pages.mjs'
import { quoted } from './reference.mjs'

/** @typedef {import('vitepress').MarkdownRenderer} Renderer */
/** @typedef {Parameters<Renderer['renderer']['render']>[0][number]} Token */

/** Width and height of each picture in pixels: space is kept for it before it is loaded. @type {Map<string, [number, number]>} */
const sizes = new Map(
  await Promise.all(
    readdirSync(join(FOLDER, 'images')).map(async (name) => {
      const { width, height } = await sharp(join(FOLDER, 'images', name)).metadata()
      return /** @type {[string, [number, number]]} */ ([`/images/${name}`, [width, height]])
    }),
  ),
)

/**
 * Where a link between the files of the project leads to, from the first page of the site.
 * @param {string} name of the page that has the link
 * @param {string} href
 * @throws Error for a file that the site does not have
 */
function siteLink(name, href) {
  if (/^[a-z]+:|^#/.test(href)) return href
  if (href.startsWith('/docs/')) return href.slice('/docs'.length)
  const [path = '', fragment] = href.split('#')
  const folder = name === 'examples' ? 'examples' : posix.join('docs', posix.dirname(name))
  const target = posix.normalize(posix.join(folder, path))
  const hash = fragment === undefined ? '' : `#${fragment}`
  if (target === 'README.md') return '/'
  if (target.startsWith('docs/images/')) return target.slice('docs'.length)
  if (target.startsWith('docs/') && target.endsWith('.md'))
    return target.slice('docs'.length, -'.md'.length) + hash
  const example = /^examples\/([^/]+)$/.exec(target)?.[1]
  if (example !== undefined)
    return example === 'README.md' ? `/examples${hash}` : `/examples#${anchors()(example)}`
  throw new Error(`docs/${name}.md links to ${href}, which is not part of the site.`)
}

/** @param {Token} token @param {string} page */
function mend(token, page) {
  if (token.type === 'link_open') token.attrSet('href', siteLink(page, token.attrGet('href') ?? ''))
  if (token.type !== 'image') return
  const source = siteLink(page, token.attrGet('src') ?? '')
  const size = sizes.get(source)
  if (size === undefined) {
    // The policy of the site loads no picture from elsewhere.
    token.type = 'text'
    return
  }
  token.attrSet('src', source)
  token.attrSet('width', String(size[0]))
  token.attrSet('height', String(size[1]))
}

/** A cell without `style`, which the policy forbids. An empty head names nothing: it is no header cell. @param {Token[]} tokens */
function mendCells(tokens) {
  tokens.forEach((token, at) => {
    if (token.type !== 'th_open' && token.type !== 'td_open') return
    const isRight = token.attrGet('style')?.includes('right')
    token.attrs = isRight ? [['class', 'right']] : []
    const close = tokens[at + 2]
    if (token.tag === 'th' && tokens[at + 1]?.content === '' && close) token.tag = close.tag = 'td'
    if (token.tag === 'th') token.attrSet('scope', 'col')
  })
}

/** @param {Renderer} md */
function config(md) {
  const { fence, image, link_open: link } = md.renderer.rules
  // VitePress writes fragments in small letters. Names of operations and objects have capitals.
  md.renderer.rules.link_open = (tokens, at, ...more) => {
    const hash = /#.*$/.exec(tokens[at]?.attrGet('href') ?? '')?.[0]
    const html = link?.(tokens, at, ...more) ?? ''
    return hash === undefined ? html : html.replace(/#[^"]*(?=")/, hash)
  }
  md.renderer.rules.fence = (tokens, at, ...more) => {
    const html = fence?.(tokens, at, ...more) ?? ''
    const { info = '', content = '' } = tokens[at] ?? {}
    const [first] = (info === 'sh' && requestsIn(content)) || []
    if (first === undefined) return html
    const line = quoted(`${first.method} ${first.path.replace(/\?.*/, '')}`)
    return `<RunCommand line="${line}" names="${namesIn(content).join(' ')}">${html}</RunCommand>\n`
  }
  md.renderer.rules.image = (tokens, at, ...more) =>
    `<a href="/docs${tokens[at]?.attrGet('src')}">${image?.(tokens, at, ...more)}</a>`
  md.core.ruler.push('site', ({ tokens, env }) => {
    const page = String(env.relativePath).replace(/\.md$/, '')
    mendCells(tokens)
    for (const token of tokens) {
      // Guides write commands that their tests do not wait for without a language.
      if (token.type === 'fence' && token.info === '' && /^(npm|npx|export|curl|node) /.test(token.content))
        token.info = 'sh'
      for (const child of token.children ?? []) mend(child, page)
    }
  })
}

/** The colours of code as classes, since the policy of the site allows no inline style. @type {import('shiki').ShikiTransformer} */
const coloursAsClasses = {
  pre: ({ properties }) => {
    delete properties.style
    properties.tabindex = '0'
  },
  span(node) {
    const kind = /--tok-token-([\w-]+)/.exec(String(node.properties.style))?.[1]
    delete node.properties.style
    if (kind !== undefined) this.addClassToHast(node, `t-${kind}`)
  },
}

/** @type {import('vitepress').MarkdownOptions} */
export const markdown = {
  anchor: { slugify: anchor },
  theme: createCssVariablesTheme({ name: 'classes', variablePrefix: '--tok-' }),
  codeTransformers: [coloursAsClasses],
  config,
}
