/**
 * Puts a real OpenSearch together, outside of the project. The server, its modules and the k-NN plugin come from Maven
 * Central. The ML and the neural search plugin are not published there, so they are compiled from their tagged sources.
 */
import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const here = fileURLToPath(new URL('.', import.meta.url))

export const cache = process.env.PARLEY_REFERENCE || join(homedir(), '.cache', 'parley', 'reference')
const sources = join(cache, 'sources')
const classes = join(cache, 'classes')

/** The plugins' repositories: the tag that fits the server, and the folders that hold their sources. */
const REPOSITORIES = [
  {
    name: 'ml-commons',
    // 2.19.1.0 needs a metadata SDK that was never published.
    tag: '2.19.0.0',
    folders: ['common', 'memory', 'ml-algorithms', 'search-processors', 'plugin', 'spi', 'client'].map(
      (module) => `${module}/src/main`,
    ),
  },
  { name: 'neural-search', tag: '2.19.1.0', folders: ['src/main'] },
]

const CORE = [
  'org.opensearch.transport.Netty4Plugin',
  'org.opensearch.analysis.common.CommonAnalysisPlugin',
  'org.opensearch.painless.PainlessPlugin',
  'org.opensearch.index.mapper.MapperExtrasPlugin',
  'org.opensearch.join.ParentJoinPlugin',
  'org.opensearch.index.reindex.ReindexPlugin',
  'org.opensearch.knn.plugin.KNNPlugin',
]
const PLUGINS = [
  'org.opensearch.ml.plugin.MachineLearningPlugin',
  'org.opensearch.neuralsearch.plugin.NeuralSearch',
]

/** Release 3 has other names for its modules, and its ML plugin is not compiled here. */
const CORE_3 = CORE.map((name) => (name.includes('.knn.') ? name : name.replace(/Plugin$/, 'ModulePlugin')))

const CORE_ELASTICSEARCH = [
  'org.elasticsearch.transport.Netty4Plugin',
  'org.elasticsearch.index.mapper.MapperExtrasPlugin',
  'org.elasticsearch.join.ParentJoinPlugin',
  'org.elasticsearch.reindex.ReindexPlugin',
]

/**
 * @typedef {'2' | '3' | 'elasticsearch'} Release of OpenSearch, of which 3 needs a JDK of 21 or later; or Elasticsearch 7.17, the last
 *   one whose deletions by a query are in a published module
 */

/** @param {Release} release */
const pomOf = (release) => (release === '2' ? 'pom.xml' : `pom-${release}.xml`)

/**
 * What is wrong with a command, in one line.
 * @param {unknown} error
 */
function firstLine(error) {
  const { stderr, stdout, message } = /** @type {{ stderr?: string, stdout?: string, message: string }} */ (
    error
  )
  const lines = `${stderr ?? ''}\n${stdout ?? ''}`.split('\n')
  return (lines.find((line) => /error|fatal/i.test(line)) ?? message).trim().slice(0, 300)
}

/** Where the jars of a release lie, and its k-NN plugin. @param {Release} release */
const foldersOf = (release) => {
  const folder = release === '2' ? cache : join(cache, release)
  return { lib: join(folder, 'lib'), knn: join(folder, 'knn') }
}

/** Does a step once: its mark says that it was done with the same input. @param {string} name @param {string} input */
async function once(name, input, /** @type {() => Promise<void>} */ step) {
  const mark = join(cache, `${name}.done`)
  if (existsSync(mark) && readFileSync(mark, 'utf8') === input) return
  await step()
  writeFileSync(mark, input)
}

