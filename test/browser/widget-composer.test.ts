/** What a visitor types is never lost, and what goes on meanwhile is said at once. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { LONGEST_QUESTION } from '../../src/turn/question-length'
import { CHROMIUM } from './chromium'
import { answered, ask, field, QUESTION, Stage } from './widget-stage'

const ANSWER = 'Bind the **key** to an assistant [keys.txt]. Pages hold no other.'

describe.runIf(CHROMIUM)('the field of the widget', () => {
  let stage: Stage

  beforeAll(async () => {
    stage = await Stage.set()
    stage.writer.answer = () => ANSWER
  })
  afterAll(() => stage.strike())

  beforeEach(() => async () => expect(await stage.reset()).toEqual([]))

  const status = (page: Page) => page.locator('.turn[aria-busy="true"] .status')

  test('keeps what is typed over a reload, until it is sent', async () => {
    const page = await stage.tab(await stage.visitor(), { mode: 'bubble', open: '' })
    await field(page).fill('A question\nof two lines')
    await page.reload()
    const again = page.getByRole('textbox', { name: 'Ask a question' })
    await expect.poll(() => again.inputValue()).toBe('A question\nof two lines')
    await again.press('Enter')
    await answered(page)
    await page.reload()
    await answered(page)
    expect(await again.inputValue()).toBe('')
  })

  test('keeps what is typed, and the focus, while the words of another language come', async () => {
    const context = await stage.visitor()
    const { promise: typed, resolve: go } = Promise.withResolvers<void>()
    await context.route(/languages-/, async (route) => {
      await typed
      await route.continue()
    })
    const page = await stage.tab(context)
    await page.evaluate(`document.querySelector('parley-chat').setAttribute('lang', 'de')`)
    await field(page).fill('Wie mache ich')
    go()
    const box = page.getByPlaceholder('Frage stellen')
    await box.waitFor()
    expect(await box.inputValue()).toBe('Wie mache ich')
    await page.keyboard.type(' das?')
    expect(await box.inputValue()).toContain(' das?')
  })

  test('shows a greeting that does not fit from its beginning', async () => {
    const page = await stage.tab(await stage.visitor(), { welcome: 'Ask what you like. '.repeat(300) })
    await page.locator('.suggestion').first().waitFor()
    await page.waitForTimeout(300)
    const scroller = page.locator('.scroller-y')
    expect(await scroller.evaluate((each) => each.scrollHeight > each.clientHeight)).toBe(true)
    expect(await scroller.evaluate((each) => each.scrollTop)).toBe(0)
  })

  test('takes a long text whole, and says before it is sent that it is too long', async () => {
    const page = await stage.tab(await stage.visitor())
    const long = 'x'.repeat(LONGEST_QUESTION + 1)
    await field(page).fill(long)
    await field(page).press('Enter')
    await page.getByText('This question is too long.').waitFor()
    expect((await field(page).inputValue()).length).toBe(long.length)
    expect(await page.locator('.turn').count()).toBe(0)
    await field(page).fill(QUESTION)
    expect(await page.locator('.limit').textContent()).toBe('')
    await field(page).press('Enter')
    await answered(page)
  })

  test('reads when the sources are there, and goes on by itself after it was offline', async () => {
    const context = await stage.visitor()
    const page = await stage.tab(context)
    stage.writer.holdAt(0)
    const before = stage.writer.begun
    await ask(page)
    await page.locator('.chip').first().waitFor()
    expect(await status(page).textContent()).toBe('Reading the sources…')
    await context.setOffline(true)
    await expect.poll(() => status(page).textContent()).toMatch(/^You are offline\./)
    stage.writer.go()
    await context.setOffline(false)
    const answer = await answered(page)
    expect(await answer.locator('strong').textContent()).toBe('key')
    expect(stage.writer.begun).toBe(before + 1)
    expect(stage.faults.splice(0).every((fault) => /net::ERR/.test(fault))).toBe(true)
  })
})
