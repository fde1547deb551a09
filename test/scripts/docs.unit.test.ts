/** The site of the documentation as it is built: every page, every link, every anchor, and what the API reference lists. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseHTML } from 'linkedom'
import { beforeAll, describe, expect, test } from 'vitest'
import { GROUPS, written } from '../../scripts/docs/pages.mjs'
import { buildSite, withKey } from '../../scripts/docs.mjs'
import { passages } from '../../scripts/sample.mjs'

const ROOT = join(import.meta.dirname, '../..')

interface Page {
  text: string
  document: ReturnType<typeof parseHTML>['document']
  ids: string[]
  links: string[]
}

const pages = new Map<string, Page>()
let files: Map<string, string | Uint8Array>

const textOf = (path: string) => Buffer.from(files.get(path) ?? '').toString()
/** Without what the generator adds to headings and code. */
const wordsOf = (element: { textContent: string | null }) =>
  (element.textContent ?? '').replace(/\u200b/g, '').trim()

beforeAll(async () => {
  files = await buildSite()
  for (const path of files.keys()) {
    if (!path.endsWith('.html')) continue
    const text = textOf(path)
    const { document } = parseHTML(text)
    const all = (selector: string, name: string) =>
      [...document.querySelectorAll(selector)].map((each) => each.getAttribute(name) ?? '')
    const address = path === 'index.html' ? '/docs/' : `/docs/${path.slice(0, -'.html'.length)}`
    pages.set(address, {
      text,
      document,
      ids: all('[id]', 'id'),
      links: [...all('a[href]', 'href'), ...all('link[href]', 'href')],
    })
  }
}, 300_000)

describe('the site', () => {
  test('has every page of docs/, once, in the navigation of each page', () => {
    const names = written()
    expect(names.length).toBeGreaterThan(25)
    expect(GROUPS.flatMap((group) => group.names).sort()).toEqual(names)
    for (const [address, { links }] of pages) {
      const missing = names.filter((name) => !links.includes(`/docs/${name}`))
      expect([address, missing]).toEqual([address, []])
    }
  })

  test('begins with tutorials, then guides, then the reference, then the decisions', () => {
    const headings = [...pages.get('/docs/')!.document.querySelectorAll('.VPSidebar h2')].map(wordsOf)
    expect(headings).toEqual(['Tutorials', 'Guides', 'Reference', 'Decisions', 'API'])
  })

  test('links to pages and headings that are there', () => {
    const lost: string[] = []
    for (const [address, { links, document }] of pages) {
      const sources = [...document.querySelectorAll('img[src], script[src]')].map(
        (each) => each.getAttribute('src') ?? '',
      )
      for (const link of [...links, ...sources]) {
        if (/^https?:/.test(link)) continue
        const { pathname, hash } = new URL(link, `http://localhost${address}`)
        const [path, fragment] = [pathname, hash === '' ? undefined : hash.slice(1)]
        if (path === '/') continue
        const target = pages.get(path)
        const file = path.startsWith('/docs/') ? files.has(path.slice('/docs/'.length)) : false
        const isThere = target
          ? fragment === undefined || target.ids.includes(decodeURIComponent(fragment))
          : file || existsSync(join(ROOT, 'ui', path))
        if (!isThere) lost.push(`${address} -> ${link}`)
      }
    }
    expect(lost).toEqual([])
  })

  test('has each id once on a page, one h1, a title and a description of its own', () => {
    const titles = new Set<string>()
    for (const [address, { ids, document }] of pages) {
      expect([address, ids.filter((id, at) => ids.indexOf(id) !== at)]).toEqual([address, []])
      expect([address, document.querySelectorAll('h1').length]).toEqual([address, 1])
      const title = document.querySelector('title')?.textContent ?? ''
      expect(titles.has(title) ? `${address}: ${title} again` : '').toBe('')
      titles.add(title)
      const description = document.querySelector('meta[name="description"]')?.getAttribute('content') ?? ''
      expect(description.length, address).toBeGreaterThan(30)
      expect(description.length, address).toBeLessThanOrEqual(160)
    }
  })

  test('has nothing inline that a policy would have to allow', () => {
    for (const [address, { document, text }] of pages) {
      expect(document.querySelectorAll('script:not([src]), style').length, address).toBe(0)
      expect(text.replace(/<pre.*?<\/pre>/gs, ''), address).not.toMatch(/<[^>]+\s(style|on\w+)=/)
    }
    for (const [path] of files) if (path.endsWith('.css')) expect(textOf(path), path).not.toContain('data:')
  })

  test('leads from each page to the next, and back', () => {
    const order = GROUPS.flatMap((group) => group.names)
    const at = order.indexOf('guides/website')
    const page = pages.get('/docs/guides/website')!.document
    expect(page.querySelector('.pager-link.prev')?.getAttribute('href')).toBe(`/docs/${order[at - 1]}`)
    expect(page.querySelector('.pager-link.next')?.getAttribute('href')).toBe(`/docs/${order[at + 1]}`)
  })

  test('keeps the Markdown beside each page, and lists all for programs', () => {
    expect(textOf('keys.md')).toBe(readFileSync(join(ROOT, 'docs/keys.md'), 'utf8'))
    expect(textOf('llms.txt')).toContain('](/docs/keys): ')
  })

  test('carries the page key that it was built with, and none by itself', () => {
    const { text } = pages.get('/docs/keys')!
    expect(text).not.toContain('parley-key')
    const { document } = parseHTML(withKey(text, 'a-page-"key"'))
    expect(document.querySelector('head meta[name=parley-key]')?.getAttribute('content')).toBe('a-page-"key"')
  })

  test('has the place that each passage of the sample links to', () => {
    const lost = passages('http://localhost:8108').filter(({ url }) => {
      const { pathname, hash } = new URL(url)
      const page = pages.get(pathname)
      return !page || (hash !== '' && !page.ids.includes(decodeURIComponent(hash.slice(1))))
    })
    expect(lost.map(({ url }) => url)).toEqual([])
  })

  test('shows the sources of all examples', () => {
    const { document } = pages.get('/docs/examples')!
    const shown = [...document.querySelectorAll('.vp-doc h2')].map(wordsOf)
    expect(shown).toEqual(
      expect.arrayContaining(readdirSync(join(ROOT, 'examples')).filter((file) => file !== 'README.md')),
    )
  })
})

test('every section of the documentation is short enough to be one passage', () => {
  const long = written().flatMap((name) => {
    const markdown = readFileSync(join(ROOT, `docs/${name}.md`), 'utf8')
    return markdown
      .split(/^(?=## )/m)
      .flatMap((section) => (section.length < 4_000 ? [] : [section.slice(0, 60)]))
  })
  expect(long).toEqual([])
})
