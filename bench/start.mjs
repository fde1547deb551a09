/**
 * How long it takes from `npm start` to the first answer, over a folder and over a website: `npm run bench start`.
 *
 * Everything runs as its user runs it: `npm start` with its sample, and each command through npm. BENCH_PAGES and
 * BENCH_SITE_PAGES say how many pages there are. A wrong answer ends the benchmark with an error.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeDocument } from './documents.mjs'

const root = join(import.meta.dirname, '..')
const PAGES = Number(process.env.BENCH_PAGES ?? 300)
const SITE_PAGES = Number(process.env.BENCH_SITE_PAGES ?? 200)
const AIM_SECONDS = 120
const SECTIONS = 3

/** Listens on a free port. @returns the server and where it answers */
async function listen(listener) {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, url: `http://127.0.0.1:${server.address().port}` }
}

async function freePort() {
  const { server, url } = await listen()
  server.close()
  await once(server, 'close')
  return new URL(url).port
}

/** Runs `npm start` until it says that it is ready. @throws with what it printed when it ends before that */
async function startParley(scratch) {
  const port = await freePort()
  const args = ['scripts/start.mjs', '--port', port, '--persist-to', join(scratch, 'data')]
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
  let printed = ''
  await new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (data) => {
        printed += data
        if (printed.includes('Ctrl-C stops it.')) resolve()
      })
    }
    child.once('error', reject)
    child.once('close', (code) => reject(new Error(`npm start ended with ${code}:\n${printed}`)))
  })
  const stop = async () => {
    if (child.exitCode !== null) return
    child.kill('SIGTERM')
    await once(child, 'close')
  }
  return { url: `http://localhost:${port}`, stop }
}

/** `npm run parley -- ...`. @returns what it printed @throws with that when it fails */
async function parley(url, ...args) {
  const child = spawn('npm', ['run', '--silent', 'parley', '--', ...args], {
    cwd: root,
    env: { ...process.env, PARLEY_URL: url, PARLEY_API_KEY: 'xyz' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (data) => {
      printed += data
    })
  }
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`parley ${args.join(' ')} ended with ${code}:\n${printed}`)
  return printed
}

/** The page numbered `n`, about 3 KB in three sections: made-up words, and one fact that can be asked for. */
function sectionsOf(n) {
  const parts = Array.from({ length: SECTIONS }, (_, at) => makeDocument(n * SECTIONS + at))
  const fact = `Pump ${n} needs the valve ${valve(n)}.`
  return parts.map(({ title, text }, at) => ({ title, text: at === 1 ? `${fact} ${text}.` : `${text}.` }))
}

const valve = (n) => `KV-${n}x`

const markdown = (n) => {
  const sections = sectionsOf(n).map(({ title, text }) => `## ${title}\n\n${text}\n`)
  return `# Pump ${n}\n\n${sections.join('\n')}`
}

const html = (n) => {
  const sections = sectionsOf(n).map(({ title, text }) => `<h2>${title}</h2><p>${text}</p>`)
  const links = [2 * n + 1, 2 * n + 2]
    .filter((to) => to < SITE_PAGES)
    .map((to) => `<a href="/p${to}">${to}</a>`)
  const main = `<main><h1>Pump ${n}</h1>${sections.join('')}</main>`
  return `<!doctype html><title>Pump ${n}</title>${main}<nav>${links.join(' ')}</nav>`
}

/** Serves the site: `/` is page 0, and each page links to two more. */
const serveSite = () =>
  listen(({ url }, response) => {
    const n = url === '/' ? 0 : Number(/^\/p(\d+)$/.exec(url)?.[1] ?? Number.NaN)
    if (!(n < SITE_PAGES)) return void response.writeHead(404).end()
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(html(n))
  })

/** @returns what `run` gives, and the seconds that it took */
async function timed(run) {
  const began = performance.now()
  const value = await run()
  return { value, seconds: (performance.now() - began) / 1000 }
}

/** Imports all pages and asks for the fact of one. @returns the seconds of both @throws Error when the answer is wrong */
async function importAndAsk(url, from, into, pages) {
  const imported = await timed(() => parley(url, 'import', from, '--into', into))
  if (!imported.value.includes(`${pages} pages in `))
    throw new Error(`Not all of ${pages}:\n${imported.value}`)
  const n = Math.floor(pages * 0.7)
  const asked = await timed(() => parley(url, 'ask', '--assistant', into, `Which valve does pump ${n} need?`))
  if (!asked.value.includes(valve(n))) throw new Error(`A wrong answer:\n${asked.value}`)
  return [imported.seconds, asked.seconds]
}

export async function benchStart() {
  const scratch = mkdtempSync(join(tmpdir(), 'parley-bench-start-'))
  const folder = join(scratch, 'pumps')
  mkdirSync(folder)
  for (let n = 0; n < PAGES; n++) writeFileSync(join(folder, `pump-${n}.md`), markdown(n))
  const site = await serveSite()
  let server
  try {
    const started = await timed(() => startParley(scratch))
    server = started.value
    const folderTimes = await importAndAsk(server.url, folder, 'folder', PAGES)
    const siteTimes = await importAndAsk(server.url, `${site.url}/`, 'site', SITE_PAGES)
    console.log(
      lines([
        [`${PAGES} Markdown pages`, started.seconds, ...folderTimes],
        [`${SITE_PAGES} pages of a website`, started.seconds, ...siteTimes],
      ]),
    )
  } finally {
    await server?.stop()
    site.server.closeAllConnections()
    site.server.close()
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** The table, in Markdown. Start is the same one in both rows. */
function lines(rows) {
  const head = [
    '| what | start | import | first answer | together | aim |',
    '| --- | --- | --- | --- | --- | --- |',
  ]
  const body = rows.map(([what, ...times]) => {
    const together = times.reduce((sum, each) => sum + each, 0)
    const cells = [...times, together].map((each) => `${each.toFixed(1)} s`)
    const missed = together > AIM_SECONDS ? ' MISSED' : ''
    return `| ${what} | ${cells.join(' | ')} | ≤ ${AIM_SECONDS} s${missed} |`
  })
  return [...head, ...body].join('\n')
}
