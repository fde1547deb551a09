/** Websites that are read again by themselves: what a run asks for, imports and removes, and what a site may do to it. */
import { createExecutionContext, createScheduledController, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import worker from '../../src/index'

const SITE = 'https://site.example'
type Reply = { status?: number; headers?: Record<string, string>; body?: string | Uint8Array<ArrayBuffer> }
let pages: Record<string, Reply | string> = {}
let asked: { path: string; headers: Headers }[] = []

const page = (title: string, body = '', head = '') =>
  `<html><head><title>${title}</title>${head}</head><body><main><h1>${title}</h1><p>${`Words about ${title}. `.repeat(12)}</p>${body}</main></body></html>`

beforeEach(() => {
  pages = {}
  asked = []
  // The pauses between two requests.
  const later = globalThis.setTimeout
  vi.spyOn(globalThis, 'setTimeout').mockImplementation(((work: () => void, ms = 0) =>
    later(work, ms > 50 && ms <= 200 ? 0 : ms)) as never)
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    const { href, origin, pathname } = new URL(String(input))
    const path = origin === SITE ? pathname : href
    asked.push({ path, headers: new Headers(init?.headers) })
    const found = pages[path]
    if (found === undefined) return new Response('gone', { status: 404 })
    const { status = 200, headers = {}, body = '' } = typeof found === 'string' ? { body: found } : found
    const tag = headers.etag
    if (tag !== undefined && asked.at(-1)?.headers.get('if-none-match') === tag)
      return new Response(null, { status: 304, headers })
    return new Response(body, { status, headers: { 'content-type': 'text/html', ...headers } })
  })
})
afterEach(async () => {
  for (const name of ['site', 'mine', 'other']) await call('DELETE', `/sources/${name}`)
  vi.restoreAllMocks()
  vi.useRealTimers()
})

