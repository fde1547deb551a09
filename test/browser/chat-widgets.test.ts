/**
 * Chat widgets of others in a real browser, each from its own package, on a page of another origin than Parley's and under
 * the policy that docs/chat-protocols.md gives for it.
 */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createAssistant, createModel, request, unique, url } from '../clients/harness'
import { CHROMIUM, sharedBrowser } from './chromium'

const PACKAGES = join(import.meta.dirname, '../../node_modules')
const SCRIPTS: Record<string, string> = {
  '/deep-chat.js': 'deep-chat/dist/deepChat.bundle.js',
  '/snippet.js': '@cloudflare/ai-search-snippet/dist/search-snippet.es.js',
}

const SHOWS = [
  { id: 'salvage', title: 'Starship Salvage', text: 'A series about a crew that salvages warships.' },
  { id: 'kitchen', title: 'Quiet Kitchen', text: 'Slow cooking with old recipes from the countryside.' },
].map((show) => ({ ...show, url: `https://shows.example/${show.id}` }))
const QUESTION = 'Who salvages warships?'
const ANSWER = 'a crew that salvages warships'

describe.runIf(CHROMIUM)('on a page of another origin', () => {
  let browser: Browser
  let page: Page
  let pages: Server
  let origin: string
  let assistant: string
  let key: string
  /** the page's body, by its path */
  const bodies: Record<string, () => string> = {
    '/deep-chat': () => `
      <deep-chat></deep-chat><ul id="sources"></ul>
      <script type="module" nonce="page">
        import '/deep-chat.js'
        const chat = document.querySelector('deep-chat')
        chat.responseInterceptor = (frame) => {
          for (const { title } of frame.sources ?? []) {
            document.getElementById('sources').append(Object.assign(document.createElement('li'), { textContent: title }))
          }
          return frame
        }
        chat.connect = {
          url: '${url}/deep-chat/${assistant}',
          headers: { authorization: 'Bearer ${key}' },
          stream: true,
          additionalBodyProps: { conversation_id: '${crypto.randomUUID()}' },
        }
      </script>`,
    '/chat': () => snippet('chat-page-snippet'),
    '/search': () => snippet('search-bar-snippet'),
  }
  const snippet = (element: string) => `
    <${element} api-url="${url}/ai-search/${encodeURIComponent(key)}/${assistant}"></${element}>
    <script type="module" src="/snippet.js"></script>`

  beforeAll(async () => {
    const policy = `default-src 'none'; script-src 'self' 'nonce-page'; style-src 'unsafe-inline'; connect-src ${url}`
    pages = createServer(({ url: path = '' }, response) => {
      const script = SCRIPTS[path]
      response.setHeader('content-type', script ? 'text/javascript' : 'text/html; charset=utf-8')
      if (script) return response.end(readFileSync(join(PACKAGES, script)))
      response.setHeader('content-security-policy', policy)
      const body = bodies[path]?.() ?? ''
      response.end(`<!doctype html><html lang="en"><title>A page</title><body>${body}</body></html>`)
    }).listen(0, '127.0.0.1')
    await once(pages, 'listening')
    origin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`

    const shows = unique('shows')
    const fields = ['title', 'text', 'url'].map((name) => ({ name, type: 'string' }))
    await request('POST', '/collections', { name: shows, fields })
    const lines = SHOWS.map((show) => JSON.stringify(show)).join('\n')
    await request('POST', `/collections/${shows}/documents/import`, lines)
    const model = await createModel({ model_name: 'local/extractive', api_key: undefined })
    assistant = await createAssistant({ model, collections: [shows], url_field: 'url' })
    const { body } = await request('POST', '/keys', {
      description: 'a page',
      actions: ['documents:search'],
      collections: [shows],
      limits: { allowed_origins: [origin] },
    })
    key = body.value
    browser = await sharedBrowser()
  })
  afterAll(async () => {
    pages.close()
  })

  const faults: string[] = []
  beforeEach(async () => {
    faults.length = 0
    page = await browser.newPage()
    page.on('pageerror', (error) => faults.push(String(error)))
    return async () => {
      await page.close()
      expect(faults).toEqual([])
    }
  })

  test('deep-chat shows the answer with a link to its source, and gives the page the sources', async () => {
    await page.goto(`${origin}/deep-chat`)
    await page.locator('deep-chat #text-input').fill(QUESTION)
    await page.keyboard.press('Enter')
    const answer = page.locator('deep-chat .ai-message-text', { hasText: ANSWER })
    await answer.locator('a[href="https://shows.example/salvage"]').waitFor()
    await page.locator('#sources li', { hasText: 'Starship Salvage' }).waitFor()
  })

  test("the AI Search snippet's chat shows the answer", async () => {
    await page.goto(`${origin}/chat`)
    await page.locator('chat-page-snippet .chat-input').fill(QUESTION)
    await page.keyboard.press('Enter')
    await page.locator('.chat-message-assistant .chat-message-text', { hasText: ANSWER }).waitFor()
  })

  test("the AI Search snippet's search shows the documents", async () => {
    await page.goto(`${origin}/search`)
    await page.locator('search-bar-snippet .search-input').fill('warships')
    await page.keyboard.press('Enter')
    const result = page.locator('a.search-result-item', { hasText: 'Starship Salvage' })
    await result.waitFor()
    expect(await result.getAttribute('href')).toBe('https://shows.example/salvage')
    expect(await result.locator('.search-result-snippet').textContent()).toContain(ANSWER)
  })
})
