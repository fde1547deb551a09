import type { IncomingMessage } from 'node:http'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { crawl } from '../../../scripts/parley/import/crawl.mjs'
import { serve } from '../../serve'

const page = (title: string, body = '', head = '') =>
  `<html><head><title>${title}</title>${head}</head><body><main><h1>${title}</h1><p>${`Words about ${title}. `.repeat(12)}</p>${body}</main></body></html>`

type Pages = Record<
  string,
  | string
  | {
      status?: number
      type?: string
      body?: string | Uint8Array
      location?: string
      headers?: Record<string, string>
      /** what it answers first, once for each */
      first?: { status: number; headers?: Record<string, string> }[]
    }
>

/** A site of these pages, and what was asked of it. */
async function site(pages: (origin: string) => Pages) {
  const asked: string[] = []
  let all: Pages = {}
  const served = await serve((request: IncomingMessage, response) => {
    asked.push(request.url ?? '')
    const found = all[request.url ?? '']
    if (found === undefined) return void response.writeHead(404, { 'content-type': 'text/html' }).end('gone')
    const early = typeof found === 'string' ? undefined : found.first?.shift()
    if (early) return void response.writeHead(early.status, early.headers).end()
    const {
      status = 200,
      type = 'text/html',
      body = '',
      location,
      headers,
    } = typeof found === 'string' ? { body: found } : found
    response.writeHead(status, { 'content-type': type, ...headers, ...(location && { location }) }).end(body)
  })
  all = pages(served.url)
  return { ...served, asked }
}

const paths = ({ pages }: Awaited<ReturnType<typeof crawl>>) =>
  pages
    .filter(({ article }) => article)
    .map(({ url }) => new URL(url).pathname)
    .sort()

test('links are followed within the origin and below the start, each page once', async () => {
  const { url, stop, asked } = await site((origin) => ({
    '/docs/': page(
      'Home',
      `<a href="a">A</a> <a href="/docs/b#part">B</a> <a href="/blog/x">X</a> <a href="https://example.com/">out</a> <a href="mailto:a@b.c">mail</a>`,
    ),
    '/docs/a': page(
      'A',
      `<a href="./">back</a> <a href="/docs/b?utm_source=x">B</a> <a href="${origin}/docs/c">C</a>`,
    ),
    '/docs/b': page('B', '<a href="/docs/b#other">self</a> <a href="/docs/missing">missing</a>'),
    '/docs/c': page('C'),
    '/blog/x': page('X'),
  }))
  const found = await crawl(`${url}/docs/`, { most: 100 })
  expect(paths(found)).toEqual(['/docs/', '/docs/a', '/docs/b', '/docs/c'])
  expect(found.pages.find(({ error }) => error)?.error).toBe('answered with 404')
  expect(asked.filter((path) => path === '/docs/b')).toHaveLength(1)
  expect(asked).not.toContain('/blog/x')
  await stop()
})

test('a sitemap says which pages there are, an index and a gzipped one too', async () => {
  const { url, stop } = await site((origin) => ({
    '/robots.txt': { type: 'text/plain', body: `Sitemap: ${origin}/index.xml` },
    '/index.xml': `<sitemapindex><sitemap><loc>${origin}/one.xml.gz</loc></sitemap></sitemapindex>`,
    '/one.xml.gz': {
      type: 'application/gzip',
      body: gzipSync(
        `<urlset><url><loc>${origin}/a</loc></url><url><loc>https://example.com/b</loc></url></urlset>`,
      ),
    },
    '/a': page('A', '<a href="/unlisted">unlisted</a>'),
    '/unlisted': page('Unlisted'),
  }))
  expect(paths(await crawl(url, { most: 100 }))).toEqual(['/a'])
  await stop()
})

