/**
 * `npm run examples:frameworks [-- NAME ...]`: builds a small site with each framework's example, and asks a question in
 * it. Each tool is installed at an exact version in a scratch folder outside the project. It needs the npm registry,
 * Chromium, and a minute or two: `npm test` runs it when the widget or an example has changed. Without the registry or Chromium it
 * says so and builds nothing. It starts a Parley of its own, unless PARLEY_URL names a
 * running one and PARLEY_API_KEY its admin key.
 */
import '../scripts/installed.mjs'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, extname, join } from 'node:path'
import { chromium } from 'playwright-core'
import { client, startOwnServer } from '../scripts/own-server.mjs'

let PARLEY = process.env.PARLEY_URL ?? ''
const ADMIN_KEY = process.env.PARLEY_API_KEY ?? 'xyz'
const WRITTEN_IN_EXAMPLES = 'http://localhost:8108'
const QUESTION = 'How do I start Parley?'
/** Only ends a wait that would never end: pages and answers are waited for by their states. */
const TIMEOUT_MS = 300_000

/**
 * @typedef {object} Framework
 * @property {Record<string, string>} packages with their exact versions
 * @property {string} example in examples/
 * @property {string} config where the site has it
 * @property {(element: string) => Record<string, string>} files of the site
 * @property {Record<string, string>} [overrides] exact versions of what the tool depends on
 * @property {boolean} [isModule] whether the site's own scripts are modules by default; absent: they are
 * @property {string[]} build arguments of node
 * @property {string} out folder of the built site
 */

/** @type {Record<string, Framework>} */
const FRAMEWORKS = {
  vitepress: {
    packages: { vitepress: '1.6.4' },
    example: 'vitepress.config.js',
    config: '.vitepress/config.js',
    files: (element) => ({ 'index.md': `# Handbook\n\n${element}\n` }),
    build: ['node_modules/vitepress/bin/vitepress.js', 'build'],
    out: '.vitepress/dist',
  },
  docusaurus: {
    packages: {
      '@docusaurus/core': '3.10.2',
      '@docusaurus/preset-classic': '3.10.2',
      react: '19.2.0',
      'react-dom': '19.2.0',
    },
    example: 'docusaurus.config.js',
    config: 'docusaurus.config.js',
    isModule: false,
    // 4.7.1 needs a version of @docsearch/core that not every registry has.
    overrides: { '@docsearch/react': '4.7.0' },
    files: (element) => ({
      'docs/intro.md': '# Handbook\n',
      'src/pages/index.md': '# Handbook\n',
      'src/theme/Root.js': `import React from 'react'
export default function Root({ children }) {
  return <>{children}${element}</>
}
`,
    }),
    build: ['node_modules/@docusaurus/core/bin/docusaurus.mjs', 'build'],
    out: 'build',
  },
  starlight: {
    packages: { astro: '7.3.5', '@astrojs/starlight': '0.42.4' },
    example: 'starlight.config.mjs',
    config: 'astro.config.mjs',
    files: (element) => ({
      'src/content.config.ts': `import { docsLoader } from '@astrojs/starlight/loaders'
import { docsSchema } from '@astrojs/starlight/schema'
import { defineCollection } from 'astro:content'
export const collections = { docs: defineCollection({ loader: docsLoader(), schema: docsSchema() }) }
`,
      'src/content/docs/index.md': '---\ntitle: Handbook\n---\n\nWelcome.\n',
      'src/components/Footer.astro': `---
import Default from '@astrojs/starlight/components/Footer.astro'
---
<Default><slot /></Default>
${element}
`,
    }),
    build: ['node_modules/astro/bin/astro.mjs', 'build'],
    out: 'dist',
  },
}

/** A key that may ask the assistant `default` and nothing else. @returns {Promise<string>} */
async function pageKey() {
  const { value } = await client(PARLEY, ADMIN_KEY)('POST', '/keys', {
    description: 'framework examples',
    actions: ['documents:search'],
    collections: ['*'],
    limits: { assistant: 'default' },
  })
  return value
}

/**
 * @param {string} folder
 * @param {string} command
 * @param {string[]} args
 */
function run(folder, command, args) {
  const env = { ...process.env, CI: '1', ASTRO_TELEMETRY_DISABLED: '1', DOCUSAURUS_NO_UPDATE_NOTIFIER: '1' }
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: folder, encoding: 'utf8', env })
  if (status !== 0)
    throw new Error(`${command} ${args.join(' ')} failed:\n${(stdout + stderr).slice(-3_000)}`)
}

/**
 * Writes the site, installs its tool and builds it.
 * @param {Framework} framework
 * @param {string} folder
 * @param {string} element
 */
