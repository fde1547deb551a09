/**
 * `npm run build`, third part: the documentation from docs/ into ui/docs, where the Worker's assets are. wrangler runs it
 * before each bundle (wrangler.toml).
 *
 * `DOCS_KEY` in the environment puts a page's key into the pages, so that readers of a deployed Parley can search and ask.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { writeBuilt } from './built.mjs'
import { examplesPage } from './docs/examples.mjs'
import { home, listForPrograms } from './docs/home.mjs'
import { layout } from './docs/layout.mjs'
import { render, siteLink } from './docs/markdown.mjs'
import { FOLDER, GROUPS, labelOf, read, summaryOf, titleOf, written } from './docs/pages.mjs'
import { referencePages } from './docs/reference.mjs'

const SOURCES = fileURLToPath(new URL('../ui/docs/src/', import.meta.url))
const SITE = dirname(SOURCES)

/** @typedef {import('./docs/layout.mjs').Group} Group */
/** @typedef {import('./docs/markdown.mjs').Heading} Heading */
/** @typedef {{ name: string, title: string, summary: string, body: string, headings: Heading[], markdown?: string }} Page */

/** @param {string} name of a file of docs/ @returns {Page} */
function pageOf(name) {
  const markdown = read(name)
  const { html, headings } = render(markdown, {
    link: (href) => siteLink(name, href),
    file: (href) => join(FOLDER, dirname(name), href),
  })
  return { name, title: titleOf(markdown), summary: summaryOf(markdown), body: html, headings, markdown }
}

/** Scripts and styles that all pages share. @returns {Promise<Map<string, Uint8Array>>} */
async function shared() {
  const { outputFiles } = await build({
    entryPoints: ['site.js', 'theme.js', 'site.css'].map((file) => join(SOURCES, file)),
    outdir: SITE,
    outbase: SOURCES,
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    charset: 'utf8',
    legalComments: 'none',
    external: ['/widget/*', '/icon.svg'],
    write: false,
    logLevel: 'warning',
  })
  return new Map(outputFiles.map(({ path, contents }) => [path.slice(SITE.length + 1), contents]))
}

/**
 * The files of the site by their paths below /docs/.
 * @param {string} [key] a page's key, lying open in each page
 * @returns {Promise<Map<string, Uint8Array>>}
 * @throws Error when a link leads nowhere, or a page has no place in the navigation
 */
export async function buildSite(key = '') {
  const listed = GROUPS.flatMap(({ names }) => names)
  const homeless = written().filter((name) => !listed.includes(name))
  if (homeless.length > 0) throw new Error(`scripts/docs/pages.mjs has no place for ${homeless.join(', ')}.`)

  /** @type {{ title: string, about: string, pages: Page[] }[]} */
  const parts = [
    ...GROUPS.map(({ title, about, names }) => ({ title, about, pages: names.map(pageOf) })),
    { title: 'API', about: 'Every route of every protocol, to try here.', pages: referencePages() },
  ]
  parts[1]?.pages.push(examplesPage())
  const groups = parts.map(({ title, about, pages }) => ({
    title,
    about,
    entries: pages.map(({ name, title, summary, markdown }) => ({
      name,
      label: markdown === undefined ? title : labelOf(name),
      summary,
    })),
  }))

  const files = await shared()
  const encoder = new TextEncoder()
  const add = (/** @type {string} */ path, /** @type {string} */ text) =>
    files.set(path, encoder.encode(text))
  for (const { title: group, pages } of parts) {
    for (const { markdown, ...page } of pages) {
      add(`${page.name}.html`, layout({ ...page, group, groups, key, markdown: markdown !== undefined }))
      if (markdown !== undefined) add(`${page.name}.md`, markdown)
    }
  }
  add('index.html', layout({ ...home(groups), name: '', headings: [], groups, key }))
  add('llms.txt', listForPrograms(groups))
  add('headings.json', JSON.stringify(headingsOf(parts.flatMap(({ pages }) => pages))))
  for (const image of readdirSync(join(FOLDER, 'images'))) {
    files.set(`images/${image}`, readFileSync(join(FOLDER, 'images', image)))
  }
  return files
}

/** What the search box finds by itself, where the server has nothing to search in. @param {Page[]} pages */
const headingsOf = (pages) =>
  pages.flatMap(({ name, title, headings }) =>
    headings
      .filter(({ depth }) => depth <= 3)
      .map(({ depth, id, text }) => ({
        title,
        heading: text.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code)),
        url: `/docs/${name}${depth === 1 ? '' : `#${id}`}`,
      })),
  )

/** Builds it for scripts/pages.mjs. @returns {Promise<import('./pages.mjs').Built>} */
export async function makeDocs() {
  const files = await buildSite(process.env.DOCS_KEY)
  writeBuilt(SITE, files, /^(?!src\/).*\.(?:html|md)$/)
  const pages = [...files.keys()].filter((name) => name.endsWith('.html'))
  return { files, told: [`/docs/  ${pages.length} pages`], isWithin: true }
}