test('a sitemap or a feed that is named says which pages there are, anywhere on its site', async () => {
  const rss = (origin: string) =>
    `<?xml version="1.0"?><rss version="2.0"><channel><link>${origin}/</link>
      <item><title>A</title><link>${origin}/a?x=1&amp;y=2</link></item>
      <item><link><![CDATA[ ${origin}/b ]]></link></item>
      <item><link>https://example.com/else</link></item></channel></rss>`
  const atom = `<feed xmlns="http://www.w3.org/2005/Atom"><link rel="self" href="/news/atom.xml"/>
      <entry><link rel="enclosure" href="/sound.mp3"/><link href='/a' rel='alternate' type='text/html'/></entry>
      <entry><link href="b"/></entry></feed>`
  const { url, stop, asked } = await site((origin) => ({
    '/news/rss.xml': { type: 'application/rss+xml', body: rss(origin) },
    '/news/atom.xml': { type: 'application/atom+xml', body: atom },
    '/news/feed.json': {
      type: 'application/feed+json',
      body: JSON.stringify({ items: [{ url: `${origin}/a` }, { id: 1 }] }),
    },
    '/news/map.xml': { type: 'text/xml', body: `<urlset><url><loc>${origin}/a</loc></url></urlset>` },
    '/news/feed': page('A page about feeds', '<a href="/news/feed/more">more</a>'),
    '/news/feed/more': page('More'),
    '/a?x=1&y=2': page('AXY', '<a href="/unlisted">unlisted</a>'),
    '/a': page('A'),
    '/b': page('B'),
    '/news/b': page('News B'),
    '/unlisted': page('Unlisted'),
  }))
  const read = async (path: string) => {
    const { pages } = await crawl(`${url}${path}`, { most: 100 })
    return pages.map(({ url: address }) => address.slice(url.length)).sort()
  }
  expect(await read('/news/rss.xml')).toEqual(['/a?x=1&y=2', '/b'])
  expect(await read('/news/atom.xml')).toEqual(['/a', '/news/b'])
  expect(await read('/news/feed.json')).toEqual(['/a'])
  expect(await read('/news/map.xml')).toEqual(['/a'])
  expect(asked).not.toContain('/unlisted')
  // What is named like a feed may be a page.
  expect(await read('/news/feed')).toEqual(['/news/feed', '/news/feed/more'])
  await stop()
})

test('robots.txt is obeyed, and so are pages that ask not to be indexed', async () => {
  const { url, stop, asked } = await site(() => ({
    '/robots.txt': { type: 'text/plain', body: 'User-agent: *\nDisallow: /private' },
    '/': page('Home', '<a href="/private/x">x</a> <a href="/hidden">h</a>'),
    '/private/x': page('X'),
    '/hidden': page('Hidden', '<a href="/seen">s</a>', '<meta name="robots" content="noindex">'),
    '/seen': page('Seen'),
  }))
  const found = await crawl(`${url}/`, { most: 100 })
  expect(paths(found)).toEqual(['/', '/seen'])
  expect(found.leftOut).toEqual([`${url}/hidden`])
  expect(found.disallowed).toEqual([`${url}/private/x`])
  expect(asked).not.toContain('/private/x')
  await stop()
})

test('a page or its server may ask in other ways, and for other robots', async () => {
  const asks = (robots: string, body = '') => ({
    body: page(robots, body),
    headers: { 'x-robots-tag': robots },
  })
  const { url, stop } = await site(() => ({
    '/': page('Home', [...'abcdef'].map((name) => `<a href="/${name}">${name}</a>`).join(' ')),
    '/a': asks('noindex, nofollow', '<a href="/unseen">u</a>'),
    '/b': asks('otherbot: noindex, nofollow'),
    '/c': asks('unavailable_after: 25 Jun 2035 15:00:00 PST, NONE'),
    '/d': { body: 'Words.', type: 'text/plain', headers: { 'x-robots-tag': 'noindex' } },
    '/e': page(
      'E',
      '',
      '<meta name="robots" content="max-snippet:-1"><meta name="googlebot" content="noindex">',
    ),
    '/f': page('F', '<a href="/unseen">u</a>', '<meta name="robots" content="index nofollow">'),
    '/unseen': page('Unseen'),
  }))
  const found = await crawl(`${url}/`, { most: 100 })
  expect(paths(found)).toEqual(['/', '/b', '/f'])
  expect(found.leftOut.map((each) => new URL(each).pathname).sort()).toEqual(['/a', '/c', '/d', '/e'])
  await stop()
})

