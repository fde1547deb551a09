/**
 * What a long answer costs the page that shows it, in real Chromium: `npm run bench -- widget`. An answer of 2,000 chunks
 * of Markdown is streamed into the widget, and into the console's chat. Reported are the main thread's milliseconds a
 * chunk, its longest task, layout shift, and when the page first painted. A task is timed on the processor, so that a busy
 * machine does not make it longer. Tests check how much is put into the page, and the shifts (test/browser/frames.test.ts); sizes
 * are checked as they are built (scripts/widget.mjs, scripts/console.mjs).
 */
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import { chromium } from 'playwright-core'
import { buildConsole } from '../scripts/console.mjs'
import { buildWidget } from '../scripts/widget.mjs'
import { HISTORY_FIELDS } from './documents.mjs'
import { median } from './report.mjs'
import { call } from './server.mjs'
import { CATEGORIES, tasksIn } from './tasks.mjs'

export const CHUNKS = 2_000
/** milliseconds between chunks: 200 tokens a second, a usual model */
const GAP_MS = 5
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3)
/** A frame that is longer is seen to stutter. */
const LONGEST_FRAME_MS = 50
const QUESTION = 'What is in the guide?'
const LAST = 'The end of the answer'

const SECTION = `## A section of the answer

The reef was **filmed** for _five years_, by divers with [a guide](https://example.com/guide) and \`three\` cameras.

- first they looked for the corals
- then for the fish, and for what the fish eat

| what | how many |
| ---- | -------- |
| fish | 12 |
| rays | 3 |

\`\`\`js
const found = reef.filter(({ kind }) => kind === 'ray')
\`\`\`

> The sharks sleep where the current is strong.

`

/** Markdown in `CHUNKS` pieces, all of the same length but the last. */
function pieces() {
  const text = SECTION.repeat(Math.ceil((CHUNKS * 5) / SECTION.length)).slice(0, CHUNKS * 5 - 120)
  const whole = `${text}\n\n\`\`\`\n\`\`\`\n\n${LAST}`
  const size = whole.length / CHUNKS
  return Array.from({ length: CHUNKS }, (_, n) =>
    whole.slice(Math.round(n * size), Math.round((n + 1) * size)),
  )
}

/** A language model that writes Markdown at a steady pace. */
async function startWriter() {
  const written = pieces()
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const bytes of request) body += bytes
    if (JSON.parse(body).stream !== true) {
      const message = { role: 'assistant', content: 'hello' }
      response.writeHead(200, { 'content-type': 'application/json' })
      return void response.end(JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }] }))
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const began = performance.now()
    for (const [n, content] of written.entries()) {
      response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`)
      const early = (n + 1) * GAP_MS - (performance.now() - began)
      if (early > 0) await new Promise((resolve) => setTimeout(resolve, early))
    }
    response.write(
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}\n\n`,
    )
    response.end('data: [DONE]\n\n')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    stop() {
      server.closeAllConnections()
      server.close()
    },
  }
}

async function setStage(server, writer) {
  const post = (path, body, method = 'POST') => call(server, path, { method, body: JSON.stringify(body) })
  await post('/collections', { name: 'guide', fields: [{ name: 'text', type: 'string' }] })
  await post('/collections/guide/documents', { id: '1', text: 'What is in the guide is the reef.' })
  await post('/collections', { name: 'talk', fields: HISTORY_FIELDS })
  await post('/conversations/models', {
    id: 'writer',
    model_name: 'openai/writer',
    api_key: 'sk',
    openai_url: writer.url,
    history_collection: 'talk',
    max_bytes: 16_384,
  })
  await post('/assistants/guide', { model: 'writer', collections: ['guide'] }, 'PUT')
}

/** Notes layout shifts that no key or click explains, and where they were. */
const OBSERVE = `
  globalThis.shifts = []
  new PerformanceObserver((list) => {
    for (const { value, hadRecentInput, sources } of list.getEntries())
      if (!hadRecentInput) shifts.push({ value, of: sources.map(({ node }) => node?.className ?? node?.nodeName) })
  }).observe({ type: 'layout-shift', buffered: true })`

/**
 * Streams one answer into a page.
 * @param {(page) => Promise<void>} open goes to the page
 */
async function measure(browser, open, question) {
  const page = await browser.newPage({ viewport: { width: 1360, height: 860 } })
  page.setDefaultTimeout(120_000)
  await page.addInitScript(OBSERVE)
  await open(page)
  const box = page.getByRole('textbox').first()
  await box.fill(question)
  const paint = await page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
  await page.evaluate('shifts.length = 0')
  await browser.startTracing(page, { categories: CATEGORIES })
  await box.press('Enter')
  await page.getByText(LAST).first().waitFor()
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString())
  const tasks = tasksIn(traceEvents)
  const shifts = await page.evaluate('shifts')
  await page.close()
  return {
    paint,
    aChunk: tasks.reduce((sum, each) => sum + each, 0) / CHUNKS,
    longest: Math.max(...tasks),
    long: tasks.filter((each) => each > LONGEST_FRAME_MS).length,
    shift: shifts.reduce((sum, { value }) => sum + value, 0),
    shifted: [...new Set(shifts.flatMap(({ of }) => of))],
  }
}

/** Builds what is measured: before the server starts, which lists its files then. */
export async function buildPages() {
  await buildWidget()
  await buildConsole()
}

export async function benchWidget(server) {
  const executablePath = ['/usr/bin/chromium', '/usr/bin/google-chrome'].find((path) => existsSync(path))
  if (!executablePath) {
    console.log('Left out: there is no Chromium (apt-get install chromium).')
    return
  }
  const writer = await startWriter()
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
  const widget = async (page) => {
    const html = `<!doctype html><html lang="en"><title>A page</title>
      <script type="module" src="/widget/parley-chat.js"></script>
      <main><h1>A page</h1><parley-chat mode="inline" assistant="guide" key="xyz"></parley-chat></main></html>`
    await page.route('**/bench-page', (route) => route.fulfill({ contentType: 'text/html', body: html }))
    await page.goto(`${server.url}/bench-page`)
  }
  const chat = async (page) => {
    await page.addInitScript("sessionStorage.setItem('parley.key', 'xyz')")
    await page.goto(`${server.url}/?assistant=guide`)
  }
  try {
    await setStage(server, writer)
    const rows = []
    for (const [what, open] of Object.entries({ 'the widget': widget, "the console's chat": chat })) {
      const runs = []
      // A question that was just asked gets a copy of that answer.
      for (let round = 0; round < ROUNDS; round++)
        runs.push(await measure(browser, open, `${QUESTION} ${what} ${round}`))
      const of = (name) => median(runs.map((run) => run[name]))
      rows.push([
        what,
        `${of('aChunk').toFixed(2)} ms`,
        `${of('longest').toFixed(0)} ms`,
        String(Math.max(...runs.map(({ long }) => long))),
        Math.max(...runs.map(({ shift }) => shift)).toFixed(3),
        `${of('paint').toFixed(0)} ms`,
      ])
      const moved = [...new Set(runs.flatMap(({ shifted }) => shifted))]
      if (moved.length > 0) console.log(`${what}: moved ${moved.join(', ')}`)
    }
    console.log(
      [
        [
          'answer of 2,000 chunks in',
          'main thread a chunk',
          'longest task',
          `tasks over ${LONGEST_FRAME_MS} ms`,
          'layout shift',
          'first paint',
        ],
        Array(6).fill('---'),
        ...rows,
      ]
        .map((cells) => `| ${cells.join(' | ')} |`)
        .join('\n'),
    )
  } finally {
    await browser.close()
    writer.stop()
  }
}
