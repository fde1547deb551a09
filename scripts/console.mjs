/**
 * `npm run build`, second part: the console from ui/console/src into ui/console, where the Worker's assets are. wrangler
 * runs it before each bundle (wrangler.toml).
 *
 * The first load is one script and one style sheet. Pages and file readers are chunks of their own, loaded on demand.
 */
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { writeBuilt } from './built.mjs'
import { gzipKb } from './widget.mjs'
import { root } from './wrangler.mjs'

const SOURCES = fileURLToPath(new URL('../ui/console/src', import.meta.url))
const CONSOLE = dirname(SOURCES)
/** What a browser loads before the first page shows, at most, in KB of gzip. */
const BUDGET_KB = 120

/**
 * The compiler of reStructuredText asks Shiki for the names of languages. That list is all of Shiki that is bundled: the
 * grammars behind it are 10 MB.
 * @type {import('esbuild').Plugin}
 */
const languages = {
  name: 'languages',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^shiki$/ }, () => ({ path: 'shiki', namespace: 'languages' }))
    onLoad({ filter: /.*/, namespace: 'languages' }, async () => {
      const { bundledLanguagesInfo } = await import('shiki')
      const named = bundledLanguagesInfo.map(({ id, name, aliases }) => ({ id, name, aliases }))
      return { contents: `export const bundledLanguagesInfo = ${JSON.stringify(named)}`, loader: 'js' }
    })
  },
}

/**
 * The files of the console by name, and the names of those that the first load needs.
 * @returns {Promise<{ files: Map<string, Uint8Array>, first: string[] }>}
 */
async function bundleConsole() {
  const { outputFiles, metafile } = await build({
    entryPoints: { console: join(SOURCES, 'main.tsx'), style: join(SOURCES, 'styles/console.css') },
    outdir: CONSOLE,
    absWorkingDir: root,
    bundle: true,
    splitting: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    charset: 'utf8',
    legalComments: 'none',
    chunkNames: 'part-[hash]',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    plugins: [languages],
    external: ['/widget/*'],
    // The one that needs no Buffer of Node's.
    alias: { 'csv-parse/sync': 'csv-parse/browser/esm/sync' },
    metafile: true,
    write: false,
    logLevel: 'warning',
  })
  const files = new Map(outputFiles.map(({ path, contents }) => [basename(path), contents]))
  /** @type {Map<string, string[]>} */
  const imports = new Map(
    Object.entries(metafile.outputs).map(([path, output]) => [
      basename(path),
      output.imports.filter(({ kind }) => kind === 'import-statement').map((each) => basename(each.path)),
    ]),
  )
  const first = new Set(['console.js', 'style.css'])
  for (const name of first) for (const needed of imports.get(name) ?? []) first.add(needed)
  return { files, first: [...first] }
}

/** Writes what has changed. */
export async function buildConsole() {
  const bundled = await bundleConsole()
  writeBuilt(CONSOLE, bundled.files, /^[^/]+\.(?:js|css)$/)
  return bundled
}

/** Builds it for scripts/pages.mjs. @returns {Promise<import('./pages.mjs').Built>} */
export async function makeConsole() {
  const { files, first } = await buildConsole()
  const sizes = new Map(Array.from(files, ([name, contents]) => [name, gzipKb(contents)]))
  const size = first.reduce((sum, name) => sum + (sizes.get(name) ?? 0), 0)
  const later = [...sizes].filter(([name]) => !first.includes(name))
  const told = [
    `/  ${size.toFixed(1)} KB of gzip at first, at most ${BUDGET_KB} KB`,
    ...later.map(([name, kb]) => `/console/${name}  ${kb.toFixed(1)} KB, when needed`),
  ]
  return { files, told, isWithin: size <= BUDGET_KB }
}
