/**
 * The import's reader of pages as one module of the Worker, `dist/reader.mjs`, which is loaded when a source is read (src/sources). It
 * lies beside the bundle and not in it, so no request has to hold or to start it.
 */
import { join } from 'node:path'
import { build } from 'esbuild'
import { writeWhole } from './built.mjs'
import { gzipKb } from './widget.mjs'
import { root } from './wrangler.mjs'

export const READER = 'reader.mjs'
/** KB of gzip. With the Worker's bundle it is less than 600 KB (budget.mjs). */
const BUDGET_KB = 125

/**
 * What the reader's libraries bring for what nobody asks of them here: drawing, style sheets, trees as text, and the names of characters
 * in Markdown, of which only the blocks are told apart.
 */
const UNUSED = {
  canvas: 'export default {}',
  'cssomnom/parse': 'export const parse = () => ({ cssRules: [] })',
  'dom-serializer': 'export default () => ""',
  'mdast-util-to-markdown': 'export const defaultHandlers = {}',
  'markdown-table': 'export const markdownTable = () => ""',
  'decode-named-character-reference': 'export const decodeNamedCharacterReference = () => false',
}

/** @type {import('esbuild').Plugin} */
const withoutUnused = {
  name: 'unused',
  setup({ onResolve, onLoad, resolve }) {
    const filter = new RegExp(`^(?:${Object.keys(UNUSED).join('|')})$`)
    onResolve({ filter }, ({ path }) => ({ path, namespace: 'unused' }))
    // That one holds all of it in one file.
    onResolve({ filter: /^linkedom\/worker$/ }, ({ resolveDir, kind }) =>
      resolve('linkedom', { resolveDir, kind }),
    )
    // What turns HTML into Markdown asks its window for a parser.
    onResolve({ filter: /^parley:window$/ }, () => ({ path: 'window', namespace: 'window' }))
    onLoad({ filter: /.*/, namespace: 'window' }, () => ({
      contents: "import { DOMParser } from 'linkedom'; export const window = { DOMParser }",
      resolveDir: root,
    }))
    onLoad({ filter: /.*/, namespace: 'unused' }, ({ path }) => ({
      contents: UNUSED[/** @type {keyof typeof UNUSED} */ (path)],
    }))
  },
}

/** Builds it for scripts/pages.mjs. @returns {Promise<import('./pages.mjs').Built>} */
export async function makeReader() {
  const { outputFiles } = await build({
    entryPoints: [join(root, 'scripts/parley/import/reader.mjs')],
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    inject: ['parley:window'],
    target: 'es2022',
    charset: 'ascii',
    plugins: [withoutUnused],
    // Parts of the runtime.
    external: ['node:stream', 'node:zlib'],
    write: false,
    logLevel: 'warning',
  })
  const text = outputFiles[0]?.text ?? ''
  const size = gzipKb(text)
  writeWhole(join(root, 'dist', READER), text)
  return {
    files: [[READER, text]],
    told: [`reader    ${size.toFixed(1)} KB of gzip, at most ${BUDGET_KB} KB`],
    isWithin: size <= BUDGET_KB,
  }
}