function buildSite({ packages, example, config, files, build, overrides, isModule = true }, folder, element) {
  const source = readFileSync(new URL(`../examples/${example}`, import.meta.url), 'utf8')
  const all = {
    ...files(element),
    [config]: source.replaceAll(WRITTEN_IN_EXAMPLES, PARLEY),
    'package.json': JSON.stringify({
      private: true,
      ...(isModule && { type: 'module' }),
      dependencies: packages,
      overrides,
    }),
  }
  for (const [path, text] of Object.entries(all)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  run(folder, 'npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline'])
  run(folder, process.execPath, build)
}

/**
 * The built page has to carry the script and the element with their attributes.
 * @param {string} html
 * @param {string} key
 */
function requireWidget(html, key) {
  const scripts = [...html.matchAll(/<script\b[^>]*>/g)].map(([tag]) => tag)
  const script = scripts.find((tag) => tag.includes(`${PARLEY}/widget/parley-chat.js`))
  if (!script) throw new Error('The built page has no script of the widget.')
  if (!/\btype="?module\b/.test(script)) throw new Error(`The built script is no module: ${script}`)
  const [element = ''] = /<parley-chat\b[^>]*>/.exec(html) ?? []
  if (!element.includes(key)) throw new Error(`The built page has no element with its key: ${element}`)
}

/** @type {Record<string, string>} */
const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css' }

/** Serves a folder on a free port. @param {string} folder */
async function serveFolder(folder) {
  const server = createServer(({ url = '/' }, response) => {
    const named = join(folder, decodeURIComponent(new URL(url, 'http://page').pathname))
    const path = existsSync(named) && statSync(named).isDirectory() ? join(named, 'index.html') : named
    if (!existsSync(path)) return response.writeHead(404).end()
    response.setHeader('content-type', TYPES[extname(path)] ?? 'application/octet-stream')
    response.end(readFileSync(path))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  return { url: `http://127.0.0.1:${port}/`, close: () => server.close() }
}

/** Asks a question in the built page. @param {string} folder @param {string} executablePath the browser */
async function drive(folder, executablePath) {
  const site = await serveFolder(folder)
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
  try {
    const page = await browser.newPage()
    page.setDefaultTimeout(TIMEOUT_MS)
    /** @type {string[]} */
    const faults = []
    page.on('pageerror', (error) => faults.push(String(error)))
    await page.goto(site.url)
    const field = page.getByRole('textbox', { name: 'Ask a question' })
    await field.fill(QUESTION)
    await field.press('Enter')
    await page.locator('parley-chat .turn[aria-busy="false"]:has(.tools:not([hidden])) .prose').waitFor()
    if (faults.length > 0) throw new Error(`The page reports: ${faults.join('; ')}`)
  } finally {
    await browser.close()
    site.close()
  }
}

/** @param {string} url */
const isReachable = async (url) =>
  fetch(url, { method: 'HEAD', signal: AbortSignal.timeout(10_000) }).then(
    () => true,
    () => false,
  )

const names = process.argv.slice(2).length > 0 ? process.argv.slice(2) : Object.keys(FRAMEWORKS)
const executablePath = ['/usr/bin/chromium', '/usr/bin/google-chrome'].find((path) => existsSync(path))
const registry = spawnSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).stdout.trim()
const unknown = names.find((name) => !(name in FRAMEWORKS))
if (unknown !== undefined) {
  console.error(`There is no example for ${unknown}; there are ${Object.keys(FRAMEWORKS).join(', ')}.`)
  process.exitCode = 1
} else if (executablePath === undefined) {
  console.log('There is no Chromium (apt-get install chromium), so no framework was built.')
} else if (!(await isReachable(registry))) {
  console.log(`The npm registry ${registry} cannot be reached, so no framework was built.`)
} else if (PARLEY !== '' && !(await isReachable(`${PARLEY}/health`))) {
  console.error(`No Parley answers at ${PARLEY}. Leave PARLEY_URL out to have one started.`)
  process.exitCode = 1
} else {
  const own = PARLEY === '' ? await startOwnServer() : undefined
  if (own) PARLEY = own.url
  const key = await pageKey()
  const element = `<parley-chat assistant="default" api-key="${key}" server="${PARLEY}"></parley-chat>`
  for (const name of names) {
    const framework = /** @type {Framework} */ (FRAMEWORKS[name])
    const folder = mkdtempSync(join(tmpdir(), `parley-${name}-`))
    const version = Object.entries(framework.packages).map(([tool, number]) => `${tool} ${number}`)[0]
    try {
      buildSite(framework, folder, element)
      const out = join(folder, framework.out)
      requireWidget(readFileSync(join(out, 'index.html'), 'utf8'), key)
      await drive(out, executablePath)
      console.log(`ok    ${name} (${version}): built, and a question was answered in its page`)
    } catch (error) {
      console.log(`FAIL  ${name} (${version}): ${/** @type {Error} */ (error).message}`)
      process.exitCode = 1
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
  await own?.stop()
}
