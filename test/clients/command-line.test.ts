/** `parley`, the command line, as a user types it, against a running Parley. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { packTar } from 'modern-tar'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { onePagePdf, oneParagraphDocx } from '../scripts/parley/files'
import { serve } from '../serve'
import { embeddedBy, startEmbedder } from './embedder'
import { KEY, request, unique, url } from './harness'
import { Relay } from './relay'
import { exported, runParley, spawnParley, writeIn } from './run-parley'

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'parley-cli-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const parley = (...args: string[]) => runParley(folder, args)
const write = (path: string, text: string | Uint8Array) => writeIn(folder, path, text)

test('a folder is imported by one command, and asked by the next', async () => {
  expect((await spawnParley(folder, ['--version'])).out).toMatch(/^\d+\.\d+\.\d+\n$/)
  const into = unique('guide')
  write('guide/index.md', '# The guide\n\nHow the aquarium is run.')
  write(
    'guide/sharks/sleep.md',
    '# Where sharks sleep\n\nNurse sharks rest in caves under ledges during the day.',
  )
  write(
    'guide/tanks.html',
    `<main><h1>Tanks</h1><p>${'The large tank holds two million litres. '.repeat(6)}</p></main>`,
  )
  write('guide/node_modules/x/readme.md', '# Not this')
  write('guide/.gitignore', 'drafts/\n')
  write('guide/drafts/x.md', '# Nor this')
  const { code, json } = await parley(
    'import',
    'guide',
    '--into',
    into,
    '--json',
    '--base-url',
    'https://aqua.example',
  )
  expect(code).toBe(0)
  expect(json).toMatchObject({ documents: 3, added: 3, failed: 0, unread: 0 })
  expect((await exported(into)).map(({ id, title, url, section }) => ({ id, title, url, section }))).toEqual([
    { id: 'guide/index.md', title: 'The guide', url: 'https://aqua.example/', section: undefined },
    {
      id: 'guide/sharks/sleep.md',
      title: 'Where sharks sleep',
      url: 'https://aqua.example/sharks/sleep',
      section: 'sharks',
    },
    { id: 'guide/tanks.html', title: 'Tanks', url: 'https://aqua.example/tanks', section: undefined },
  ])

  const asked = await parley('ask', '--assistant', into, 'Where do nurse sharks rest?', '--json')
  expect(asked.code).toBe(0)
  expect(asked.json.answer).toContain('caves')
  expect(asked.json.citations[0]).toMatchObject({ document_id: 'guide/sharks/sleep.md' })
  const read = await parley(
    'ask',
    '--assistant',
    into,
    '--conversation',
    asked.json.conversation_id,
    'How many litres does the large tank hold?',
  )
  expect(read.out).toContain('two million')
  expect(read.out).toMatch(/\[1\] Tanks {2}https:\/\/aqua\.example\/tanks/)

  const trace = await parley('trace', asked.json.conversation_id)
  expect(trace.out).toMatch(/Turn 1: Where do nurse sharks rest\?/)
  expect(trace.out).toContain('guide/sharks/sleep.md')
  // The model reads the pages, without what the import notes for itself.
  const { turns } = (await parley('trace', asked.json.conversation_id, '--json')).json
  const prompt = JSON.stringify(turns[0].trace.calls[0].prompt)
  expect(prompt).toContain('Nurse sharks rest in caves')
  expect(prompt).not.toContain('parley_')
  const found = await parley('search', '--collection', into, 'litres')
  expect(found.out).toContain('Tanks')
})

test('copies for printing, redirects and pages for what is missing are left out, but where all pages ask', async () => {
  const page = (title: string, head = '') =>
    `<html><head>${head}</head><body><main><h1>${title}</h1><p>${'Nurse sharks rest in caves. '.repeat(8)}</p></main></body></html>`
  const noindex = '<meta name="robots" content="noindex">'
  write('book/sharks.html', page('Sharks'))
  write('book/print.html', page('The whole book', noindex))
  write('book/old.html', page('Redirecting', '<meta http-equiv="refresh" content="0; url=sharks.html">'))
  write('book/404.html', page('Not found'))
  const into = unique('book')
  const { err } = await parley('import', 'book', '--into', into)
  expect(err).toContain(
    'Left out, since they redirect or ask not to be indexed (noindex): book/old.html, book/print.html',
  )
  expect((await exported(into)).map(({ id }) => id)).toEqual(['book/sharks.html'])

  write('preview/a.html', page('A', noindex))
  write('preview/b.html', page('B', noindex))
  const preview = unique('preview')
  await parley('import', 'preview', '--into', preview)
  expect((await exported(preview)).map(({ title }) => title)).toEqual(['A', 'B'])
})

test('PDF and Word files are imported beside pages', async () => {
  write('office/tanks.md', '# Tanks\n\nThe large tank holds two million litres.')
  write('office/sharks.pdf', onePagePdf('Sharks sleep in caves.'))
  write('office/rays.docx', await oneParagraphDocx('Rays rest on the sand.'))
  write('office/slides/week 1.odp', 'not read')
  write('office/logo.png', 'no document')
  const into = unique('office')
  const { code, err } = await parley('import', 'office', '--into', into)
  expect(code).toBe(0)
  expect(err).toContain('Left out: slides/week 1.odp. Save such files as PDF')
  expect(err).not.toContain('logo.png')
  expect((await exported(into)).map(({ id, title, text }) => [id, title, text])).toEqual([
    ['office/rays.docx', 'Rays', 'Rays rest on the sand.'],
    ['office/sharks.pdf', 'Sharks', '## Page 1\n\nSharks sleep in caves.'],
    ['office/tanks.md', 'Tanks', expect.stringContaining('two million litres')],
  ])
})

test('an assistant is asked with its own searches', async () => {
  const into = unique('own')
  write('own/open.md', '# Hours\n\nThe aquarium opens at nine.')
  write('own/closed/old.md', '# Hours of last year\n\nThe aquarium opens at eleven.')
  await parley('import', 'own', '--into', into)
  const assistant = {
    model: into,
    searches: [{ collection: into, filter_by: 'section:!=closed' }],
    title_field: 'title',
  }
  expect((await request('PUT', `/assistants/${into}`, assistant)).status).toBe(200)
  const { json } = await parley('ask', '--assistant', into, 'When does the aquarium open?', '--json')
  expect(json.sources.map(({ document_id }: { document_id: string }) => document_id)).toEqual(['own/open.md'])
})

test('what is unchanged is not sent; what is gone goes with --prune, and no other document does', async () => {
  const into = unique('again')
  write('again/a.md', '# A\n\nOne.')
  write('again/b.md', '# B\n\nTwo.')
  await parley('import', 'again', '--into', into)
  await request('POST', `/collections/${into}/documents`, { id: 'own', title: 'Own', text: 'Not imported.' })
  expect((await parley('import', 'again', '--into', into, '--json')).json).toMatchObject({
    added: 0,
    changed: 0,
    unchanged: 2,
  })

  write('again/a.md', '# A\n\nOne, changed.')
  rmSync(join(folder, 'again/b.md'))
  const kept = await parley('import', 'again', '--into', into)
  expect(kept.err).toContain('--prune removes it')
  expect((await exported(into)).map(({ id }) => id)).toEqual(['again/a.md', 'again/b.md', 'own'])
  expect((await parley('import', 'again', '--into', into, '--prune', '--json')).json).toMatchObject({
    gone: 1,
    removed: 1,
  })
  expect((await exported(into)).map(({ id, text }) => [id, text])).toEqual([
    ['again/a.md', '# A\n\nOne, changed.'],
    ['own', 'Not imported.'],
  ])
})

test('a dry run shows the schema and makes nothing', async () => {
  const into = unique('dry')
  const file = write('films.csv', 'title,year,genre\nReef,2023,nature\nQuiet Kitchen,2019,drama\n')
  const { json } = await parley('import', file, '--into', into, '--dry-run', '--json')
  expect(json).toMatchObject({ dry_run: true, added: 2 })
  expect(json.schema).toContainEqual({ name: 'year', type: 'int64', optional: true })
  expect((await request('GET', `/collections/${into}`)).status).toBe(404)
})

test('a table becomes typed documents; what the server refuses stands in a file, and the rest is in', async () => {
  const into = unique('films')
  write('films.csv', 'title,year,genre\nReef,2023,nature\nQuiet Kitchen,2019,drama\nBroken,soon,drama\n')
  const { code, err } = await parley('import', 'films.csv', '--into', into, '--field', 'year:int32')
  expect(code).toBe(6)
  expect((await exported(into)).map(({ id, title, year }) => [id, title, year])).toEqual([
    ['films.csv/1', 'Reef', 2023],
    ['films.csv/2', 'Quiet Kitchen', 2019],
  ])
  expect(err).toContain(`${into}-errors.jsonl`)
  expect(JSON.parse(readFileSync(join(folder, `${into}-errors.jsonl`), 'utf8'))).toMatchObject({
    source: 'films.csv/3',
  })
})

test('an import that was killed goes on where it stopped', async () => {
  const into = unique('broken')
  for (let at = 0; at < 40; at++) write(`broken/${at}.md`, `# Page ${at}\n\nText ${at}.`)
  // The server dies after its first batches, from the importer's point of view: the connection breaks.
  let batches = 0
  const proxy = await serve(async (incoming, outgoing) => {
    if (incoming.url?.includes('/import') && ++batches === 2) return void incoming.socket.destroy()
    const body: Buffer[] = []
    for await (const piece of incoming) body.push(piece)
    const answer = await fetch(url + incoming.url, {
      method: incoming.method ?? 'GET',
      headers: { 'x-typesense-api-key': 'xyz' },
      ...(body.length > 0 && { body: Buffer.concat(body) }),
    })
    outgoing.writeHead(answer.status).end(Buffer.from(await answer.arrayBuffer()))
  })
  write('broken/big.md', `# Big\n\n${'word '.repeat(250_000)}`)
  const { code, json } = await parley(
    'import',
    'broken',
    '--into',
    into,
    '--url',
    proxy.url,
    '--json',
    '--no-wait',
    '--whole',
  )
  await proxy.stop()
  expect(batches).toBeGreaterThan(2)
  expect(code).toBe(0)
  expect(json).toMatchObject({ added: 41, failed: 0 })
  expect(await exported(into)).toHaveLength(41)
})

test('a website is crawled, imported and asked', async () => {
  const into = unique('site')
  const pages = 30
  const site = await serve(({ url: path = '' }, response) => {
    const at = Number(/^\/p(\d+)$/.exec(path)?.[1] ?? (path === '/' ? 0 : Number.NaN))
    if (Number.isNaN(at)) return void response.writeHead(404).end()
    const links = [2 * at + 1, 2 * at + 2]
      .filter((to) => to < pages)
      .map((to) => `<a href="/p${to}">${to}</a>`)
    response.writeHead(200, { 'content-type': 'text/html' }).end(
      `<html><head><title>Ward ${at}</title></head><body><main><h1>Ward ${at}</h1>
       <p>The nurse of ward ${at} is called Nurse${at}x. ${'She looks after the patients of it. '.repeat(6)}</p>
       ${links.join(' ')}</main></body></html>`,
    )
  })
  const { code, json } = await parley('import', `${site.url}/`, '--into', into, '--json')
  expect(code).toBe(0)
  expect(json).toMatchObject({ documents: pages, failed: 0 })
  expect((await parley('import', `${site.url}/`, '--into', into, '--json')).json).toMatchObject({
    unchanged: pages,
  })
  await site.stop()
  const asked = await parley('ask', '--assistant', into, 'What is the nurse of ward 17 called?', '--json')
  expect(asked.json.answer).toContain('Nurse17x')
})

test('a Git archive is registered, read, and read again where it changed', async () => {
  const into = unique('archive')
  const archive = (body: string) =>
    packTar([
      { header: { name: 'guide-main/', type: 'directory', size: 0 } },
      { header: { name: 'guide-main/docs/tides.md', type: 'file', size: Buffer.byteLength(body) }, body },
    ]).then(gzipSync)
  let packed = await archive(`# Tides\n\nThe moon makes the tides.`)
  const site = await serve(({ url: path, headers }, response) => {
    const etag = `"${packed.length}"`
    const status = path !== '/o/r/archive/main.tar.gz' ? 404 : headers['if-none-match'] === etag ? 304 : 200
    response.writeHead(status, { etag })
    response.end(status === 200 ? packed : undefined)
  })
  try {
    const address = `${site.url}/o/r/archive/main.tar.gz#docs`
    const named = ['--name', into, '--base-url', 'https://guide.example']
    const added = await parley('source', 'add', address, '--into', into, ...named, '--json')
    expect(added.json).toMatchObject({ name: into, kind: 'archive', url: address })
    const run = async () => (await parley('source', 'run', into, '--json')).json.last_run
    expect(await run()).toMatchObject({ pages: 1, changed: 1, failed: 0 })
    expect(await run()).toMatchObject({ pages: 1, changed: 0, unchanged: 1 })
    packed = await archive(`# Tides\n\nThe moon makes the tides, and so does the sun.`)
    expect(await run()).toMatchObject({ changed: 1 })
    const query = new URLSearchParams({ q: 'sun', query_by: 'text', include_fields: 'text,url' })
    const found = await request('GET', `/collections/${into}/documents/search?${query}`)
    const { text, url: page } = found.body.hits[0].document
    expect([text, page]).toEqual([expect.stringContaining('so does the sun'), 'https://guide.example/tides'])
    await parley('source', 'remove', into)
  } finally {
    await site.stop()
  }
})

test('a question set is measured, saved and compared', async () => {
  const into = unique('set')
  write('set/reef.md', '# The reef\n\nThe reef was filmed for five years.')
  write('set/inn.md', '# The inn\n\nTwo sisters inherit an inn.')
  await parley('import', 'set', '--into', into)
  write(
    'questions.jsonl',
    [
      { question: 'How long was the reef filmed?', relevant: ['set/reef.md'], answer: 'five years' },
      { question: 'Who inherits an inn?', relevant: ['set/inn.md'], answer: 'two sisters' },
    ]
      .map((each) => JSON.stringify(each))
      .join('\n'),
  )
  const asked = ['eval', 'questions.jsonl', '--assistant', into]
  const { json } = await parley(...asked, '--save', 'run.json', '--json')
  expect(json.summary).toMatchObject({ questions: 2, right: 2, failed: 0, first: 1, tokens: 0, dollars: 0 })
  const compared = await parley(...asked, '--compare', 'run.json')
  expect(compared.out).toMatch(/Right passage is the first +100% +100%/)
  const plain = write('questions.txt', 'Who inherits an inn? => two sisters @ set/inn.md\nWho cooks? =>')
  const told = await parley('eval', plain, '--assistant', into)
  expect(told.out).toMatch(/^right +Who inherits an inn\?\n +rank 1 · 0 tokens · \d/m)
  expect(told.out).toMatch(/^declined rightly +Who cooks\?/m)
  // The assistant itself is asked, with its own prompt and its own ways to search.
  const { trace } = (await parley('trace', json.outcomes[0].conversation_id, '--json')).json.turns[0]
  expect(trace.assistant).toBe(into)
  expect((await parley('eval', write('bad.jsonl', '{"q":1}'), '--assistant', into)).err).toContain('line 1')
})

test('usage shows what was asked, with money where a price is known', async () => {
  const into = unique('used')
  write('used/a.md', '# Hours\n\nThe aquarium opens at nine.')
  await parley('import', 'used', '--into', into)
  await parley('ask', '--assistant', into, 'When does the aquarium open?')
  const row = { conversation_model_id: into, model_name: 'local/extractive', turns: 1 }
  await expect
    .poll(async () => (await parley('usage', '--json')).json.rows)
    .toContainEqual(expect.objectContaining(row))
  expect((await parley('usage', '--price', 'nonsense')).code).toBe(2)
  // Several conversation models may answer with the same language model: each row names its own.
  const { out } = await parley('usage')
  expect(out).toMatch(new RegExp(`^\\d{4}-\\d\\d-\\d\\d .* ${into} +local/extractive +1 `, 'm'))
})

test('doctor names what is missing and what to do', async () => {
  expect((await parley('doctor', '--url', 'http://127.0.0.1:1')).out).toMatch(/FAIL.*answers\n.*npm start/s)
  expect((await parley('doctor', '--key', 'wrong')).out).toMatch(/FAIL {2}The key is accepted/)
  const name = unique('left')
  await parley('init', '--name', name)
  await request('DELETE', `/collections/${name}`)
  const { code, out } = await parley('doctor')
  expect(code).toBe(6)
  expect(out).toContain(`FAIL  Assistant ${name} finds ${name}`)
  await request('DELETE', `/assistants/${name}`)
})

test('doctor tells of a cluster that does not answer', async () => {
  const relay = await new Relay(url).open()
  const [there, here] = [unique('there'), unique('here')]
  const fields = [{ name: 'title', type: 'string' }]
  await request('POST', '/collections', { name: there, fields })
  const engine = { type: 'typesense', nodes: [relay.url], credentials: { api_key: KEY }, collection: there }
  expect((await request('POST', '/collections', { name: here, engine })).status).toBe(201)
  await relay.close()
  expect((await parley('doctor')).out).toContain(`FAIL  The typesense cluster of ${here} answers`)
  for (const name of [here, there]) await request('DELETE', `/collections/${name}`)
})

test('doctor tells of vectors that are missing, and why', async () => {
  const embedder = await startEmbedder()
  const name = unique('waiting')
  await request('POST', '/collections', {
    name,
    fields: [{ name: 'title', type: 'string' }, embeddedBy(embedder, ['title'])],
  })
  embedder.limit(1_000, 60)
  await request('POST', `/collections/${name}/documents`, { title: 'Reef' })
  await expect
    .poll(async () => (await parley('doctor')).out, { timeout: 20_000 })
    .toMatch(`Vectors of ${name}`)
  await request('DELETE', `/collections/${name}`)
  await embedder.stop()
})

test.each([
  [['import', '/nowhere'], 2, 'There is no file or folder'],
  [['import'], 2, 'missing required argument'],
  [['nonsense'], 2, 'unknown command'],
  [['ask', '--assistant', 'nobody', 'x'], 2, 'There is no assistant nobody'],
  [['search', '--url', 'http://127.0.0.1:1', 'x'], 3, 'Nobody answers'],
  [['search', '--key', 'wrong', 'x'], 4, 'The key may not'],
  [['search', '--collection', 'nowhere', 'x'], 5, 'refused with 404'],
  [['import', 'package.json', '--into', 'docs'], 2, 'There is no file'],
])('%j ends with %i and says why', async (args, code, message) => {
  const ran = await parley(...args)
  expect(ran.err).toContain(message)
  expect(ran.code).toBe(code)
})

test('the sample is not mixed with what somebody imports', async () => {
  write('mine/a.md', '# Mine')
  const into = unique('sample')
  await request('POST', '/collections', {
    name: into,
    fields: [{ name: 'title', type: 'string' }],
    metadata: { sample: 'x' },
  })
  const ran = await parley('import', 'mine', '--into', into)
  expect([ran.code, ran.err]).toEqual([2, expect.stringContaining('holds the sample')])
})
