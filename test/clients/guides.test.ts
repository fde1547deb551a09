/**
 * The guides of docs/guides/, followed to the letter: their files are written, their commands run through npm, and what
 * they say is printed has to be printed.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { serve } from '../serve'
import { GuideReader, ROOT } from './guide-reader'

const GUIDES = join(ROOT, 'docs/guides')
const SITE_OF_GUIDE = 'https://www.example.com'

let reader: GuideReader

beforeAll(() => {
  reader = new GuideReader(inject('url'))
})
afterAll(() => reader.close())

const follow = (guide: string, site = SITE_OF_GUIDE) =>
  reader.follow(`guides/${guide}`, { [SITE_OF_GUIDE]: site })

test('"Ask your own Markdown" prints what it says', async () => {
  expect(await follow('markdown.md')).toEqual({ commands: 5, shown: 20 })
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
  expect(followed).toEqual({ commands: 4, shown: 12 })
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