const call = async (method: string, path: string, body?: unknown, key = 'xyz') => {
  const request = new Request(`https://parley.example${path}`, {
    method,
    headers: { 'x-typesense-api-key': key },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const response = await worker.fetch(request as never, env, createExecutionContext())
  const text = await response.text()
  return { status: response.status, text, json: path.includes('/export') ? undefined : JSON.parse(text) }
}
const add = (settings: object = {}) =>
  call('PUT', '/sources/site', { url: `${SITE}/docs/`, collection: 'site', ...settings })
/** Reads all of it. @returns what the last run says */
const read = async () => {
  for (;;) {
    const { json, status, text } = await call('POST', '/sources/site/run')
    expect([status, text]).toEqual([200, expect.any(String)])
    if (json.state === 'waiting') return json.last_run
  }
}
const stored = async (collection = 'site') => {
  const path = `/collections/${collection}/documents/export?exclude_fields=embedding`
  const { text } = await call('GET', path)
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
}
const ids = async () => (await stored()).map(({ id }) => id).sort()
const paths = () => asked.map(({ path }) => path).filter((path) => !/robots|sitemap/.test(path))

test('a page is read in its encoding, also where it names none or one that nobody knows, and with any line ends', async () => {
  const latin = (text: string) => Uint8Array.from(text, (letter) => letter.charCodeAt(0))
  const menu = page('Caf\u00e9 menu', '<p>Cr\u00eape and th\u00e9.</p>')
  pages = {
    '/docs/': page('Home', '<a href="a">A</a> <a href="b">B</a> <a href="c">C</a> <a href="d.md">D</a>'),
    '/docs/a': { body: latin(menu) },
    '/docs/b': {
      headers: { 'content-type': 'text/html; charset=x-nobody' },
      body: menu.replaceAll('menu', 'card'),
    },
    '/docs/c': {
      body: latin(menu.replace('<head>', '<head><meta charset="iso-8859-1">').replaceAll('menu', 'list')),
    },
    '/docs/d.md': {
      headers: { 'content-type': 'text/markdown' },
      body: '# Caf\u00e9 hours\r\rWe close at noon.\r',
    },
  }
  await add({ collection: 'encoded' })
  expect(await read()).toMatchObject({ changed: 5, failed: 0 })
  const titles = (await stored('encoded')).map(({ title }) => title)
  expect(titles.sort()).toEqual([
    'Caf\u00e9 card',
    'Caf\u00e9 hours',
    'Caf\u00e9 list',
    'Caf\u00e9 menu',
    'Home',
  ])
})

test('a collection that is made for a source has the stems of the language of its first page', async () => {
  const german = 'Wir haben am Montag nicht offen, und das Haus ist dann auch für Gruppen zu. '
  pages = {
    '/docs/': page('Haus', `<p>${german.repeat(6)}</p>`),
    '/robots.txt': { headers: { 'content-type': 'text/plain' }, body: 'User-agent: *\nDisallow: /private' },
    '/private/': page('Haus', `<p>${german.repeat(6)}</p>`),
  }
  const localeOf = async (collection: string, url: string) => {
    await add({ url: SITE + url, collection })
    const { fields } = (await call('GET', `/collections/${collection}`)).json
    return fields.find(({ name }: { name: string }) => name === 'text').locale
  }
  expect(await localeOf('haus', '/docs/')).toBe('de')
  expect(await localeOf('missing', '/missing')).toBe('')
  expect(await localeOf('private', '/private/')).toBe('')
  expect(asked.map(({ path }) => path)).not.toContain('/private/')
})

test('a website is registered with what its first page says of it, under the name to which it leads', async () => {
  const head = '<meta property="og:site_name" content="The site"><meta name="theme-color" content="#b00020">'
  const www = 'https://www.site.example'
  pages = {
    '/': { status: 301, headers: { location: `${www}/` } },
    [`${www}/`]: page('Home', '<a href="a">A</a>', head),
    [`${www}/a`]: page('Alpha', '', '<meta property="og:site_name" content="Another">'),
    '/docs/': { status: 302, headers: { location: 'https://login.example/' } },
    'https://login.example/': page('Log in', '', head),
  }
  const { json } = await add({ url: SITE, collection: 'looks' })
  expect(json).toMatchObject({ url: `${www}/`, site: { name: 'The site', color: '#b00020' } })
  expect(await read()).toMatchObject({ changed: 2, left: 0 })
  expect((await call('GET', '/sources')).json.sources[0].site).toEqual(json.site)
  // Another site is read only where somebody names it.
  const led = await add({ collection: 'led' })
  expect([led.json.url, led.json.site]).toEqual([`${SITE}/docs/`, undefined])
  const error = 'leads to https://login.example/, which is not below it: register that address'
  expect(await read()).toMatchObject({ changed: 0, failures: [{ url: `${SITE}/docs/`, error }] })
})

test('a feed is read again, with the pages that it does not list any more', async () => {
  const feed = (...entries: string[]) => ({
    headers: { 'content-type': 'application/atom+xml' },
    body: `<feed>${entries.map((entry) => `<entry><link href="${entry}"/></entry>`).join('')}</feed>`,
  })
  pages = {
    '/news/atom.xml': feed('/blog/one', 'https://else.example/two'),
    '/blog/one': page('One', '<a href="/blog/unlisted">unlisted</a>'),
    '/blog/two': page('Two'),
    '/blog/unlisted': page('Unlisted'),
  }
  await add({ url: `${SITE}/news/atom.xml`, collection: 'feed' })
  expect(await read()).toMatchObject({ pages: 1, changed: 1, failed: 0 })
  pages['/news/atom.xml'] = feed('/blog/two')
  asked = []
  expect(await read()).toMatchObject({ pages: 2, changed: 1, unchanged: 1, gone: 0, failed: 0 })
  expect(paths()).toEqual(['/news/atom.xml', '/blog/two', '/blog/one'])
  expect((await stored('feed')).map(({ url }) => url).sort()).toEqual([
    `${SITE}/blog/one`,
    `${SITE}/blog/two`,
  ])
})

test('a site is read by its links, then only what changed; what is gone goes where that was asked for', async () => {
  pages = {
    '/docs/': page(
      'Home',
      '<a href="a">A</a> <a href="b">B</a> <a href="/blog/x">X</a> <a href="https://else.example/">out</a>',
    ),
    '/docs/a': {
      headers: { etag: '"1"' },
      body: page('Alpha', `<h2 id="more">More</h2><p>${'Much more of it. '.repeat(60)}</p>`),
    },
    '/docs/b': page('Beta'),
  }
  expect((await add()).json).toMatchObject({
    name: 'site',
    state: 'waiting',
    every_minutes: 1440,
    prune: false,
  })
  expect(await read()).toMatchObject({ pages: 3, changed: 3, unchanged: 0, failed: 0 })
  expect(await ids()).toEqual([
    'site.example/docs/',
    'site.example/docs/a',
    'site.example/docs/a~more',
    'site.example/docs/b',
  ])
  expect((await stored()).find(({ id }) => id.endsWith('~more'))).toMatchObject({
    heading: 'Alpha > More',
    url: `${SITE}/docs/a#more`,
    parley_source: 'site.example',
  })

  asked = []
  expect(await read()).toMatchObject({ pages: 3, changed: 0, unchanged: 3 })
  expect(paths()).toEqual(['/docs/', '/docs/a', '/docs/b'])
  expect(asked.find(({ path }) => path === '/docs/a')?.headers.get('if-none-match')).toBe('"1"')

  // A passage that a page lost goes; a page that is gone stays, until it may be removed.
  pages['/docs/a'] = page('Alpha', '<a href="c">C</a>')
  pages['/docs/c'] = page('Gamma')
  delete pages['/docs/b']
  expect(await read()).toMatchObject({ changed: 2, gone: 1, failed: 0 })
  expect(await ids()).toEqual([
    'site.example/docs/',
    'site.example/docs/a',
    'site.example/docs/b',
    'site.example/docs/c',
  ])
  await add({ prune: true })
  // What was registered anew is read anew, and still knows what is gone.
  expect(await read()).toMatchObject({ pages: 4, changed: 3, gone: 1, failed: 0 })
  delete pages['/docs/c']
  pages['/docs/a'] = { body: page('Alpha', '', '<meta name="robots" content="noindex">') }
  expect(await read()).toMatchObject({ gone: 2, failed: 0 })
  expect(await ids()).toEqual(['site.example/docs/'])
})

test('of a sitemap no more pages are read than `max_pages`, and the rest is told of', async () => {
  const names = Array.from({ length: 30 }, (_, n) => `/docs/p${n}`)
  pages = {
    ...Object.fromEntries(names.map((name) => [name, page(name)])),
    '/sitemap.xml': `<urlset>${names.map((name) => `<url><loc>${SITE}${name}</loc></url>`).join('')}</urlset>`,
  }
  await add({ max_pages: 3 })
  asked = []
  expect(await read()).toMatchObject({
    changed: 3,
    failures: [{ url: `${SITE}/docs/p3`, error: 'is past the 3 pages of `max_pages`, with all that follow' }],
  })
  expect(paths().every((path) => /p[0-2]$/.test(path))).toBe(true)
})

test('a site with a sitemap is read in steps, as its robots.txt allows, and left alone while it is busy', async () => {
  const names = Array.from({ length: 45 }, (_, at) => `/docs/${at}`)
  const busy: Reply = { status: 429, headers: { 'retry-after': '30' } }
  pages = {
    '/robots.txt':
      'User-agent: *\nDisallow: /docs/7$\nSitemap: https://site.example/index.xml\nSitemap: http://10.0.0.1/secret.xml',
    '/index.xml': `<sitemapindex><sitemap><loc>${SITE}/map.xml</loc></sitemap></sitemapindex>`,
    '/map.xml': `<urlset>${[...names, '/other/x'].map((name) => `<url><loc> ${SITE}${name}?a=1&amp;b=2 </loc></url>`).join('')}</urlset>`,
    ...Object.fromEntries(names.map((name) => [name, page(`Page ${name}`, '<a href="/docs/hidden">H</a>')])),
    '/docs/44': busy,
  }
  await add()
  const first = await call('POST', '/sources/site/run')
  expect(first.json).toMatchObject({ state: 'reading', run: { pages: 20, changed: 20, left: 25 } })
  expect((await call('POST', '/sources/site/run')).json).toMatchObject({
    state: 'reading',
    run: { pages: 40 },
  })
  const waiting = await call('POST', '/sources/site/run')
  expect(waiting.json).toMatchObject({ state: 'reading', run: { pages: 44, failed: 0 } })
  expect(waiting.json.next_run_at).toBeGreaterThan(Date.now() + 20_000)
  // Whoever asks for more is not answered sooner by the site.
  const before = asked.length
  await call('POST', '/sources/site/run')
  expect(asked.length).toBe(before)
  pages['/docs/44'] = page('Page 44')
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 31_000 })
  expect(await read()).toMatchObject({ pages: 45, changed: 45, failed: 0 })
  expect(asked.map(({ path }) => path)).not.toContain('http://10.0.0.1/secret.xml')
  expect(paths()).not.toContain('/docs/hidden')
  expect(paths()).not.toContain('/other/x')
})