/** @param {Release} release */
async function fetchJars(release) {
  const { lib, knn } = foldersOf(release)
  rmSync(lib, { recursive: true, force: true })
  const copy = ['-q', '-B', '-f', join(here, pomOf(release)), 'dependency:copy-dependencies']
  await run('mvn', [...copy, `-DoutputDirectory=${lib}`, '-DincludeScope=runtime'], { maxBuffer: 2 ** 26 })
  if (release === 'elasticsearch') return
  const zip = readdirSync(lib).find((name) => name.endsWith('.zip'))
  if (zip === undefined) throw new Error('the k-NN plugin did not come')
  mkdirSync(knn, { recursive: true })
  await run('jar', ['xf', join(lib, zip)], { cwd: knn })
}

/** A repository's sources, from PARLEY_REFERENCE_SOURCES/NAME where that is a clone, or else from GitHub. */
async function fetchSources(/** @type {typeof REPOSITORIES[number]} */ { name, tag, folders }) {
  const given = process.env.PARLEY_REFERENCE_SOURCES
  const clone = given ? join(given, name) : join(cache, `${name}.git`)
  if (!given && !existsSync(clone)) {
    const from = `https://github.com/opensearch-project/${name}.git`
    await run('git', ['clone', '-q', '--bare', '--depth', '1', '--branch', tag, from, clone])
  }
  for (const folder of folders) {
    const archive = join(cache, 'sources.tar')
    await run('git', ['-C', clone, 'archive', '-o', archive, `${tag}:${folder}`])
    await run('tar', ['xf', archive, '-C', sources])
    rmSync(archive)
  }
}

async function compile() {
  for (const folder of [sources, classes]) {
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true })
  }
  for (const repository of REPOSITORIES) await fetchSources(repository)
  const files = readdirSync(join(sources, 'java'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.java'))
    .map((name) => join(sources, 'java', name))
  for (const file of files) {
    // The plugin's own build moves Guava there.
    const text = readFileSync(file, 'utf8')
    const plain = text.replaceAll('org.opensearch.ml.repackage.', '')
    if (plain !== text) writeFileSync(file, plain)
  }
  const list = join(cache, 'sources.txt')
  writeFileSync(list, files.map((file) => `"${file}"`).join('\n'))
  const options = ['-nowarn', '-Xlint:none', '-J-Xmx1g', '-d', classes, '-cp', classPath([])]
  await run('javac', [...options, `@${list}`], { maxBuffer: 2 ** 26 })
  cpSync(join(sources, 'resources'), classes, { recursive: true })
}

/** @param {string[]} first @param {Release} [release] */
const classPath = (first, release = '2') => {
  const { lib, knn } = foldersOf(release)
  return [...first, join(lib, '*'), join(knn, '*')].join(delimiter)
}

/**
 * @param {Release} release
 * @returns {Promise<{ classPath: string, plugins: string[], core: string[], without?: string }>} what to start it with;
 *   `core` are the plugins without the ML plugin, and `without` says why that is not in `plugins`
 * @throws Error in one line, where OpenSearch cannot be had
 */
export async function assemble(release = '2') {
  mkdirSync(cache, { recursive: true })
  const pom = readFileSync(join(here, pomOf(release)), 'utf8')
  try {
    await once(release === '2' ? 'jars' : `jars-${release}`, pom, () => fetchJars(release))
  } catch (error) {
    throw new Error(`No OpenSearch: Maven could not bring it (${firstLine(error)})`)
  }
  if (release === '3') {
    const without = 'it is compiled for release 2 only'
    return { classPath: classPath([], release), plugins: CORE_3, core: CORE_3, without }
  }
  if (release === 'elasticsearch') {
    const without = 'Elasticsearch has none'
    return {
      classPath: classPath([], release),
      plugins: CORE_ELASTICSEARCH,
      core: CORE_ELASTICSEARCH,
      without,
    }
  }
  try {
    await once('classes', pom + JSON.stringify(REPOSITORIES), compile)
  } catch (error) {
    return { classPath: classPath([]), plugins: CORE, core: CORE, without: firstLine(error) }
  }
  return { classPath: classPath([classes]), plugins: [...CORE, ...PLUGINS], core: CORE }
}
