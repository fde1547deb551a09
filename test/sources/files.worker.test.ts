/** Buckets and Git archives that are read again by themselves: what changes, what a hostile archive may do, and where passages open. */
import { createExecutionContext } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { packTar, type TarHeader } from 'modern-tar'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import worker from '../../src/index'

const ARCHIVE = 'https://github.com/acme/guide/archive/refs/heads/main.tar.gz'
const CODELOAD = 'https://codeload.github.com/acme/guide/tar.gz/refs/heads/main'
const bucket = (env as unknown as { BUCKET_DOCS: R2Bucket }).BUCKET_DOCS
let packed: { bytes: BodyInit; etag?: string } | undefined
let asked: { url: string; headers: Headers; status: number }[] = []

const call = async (method: string, path: string, body?: unknown) => {
  const request = new Request(`https://parley.example${path}`, {
    method,
    headers: { 'x-typesense-api-key': 'xyz' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const response = await worker.fetch(request as never, env, createExecutionContext())
  const text = await response.text()
  return { status: response.status, text, json: path.includes('/export') ? undefined : JSON.parse(text) }
}
const add = (settings: object) =>
  call('PUT', '/sources/files', { url: ARCHIVE, collection: 'files', prune: true, ...settings })
const read = async () => {
  for (;;) {
    const { json, status, text } = await call('POST', '/sources/files/run')
    expect([status, text]).toEqual([200, expect.any(String)])
    if (json.state === 'waiting') return json.last_run
  }
}
const stored = async (collection = 'files') => {
  const { text } = await call('GET', `/collections/${collection}/documents/export?exclude_fields=embedding`)
  const documents = text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
  return documents.sort((a, b) => (a.id < b.id ? -1 : 1))
}
const said = (what: string) =>
  `${`The ${what} are described here, with all that is to know of them. `.repeat(14)}\n`

type Entry = { header: Partial<TarHeader> & { name: string }; body?: string | Uint8Array }
const zip = (bytes: Uint8Array) =>
  new Response(new Blob([new Uint8Array(bytes)]).stream().pipeThrough(new CompressionStream('gzip'))).bytes()
const tarOf = (entries: Entry[]) =>
  packTar(
    entries.map(({ header, body = '' }) => ({
      header: { size: new TextEncoder().encode(String(body)).length, type: 'file', ...header } as TarHeader,
      body,
    })),
  )
const archive = async (files: Record<string, string>, etag?: string) => {
  const folder: Entry = { header: { name: 'guide-main/', type: 'directory', size: 0 } }
  const entries = Object.entries(files).map(([name, body]) => ({
    header: { name: `guide-main/${name}` },
    body,
  }))
  packed = { bytes: await zip(await tarOf([folder, ...entries])), ...(etag !== undefined && { etag }) }
}

beforeEach(() => {
  asked = []
  packed = undefined
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    const headers = new Headers(init?.headers)
    const reply = () => {
      if (String(input).startsWith('https://github.com/'))
        return new Response(null, { status: 302, headers: { location: CODELOAD } })
      if (packed === undefined) return new Response('none', { status: 404 })
      const { bytes, etag } = packed
      if (etag !== undefined && headers.get('if-none-match') === etag)
        return new Response(null, { status: 304 })
      return new Response(bytes, { headers: etag === undefined ? {} : { etag } })
    }
    const response = reply()
    asked.push({ url: String(input), headers, status: response.status })
    return response
  })
})
afterEach(async () => {
  await call('DELETE', '/sources/files')
  await call('DELETE', '/collections/files')
  const { objects } = await bucket.list()
  await bucket.delete(objects.map(({ key }) => key))
  vi.restoreAllMocks()
})

test('a Git archive becomes passages that open in the repository, and later only what changed is read', async () => {
  const files = {
    'README.md': `# Guide\n\n${said('tides')}\n## Set up\n\n${said('steps of setting up')}`,
    'docs/a b.mdx': `---\ntitle: Alpha\ntags: [one, two]\n---\nimport X from './x'\n\n${said('letters')}`,
    'docs/page.html': `<html lang="en"><title>Page</title><main><h1>Page</h1><p>${said('pages')}</p></main></html>`,
    'docs/away.html': '<meta name="robots" content="noindex"><main><p>Not for searches.</p></main>',
    'node_modules/x/README.md': '# Package',
    '.github/NOTES.md': '# Hidden',
    'src/index.ts': 'export {}',
    'docs/manual.pdf': '%PDF',
  }
  await archive(files, '"1"')
  expect((await add({})).json).toMatchObject({ kind: 'archive', url: ARCHIVE })
  const run = await read()
  expect(run).toMatchObject({ pages: 4, changed: 3, failed: 1 })
  expect(run.failures).toEqual([
    {
      url: 'https://github.com/acme/guide/archive/refs/heads/main/docs/manual.pdf',
      error: expect.stringMatching(
        /^is a \.\w+ file, which is not read here: import it .*`parley import FILE/,
      ),
    },
  ])
  const root = 'https://github.com/acme/guide/blob/main'
  expect((await stored()).map(({ url, title, section, tags }) => [url, title, section, tags])).toEqual([
    [`${root}/README.md`, 'Guide', undefined, undefined],
    [`${root}/README.md#set-up`, 'Guide', undefined, undefined],
    [`${root}/docs/a%20b.mdx`, 'Alpha', 'docs', ['one', 'two']],
    [`${root}/docs/page.html`, 'Page', 'docs', undefined],
  ])

  // The archive's tag says that nothing changed.
  asked = []
  expect(await read()).toMatchObject({ pages: 3, changed: 0, unchanged: 3, gone: 0 })
  expect(asked.map(({ status }) => status)).toEqual([302, 304])

  await archive({ ...files, 'README.md': `# Guide\n\n${said('storms')}`, 'docs/page.html': '' }, '"2"')
  expect(await read()).toMatchObject({
    changed: 1,
    unchanged: 1,
    gone: 0,
    failures: [{}, { error: 'holds no text' }],
  })
  const { 'docs/page.html': _, ...left } = files
  await archive(left, '"3"')
  expect(await read()).toMatchObject({ changed: 1, unchanged: 1, gone: 1, failed: 1 })
  expect((await stored()).map(({ url }) => url)).toEqual([
    `${root}/README.md`,
    `${root}/README.md#set-up`,
    `${root}/docs/a%20b.mdx`,
  ])
})

test('of an archive a folder is read, in steps, with one download, and with addresses on the site that is made of it', async () => {
  const names = Array.from({ length: 45 }, (_, at) => `docs/en/${at}/index.md`)
  await archive(
    Object.fromEntries(['docs/de/x.md', ...names].map((name) => [name, `# Page ${name}\n\n${said(name)}`])),
  )
  await add({ url: `${ARCHIVE}#docs/en/`, base_url: 'https://guide.example/', collection: 'files' })
  asked = []
  expect((await call('POST', '/sources/files/run')).json).toMatchObject({
    state: 'reading',
    run: { changed: 20 },
  })
  expect(await read()).toMatchObject({ pages: 45, changed: 45, failed: 0 })
  expect(asked.length).toBe(2)
  const documents = await stored()
  expect(documents.length).toBe(45)
  expect(documents[0]).toMatchObject({
    url: 'https://guide.example/0/',
    section: '0',
    parley_source: 'files',
  })
  // A server that knows no tags: all is read, and nothing imported.
  expect(await read()).toMatchObject({ pages: 45, changed: 0, unchanged: 45 })
})

test('an archive that is none, breaks off, is too large or leads elsewhere is told of, and nothing is taken for gone', async () => {
  await archive({ 'a.md': `# Alpha\n\n${said('letters')}` })
  await add({})
  expect(await read()).toMatchObject({ changed: 1, failed: 0 })
  const root = 'https://github.com/acme/guide/archive/refs/heads/main'
  const whole = await tarOf([{ header: { name: 'b.md' }, body: `# Beta\n\n${said('words')}` }])
  const cases: [() => Promise<BodyInit>, string, number?][] = [
    [async () => 'not gzipped', 'gzip'],
    [async () => zip(new TextEncoder().encode('no tar'.repeat(200))), 'tar'],
    [async () => (await zip(whole)).slice(0, 90), 'gzip|truncated'],
    [async () => zip(whole.slice(0, 700)), 'truncated'],
  ]
  for (const [bytes, error] of cases) {
    packed = { bytes: await bytes() }
    const run = await read()
    expect(run).toMatchObject({ gone: 0, failed: 1, failures: [{ url: ARCHIVE }] })
    expect(run.failures[0].error).toMatch(new RegExp(error, 'i'))
  }
  packed = undefined
  expect(await read()).toMatchObject({ gone: 0, failures: [{ url: ARCHIVE, error: 'answered with 404' }] })

  const link: Entry = { header: { name: 'link.md', type: 'symlink', linkname: '/etc/passwd', size: 0 } }
  const odd = ['../../up.md', '/abs.md', 'a/../../x.md', 'ok.md', 'ok.md'].map((name) => ({
    header: { name },
    body: `# Odd\n\n${said('oddities')}`,
  }))
  const long = { header: { name: 'long.md' }, body: 'x'.repeat((4 << 20) + 1) }
  packed = { bytes: await zip(await tarOf([link, ...odd, long])) }
  const run = await read()
  expect(run).toMatchObject({ changed: 1, gone: 1 })
  expect(
    run.failures.map(({ url, error }: { url: string; error: string }) => [url.slice(root.length), error]),
  ).toEqual([
    ['/../../up.md', 'has a path that leads out of its folder'],
    ['/a/../../x.md', 'has a path that leads out of its folder'],
    ['/long.md', 'is longer than 4 MiB'],
  ])
  expect((await stored()).map(({ id }) => id)).toEqual([
    'github.com/acme/guide/archive/refs/heads/main/ok.md',
  ])
})

test('a folder that is none is refused', async () => {
  const { status, json } = await add({ url: `${ARCHIVE}#50%` })
  expect([status, json.message]).toEqual([400, '`#50%` names no folder: write a percent sign in it as %25.'])
})

test('files past `max_pages` are told of', async () => {
  await archive({
    'a.md': '# A\n\nOne.',
    'b.md': '# B\n\nTwo.',
    'c.md': '# C\n\nThree.',
    'd.md': '# D\n\nFour.',
  })
  await add({ max_pages: 2 })
  expect(await read()).toMatchObject({
    changed: 2,
    failures: [{ error: 'is past the 2 files of `max_pages`, with all that follow' }],
  })
})

test('a bucket is listed, and only objects whose tag changed are read; what is gone goes', async () => {
  const put = (key: string, text: string) => bucket.put(key, text)
  const get = vi.spyOn(bucket, 'get')
  await put('guide/index.md', `# Guide\n\n${said('tides')}\n## Set up\n\n${said('steps')}`)
  await put('guide/50% #1?.txt', said('odd names'))
  await put('guide/sheet.xlsx', 'x')
  await put('other/x.md', '# Other\n\nNot asked for.')
  const url = 'r2://docs/guide/'
  const added = await add({ url, base_url: 'https://files.example/guide' })
  expect(added.json).toMatchObject({ kind: 'bucket', url })
  const first = await read()
  expect(first).toMatchObject({ pages: 2, changed: 2, failed: 1 })
  expect(first.failures[0].url).toBe('r2://docs/guide/sheet.xlsx')
  expect((await stored()).map((each) => [each.id, each.url])).toEqual([
    ['docs/guide/50%25%20%231%3F.txt', 'https://files.example/guide/50%25%20%231%3F.txt'],
    ['docs/guide/index.md', 'https://files.example/guide/index.md'],
    ['docs/guide/index.md~set-up', 'https://files.example/guide/index.md#set-up'],
  ])
  get.mockClear()
  expect(await read()).toMatchObject({ pages: 2, changed: 0, unchanged: 2, gone: 0 })
  expect(get).not.toHaveBeenCalled()

  await put('guide/index.md', `# Guide\n\n${said('storms')}`)
  await bucket.delete('guide/50% #1?.txt')
  expect(await read()).toMatchObject({ pages: 2, changed: 1, gone: 1 })
  expect((await stored()).map(({ id }) => id)).toEqual(['docs/guide/index.md'])

  // Without a place on the web passages have no address.
  await add({ url: 'r2://docs/other' })
  expect(await read()).toMatchObject({ changed: 1, gone: 1 })
  expect(await stored()).toMatchObject([{ id: 'docs/other/x.md', title: 'Other' }])
  expect((await stored())[0]).not.toHaveProperty('url')
})

test('a bucket that is not bound for sources, and odd addresses, are refused', async () => {
  const refusals: [object, string][] = [
    [{ url: 'r2://private/' }, 'BUCKET_PRIVATE'],
    [{ url: 'r2:///x' }, 'names no bucket'],
    [{ url: 'http://169.254.169.254/x.tar.gz' }, 'ALLOWED_HOSTS'],
    [{ url: 'r2://docs/', base_url: 'javascript:alert(1)' }, 'base_url'],
  ]
  for (const [settings, message] of refusals) {
    const { status, text } = await add(settings)
    expect([status, text]).toEqual([400, expect.stringContaining(message)])
  }
})