test('what a Worker does not read is told by its address, with what does; the rest is read', async () => {
  const links = [
    'pdf',
    'empty',
    'broken',
    'away',
    'inside',
    'loop',
    'long',
    'notes',
    'latin',
    'picture',
    'copy',
  ]
  pages = {
    '/docs/': page('Home', links.map((name) => `<a href="${name}">x</a>`).join(' ')),
    '/docs/pdf': { headers: { 'content-type': 'application/pdf' }, body: '%PDF' },
    '/docs/empty': '<html><body></body></html>',
    '/docs/broken': { status: 500 },
    '/docs/away': { status: 302, headers: { location: 'http://169.254.169.254/latest/meta-data' } },
    '/docs/inside': { status: 301, headers: { location: '/docs/latin' } },
    '/docs/loop': { status: 302, headers: { location: '/docs/loop' } },
    '/docs/long': { body: 'x'.repeat((4 << 20) + 1) },
    '/docs/notes': { headers: { 'content-type': 'text/markdown' }, body: '# Notes\n\nSome notes on it.' },
    '/docs/latin': { headers: { 'content-type': 'text/html; charset=iso-8859-1' }, body: page('Latin') },
    '/docs/picture': { headers: { 'content-type': 'image/png' }, body: 'png' },
    '/docs/copy': page('Home', links.map((name) => `<a href="${name}">x</a>`).join(' ')),
  }
  await add({ collection: 'kinds' })
  const run = await read()
  expect(
    run.failures.map(({ url, error }: { url: string; error: string }) => [new URL(url).pathname, error]),
  ).toEqual([
    ['/docs/pdf', expect.stringContaining('`parley import FILE')],
    ['/docs/empty', 'holds no text'],
    ['/docs/broken', 'answered with 500'],
    ['/docs/loop', 'redirects too often'],
    ['/docs/long', 'is longer than 4 MiB'],
  ])
  expect(run.changed).toBe(3)
  expect(asked.map(({ path }) => path).join()).not.toContain('169.254')
  const { text } = await call('GET', '/collections/kinds/documents/export?include_fields=id,title')
  expect(text.match(/"title":"\w+"/g)?.sort()).toEqual([
    '"title":"Home"',
    '"title":"Latin"',
    '"title":"Notes"',
  ])
})

