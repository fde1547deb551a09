/**
 * `npm run build`, third part: the documentation from docs/ into ui/docs, where the Worker's assets are. wrangler runs it
 * before each bundle (wrangler.toml). VitePress makes the pages; docs/config.mjs is what it is told.
 *
 * `DOCS_KEY` in the environment puts a page's key into the pages, so that readers of a deployed Parley can ask.
 */
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { writeBuilt } from './built.mjs'
import { FOLDER } from './docs/pages.mjs'
import { quoted } from './docs/reference.mjs'
import { groups, home, listForPrograms } from './docs/site.mjs'
import { root } from './wrangler.mjs'

const SITE = join(root, 'ui/docs')
const VITEPRESS = join(root, 'node_modules/vitepress/bin/vitepress.js')

/** @param {string} folder @param {string} path @param {string} text */
function place(folder, path, text) {
  const file = join(folder, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

/** A module that is another one, for VitePress to find it where it looks. @param {string} path from here */
const moduleAt = (path) =>
  `export { default } from ${JSON.stringify(fileURLToPath(new URL(path, import.meta.url)))}\n`

/** Puts down all that VitePress reads: the pages that are written, and those that are made. @param {string} folder */
function lay(folder) {
  for (const { pages } of groups) {
    for (const { name, markdown } of pages) place(folder, `${name}.md`, markdown)
  }
  place(folder, 'index.md', home(groups))
  cpSync(join(FOLDER, 'images'), join(folder, 'public/images'), { recursive: true })
  cpSync(join(SITE, 'src/first.js'), join(folder, 'public/first.js'))
  cpSync(join(root, 'ui/icon.svg'), join(folder, 'public/icon.svg'))
  place(folder, '.vitepress/config.mjs', moduleAt('./docs/config.mjs'))
  place(folder, '.vitepress/theme/index.js', moduleAt('../ui/docs/src/theme.js'))
}

/**
 * Puts a page's key into a page, where it lies open.
 * @param {string} html
 * @param {string} key
 */
export const withKey = (html, key) =>
  html.replace('</head>', `<meta name="parley-key" content="${quoted(key)}"></head>`)

/**
 * The files of the site by their paths below /docs/.
 * @returns {Promise<Map<string, string | Uint8Array>>}
 * @throws Error when a link leads nowhere, with what VitePress says of it
 */
export async function buildSite() {
  mkdirSync(join(root, 'dist'), { recursive: true })
  const folder = mkdtempSync(join(root, 'dist/docs-'))
  try {
    lay(folder)
    // In a process of its own: it sets NODE_ENV, and takes most of the time that all pages take.
    await promisify(execFile)(process.execPath, [VITEPRESS, 'build', folder], { cwd: root }).catch(
      (error) => {
        throw new Error(`The documentation cannot be built.\n${error.stdout}${error.stderr}`)
      },
    )
    const made = join(folder, '.vitepress/dist')
    /** @type {Map<string, string | Uint8Array>} */
    const files = new Map()
    for (const entry of readdirSync(made, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue
      const path = join(entry.parentPath, entry.name)
      files.set(path.slice(made.length + 1).replaceAll('\\', '/'), readFileSync(path))
    }
    files.delete('404.html') // the Worker answers what is not there
    for (const { pages } of groups) {
      for (const { name, markdown, isWritten } of pages) if (isWritten) files.set(`${name}.md`, markdown)
    }
    files.set('llms.txt', listForPrograms(groups))
    return files
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Builds it for scripts/pages.mjs. @returns {Promise<import('./pages.mjs').Built>} */
export async function makeDocs() {
  const files = await buildSite()
  const pages = [...files.keys()].filter((name) => name.endsWith('.html'))
  const key = process.env.DOCS_KEY
  for (const name of key ? pages : []) files.set(name, withKey(String(files.get(name)), key ?? ''))
  writeBuilt(SITE, files, /^(?!src\/).*\.\w+$/)
  return { files, told: [`/docs/  ${pages.length} pages`], isWithin: true }
}
