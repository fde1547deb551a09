/** The documentation at /docs in a real browser: every page, the search box, "ask about this page", and "try it". */
import type { Page } from 'playwright-core'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { GROUPS } from '../../scripts/docs/pages.mjs'
import { referencePages } from '../../scripts/docs/reference.mjs'
import { loadSample } from '../../scripts/sample.mjs'
import { KEY, request, url } from '../clients/harness'
import { TEXT_RULES } from './axe'
import { CHROMIUM } from './chromium'
import { ConsoleStage, expectSound, LOOKS, SIZES } from './console-stage'

const PAGES = [
  '',
  ...GROUPS.flatMap(({ names }) => names),
  'examples',
  ...referencePages().map(({ name }) => name),
]

/** One page of each kind: the first, text with code and tables, text with pictures, examples, and the reference. */
const KINDS = ['', 'widget', 'console', 'examples', 'api']
for (const kind of KINDS) if (!PAGES.includes(kind)) throw new Error(`There is no page ${kind}.`)

describe.runIf(CHROMIUM)('the documentation', () => {
  let stage: ConsoleStage

  beforeAll(async () => {
    await loadSample(url, KEY)
    stage = await ConsoleStage.set()
  })

  beforeEach(() => async () => expect(await stage.reset()).toEqual([]))

  /** Waits until the page that was opened hears what is done to it. */
  const ready = async (page: Page) => {
    await page.waitForFunction("document.querySelector('#app').__vue_app__")
    return page
  }

  const search = async (page: Page, words: string) => {
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox').fill(words)
    await page.getByRole('option').first().waitFor()
  }

  for (const { size, colorScheme, options } of LOOKS) {
    test(`has no fault on a page of any kind, on a ${size}, ${colorScheme}`, {
      timeout: 60_000,
    }, async () => {
      const page = await stage.tab(options, 'docs/')
      for (const name of KINDS) {
        await page.goto(`${url}/docs/${name}`)
        await expectSound(page, `${name}, ${size}, ${colorScheme}`)
      }
    })
  }

  /**
   * Shows another page of the documentation in the place of this one, as it comes from the server. To open each takes three times as
   * long, for its scripts and axe.
   */
  const showInstead = (page: Page, html: string) =>
    page.evaluate(`{
      const { body, title } = new DOMParser().parseFromString(${JSON.stringify(html)}, 'text/html')
      document.title = title
      document.body.replaceWith(document.adoptNode(body))
    }`)

  // On a phone, where there is the least room.
  test('has no fault in the text of any page', { timeout: 120_000 }, async () => {
    const page = await stage.tab(SIZES.phone, 'docs/')
    for (const name of PAGES) {
      const response = await fetch(`${url}/docs/${name}`, { headers: { accept: 'text/html' } })
      expect([name, response.status]).toEqual([name, 200])
      expect(response.headers.get('content-security-policy')).toMatch(
        /^default-src 'none'; script-src 'self';/,
      )
      await showInstead(page, await response.text())
      expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1)
      await expectSound(page, name, TEXT_RULES)
    }
  })

  test('is at /docs too, where a browser asks, and is an index there for a client', async () => {
    const page = await stage.tab({}, 'docs')
    expect(await page.title()).toBe('Parley documentation')
    const { status, body } = await request('GET', '/docs')
    expect([status, Object.keys(body)]).toEqual([200, ['docs']])
  })

  test('has its search box find a page by its words, and opens it', async () => {
    const page = await ready(await stage.tab({}, 'docs/'))
    await search(page, 'strict content security policy')
    await page.locator('.results mark').first().waitFor()
    await expectSound(page, 'searching')
    const option = page.getByRole('option', { name: /Which Content-Security-Policy does it need/ })
    await option.waitFor()
    while ((await option.getAttribute('aria-selected')) !== 'true') await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.waitForURL(`${url}/docs/widget#which-content-security-policy-does-it-need`)
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
  })

  test('searches all text without a key, and says of a question that it needs one', async () => {
    const page = await ready(await stage.tab({}, 'docs/keys'))
    await page.evaluate("sessionStorage.setItem('parley.key', '')")
    await page.reload()
    await ready(page)
    await search(page, 'parameters baked in that its holder cannot change')
    expect(await page.getByRole('option').first().textContent()).toContain('What is a scoped key?')
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'What is a scoped key?' }).click()
    await page.getByText('Asking needs an API key. Open the console, enter one, and come back.').waitFor()
  })

  test('answers a question about the page, with its sources', async () => {
    const page = await ready(await stage.tab({}, 'docs/keys'))
    await page.getByRole('button', { name: 'What is a scoped key?' }).click()
    const chat = page.locator('parley-chat')
    await chat.locator('.turn', { hasText: 'a search key with parameters baked in' }).waitFor()
    expect(await chat.locator('.chip').count()).toBeGreaterThan(0)
    await page.keyboard.press('Escape')
    await page.getByLabel('Your question').fill('Who may see it?')
    await page.getByRole('button', { name: 'Ask', exact: true }).click()
    // A question that does not name its subject is asked with the page's title.
    await chat.locator('.turn', { hasText: 'Who may see it? (API keys)' }).waitFor()
    // A slash in a question is none that opens the search.
    await chat.getByRole('textbox').press('/')
    expect(await page.getByRole('combobox').count()).toBe(0)
  })

  test('sends a request of the reference, and shows the reply', async () => {
    const page = await ready(await stage.tab({}, 'docs/api/typesense'))
    // The first form after what is said of the route.
    const route = page.locator("p:text('Lists the collections that the key may see.') ~ .try").first()
    await route.getByText('Try it').click()
    await route.getByRole('button', { name: 'Send GET' }).click()
    await route.getByText('200 after').waitFor()
    expect(JSON.parse((await route.locator('pre').textContent()) ?? '')).toContainEqual(
      expect.objectContaining({ name: 'docs' }),
    )
    await expectSound(page, 'tried')
  })

  test('has its commands name this server and the key of the tab, on every page that is opened', async () => {
    const page = await ready(await stage.tab({}, 'docs/keys'))
    await page.evaluate("sessionStorage.setItem('parley.key', 'own-key')")
    await page.reload()
    await ready(page)
    const command = page.locator('.vp-doc pre', { hasText: 'curl' }).first()
    await expect.poll(() => command.textContent()).toContain(`${url}/`)
    expect(await command.textContent()).toContain(': own-key')
    await page.getByRole('link', { name: 'Conversations', exact: true }).first().click()
    await page.waitForURL(`${url}/docs/conversations`)
    await expect.poll(() => command.textContent()).toContain(`${url}/`)
    expect(await page.locator('.vp-doc code', { hasText: 'http://localhost:8108' }).count()).toBe(0)
  })

  test('copies a block of code, and keeps light or dark as it was chosen', async () => {
    const page = await ready(await stage.tab({ permissions: ['clipboard-read', 'clipboard-write'] }, 'docs/'))
    await page.getByText('npm run parley -- import').hover()
    await page.getByRole('button', { name: 'Copy' }).first().click()
    expect(await page.evaluate('navigator.clipboard.readText()')).toMatch(/^npm ci\nnpm start\n/)
    await page.getByRole('switch').first().click()
    await page.goto(`${url}/docs/keys`)
    expect(await page.evaluate("document.documentElement.classList.contains('dark')")).toBe(true)
  })

  test('has its menu behind a button on a phone, and leads from the old address of the reference', async () => {
    const page = await ready(await stage.tab(SIZES.phone, 'docs/keys'))
    const menu = page.locator('.VPSidebar')
    expect(await menu.isVisible()).toBe(false)
    await page.getByRole('button', { name: 'All pages' }).click()
    await expectSound(page, 'menu')
    await menu.getByRole('link', { name: 'The chat widget' }).click()
    await page.waitForURL(`${url}/docs/widget`)
    await page.goto(`${url}/api#getConversation`)
    expect(page.url()).toBe(`${url}/docs/api#getConversation`)
  })
})