test('the cron trigger reads what is due; a page at which the object dies is left out', async () => {
  pages = { '/docs/': page('Home', '<a href="a">A</a>'), '/docs/a': page('Alpha') }
  await add({ collection: 'due', every_minutes: 60 })
  const scheduled = () =>
    worker.scheduled(createScheduledController({ scheduledTime: new Date() }) as never, env)
  await scheduled()
  const { json } = await call('GET', '/sources')
  const [source] = json.sources
  expect(source).toMatchObject({ state: 'waiting', last_run: { changed: 2 } })
  expect(source.next_run_at).toBe(source.last_run.started_at + 3_600_000)
  asked = []
  await scheduled()
  expect(asked).toEqual([])

  // As a step leaves it that was ended by the platform.
  pages['/docs/b'] = page('Beta')
  pages['/docs/'] = { status: 503 }
  vi.useFakeTimers({ toFake: ['Date'] })
  vi.setSystemTime(source.next_run_at + 1)
  await scheduled()
  pages['/docs/'] = page('Home', '<a href="b">B</a>')
  await runInDurableObject(env.SOURCE.getByName('site'), (_, { storage }) =>
    storage.put('reading', `${SITE}/docs/a`),
  )
  vi.setSystemTime(Date.now() + 60_000)
  await scheduled()
  const [after] = (await call('GET', '/sources')).json.sources
  expect(after.last_run).toMatchObject({
    failures: [{ url: `${SITE}/docs/a`, error: expect.stringContaining('`parley import`') }],
    changed: 2,
  })
})

