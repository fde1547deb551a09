/**
 * What the Worker may weigh: a bundle of at most 600 KB of gzip, and a start-up within a few times a bare Hono Worker's: with the
 * bindings of a deployment on both sides, and with nothing bound.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, parse } from 'node:path'
import { gzipSync } from 'node:zlib'
import { unstable_readConfig } from 'wrangler'
import { compareStarts, counted } from './budget/startup.mjs'
import { root, runWrangler } from './wrangler.mjs'

const GZIP_KB = 600
/** With the bindings of a deployment. */
const RATIO = 2
/**
 * With nothing bound there is less to start on both sides, so the same bundle weighs more. It reads 1.7 to 1.9, of which V8's reading
 * of the source is two thirds, and one bundle differs by 0.1 between runs.
 */
const RATIO_UNBOUND = 2.2

const scratch = mkdtempSync(join(tmpdir(), 'parley-budget-'))

/**
 * Bundles a Worker as a deployment does.
 * @param {string} entry
 * @returns {Promise<string>} the path of the bundle
 */
async function bundle(entry) {
  const { name } = parse(entry)
  const folder = join(scratch, name)
  await runWrangler(['deploy', entry, '--dry-run', '--minify', '--outdir', folder])
  return join(folder, `${name}.js`)
}

/**
 * Characters beyond ASCII, with what is written around them. One beyond Latin-1 makes V8 hold the whole bundle at two bytes
 * a character. esbuild escapes them in strings, but not in regular expressions, nor in `String.raw`.
 * @param {string} file
 */
const wideIn = (file) => readFileSync(file, 'utf8').match(/.{0,40}[^ -~\s].{0,20}/g) ?? []

/** @param {string} file */
const gzipped = (file) => gzipSync(readFileSync(file)).length / 1000

try {
  const config = unstable_readConfig({ config: join(root, 'wrangler.toml') }, { hideWarnings: true })
  const [parley, bare] = await Promise.all([bundle('src/index.ts'), bundle('scripts/budget/bare.mjs')])

  const modules = readdirSync(dirname(parley)).filter((name) => /\.(?:wasm|mjs)$/.test(name))
  const size = modules.reduce((sum, name) => sum + gzipped(join(dirname(parley), name)), gzipped(parley))
  console.log(
    `bundle    ${size.toFixed(1)} KB of gzip, at most ${GZIP_KB} KB (a bare Hono Worker: ${gzipped(bare).toFixed(1)} KB)`,
  )

  const wide = wideIn(parley)
  if (wide.length > 0)
    console.error(`Write these characters beyond ASCII as \\u escapes:\n${wide.join('\n')}`)

  let isWithin = size <= GZIP_KB && wide.length === 0
  for (const bound of [true, false]) {
    const date = config.compatibility_date ?? ''
    const limit = bound ? RATIO : RATIO_UNBOUND
    const start = await compareStarts(parley, bare, date, { bound, limit })
    console.log(
      `start-up  ${start.own.toFixed(1)} ms${counted ? ' of CPU' : ''}, ${start.ratio.toFixed(2)} times a bare Hono Worker's ` +
        `${start.base.toFixed(1)} ms with ${bound ? 'the same bindings' : 'nothing bound'}, at most ${limit} times (${start.rounds} rounds)`,
    )
    isWithin &&= start.ratio <= limit
  }

  if (!isWithin) {
    console.error(
      'Past the budget. What weighs: npx wrangler deploy --dry-run --minify --outdir dist --metafile',
    )
    process.exitCode = 1
  }
} finally {
  rmSync(scratch, { recursive: true, force: true })
}
