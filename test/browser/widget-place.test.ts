/** <parley-chat> among what is around it: other widgets, a keyboard, a printer, a selection, code in its colours. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { CHROMIUM } from './chromium'
import { answered, ask, Stage } from './widget-stage'

describe.runIf(CHROMIUM)('the widget', () => {
  let stage: Stage
  let page: Page

  beforeAll(async () => {
    stage = await Stage.set()
  })
  afterAll(() => stage.strike())
  beforeEach(() => async () => expect(await stage.reset()).toEqual([]))

  const open = async (attributes: Record<string, string> = {}) => {
    page = await stage.tab(await stage.visitor(), attributes)
    return page
  }

  test('gives code its colours when it is whole, also within lists, and shows footnotes', async () => {
    stage.writer.answer = () =>
      'Run it.[^1]\n\n1. First:\n\n   ```ts\n   const a = "x"\n   ```\n\n```sh\nnpm start # now\n```\n\n```odd\na = 1\n```\n\n[^1]: From *Node* 20 on.'
    await open()
    await ask(page)
    const answer = await answered(page)
    await answer.locator('.token-comment', { hasText: '# now' }).waitFor()
    await answer.locator('li .token-keyword', { hasText: 'const' }).waitFor()
    expect(await answer.locator('pre code').allTextContents()).toEqual([
      'const a = "x"',
      'npm start # now',
      'a = 1',
    ])
    expect(await answer.locator('.code:has-text("a = 1") [class^=token]').count()).toBe(0)
    expect(await answer.locator('p:has(sup)').allTextContents()).toEqual(['Run it.1', '1 From Node 20 on.'])
  })

  test('keeps what is selected in a list while it grows, and prints all of an answer', async () => {
    const items = Array.from({ length: 60 }, (_, n) => `- Item ${n} of a **list** that grows`)
    stage.writer.answer = () => items.join('\n')
    await open()
    stage.writer.holdAt(200)
    await ask(page)
    await page.locator('li strong').nth(5).waitFor()
    await page.evaluate(`{
      const prose = document.querySelector('parley-chat').shadowRoot.querySelector('.prose')
      window.kept = prose.querySelector('li')
      const range = document.createRange()
      range.selectNodeContents(window.kept)
      getSelection().removeAllRanges()
      getSelection().addRange(range)
    }`)
    stage.writer.go()
    const answer = await answered(page)
    expect(await answer.locator('li').count()).toBe(60)
    expect(await page.evaluate('[kept.isConnected, String(getSelection())]')).toEqual([
      true,
      'Item 0 of a list that grows',
    ])
    const height = () =>
      page.locator('.scroller-y').evaluate((part) => [Object(part).clientHeight, Object(part).scrollHeight])
    const [seen, whole] = await height()
    expect(seen).toBeLessThan(whole)
    await page.emulateMedia({ media: 'print' })
    const [printed, all] = await height()
    expect(printed).toBe(all)
    expect(await page.locator('.composer').isVisible()).toBe(false)
  })

  test('stands beside another bubble, and only one of them is open', async () => {
    await open({ mode: 'bubble' })
    await page.evaluate("document.body.append(document.querySelector('parley-chat').cloneNode())")
    const launchers = page.locator('.launcher')
    await expect.poll(() => launchers.count()).toBe(2)
    const boxes = await Promise.all([launchers.nth(0).boundingBox(), launchers.nth(1).boundingBox()])
    expect(boxes[1]!.x + boxes[1]!.width).toBeLessThan(boxes[0]!.x)
    await launchers.nth(0).click()
    await launchers.nth(1).click()
    expect(await page.locator('parley-chat[open]').count()).toBe(1)
    expect(await launchers.nth(0).getAttribute('aria-expanded')).toBe('false')
    // The one that is left takes the corner.
    await page.evaluate("document.querySelector('parley-chat').remove()")
    await page.mouse.move(10, 10)
    await expect.poll(() => launchers.boundingBox()).toEqual(boxes[0])
  })

  test('leaves room for the keyboard of a phone', async () => {
    const context = await stage.visitor({
      viewport: { width: 390, height: 780 },
      isMobile: true,
      hasTouch: true,
    })
    page = await stage.tab(context, { mode: 'bubble', open: '' })
    await page.locator('.suggestion').first().waitFor()
    // Chromium shows no keyboard here: the part of the page that is seen is said to be smaller.
    await page.evaluate(`{
      Object.defineProperty(visualViewport, 'height', { value: 400, configurable: true })
      visualViewport.dispatchEvent(new Event('resize'))
    }`)
    const bottom = async (what: string) => {
      const { y = 0, height = 0 } = (await page.locator(what).first().boundingBox()) ?? {}
      return y + height
    }
    await expect.poll(() => bottom('.composer')).toBeLessThanOrEqual(400)
    const room = await page.locator('.scroller-y').evaluate((part) => Object(part).clientHeight)
    expect(room).toBeGreaterThan(100)
    await page.evaluate('delete visualViewport.height; visualViewport.dispatchEvent(new Event("resize"))')
    await expect.poll(() => bottom('.composer')).toBeGreaterThan(700)
  })
})