test('a source of what may not be called, read or written is refused, and one whose site or collection is gone says so', async () => {
  const refusals: [object, string][] = [
    [{ url: 'http://169.254.169.254/' }, 'ALLOWED_HOSTS'],
    [{ url: 'http://site.example/' }, 'ALLOWED_HOSTS'],
    [{ url: 'https://user:word@site.example/' }, 'user name'],
    [{ url: 'ftp://site.example/' }, 'https://'],
    [{ url: 'docs' }, '`url`'],
    [{ every_minutes: 1 }, '`every_minutes`'],
    [{ feed: true }, 'feed'],
    [{ collection: 'rows' }, 'was not made by an import'],
  ]
  await call('POST', '/collections', { name: 'rows', fields: [{ name: 'a', type: 'string' }] })
  for (const [settings, message] of refusals) {
    const { status, text } = await add(settings)
    expect([status, text]).toEqual([400, expect.stringContaining(message)])
  }
  for (const [method, path] of [
    ['DELETE', '/sources/none'],
    ['POST', '/sources/none/run'],
  ] as const)
    expect((await call(method, path)).status).toBe(404)

  await add({ collection: 'gone' })
  pages = { '/robots.txt': { status: 500 } }
  expect(await read()).toMatchObject({
    pages: 0,
    failures: [{ error: expect.stringContaining('robots.txt') }],
  })
  pages = { '/robots.txt': 'User-agent: *\nDisallow: /' }
  expect(await read()).toMatchObject({ failures: [{ error: 'robots.txt does not allow it' }] })
  await call('DELETE', '/collections/gone')
  expect(await read()).toMatchObject({ failures: [{ error: 'Collection not found' }] })
  expect((await call('DELETE', '/sources/site')).json).toMatchObject({ name: 'site' })
  expect((await call('GET', '/sources')).json).toEqual({ sources: [] })
})

test('a key reaches the sources of its own collections', async () => {
  const made = await call('POST', '/keys', {
    description: 'd',
    actions: ['sources:*'],
    collections: ['mine'],
  })
  const own = (method: string, path: string, body?: unknown) => call(method, path, body, made.json.value)
  const settings = { url: `${SITE}/docs/`, collection: 'mine' }
  expect((await own('PUT', '/sources/mine', settings)).status).toBe(200)
  expect((await own('PUT', '/sources/other', { ...settings, collection: 'others' })).status).toBe(401)
  await call('PUT', '/sources/other', { ...settings, collection: 'others' })
  for (const [method, path] of [
    ['DELETE', '/sources/other'],
    ['POST', '/sources/other/run'],
  ] as const)
    expect((await own(method, path)).status).toBe(401)
  expect((await own('PUT', '/sources/other', settings)).status).toBe(401)
})
