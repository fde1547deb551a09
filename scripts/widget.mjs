/**
 * `npm run build`: the widget `<parley-chat>` from ui/widget/src into ui/widget, where the Worker's assets are. wrangler
 * runs it before each bundle (wrangler.toml), and with it the start, the deployment and the tests do.
 *
 * The first script is small; what it loads later it asks for by hashes, so that its own covers all of it.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { writeBuilt } from './built.mjs'

const SOURCES = fileURLToPath(new URL('../ui/widget/src', import.meta.url))
const WIDGET = dirname(SOURCES)
/** What a page loads before anything is asked, at most, in KB of gzip. */
export const BUDGET_KB = 33

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
export const VERSIONED = `parley-chat-${version}.js`

/** @type {Record<string, string[]>} the grammars of code that an answer may need, and other names of their languages */
const GRAMMARS = JSON.parse(readFileSync(join(SOURCES, 'grammars.json'), 'utf8'))

/** What is loaded when it is needed: its name, and its script. @type {[string, string | { contents: string }][]} */
const PARTS = [
  ['markdown', 'markdown.ts'],
  ['languages', 'languages.ts'],
  ['code', 'code.ts'],
  ['finder', 'finder.ts'],
  ['pdf', 'pdf.ts'],
  ...Object.keys(GRAMMARS).map(
    (name) =>
      /** @type {[string, { contents: string }]} */ ([
        `grammar-${name}`,
        {
          contents: `import grammar from 'shiki/langs/${name}.mjs'
globalThis[Symbol.for('parley-chat.grammar-${name}')] = grammar`,
        },
      ]),
  ),
]

/** @param {string} text */
export const integrityOf = (text) => `sha384-${createHash('sha384').update(text).digest('base64')}`

/** @param {string | Uint8Array} content */
export const gzipKb = (content) => gzipSync(content, { level: 9 }).length / 1000

/** A style sheet as a string, with what it imports and without what only its authors need. @type {import('esbuild').Plugin} */
const styles = {
  name: 'styles',
  setup({ onLoad }) {
    onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { outputFiles, metafile } = await build({
        entryPoints: [path],
        bundle: true,
        minify: true,
        write: false,
        metafile: true,
        logLevel: 'warning',
      })
      return {
        contents: outputFiles[0]?.text ?? '',
        loader: 'text',
        watchFiles: Object.keys(metafile.inputs).map((file) => resolve(file)),
      }
    })
  },
}

/**
 * @param {string | { contents: string }} entry a file, or a script itself
 * @param {Record<string, string>} define
 * @returns {Promise<string>}
 */
async function bundle(entry, define = {}) {
  const { outputFiles } = await build({
    ...(typeof entry === 'string'
      ? { entryPoints: [join(SOURCES, entry)] }
      : { stdin: { ...entry, resolveDir: SOURCES } }),
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    charset: 'utf8',
    legalComments: 'none',
    write: false,
    logLevel: 'warning',
    plugins: [styles],
    define,
  })
  return outputFiles[0]?.text ?? ''
}

/**
 * The scripts of the widget, by file name.
 * @returns {Promise<Record<string, string>>}
 */
export async function bundleWidget() {
  /** @type {Record<string, string>} */
  const files = {}
  /** @type {Record<string, { file: string, integrity: string }>} */
  const parts = {}
  for (const [name, entry] of PARTS) {
    const text = await bundle(entry)
    const integrity = integrityOf(text)
    const file = `${name}-${createHash('sha256').update(text).digest('hex').slice(0, 10)}.js`
    parts[name] = { file, integrity }
    files[file] = text
  }
  const text = await bundle('index.ts', { PARTS: JSON.stringify(parts) })
  files[VERSIONED] = text
  files['parley-chat.js'] = text
  files['integrity.json'] = `${JSON.stringify({ [VERSIONED]: integrityOf(text) }, null, 2)}\n`
  return files
}

/** Writes what has changed. */
export async function buildWidget() {
  const files = await bundleWidget()
  writeBuilt(WIDGET, new Map(Object.entries(files)), /^[^/]+\.js$/)
  return files
}

/** Builds it for scripts/pages.mjs. @returns {Promise<import('./pages.mjs').Built>} */
export async function makeWidget() {
  const files = Object.entries(await buildWidget())
  const first = files.find(([name]) => name === VERSIONED)?.[1] ?? ''
  const size = gzipKb(first)
  const later = files.filter(([name]) => /^(?!parley).*\.js$/.test(name))
  const told = [
    `/widget/${VERSIONED}  ${size.toFixed(1)} KB of gzip, at most ${BUDGET_KB} KB`,
    `integrity="${integrityOf(first)}"`,
    ...later.map(([name, text]) => `/widget/${name}  ${gzipKb(text).toFixed(1)} KB, when needed`),
  ]
  return { files, told, isWithin: size <= BUDGET_KB }
}
