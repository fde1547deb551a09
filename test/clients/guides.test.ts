/**
 * The guides of docs/guides/, followed to the letter: their files are written, their commands run through npm, and what
 * they say is printed has to be printed. And `npm run bench start`, over few pages.
 */
import { execFile, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { serve } from '../serve'
import { freePort, type Started, start } from './global-setup'

const ROOT = join(import.meta.dirname, '../..')
const GUIDES = join(ROOT, 'docs/guides')
const WHERE_GUIDES_START = 'http://localhost:8108'
const SITE_OF_GUIDE = 'https://www.example.com'

let folder = ''
let parley: Started
let url = ''

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'parley-guides-'))
  const port = await freePort()
  url = `http://localhost:${port}`
  parley = await start('--port', String(port), '--persist-to', join(folder, '.parley'))
  // The guides' commands run in the project's folder. This one has its script `parley`, and none of its files.
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const script = scripts.parley.replace('scripts/', `${ROOT}/scripts/`)
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, scripts: { parley: script } }))
})
afterAll(async () => {
  await parley?.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** @returns what commands print, both streams in order @throws when one of them fails */
async function sh(commands: string): Promise<string> {
  const child = spawn('sh', ['-e', '-c', `exec 2>&1\n${commands}`], {
    cwd: folder,
    env: {
      ...process.env,
      PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}`,
      PARLEY_URL: url,
      PARLEY_API_KEY: 'xyz',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let printed = ''
  child.stdout.on('data', (data) => {
    printed += data
  })
  const code = await new Promise((done) => child.once('close', done))
  expect(code, printed).toBe(0)
  return printed
}

interface Block {
  /** the paragraph before it */
  before: string
  language: string
  code: string
}

const blocksOf = (guide: string): Block[] =>
  [...readFileSync(join(GUIDES, guide), 'utf8').matchAll(/(?:([^\n]+)\n\n)?```(\w*)\n(.*?)```(?=\n)/gs)].map(
    ([, before = '', language = '', code = '']) => ({ before, language, code }),
  )

/** What differs from run to run, made equal. */
const equalized = (text: string) =>
  text
    .replace(/\bDone in [\d.]+ s\b/g, 'Done in N s')
    .replace(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g, 'CONVERSATION')

/** Expects each line that a guide shows, in this order; other lines may be in between, and `...` ends a line early. */
function expectPrinted(shown: string, printed: string): void {
  const lines = equalized(printed).split('\n')
  let from = 0
  for (const line of equalized(shown).trimEnd().split('\n')) {
    const start = line.replace(/\s*\.\.\.$/, '')
    const at = lines.findIndex(
      (each, index) => index >= from && (start === line ? each === line : each.startsWith(start)),
    )
    expect(at, `"${line}" is not printed in its place:\n${printed}`).toBeGreaterThanOrEqual(from)
    from = at + 1
  }
}

/**
 * Does what a guide says, from its first file or command on, and compares each output that it shows.
 * @param site where the site of the guide is served
 * @returns how many commands were run, and how many lines compared
 */
async function follow(guide: string, site = SITE_OF_GUIDE): Promise<{ commands: number; shown: number }> {
  const done = { commands: 0, shown: 0 }
  let printed = ''
  let conversation = ''
  for (const { before, language, code } of blocksOf(guide)) {
    const [, file] = /Save this as `([^`]+)`:$/.exec(before) ?? []
    if (file !== undefined) {
      mkdirSync(dirname(join(folder, file)), { recursive: true })
      writeFileSync(join(folder, file), code)
    } else if (language === 'sh') {
      const commands = code.replaceAll(SITE_OF_GUIDE, site).replaceAll('CONVERSATION', conversation)
      printed = (await sh(commands)).replaceAll(site, SITE_OF_GUIDE).replaceAll(url, WHERE_GUIDES_START)
      conversation = /--conversation ([\da-f-]{36})/.exec(printed)?.[1] ?? conversation
      done.commands += code.trimEnd().split('\n').length
    } else if (printed !== '') {
      expectPrinted(code, printed)
      done.shown += code.trimEnd().split('\n').length
    } else {
      // Before the first command a guide says how Parley is started, which this test has done.
      expect(code).toBe('npm ci\nnpm start\n')
    }
  }
  return done
}

test('"Ask your own Markdown" prints what it says', async () => {
  expect(await follow('markdown.md')).toEqual({ commands: 5, shown: 11 })
}, 120_000)

test('"Ask a CSV" prints what it says', async () => {
  expect(await follow('csv.md')).toEqual({ commands: 4, shown: 8 })
}, 120_000)

test('"Ask your website" prints what it says', async () => {
  const pages: Record<string, string> = {
    '/': '<h1>The museum of clocks</h1><p>Four hundred clocks from six centuries tick in a mill by the river.</p>',
    '/visit/hours':
      '<h1>Opening hours</h1><p>Doors open at ten and close at six. The museum is closed on Mondays and on 24 December.</p>',
    '/visit/tickets':
      '<h1>Tickets</h1><p>Tickets are sold at the door.</p><ul><li>Adults pay 9 euros</li><li>Children pay 4 euros</li></ul>',
    '/collection':
      '<h1>The collection</h1><p>The oldest clock was forged in 1478, for the tower of a town hall.</p>',
  }
  const asked: string[] = []
  const site = await serve(({ url: path = '', headers }, response) => {
    asked.push(path)
    const origin = `http://${headers.host}`
    if (path === '/robots.txt') {
      return void response.end(`User-agent: *\nDisallow: /staff\nSitemap: ${origin}/sitemap.xml\n`)
    }
    if (path === '/sitemap.xml') {
      const listed = [...Object.keys(pages), '/staff'].map((each) => `<url><loc>${origin}${each}</loc></url>`)
      response.writeHead(200, { 'content-type': 'application/xml' })
      return void response.end(`<urlset>${listed.join('')}</urlset>`)
    }
    const main = pages[path]
    if (main === undefined) return void response.writeHead(404).end()
    const title = /<h1>(.*?)<\/h1>/.exec(main)?.[1]
    response.writeHead(200, { 'content-type': 'text/html' }).end(
      `<html><head><title>${title}</title></head><body><nav><a href="/staff">For our staff</a></nav>
       <main>${main}</main><footer>The museum of clocks</footer></body></html>`,
    )
  })
  const followed = await follow('website.md', site.url).finally(() => site.stop())
  expect(followed).toEqual({ commands: 4, shown: 9 })
  expect(asked).not.toContain('/staff')
}, 120_000)

test('each guide is tested, links to files that exist, and is linked from the README', () => {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
  const guides = readdirSync(GUIDES)
  expect(guides.sort()).toEqual(['csv.md', 'markdown.md', 'website.md'])
  for (const guide of guides) {
    const text = readFileSync(join(GUIDES, guide), 'utf8')
    expect(readme).toContain(`(docs/guides/${guide})`)
    for (const section of text.split(/^(?=## )/m)) expect(section.length).toBeLessThan(4_000)
    const links = [...text.matchAll(/\]\(([^)#]+)(#[^)]*)?\)/g)].map(([, to = '']) => resolve(GUIDES, to))
    expect(links.filter((link) => !existsSync(link))).toEqual([])
    expect(links).not.toEqual([])
  }
})

test('the benchmark of a start imports a folder and a website, asks both, and prints their times', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [join(ROOT, 'bench/run.mjs'), 'start'], {
    env: { ...process.env, BENCH_PAGES: '30', BENCH_SITE_PAGES: '20' },
  })
  const times = String.raw`( \d+\.\d s \|){4} ≤ 120 s`
  expect(stdout).toMatch(new RegExp(`^\\| 30 Markdown pages \\|${times}`, 'm'))
  expect(stdout).toMatch(new RegExp(`^\\| 20 pages of a website \\|${times}`, 'm'))
}, 240_000)