test('a server that has no time is asked again, and a page that is gone is told apart', async () => {
  const { url, stop, asked } = await site(() => ({
    '/': page(
      'Home',
      '<a href="/busy">b</a> <a href="/down">d</a> <a href="/never">n</a> <a href="/gone">g</a>',
    ),
    '/busy': {
      body: page('Busy'),
      first: [
        { status: 429, headers: { 'retry-after': '0' } },
        { status: 503, headers: { 'retry-after': 'Wed, 21 Oct 2015 07:28:00 GMT' } },
      ],
    },
    '/down': { body: page('Down'), first: [{ status: 502 }] },
    '/never': { status: 429, headers: { 'retry-after': '0' } },
    '/gone': { status: 410 },
  }))
  const found = await crawl(`${url}/`, { most: 100 })
  expect(paths(found)).toEqual(['/', '/busy', '/down'])
  expect(found.pages.filter(({ error }) => error).sort((a, b) => (a.url < b.url ? -1 : 1))).toEqual([
    { url: `${url}/gone`, error: 'answered with 410', isGone: true },
    { url: `${url}/never`, error: 'answered with 429' },
  ])
  expect(asked.filter((path) => path === '/never')).toHaveLength(3)
  await stop()
})

test('a site whose robots.txt fails is left alone', async () => {
  const { url, stop } = await site(() => ({ '/robots.txt': { status: 503 }, '/': page('Home') }))
  const { pages, disallowed } = await crawl(`${url}/`, { most: 10 })
  expect(disallowed).toEqual([])
  expect(pages).toEqual([{ url: `${url}/`, error: expect.stringContaining('robots.txt answers with 503') }])
  await stop()
})

test('an address at which nobody answers is told apart from one that allows nothing', async () => {
  const errorOf = async (url: string) => (await crawl(`${url}/`, { most: 10 })).pages[0]?.error
  expect(await errorOf('http://127.0.0.1:1')).toMatch(/^nobody answers at http:\/\/127\.0\.0\.1:1 \(.+\)$/)
  const { url, stop } = await site(() => ({
    '/robots.txt': { type: 'text/plain', body: 'User-agent: *\nDisallow: /' },
  }))
  expect(await errorOf(url)).toBe('robots.txt does not allow it')
  await stop()
})

test('a page under two addresses is one; a redirect out of the site is none', async () => {
  const { url, stop } = await site((origin) => ({
    '/': page('Home', '<a href="/old">old</a> <a href="/print">print</a> <a href="/away">away</a>'),
    '/old': { status: 301, location: '/new' },
    '/new': page('New'),
    '/print': page('New', '', `<link rel="canonical" href="${origin}/new">`),
    '/away': { status: 302, location: 'http://127.0.0.1:1/' },
  }))
  expect(paths(await crawl(`${url}/`, { most: 100 }))).toEqual(['/', '/new'])
  await stop()
})

test('a page that another address has word for word is one document', async () => {
  const home = (links: string) =>
    page(
      'Home',
      `<p>Begin <a href="${links}#a">here</a>. <a href="index.html">Home</a> <a href="a">A</a></p>`,
    )
  const { url, stop } = await site(() => ({
    '/docs/': home('index.html'),
    '/docs/index.html': home('index.html'),
    '/docs/a': page('A'),
  }))
  expect(paths(await crawl(`${url}/docs/`, { most: 100 }))).toEqual(['/docs/', '/docs/a'])
  await stop()
})

test('no more pages are read than allowed, and it is said that there are more', async () => {
  const { url, stop } = await site(() => ({
    '/': page('Home', Array.from({ length: 20 }, (_, at) => `<a href="/p${at}">${at}</a>`).join('')),
    ...Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`/p${at}`, page(`P${at}`)])),
  }))
  const found = await crawl(`${url}/`, { most: 5 })
  expect(found.pages.length).toBeLessThanOrEqual(5)
  expect(found.cut).toBe(true)
  await stop()
})
