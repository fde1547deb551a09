/** `parley import` where a document could be lost, or where nothing comes of it: as a user runs it. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { KEY, request, unique, url } from './harness'
import { exported, runParley, spawnParley, writeIn } from './run-parley'

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'parley-import-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const parley = (...args: string[]) => runParley(folder, args)
const write = (path: string, text: string) => writeIn(folder, path, text)

test('a folder does not replace another one of the same name; a checkout of it elsewhere is updated', async () => {
  const into = unique('two')
  write('one/docs/index.md', '# One\n\nThe first project.')
  write('one/docs/extra.md', '# Extra\n\nMore of the first one.')
  write('two/docs/index.md', '# Two\n\nThe second project.')
  expect((await parley('import', 'one/docs', '--into', into)).code).toBe(0)
  const refused = await parley('import', 'two/docs', '--into', into, '--prune')
  expect([refused.code, refused.err]).toEqual([2, expect.stringContaining('--source NAME')])
  const named = await parley(
    ...['import', 'two/docs', '--into', into, '--source', 'second', '--base-url', 'https://two.example'],
    ...['--prune', '--json'],
  )
  expect(named.json).toMatchObject({ source: 'second', added: 1, removed: 0 })
  expect((await exported(into)).map(({ id, title, url }) => [id, title, url])).toEqual([
    ['docs/extra.md', 'Extra', undefined],
    ['docs/index.md', 'One', undefined],
    ['second/index.md', 'Two', 'https://two.example/'],
  ])

  // From its own folder everything may change; elsewhere it is known by what did not.
  write('one/docs/index.md', '# One\n\nThe first project, changed.')
  write('one/docs/extra.md', '# Extra\n\nMore of it.')
  expect(
    (await runParley(join(folder, 'one/docs'), ['import', '.', '--into', into, '--json'])).json,
  ).toMatchObject({
    changed: 2,
  })
  write('checkout/docs/index.md', '# One\n\nThe first project, changed again.')
  write('checkout/docs/extra.md', '# Extra\n\nMore of it.')
  const moved = await parley('import', 'checkout/docs', '--into', into, '--json')
  expect(moved.json).toMatchObject({ changed: 1, unchanged: 1, gone: 0 })
  expect(moved.err).toContain('from another place before')
  // Who names the source decides.
  write('two/docs/extra.md', '# Extra\n\nOf the second one.')
  expect(
    (await parley('import', 'two/docs', '--into', into, '--source', 'docs', '--json')).json,
  ).toMatchObject({
    changed: 2,
  })
})

test('each of several files is an import of its own, unless they are given one name', async () => {
  const into = unique('files')
  const [a = '', b = '', c = '', d = ''] = ['a', 'b', 'c', 'd'].map((name) =>
    write(`apart/${name}.md`, `# ${name}\n\nThe text of ${name}.`),
  )
  await parley('import', a, b, '--into', into)
  const rows = write('apart/rows.md', '# Rows\n\nOne.')
  expect((await parley('import', c, d, rows, '--into', into, '--prune', '--json')).json).toMatchObject({
    source: 'c.md, d.md, rows.md',
    added: 3,
    removed: 0,
  })
  expect((await exported(into)).map(({ id, section }) => [id, section])).toEqual(
    ['a.md', 'b.md', 'c.md', 'd.md', 'rows.md'].map((id) => [id, undefined]),
  )
  // The same file, from wherever, is the same document; with others or alone.
  expect(
    (await runParley(join(folder, 'apart'), ['import', 'a.md', '--into', into, '--json'])).json,
  ).toMatchObject({
    unchanged: 1,
  })
  const other = write('else/a.md', '# Other\n\nAnother text.')
  expect((await parley('import', b, other, '--into', into)).err).toContain('"a.md"')
  expect((await parley('import', a, other, '--into', into)).err).toContain('have the same name')

  await parley('import', a, b, '--into', into, '--source', 'pair')
  expect(
    (await parley('import', a, '--into', into, '--source', 'pair', '--prune', '--json')).json,
  ).toMatchObject({ unchanged: 1, removed: 1 })
  expect((await exported(into)).map(({ id }) => id)).toEqual([
    'a.md',
    'b.md',
    'c.md',
    'd.md',
    'pair/a.md',
    'rows.md',
  ])
})

const faultsIn = (file: string) =>
  readFileSync(join(folder, file), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))

test('rows with the same id are told by their lines; the first one is imported', async () => {
  const into = unique('castles')
  write('castles.csv', 'Nr;Name\n001;"Keep\nand moat"\n003;Castle\n003;Castle XL\n003;Castle\n')
  const { code, out } = await parley(
    'import',
    'castles.csv',
    '--into',
    into,
    '--id-field',
    'Nr',
    '--errors',
    'c.jsonl',
  )
  expect([code, out]).toEqual([6, expect.stringContaining('2 sent, 0 unchanged, 0 removed, 1 failed')])
  expect(faultsIn('c.jsonl')).toEqual([
    {
      source: 'castles.csv, line 5',
      error: 'its id "003" is that of castles.csv, line 4 already: each row needs an id of its own',
    },
  ])
  expect((await exported(into)).map(({ id, Name }) => [id, Name])).toEqual([
    ['001', 'Keep\nand moat'],
    ['003', 'Castle'],
  ])
})

test('a row with more cells than the table has columns is told by its line, and not cut', async () => {
  const into = unique('prices')
  write(
    'prices.csv',
    'Name,Price,Since\nKettle,"$1,249.00",2026\nToaster,$1,049.00,2026\nIron,$39.00,2025,,\n',
  )
  const { code } = await parley('import', 'prices.csv', '--into', into, '--errors', 'p.jsonl')
  expect(code).toBe(6)
  expect(faultsIn('p.jsonl')).toEqual([
    {
      source: 'prices.csv, line 3',
      error: 'has 4 cells, and the table 3 columns: put a cell with "," in it into double quotes',
    },
  ])
  // The others keep the numbers that they will have when the row is mended.
  expect((await exported(into)).map(({ id, Name, Price, Since }) => [id, Name, Price, Since])).toEqual([
    ['prices.csv/1', 'Kettle', '$1,249.00', 2026],
    ['prices.csv/3', 'Iron', '$39.00', 2025],
  ])
})

test('the assistant of a collection whose name is none for an assistant gets a fitting one', async () => {
  const word = unique('x')
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '')
  const [into, same, name] = [`Käse_${word}`, `kase.${word}`, `kase-${word}`]
  write('shelf/a.md', '# Gouda\n\nGouda ripens for ten months.')
  const imported = await parley('import', 'shelf', '--into', into)
  expect(imported.err).toContain(`Ask: parley ask --assistant ${name} ...`)
  expect((await parley('ask', '--assistant', name, 'How long does Gouda ripen?')).out).toContain('ten months')
  // Again it is the same one; a collection that would have that name, too, has another.
  expect((await parley('import', 'shelf', '--into', into, '--json')).json.assistant).toBe(name)
  expect((await parley('import', 'shelf', '--into', same, '--json')).json.assistant).toBe(`${name}-2`)
})

test('files that are not on the web have no address, so that none leads to the server that imported them', async () => {
  const into = unique('moved')
  write(
    'cellar/own.md',
    '---\nurl: https://cellar.example/document#own\n---\n# Comté\n\nComté ripens for a year.',
  )
  write('cellar/brie de meaux.md', '# Brie\n\nBrie ripens for six weeks.')
  await parley('import', 'cellar', '--into', into)
  // As an earlier import left it, on another server: visitors are not led there, nor is who has a key.
  const id = 'cellar/brie de meaux.md'
  const old = `http://127.0.0.1:1/document#${into}/${encodeURIComponent(id)}`
  const path = `/collections/${into}/documents/${encodeURIComponent(id)}`
  for (const address of ['', old]) {
    if (address !== '') await request('PATCH', path, { url: address })
    expect((await parley('ask', '--assistant', into, 'How long does Brie ripen?')).out).toContain(
      `[1] Brie  ${url}/document#${into}/${encodeURIComponent(id)}`,
    )
    const { body } = await request('POST', '/v1/chat/completions', {
      model: into,
      messages: [{ role: 'user', content: 'How long does Brie ripen?' }],
    })
    const [{ message }] = body.choices
    expect(message.content).toContain('six weeks')
    expect(message.context.citations[0].url).toBeNull()
    expect(message.annotations).toEqual([])
  }
  expect((await parley('ask', '--assistant', into, 'How long does Comté ripen?')).out).toContain(
    '[1] Comté  https://cellar.example/document#own',
  )
})

test('the hint to go on with a conversation works as it is printed', async () => {
  const into = unique('hint')
  write('hint/a.md', '# Gouda\n\nGouda ripens for ten months. It comes from Holland.')
  await parley('import', 'hint', '--into', into)
  const hintOf = (err: string) => (/Go on: parley (.*) \.\.\.$/m.exec(err)?.[1] ?? '').split(' ')
  const first = await parley('ask', '--assistant', into, 'How long does Gouda ripen?')
  const hint = hintOf(first.err)
  expect(hint.slice(0, 4)).toEqual(['ask', '--assistant', into, '--conversation'])
  const second = await parley(...hint, 'Where does it come from?')
  expect([second.code, second.out]).toEqual([0, expect.stringContaining('Holland')])

  // Without PARLEY_URL the address has to be in it, and what was asked without an assistant has none.
  const named = ['--url', url, '--collection', into, '--model', into]
  const elsewhere = { PARLEY_URL: 'http://127.0.0.1:1' }
  const asked = await runParley(folder, ['ask', ...named, 'How long does Gouda ripen?'], elsewhere)
  const followed = await runParley(folder, [...hintOf(asked.err), 'Where does it come from?'], elsewhere)
  expect([followed.code, followed.out]).toEqual([0, expect.stringContaining('Holland')])
})

test('a file that did not change costs a hash: only what did is converted, and what that changes for others', async () => {
  const into = unique('same')
  const page = (title: string, text: string) =>
    `# ${title}\n\n${text} ${'It goes on. '.repeat(9)}\n\n## More\n\n${'More of it. '.repeat(60)}\n`
  const run = async (...args: string[]) => {
    const { code, json, err } = await parley('import', 'same', '--into', into, '--json', ...args)
    expect([code, err]).toEqual([0, expect.any(String)])
    const { converted, added, changed, unchanged, gone, removed, documents } = json
    return { converted, added, changed, unchanged, gone, removed, documents }
  }
  const texts = ['a', 'b', 'c', 'd', 'deep/e', 'deep/f', 'deep/g']
  for (const name of texts) write(`same/${name}.md`, page(`Page ${name}`, `The text of ${name}.`))
  write('same/table.csv', 'Name,Price\nKettle,39\nIron,49\n')
  write('same/printed.html', '<meta name="robots" content="noindex"><h1>Copy</h1><p>For printing.</p>')
  const first = await run()
  expect(first).toMatchObject({ converted: 9, changed: 0 })
  const before = await exported(into)
  // The page that asks to be left out left nothing to compare it with.
  expect(await run()).toMatchObject({
    converted: 1,
    added: 0,
    changed: 0,
    unchanged: first.documents,
    gone: 0,
  })
  expect(await exported(into)).toEqual(before)
  rmSync(join(folder, 'same/printed.html'))
  expect(await run('--prune')).toMatchObject({ converted: 0, unchanged: first.documents, removed: 0 })

  // A file of it, and a folder in it, are its own, by whatever path; nothing else is gone then.
  write('same/deep/e.md', page('Page deep/e', 'Another text.'))
  const one = await parley('import', 'same/deep/e.md', '--into', into, '--json', '--prune')
  expect(one.json).toMatchObject({ source: 'same', converted: 1, changed: 1, gone: 0, removed: 0 })
  rmSync(join(folder, 'same/deep/g.md'))
  write('same/deep/h.md', page('Page h', 'A new one.'))
  const part = await runParley(join(folder, 'same'), ['import', 'deep', '--into', into, '--json', '--prune'])
  expect(part.json).toMatchObject({ source: 'same', converted: 1, added: 2, changed: 0, gone: 2, removed: 2 })
  expect(await run()).toMatchObject({ converted: 0, added: 0, changed: 0, gone: 0 })
  expect((await exported(into)).map(({ id }) => id)).toEqual(
    before.map(({ id }) => id.replace('/g.md', '/h.md')),
  )

  // A title that most pages come to share is given up by those, too, that did not change.
  for (const name of ['a', 'b', 'c', 'd']) write(`same/${name}.md`, page('Handbook', `The text of ${name}.`))
  expect((await run()).converted).toBe(4)
  write('same/x.md', `# Handbook\n\nThe text of x.`)
  write('same/deep/e.md', page('Handbook', 'Another text.'))
  await run()
  const titles = async () => Object.fromEntries((await exported(into)).map(({ id, title }) => [id, title]))
  const together = await titles()
  const anew = unique('anew')
  await parley('import', 'same', '--into', anew)
  expect(together).toEqual(Object.fromEntries((await exported(anew)).map(({ id, title }) => [id, title])))
  // What an import did not finish, or somebody took away, is made again.
  const [{ id }] = (await exported(into)).filter((each) => each.id.startsWith('same/a.md~'))
  await request('DELETE', `/collections/${into}/documents/${encodeURIComponent(id)}`)
  expect(await run()).toMatchObject({ converted: 1, added: 1, changed: 0 })

  // Options that change what comes of a file convert it again.
  expect((await run('--base-url', 'https://same.example')).converted).toBeGreaterThan(5)
  expect((await run('--base-url', 'https://same.example')).converted).toBe(0)
})

test('rows that did not change are not read again, unless one of their files did', async () => {
  const into = unique('rows')
  write('rows/a.csv', 'Name,Price\nKettle,39\nIron,49\n')
  write('rows/b.csv', 'Name,Price\nLamp,19\n')
  const run = async () => (await parley('import', 'rows', '--into', into, '--json', '--prune')).json
  expect(await run()).toMatchObject({ converted: 2, added: 3 })
  expect(await run()).toMatchObject({ converted: 0, unchanged: 3, removed: 0 })
  write('rows/b.csv', 'Name,Price\nLamp,18\n')
  expect(await run()).toMatchObject({ converted: 2, changed: 1, unchanged: 2 })
  rmSync(join(folder, 'rows/b.csv'))
  expect(await run()).toMatchObject({ unchanged: 2, removed: 1 })
  // A row that was refused is told again.
  write('rows/c.csv', 'Name,Price\nPan,29,,,9\nPot,31\n')
  expect(await run()).toMatchObject({ unread: 1, added: 1 })
  expect(await run()).toMatchObject({ unread: 1, added: 0 })
})

test('Ctrl-C ends an import with what to type to go on, which runs as printed, and a hint names the program that is there', async () => {
  const into = unique('stopped')
  write('stopped/a.md', '# Gouda\n\nGouda ripens for ten months.')
  // A site that never answers.
  let asked = () => {}
  const isAsked = new Promise<void>((resolve) => {
    asked = resolve
  })
  const silent = createServer(() => asked()).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const { port } = silent.address() as { port: number }
  const args = ['import', `http://127.0.0.1:${port}/`, '--into', into, '--key', KEY]
  const cli = join(import.meta.dirname, '../../scripts/parley/bin.mjs')
  const child = spawn(process.execPath, [cli, ...args], {
    cwd: folder,
    env: { ...process.env, PARLEY_URL: url },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let err = ''
  child.stderr.on('data', (data) => {
    err += data
  })
  await isAsked
  child.kill('SIGINT')
  const [code] = await once(child, 'close')
  silent.closeAllConnections()
  silent.close()
  expect([code, err]).toEqual([130, expect.stringContaining('Stopped. What is done stays. To go on: node ')])
  expect(err).not.toContain(KEY)
  expect(err).toContain(`bin.mjs import http://127.0.0.1:${port}/ --into ${into}`)

  const done = await spawnParley(folder, ['import', 'stopped', '--into', into])
  const hint = (/^Ask: (.*) \.\.\.$/m.exec(done.err)?.[1] ?? '').split(' ')
  const asking = spawn(hint[0] ?? '', [...hint.slice(1), 'How long does Gouda ripen?'], {
    cwd: folder,
    env: { ...process.env, PARLEY_URL: url, PARLEY_API_KEY: KEY },
  })
  let out = ''
  asking.stdout.on('data', (data) => {
    out += data
  })
  await once(asking, 'close')
  expect(out).toContain('ten months')
})

test('a website of one page is told as one page', async () => {
  const site = createServer((request, response) => {
    if (request.url !== '/') return response.writeHead(404).end()
    return response
      .setHeader('content-type', 'text/html')
      .end('<main><h1>Brie</h1><p>Brie is soft.</p></main>')
  }).listen(0, '127.0.0.1')
  await once(site, 'listening')
  const { port } = site.address() as { port: number }
  const { err } = await spawnParley(folder, ['import', `http://127.0.0.1:${port}/`, '--into', unique('page')])
  site.close()
  expect(err).toContain(`Read 1 page of http://127.0.0.1:${port}`)
})

test('a website is registered, read by the server itself, shown and removed', async () => {
  const into = unique('source')
  const page = (title: string, links = '') =>
    `<title>${title}</title><main><h1>${title}</h1><p>${`${title} ripens for ten months. `.repeat(9)}</p>${links}</main>`
  let pages: Record<string, string> = { '/': page('Gouda', '<a href="/edam">E</a>'), '/edam': page('Edam') }
  const site = createServer(({ url: path = '' }, response) => {
    const found = pages[path]
    response.writeHead(found ? 200 : 404, { 'content-type': 'text/html' }).end(found ?? 'gone')
  }).listen(0, '127.0.0.1')
  await once(site, 'listening')
  const address = `http://127.0.0.1:${(site.address() as { port: number }).port}/`
  try {
    expect((await parley('source', 'add', 'shelf', '--into', into)).code).toBe(2)
    const added = await parley('source', 'add', address, '--into', into, '--name', into, '--prune')
    expect([added.code, added.err]).toEqual([0, expect.stringContaining(`source run ${into}`)])
    const first = await parley('source', 'run', into)
    expect([first.code, first.out]).toEqual([
      0,
      expect.stringContaining('2 pages: 2 changed, 0 unchanged, 0 gone, 0 failed'),
    ])
    expect((await exported(into)).map(({ title, url }) => [title, url])).toEqual([
      ['Gouda', address],
      ['Edam', `${address}edam`],
    ])
    // The command line's own import finds what the server has stored.
    const imported = await parley('import', address, '--into', into, '--json')
    expect(imported.json).toMatchObject({ added: 0, changed: 0, unchanged: 2 })

    pages = { '/': page('Gouda') }
    expect((await parley('source', 'run', into, '--json')).json.last_run).toMatchObject({
      changed: 1,
      gone: 1,
    })
    expect((await exported(into)).map(({ title }) => title)).toEqual(['Gouda'])
    expect((await parley('source', 'list')).out).toContain(`${into}  website ${address} into ${into}`)
    expect((await parley('source', 'remove', into)).code).toBe(0)
    expect((await parley('source', 'run', into)).err).toContain(`There is no source`)
  } finally {
    site.closeAllConnections()
    site.close()
  }
})
