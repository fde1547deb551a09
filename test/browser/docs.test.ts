/** The documentation at /docs in a real browser: every page, the search box, "ask about this page", and commands that run. */
import type { Locator, Page } from 'playwright-core'
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

  /** The commands of a page that run, in their order. */
  const commands = (page: Page) => page.locator('.run')
  const command = (page: Page, line: string) =>
    commands(page)
      .filter({ has: page.getByRole('button', { name: `Run ${line}`, exact: true }) })
      .first()

  /** Runs a command, and says yes where it asks. @returns its reply */
  const run = async (block: Locator, effect?: string) => {
    await block.getByRole('button', { name: /^Run / }).click()
    if (effect !== undefined) {
      await block.getByRole('group', { name: 'Before it runs' }).getByText(effect, { exact: true }).waitFor()
      expect(await block.locator('pre[aria-label]').count()).toBe(0)
      await block.page().keyboard.press('Enter')
    }
    await block
      .getByRole('status')
      .getByText(/ after \d+ ms\./)
      .waitFor()
    return (await block.getByRole('region', { name: /^Reply to / }).textContent()) ?? ''
  }

  test('runs the commands of a page from its top: makes a key, changes it by its id, and deletes it', async () => {
    const page = await ready(await stage.tab(SIZES.phone, 'docs/keys'))
    const made = JSON.parse(await run(command(page, 'POST /keys'), 'This makes a key on this server.'))
    expect(made).toMatchObject({ description: 'search only', value: expect.any(String) })
    const change = command(page, 'PATCH /keys/KEY_ID')
    expect(await change.locator('code').textContent()).toContain(`${url}/keys/${made.id} `)
    await change.getByText(`Filled in from an earlier reply: KEY_ID is ${made.id}.`).waitFor()
    await change.getByRole('button', { name: /^Edit / }).click()
    const text = change.getByRole('textbox', { name: 'Command' })
    await text.fill((await text.inputValue()).replace('200000', '300000'))
    const changed = JSON.parse(await run(change, `This changes the key ${made.id} on this server.`))
    expect(changed).toMatchObject({ id: made.id, limits: { tokens_per_day: 300_000 } })
    await expectSound(page, 'after commands')
    const end = command(page, 'DELETE /keys/KEY_ID')
    expect(JSON.parse(await run(end, `This deletes the key ${made.id} on this server.`))).toEqual({
      id: made.id,
    })
    expect((await request('GET', `/keys/${made.id}`)).status).toBe(404)
  })

  test('streams an answer, and follows it by its id', async () => {
    const page = await ready(await stage.tab({}, 'docs/conversations'))
    const all = commands(page)
    const said = await run(all.nth(0))
    const id = /"conversation_id":"([\da-f-]+)"/.exec(said)?.[1]
    expect(said).toContain('event: done')
    expect(await all.nth(1).locator('code').textContent()).toContain(`/conversations/${id}/events`)
    expect(await run(all.nth(1))).toContain('event: done')
    // It has no id on a page that is opened anew, and sends nothing without one.
    await page.reload()
    await ready(page)
    await all.nth(1).getByRole('button', { name: /^Run / }).click()
    await all.nth(1).getByText('CONVERSATION stands for a value of your own.').waitFor()
  })

  test('goes on with the commands of a block after one that is refused, and shows code in colours', async () => {
    const page = await ready(await stage.tab({ colorScheme: 'dark' }, 'docs/analytics'))
    const makes = 'POST /collections'
    const block = command(page, makes)
    const press = async () => {
      await block.getByRole('button', { name: `Run ${makes}`, exact: true }).click()
      await block.getByRole('button', { name: 'Do it' }).click()
    }
    await press()
    await block.getByText('All 2 commands were answered.').waitFor()
    await press()
    await block.getByText('0 of 2 commands were answered.').waitFor()
    await block.getByText(/^POST \/collections: 409 .* That is on this server already\./).waitFor()
    await block.getByText(/^POST \/collections\/books\/documents: 409 /).waitFor()
    const colours = await page.evaluate(
      "[...new Set([...document.querySelectorAll('.t-string-expression')].map((each) => getComputedStyle(each).color))]",
    )
    expect(colours).toEqual(['rgb(147, 211, 162)'])
    await request('DELETE', '/collections/books')
    expect(stage.faults.splice(0)).toEqual(Array(2).fill(expect.stringContaining('409 (Conflict)')))
  })

  test('stops a stream, and says in words why nothing came', async () => {
    const page = await ready(await stage.tab({}, 'docs/conversations'))
    const ask = commands(page).first()
    const button = ask.getByRole('button', { name: /^Run / })
    await page.route(`${url}/conversations`, () => {}) // answers never
    await button.click()
    await ask.getByRole('button', { name: 'Stop' }).click()
    await ask.getByRole('status').getByText('POST /conversations: Stopped.').waitFor()
    await page.unrouteAll()
    await page.route(`${url}/conversations`, (route) => route.abort())
    await button.click()
    await ask.getByRole('status').getByText('This server cannot be reached.').waitFor()
    expect(stage.faults.splice(0).join()).toMatch(/^Failed to load resource: net::ERR_FAILED \S*$/)
  })

  test('asks for a key where none is known, once, and keeps it in the tab', async () => {
    const page = await ready(await stage.tab({}, 'docs/api/typesense'))
    await page.evaluate("sessionStorage.setItem('parley.key', '')")
    await page.reload()
    await ready(page)
    const list = command(page, 'GET /collections')
    const enter = async (key: string) => {
      await list.getByLabel('API key of this server').fill(key)
      await list.getByRole('button', { name: 'Use this key' }).click()
    }
    await list.getByRole('button', { name: 'Run GET /collections' }).click()
    await enter('wrong')
    await list.getByText('The server does not take this key for this.').waitFor()
    await expectSound(page, 'asked for a key')
    await enter(KEY)
    const reply = list.getByRole('region', { name: 'Reply to GET /collections' })
    await reply.getByText('"docs"').first().waitFor()
    expect(await page.evaluate("[sessionStorage.getItem('parley.key'), location.href]")).toEqual([
      KEY,
      `${url}/docs/api/typesense`,
    ])
    expect(stage.faults.splice(0).join()).toMatch(
      /^Failed to load resource: .* 401 \(Unauthorized\) \/collections$/,
    )
  })

  test('is its blocks alone on paper', async () => {
    const page = await ready(await stage.tab({}, 'docs/keys'))
    await commands(page).first().getByRole('button', { name: /^Run / }).waitFor()
    await page.emulateMedia({ media: 'print' })
    expect(await page.getByRole('button', { name: /^(Run|Edit) / }).count()).toBe(0)
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
