/** The console's chat in a real browser, over the sample, answered by the built-in model. */
import type { Browser, Page } from 'playwright-core'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { loadSample } from '../../scripts/sample.mjs'
import { createModel, KEY, request, unique, url } from '../clients/harness'
import { startLlm } from '../clients/llm'
import { CHROMIUM, sharedBrowser } from './chromium'

describe.runIf(CHROMIUM)('the page', () => {
  let browser: Browser
  let page: Page
  const faults: string[] = []

  beforeAll(async () => {
    await loadSample(url, KEY)
    browser = await sharedBrowser()
  })

  beforeEach(async () => {
    faults.length = 0
    page = await browser.newPage()
    page.on('pageerror', (error) => faults.push(String(error)))
    await page.goto(url)
    return async () => {
      await page.close()
      expect(faults).toEqual([])
    }
  })

  const answers = () => page.locator('.turn-item:has(.turn[aria-busy="false"])')

  const ask = async (question: string) => {
    const before = await answers().count()
    await page.getByLabel('Your question').fill(question)
    await page.keyboard.press('Enter')
    await answers().nth(before).waitFor()
    return answers().nth(before)
  }

  test('comes under a policy that lets in nothing from elsewhere', async () => {
    const headers = (await page.goto(url))?.headers() ?? {}
    expect(headers['content-security-policy']).toMatch(
      /^default-src 'none'; script-src 'self'; .*frame-ancestors 'none'$/,
    )
    expect(headers['content-security-policy']).not.toContain('unsafe')
    expect(headers['x-content-type-options']).toBe('nosniff')
    const evaded = await page.evaluate(async () => {
      // biome-ignore lint/suspicious/noExplicitAny: this function runs in the page, where there is a document
      const { document } = globalThis as any
      const script = document.createElement('script')
      script.textContent = 'globalThis.evaded = true'
      document.body.append(script)
      return (globalThis as unknown as { evaded?: boolean }).evaded === true
    })
    expect(evaded).toBe(false)
  })

  test('shows what can be asked', async () => {
    await page.getByRole('button', { name: 'How does Parley store history?', exact: true }).waitFor()
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Ask your documents')
    expect(await page.title()).toBe('Parley')
    expect(await page.getByLabel('Your question').getAttribute('placeholder')).toBe('Ask a question')
  })

  test('answers a suggested question with sources', async () => {
    await page.getByRole('button', { name: 'How do I create a conversation model?', exact: true }).click()
    await answers().first().waitFor()
    await answers().first().getByText('Answered by local/extractive').waitFor()
    const text = await answers().first().locator('.prose').textContent()
    expect(text?.length).toBeGreaterThan(20)

    const sources = answers().first().getByRole('list', { name: 'Sources' })
    expect(await sources.getByRole('button').count()).toBeGreaterThan(0)
    await page.locator('.cite').first().click()
    const card = page.getByRole('dialog')
    await card.locator('mark').waitFor()
    expect((await card.locator('mark').textContent())?.length).toBeGreaterThan(10)
    await card.getByRole('link').waitFor()
    await page.keyboard.press('Escape')
    await card.waitFor({ state: 'hidden' })
    await page.locator('.cite:focus').first().waitFor()
  })

  test('keeps a digit that is open, and the names of sources, while it looks again for what there is', async () => {
    let asked = 0
    let letThrough = () => {}
    const held = new Promise<void>((resolve) => {
      letThrough = resolve
    })
    let isHolding = false
    await page.route(`${url}/assistants`, async (route) => {
      asked += 1
      if (isHolding) await held
      await route.continue()
    })
    await page.reload()
    const question = page.getByRole('button', { name: 'How do I create a conversation model?', exact: true })
    await question.waitFor()
    isHolding = true
    const before = asked
    await question.click()
    await answers().first().waitFor()
    await expect.poll(() => asked).toBe(before + 1)
    const sources = answers().first().getByRole('list', { name: 'Sources' })
    const names = await sources.allTextContents()
    await page.locator('.cite').first().click()
    const card = page.getByRole('dialog')
    await card.locator('mark').waitFor()
    const loaded = page.waitForResponse(`${url}/assistants`)
    letThrough()
    await (await loaded).finished()
    // Two frames: what was loaded is drawn by then.
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
    await page.keyboard.press('Escape')
    await card.waitFor({ state: 'hidden' })
    await page.locator('.cite:focus').waitFor({ timeout: 5_000 })
    expect(await sources.allTextContents()).toEqual(names)
    expect(names[0]).toContain('How do I create a conversation model?')
  })

  test('leads from a source to its place in the documentation', async () => {
    await ask('Which language models can answer?')
    await page.locator('.chip').filter({ hasText: 'Which language models can answer?' }).first().click()
    const link = page.getByRole('dialog').getByRole('link')
    const address = (await link.getAttribute('href')) ?? ''
    expect(address).toBe(`${url}/docs/models#which-language-models-can-answer`)
    await page.goto(address)
    await page.locator('h2:target', { hasText: 'Which language models can answer?' }).waitFor()
  })

  test('leads from a source without an address to the page that shows it', async () => {
    const name = unique('caves')
    const fields = ['title', 'text'].map((field) => ({ name: field, type: 'string' }))
    await request('POST', '/collections', { name, fields })
    const id = 'sharks/nurse sharks.md'
    const shark = { id, title: 'Nurse sharks', text: 'Nurse sharks sleep in caves by day.' }
    await request('POST', `/collections/${name}/documents`, shark)
    await page.goto(`${url}/?collection=${name}`)
    await ask('Where do nurse sharks sleep?')
    await page.locator('.cite').first().click()
    await page.getByRole('dialog').getByRole('link').waitFor()
    const address = (await page.getByRole('dialog').getByRole('link').getAttribute('href')) ?? ''
    expect(address).toBe(`${url}/document#${name}/sharks/nurse%20sharks.md`)
    await page.goto(address)
    await page.getByRole('heading', { level: 2, name: 'Nurse sharks' }).waitFor()
  })

  test('shows a document to whoever has a key', async () => {
    const address = `${url}/document#docs/which-language-models-can-answer`
    await page.goto(address)
    await page.getByRole('heading', { level: 2, name: 'Which language models can answer?' }).waitFor()
    await page.getByRole('cell', { name: 'Claude' }).waitFor()

    const other = await browser.newPage()
    await other.addInitScript(
      "sessionStorage.setItem('parley.key', sessionStorage.getItem('parley.key') ?? 'no')",
    )
    await other.goto(address)
    await other.getByLabel('API key').fill(KEY)
    await other.getByRole('button', { name: 'Read' }).click()
    await other.getByRole('cell', { name: 'Claude' }).waitFor()
    await other.close()
  })

  test('shows an answer while it is being written', async () => {
    // Slow enough for a locator to look while it is being written: it looks twice a second.
    const llm = await startLlm({ latency: 300 })
    try {
      const model = await createModel({ model_name: 'openai/gpt', openai_url: llm.url })
      await page.goto(`${url}/?model=${model}`)
      await page.getByLabel('Your question').fill('How does Parley store history, and for how long?')
      await page.keyboard.press('Enter')
      const writing = page.locator('.turn[aria-busy="true"] .prose')
      await writing.filter({ hasText: 'You asked: How' }).waitFor()
      expect(await writing.textContent()).not.toContain('for how long?')
      await answers().filter({ hasText: 'and for how long?' }).waitFor()
    } finally {
      await llm.stop()
    }
  })

  test('a follow-up goes on with the conversation; a new one starts afresh', async () => {
    const asked: unknown[] = []
    page.on('request', (request) => {
      if (request.url() === `${url}/conversations`) asked.push(request.postDataJSON().conversation_id)
    })
    await ask('How does Parley store history?')
    const box = page.getByLabel('Your question')
    expect(await box.getAttribute('placeholder')).toBe('Ask a follow-up')
    await ask('How long is it kept?')
    expect(await page.locator('.turn').count()).toBe(2)
    await page.getByRole('button', { name: 'New conversation' }).click()
    expect(await page.locator('.turn').count()).toBe(0)
    expect(await box.getAttribute('placeholder')).toBe('Ask a question')
    await ask('Which language models can answer?')
    expect(asked).toEqual([undefined, expect.any(String), undefined])
  })

  test('opens whatever its address has after the #', async () => {
    // Reloaded, since going to another fragment of the same page loads nothing.
    for (const path of ['/#%', '/api#%E0%A4%A', '/document#docs/%']) {
      await page.goto(url + path)
      await page.reload()
      await page.getByRole('heading').first().waitFor()
    }
  })

  test('says in words what went wrong', async () => {
    await page.getByRole('button', { name: 'Settings' }).click()
    await page.getByRole('combobox', { name: 'Conversation model' }).fill('nowhere')
    await page.getByRole('button', { name: 'Apply' }).click()
    const answer = await ask('How does Parley store history?')
    expect(await answer.locator('.problem p').textContent()).toBe(
      'Something went wrong. There is no such conversation model. Choose another one under Settings.',
    )
  })

  test('asks for another key where this one is refused', async () => {
    await page.getByRole('button', { name: 'Switch key' }).click()
    await page.getByLabel('API key').fill('wrong')
    await page.getByRole('button', { name: 'Open the console' }).click()
    expect(await page.getByRole('alert').textContent()).toBe('The API key was refused. Enter another one.')
    await page.getByLabel('API key').fill(KEY)
    await page.getByRole('button', { name: 'Open the console' }).click()
    await page.getByLabel('Your question').waitFor()
    // A key that was good, and is not any more.
    await page.evaluate("sessionStorage.setItem('parley.key', 'gone')")
    await page.reload()
    await page.getByText('The API key was refused. Enter another one.').waitFor()
  })

  test('shows markup of a document and of a question as text', async () => {
    const answer = await ask('<img src=x onerror="document.title=1"> How does Parley store history?')
    await answer.waitFor()
    expect(await page.locator('.turn img').count()).toBe(0)
    expect(await page.title()).toContain('<img src=x')
    expect(await page.locator('.question-text').textContent()).toContain('<img src=x')
  })

  test('keeps the key in the tab and out of the address, and in the browser where that is wanted', async () => {
    const { body } = await request('POST', '/keys', {
      description: 'another',
      actions: ['*'],
      collections: ['*'],
    })
    const context = await browser.newContext()
    const page = await context.newPage()
    await page.goto(url)
    const enter = async (remember: boolean) => {
      await page.getByRole('button', { name: 'Switch key' }).click()
      await page.getByLabel('API key').fill(body.value)
      if (remember) await page.getByLabel('Remember it in this browser').check()
      await page.getByRole('button', { name: 'Open the console' }).click()
      await page.getByLabel('Your question').waitFor()
    }
    const keyOf = async (tab: Page) => {
      const asked = tab.waitForRequest((each) => each.url().includes('/conversations?limit='))
      await tab.goto(url)
      return (await asked).headers()['x-typesense-api-key']
    }
    await enter(false)
    expect(await keyOf(page)).toBe(body.value)
    expect(page.url()).not.toContain(body.value)
    const other = await context.newPage()
    expect(await keyOf(other)).toBe(KEY)
    await page.goto(url)
    await enter(true)
    const third = await context.newPage()
    expect(await keyOf(third)).toBe(body.value)
    await context.close()
  })

  test('leads to the documentation, whose reference shows every route and object', async () => {
    await page.getByRole('link', { name: 'Documentation' }).click()
    await page.getByRole('navigation', { name: 'Main Navigation' }).getByRole('link', { name: 'API' }).click()
    const document = await (await fetch(`${url}/openapi.json`)).json()
    const { paths, components } = document as {
      paths: Record<string, Record<string, { summary: string }>>
      components: { schemas: Record<string, unknown> }
    }
    const summaries = Object.values(paths).flatMap((methods) =>
      Object.values(methods).map(({ summary }) => summary),
    )
    await page
      .getByRole('heading', { name: summaries[0] ?? '' })
      .first()
      .waitFor()
    const shown = async (level: string) =>
      (await page.locator(`.vp-doc ${level}`).allInnerTexts()).map((text) =>
        text.replace('\u200b', '').trim(),
      )
    expect(await shown('h2')).toEqual([...summaries, 'Objects'])
    expect(await shown('h3')).toEqual(Object.keys(components.schemas))
  })

  test('fits a phone: no word is cut, and nothing sticks out', async () => {
    await page.setViewportSize({ width: 390, height: 844 })
    await page.goto(`${url}/api`)
    const cell = page.locator('.vp-doc td', { hasText: /^boolean$/ }).first()
    await cell.waitFor()
    const lines = await cell.evaluate((element) => {
      // biome-ignore lint/suspicious/noExplicitAny: this function runs in the page, where there is a document
      const range = (globalThis as any).document.createRange()
      range.selectNodeContents(element)
      return range.getClientRects().length
    })
    expect(lines).toBe(1)
    const tooWide = await page.evaluate(() => {
      // biome-ignore lint/suspicious/noExplicitAny: this function runs in the page, where there is a document
      const { document, innerWidth } = globalThis as any
      return document.documentElement.scrollWidth - innerWidth
    })
    expect(tooWide).toBe(0)
  })
})
