/** What of the console wants a browser: scrolling, the focus, layout, a folder that is dropped. Its pages are tested in test/console. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { loadSample } from '../../scripts/sample.mjs'
import { KEY, request, unique, url } from '../clients/harness'
import { fullServer } from '../console/full'
import { CHROMIUM } from './chromium'
import { ConsoleStage, expectSound, SIZES, serveBy } from './console-stage'

const QUESTION = 'How does Parley store history?'

describe.runIf(CHROMIUM)('the console', () => {
  let stage: ConsoleStage

  beforeAll(async () => {
    await loadSample(url, KEY)
    stage = await ConsoleStage.set()
  })
  beforeEach(() => async () => expect(await stage.reset()).toEqual([]))

  test('stays at the end of a conversation while it is written', async () => {
    const page = await stage.tab()
    const questions = [QUESTION, 'How are keys stored?', 'Which errors can an import have?', QUESTION]
    for (const [at, question] of questions.entries()) {
      await page.getByLabel('Your question').fill(question)
      await page.keyboard.press('Enter')
      await expect.poll(() => page.getByText('Answered by').count(), { timeout: 10_000 }).toBe(at + 1)
      const left = () =>
        page.evaluate(
          "(({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop - clientHeight)(document.querySelector('.chat-scroll'))",
        )
      await expect.poll(left).toBeLessThan(2)
    }
    // Who reads further up is left there.
    await page.mouse.move(600, 300)
    await page.mouse.wheel(0, -600)
    await expect
      .poll(() => page.evaluate("document.querySelector('.chat-scroll').scrollTop"))
      .toBeLessThan(
        (await page.evaluate("document.querySelector('.chat-scroll').scrollHeight - innerHeight")) as number,
      )
    const latest = page.getByRole('button', { name: 'Jump to latest' })
    await latest.click()
    await latest.waitFor({ state: 'hidden' })
  })

  test('can be used with the keyboard alone', async () => {
    const page = await stage.tab()
    await page.getByRole('button', { name: QUESTION, exact: true }).first().waitFor()
    await page.keyboard.press('Tab')
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to the page')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Tab')
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Settings')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Settings')
    // A question can be asked from any page.
    await page.goto(`${url}/#/models`)
    await page.getByRole('heading', { name: 'Models', level: 1 }).waitFor()
    await page.keyboard.press('Control+k')
    await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('question')
    // Colours that are chosen stay.
    const scheme = "getComputedStyle(document.querySelector('.main')).colorScheme"
    for (const theme of ['system', 'light'])
      await page.getByRole('button', { name: `Theme: ${theme}` }).click()
    await page.reload()
    await page.getByRole('button', { name: 'Theme: dark' }).waitFor()
    expect(await page.evaluate(scheme)).toBe('dark')
  })

  test('has room for long names and shows markup as text, on the narrowest of phones', async () => {
    const name = `${unique('long')}-${'without-any-end-'.repeat(6)}`
    const fields = ['title', 'text', 'tag'].map((field) => ({
      name: field,
      type: 'string',
      facet: field === 'tag',
    }))
    await request('POST', '/collections', { name, fields })
    const markup = '<img src=x onerror="document.title=1"><b>Bold</b>'
    const documents = [
      { id: '<b>1</b>', title: markup, text: `Corals build ${markup} reefs.`, tag: markup },
      {
        id: 'x'.repeat(200),
        title: 'Donaudampfschiff'.repeat(20),
        text: 'y'.repeat(500),
        tag: 'z'.repeat(90),
      },
      { id: 'rtl', title: 'مرحبا بالعالم', text: 'الشعاب المرجانية تنمو ببطء', tag: 'بحر' },
    ]
    for (const document of documents) await request('POST', `/collections/${name}/documents`, document)
    const page = await stage.tab({ ...SIZES.phone, viewport: { width: 320, height: 640 } }, '#/collections')
    await page.getByRole('link', { name, exact: true }).waitFor()
    await expectSound(page, 'list')
    await page.goto(`${url}/#/collections/${name}/documents`)
    await page.getByText('مرحبا بالعالم').waitFor()
    expect(await page.evaluate("document.querySelectorAll('.row-title:dir(rtl)').length")).toBe(1)
    await expectSound(page, 'documents')
    for (const { id, title } of documents) {
      await page.locator('.row', { hasText: title }).click()
      await page.getByRole('dialog').getByRole('heading', { name: id, exact: true }).waitFor()
      await expectSound(page, `document ${id}`)
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
    }
    await page.goto(`${url}/#/collections/${name}?q=corals`)
    await page.locator('.result mark').first().waitFor()
    await expectSound(page, 'search')
    await page.locator('.facets button').first().click()
    await expect.poll(() => decodeURIComponent(page.url())).toContain('tag:=')
    expect(await page.locator('main :is(img, b)').count()).toBe(0)
    expect(await page.title()).toContain(name)
  })

  test('draws a chart in a window that is narrower than the names of its axis', async () => {
    const page = await stage.tab({}, '#/nowhere')
    await serveBy(page, fullServer())
    await page.goto(`${url}/#/usage`)
    await page.locator('.chart').waitFor()
    await page.setViewportSize({ width: 90, height: 600 })
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
    await page.setViewportSize({ width: 1360, height: 860 })
  })

  test('takes a folder that is dropped, with what is in its folders', async () => {
    const page = await stage.tab({}, '#/start')
    const folder = mkdtempSync(join(tmpdir(), 'parley-dropped-'))
    mkdirSync(join(folder, 'sea'))
    writeFileSync(
      join(folder, 'sea', 'tides.md'),
      '# Tides\n\nThe moon pulls the sea, which makes the tides.',
    )
    await page.getByRole('link', { name: 'Import files' }).waitFor()
    // Only the browser itself can drop a folder.
    const session = await page.context().newCDPSession(page)
    const data = { items: [], files: [folder], dragOperationsMask: 1 }
    for (const type of ['dragEnter', 'dragOver', 'drop'] as const) {
      await session.send('Input.dispatchDragEvent', { type, x: 600, y: 300, data })
    }
    await page.getByText('The collection is made with').waitFor()
    await page.getByLabel('The first documents').getByText('sea/tides.md').waitFor()
    rmSync(folder, { recursive: true })
  })
})
